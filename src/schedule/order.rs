//! How a schedule is set up, and talked to while it runs.

use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};

use super::job::{Job, NewTask};
use super::loading::Loading;
use super::task::Record;
use super::view::{Snapshot, TaskView};
use super::work::Work;
use super::worker::{Completed, Settings, Worker};
use crate::admission::{Admission, Lane, Outlook};
use crate::audit::TaskRef;
use crate::store::{Changes, StoreError};

/// A schedule about to run.
#[derive(Debug)]
pub struct Schedule<W> {
    /// The gate its calls go through.
    pub admission: Arc<Admission>,
    /// The job whose tasks they are.
    pub job: Arc<Job>,
    /// What they do.
    pub work: Arc<W>,
    /// How.
    pub settings: Settings,
}

/// Why a schedule stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Every task is complete.
    Done,
    /// Somebody asked; tasks may be left.
    Asked,
    /// Nothing more could be done here; tasks may be left.
    Fault(String),
}

/// What became of a wish to cancel a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cancelled {
    /// It is cancelled.
    Done,
    /// Its call is under way; that cannot be undone.
    Running,
    /// There is no such task.
    Unknown,
}

pub(super) type Orders = mpsc::UnboundedReceiver<Order>;

pub(super) enum Order {
    Add(Vec<(TaskRef, Record)>),
    Seal,
    Stop(Stop),
    Look(usize, oneshot::Sender<Snapshot>),
    List(oneshot::Sender<Vec<TaskView>>),
    Work(oneshot::Sender<Vec<(Arc<Lane>, u64)>>),
    Cancel(TaskRef, oneshot::Sender<Cancelled>),
}

/// A running schedule.
#[derive(Clone, Debug)]
pub struct Handle {
    orders: mpsc::UnboundedSender<Order>,
    job: Arc<Job>,
    admission: Arc<Admission>,
    intake: Arc<tokio::sync::Mutex<()>>,
}

/// Everything a schedule that was started gives back.
#[derive(Debug)]
pub struct Started {
    /// To talk to it.
    pub handle: Handle,
    /// Results as they become durable.
    pub completed: mpsc::UnboundedReceiver<Completed>,
    /// How it ends.
    pub stopped: tokio::task::JoinHandle<Stop>,
}

impl<W: Work> Schedule<W> {
    /// Starts the schedule, which takes up what a run before left over.
    ///
    /// # Errors
    /// When the queue on record cannot be read.
    pub fn start(self) -> Result<Started, StoreError> {
        let (orders, inbox) = mpsc::unbounded_channel();
        let (sender, completed) = mpsc::unbounded_channel();
        let handle = Handle {
            orders,
            job: self.job.clone(),
            admission: self.admission.clone(),
            intake: Arc::default(),
        };
        let job = self.job.clone();
        let mut worker = Worker::new(self, inbox, sender);
        let cut = job.cut()?;
        let mut changes = Changes::default();
        for task in &cut {
            match job.load(*task)? {
                Some(record) => worker.take_up_cut(*task, record, &mut changes),
                None => job.taken_up(&mut changes, *task),
            }
        }
        if !cut.is_empty() {
            let store = worker.admission.store();
            store.write(changes).detach();
            // A task is tried as the store has it.
            store.settle()?;
        }
        worker.loading = Some(Loading::of(&job, cut));
        #[expect(
            clippy::disallowed_methods,
            reason = "its handle is given to the caller"
        )]
        let stopped = tokio::spawn(worker.run());
        Ok(Started {
            handle,
            completed,
            stopped,
        })
    }
}

/// The schedule has stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the schedule has stopped")]
pub struct Stopped;

/// Why tasks were not accepted.
#[derive(Debug, thiserror::Error)]
pub enum SubmitError {
    /// What is known cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// What is new cannot be written.
    #[error(transparent)]
    Fault(#[from] crate::store::Fault),
    /// The schedule has stopped.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

/// What became of tasks that were handed over.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Submitted {
    /// New ones, durable.
    pub new: u64,
    /// Those of them that were complete, and are asked again in a refresh.
    pub again: u64,
    /// Asked for before, in the same words.
    pub known: u64,
    /// Ids that were asked for before in other words: nothing was changed.
    pub conflicts: Vec<Arc<str>>,
}

impl Handle {
    /// The job.
    #[must_use]
    pub fn job(&self) -> &Arc<Job> {
        &self.job
    }

    /// Hands tasks over; they are durable when this returns.
    ///
    /// # Errors
    /// When they are not.
    pub async fn submit(&self, tasks: Vec<NewTask>) -> Result<Submitted, SubmitError> {
        let mine = self.clone();
        // Goes on when the caller does not: what is accepted is also queued.
        #[expect(clippy::disallowed_methods, reason = "ends with what it hands over")]
        let handed_over = tokio::spawn(async move { mine.hand_over(tasks).await });
        handed_over.await.map_err(|_| Stopped)?
    }

    async fn hand_over(&self, tasks: Vec<NewTask>) -> Result<Submitted, SubmitError> {
        // One after the other, to the disk: no id is taken twice.
        let _turn = self.intake.lock().await;
        let accepted = self.job.accept(tasks, self.admission.clock().now())?;
        accepted.durable.wait().await?;
        let submitted = Submitted {
            new: accepted.new.len() as u64,
            again: accepted.again,
            known: accepted.known,
            conflicts: accepted.conflicts,
        };
        self.send(Order::Add(accepted.new))?;
        Ok(submitted)
    }

    fn send(&self, order: Order) -> Result<(), Stopped> {
        self.orders.send(order).map_err(|_| Stopped)
    }

    /// No more tasks will come: the schedule ends with the last one.
    pub fn seal(&self) {
        let _ = self.send(Order::Seal);
    }

    /// Starts no more calls, and ends when those under way have ended.
    pub fn stop(&self) {
        let _ = self.send(Order::Stop(Stop::Asked));
    }

    /// How it stands, with at most so many lanes.
    ///
    /// # Errors
    /// When it has stopped.
    pub async fn look(&self, lanes: usize) -> Result<Snapshot, Stopped> {
        let (reply, answer) = oneshot::channel();
        self.send(Order::Look(lanes, reply))?;
        answer.await.map_err(|_| Stopped)
    }

    /// When what is known could be done, and by which budgets it is bounded,
    /// of which at most so many are named.
    ///
    /// # Errors
    /// When it has stopped.
    pub async fn outlook(&self, most: usize) -> Result<Outlook, Stopped> {
        let (reply, answer) = oneshot::channel();
        self.send(Order::Work(reply))?;
        let work = answer.await.map_err(|_| Stopped)?;
        Ok(self.admission.outlook(work, most))
    }

    /// All tasks that are not complete.
    ///
    /// # Errors
    /// When it has stopped.
    pub async fn list(&self) -> Result<Vec<TaskView>, Stopped> {
        let (reply, answer) = oneshot::channel();
        self.send(Order::List(reply))?;
        answer.await.map_err(|_| Stopped)
    }

    /// Calls a task off, unless its call is under way.
    ///
    /// # Errors
    /// When it has stopped.
    pub async fn cancel(&self, task: TaskRef) -> Result<Cancelled, Stopped> {
        let (reply, answer) = oneshot::channel();
        self.send(Order::Cancel(task, reply))?;
        answer.await.map_err(|_| Stopped)
    }
}
