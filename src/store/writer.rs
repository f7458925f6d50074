//! The one writer. Whatever arrives while a flush is under way goes into the
//! next batch (group commit), so that durability costs a disk flush for many
//! callers together; each is told when its own changes are on disk.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use serde::Serialize;
use tokio::sync::oneshot;

use super::LATEST;
use super::keys::{Space, key};
use super::value::encode;
use super::volume::{Piece, Shelf};
use crate::clock::{Clock as _, Moment, SystemClock};

/// Changes that become durable together, or not at all.
#[derive(Default)]
#[must_use = "changes do nothing until they are written"]
pub struct Changes {
    ops: Vec<(Vec<u8>, Option<Vec<u8>>)>,
    pieces: Vec<Piece>,
    after: Vec<Box<dyn FnOnce() + Send>>,
}

impl std::fmt::Debug for Changes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Changes")
            .field("ops", &self.ops.len())
            .finish_non_exhaustive()
    }
}

impl Changes {
    /// Sets a value.
    pub fn put<T: Serialize>(&mut self, space: Space, rest: &[u8], value: &T) {
        match encode(value) {
            Ok(bytes) => self.put_bytes(space, rest, bytes),
            Err(error) => tracing::error!(?space, %error, "a value could not be written"),
        }
    }

    /// Sets a value that is bytes already.
    pub fn put_bytes(&mut self, space: Space, rest: &[u8], bytes: Vec<u8>) {
        self.ops.push((key(space, rest), Some(bytes)));
    }

    /// Removes a value.
    pub fn delete(&mut self, space: Space, rest: &[u8]) {
        self.ops.push((key(space, rest), None));
    }

    /// Writes bytes into a volume, behind what it holds. What says that it
    /// reaches so far belongs into the same changes.
    pub fn append(&mut self, volume: u64, at: u64, bytes: Vec<u8>) {
        self.pieces.push(Piece { volume, at, bytes });
    }

    /// Runs once the changes are on disk.
    pub fn then(&mut self, after: impl FnOnce() + Send + 'static) {
        self.after.push(Box::new(after));
    }

    /// Adds other changes behind these.
    pub fn extend(&mut self, other: Self) {
        self.ops.extend(other.ops);
        self.pieces.extend(other.pieces);
        self.after.extend(other.after);
    }

    /// True when there is nothing to write.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ops.is_empty() && self.pieces.is_empty() && self.after.is_empty()
    }
}

/// Why the store takes nothing any more, or nothing new.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// Too little room: nothing new is granted, what runs is still recorded.
    #[error(
        "only {free} bytes are free under {folder}, less than min_free = {min_free}: nothing more is granted until there is room"
    )]
    Low {
        /// Bytes free.
        free: u64,
        /// Bytes that must stay free.
        min_free: u64,
        /// Where.
        folder: String,
    },
    /// A write failed; the process must end and start again.
    #[error("the record cannot be written: {0}")]
    Broken(String),
}

/// Resolves once the changes are on disk.
#[derive(Debug)]
#[must_use = "nothing is known to be durable before this resolves"]
pub struct Durable(oneshot::Receiver<Result<(), Fault>>);

impl Durable {
    /// Waits until the changes are on disk.
    ///
    /// # Errors
    /// When they will never be.
    pub async fn wait(self) -> Result<(), Fault> {
        self.0.await.unwrap_or_else(|_| Err(closed()))
    }

    /// Waits until the changes are on disk, blocking the thread: for code
    /// outside of any runtime.
    ///
    /// # Errors
    /// When they will never be.
    pub fn wait_blocking(self) -> Result<(), Fault> {
        self.0.blocking_recv().unwrap_or_else(|_| Err(closed()))
    }

    /// Of changes that were handed over already.
    pub fn never() -> Self {
        Self(oneshot::channel().1)
    }

    /// The changes matter, but nobody has to wait for them.
    pub fn detach(self) {
        drop(self);
    }
}

pub(super) fn closed() -> Fault {
    Fault::Broken("the store is closed".into())
}

struct Request {
    changes: Changes,
    done: oneshot::Sender<Result<(), Fault>>,
}

const OK: u8 = 0;
const LOW: u8 = 1;
const BROKEN: u8 = 2;

#[derive(Debug)]
struct Health {
    state: AtomicU8,
    fault: Mutex<Option<Fault>>,
}

impl Health {
    fn set(&self, fault: Option<Fault>) {
        let state = match &fault {
            None => OK,
            Some(Fault::Low { .. }) => LOW,
            Some(Fault::Broken(_)) => BROKEN,
        };
        *self.fault.lock().unwrap_or_else(PoisonError::into_inner) = fault;
        self.state.store(state, Ordering::Release);
    }

    fn get(&self) -> Result<(), Fault> {
        match self.state.load(Ordering::Acquire) {
            OK => Ok(()),
            _ => {
                let fault = self
                    .fault
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .clone();
                fault.map_or(Ok(()), Err)
            }
        }
    }
}

/// A handle on the writer's thread.
#[derive(Debug)]
pub(super) struct Writer {
    requests: Mutex<Option<Sender<Request>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
    health: Arc<Health>,
    /// Bytes that must stay free.
    pub(super) min_free: u64,
}

impl Writer {
    pub(super) fn start(
        db: sled::Db,
        clock: Arc<SystemClock>,
        folder: &Path,
        min_free: u64,
    ) -> std::io::Result<Self> {
        let (requests, inbox) = channel();
        let health = Arc::new(Health {
            state: AtomicU8::new(OK),
            fault: Mutex::new(None),
        });
        let mut desk = Desk {
            db,
            clock,
            folder: folder.to_owned(),
            shelf: Shelf::of(folder),
            min_free,
            health: health.clone(),
            unmeasured: 0,
            measured: Moment::ZERO,
        };
        desk.measure();
        let thread = std::thread::Builder::new()
            .name("tidegate-writer".into())
            .spawn(move || desk.serve(&inbox))?;
        Ok(Self {
            requests: Mutex::new(Some(requests)),
            thread: Mutex::new(Some(thread)),
            health,
            min_free,
        })
    }

    pub(super) fn write(&self, changes: Changes) -> Durable {
        let (done, durable) = oneshot::channel();
        let requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(requests) = &*requests {
            // A closed channel drops the sender, and the caller is told.
            let _ = requests.send(Request { changes, done });
        }
        Durable(durable)
    }

    pub(super) fn health(&self) -> Result<(), Fault> {
        self.health.get()
    }

    /// Writes what has arrived and ends the thread.
    pub(super) fn close(&self) {
        drop(
            self.requests
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take(),
        );
        let thread = self
            .thread
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(thread) = thread {
            let _ = thread.join();
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.close();
    }
}

/// sled leaves what it replaces to the collector of crossbeam, which does a
/// little each time somebody pins it: large batches by few callers replace more
/// than that, and memory grows for as long as they come.
fn collect(changed: usize) {
    const COLLECTED_AT_ONCE: usize = 64;
    for _ in 0..=changed / COLLECTED_AT_ONCE {
        crossbeam_epoch::pin().flush();
    }
}

/// A batch holds at most this many changes, so that one flush stays short.
const BATCH: usize = 4096;
/// Free space is looked up again after this many bytes.
const MEASURE_EVERY: usize = 1 << 20;
/// And after this long: bodies are written to the same disk.
const A_SECOND: Duration = Duration::from_secs(1);

struct Desk {
    db: sled::Db,
    clock: Arc<SystemClock>,
    folder: PathBuf,
    shelf: Shelf,
    min_free: u64,
    health: Arc<Health>,
    unmeasured: usize,
    /// When the disk was looked at last.
    measured: Moment,
}

impl Desk {
    fn serve(mut self, inbox: &Receiver<Request>) {
        while let Some(first) = self.next(inbox) {
            let mut requests = vec![first];
            let mut size = requests
                .iter()
                .map(|request| request.changes.ops.len())
                .sum::<usize>();
            while size < BATCH
                && let Ok(next) = inbox.try_recv()
            {
                size += next.changes.ops.len();
                requests.push(next);
            }
            self.commit(requests);
        }
    }

    /// The next request. Once a second it is looked how much room there is:
    /// others write to the same disk, bodies among them.
    fn next(&mut self, inbox: &Receiver<Request>) -> Option<Request> {
        loop {
            if self.clock.now().since(self.measured) >= A_SECOND {
                self.measure();
            }
            match inbox.recv_timeout(A_SECOND) {
                Ok(request) => return Some(request),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return None,
            }
        }
    }

    fn commit(&mut self, requests: Vec<Request>) {
        let mut batch = sled::Batch::default();
        let mut changed = 0;
        let mut waiting = Vec::with_capacity(requests.len());
        let mut pieces = Vec::new();
        for Request { changes, done } in requests {
            changed += changes.ops.len();
            for (key, value) in changes.ops {
                self.unmeasured += key.len() + value.as_ref().map_or(0, Vec::len);
                match value {
                    Some(value) => batch.insert(key, value),
                    None => batch.remove(key),
                }
            }
            self.unmeasured += changes
                .pieces
                .iter()
                .map(|piece| piece.bytes.len())
                .sum::<usize>();
            pieces.extend(changes.pieces);
            waiting.push((done, changes.after));
        }
        if let Ok(now) = encode(&self.clock.now()) {
            batch.insert(key(Space::Meta, LATEST), now);
        }
        let result = match self.health.get() {
            Err(broken @ Fault::Broken(_)) => Err(broken),
            _ => self.write(&pieces, batch),
        };
        collect(changed);
        for (done, after) in waiting {
            if result.is_ok() {
                after.into_iter().for_each(|after| after());
            }
            let _ = done.send(result.clone());
        }
        if result.is_ok() && self.unmeasured >= MEASURE_EVERY {
            self.measure();
        }
    }

    fn write(&mut self, pieces: &[Piece], batch: sled::Batch) -> Result<(), Fault> {
        // The volumes first: the batch says how far they reach.
        let written = self.shelf.write(pieces).map_err(|error| error.to_string());
        let written = written.and_then(|()| {
            let written = self.db.apply_batch(batch).and_then(|()| self.db.flush());
            written.map(|_| ()).map_err(|error| error.to_string())
        });
        written.map_err(|error| {
            let fault = Fault::Broken(error.clone());
            tracing::error!(%error, "the record cannot be written");
            self.health.set(Some(fault.clone()));
            fault
        })
    }

    fn measure(&mut self) {
        self.measured = self.clock.now();
        self.unmeasured = 0;
        let Ok(disk) = rustix::fs::statvfs(&self.folder) else {
            return;
        };
        let free = disk.f_bavail.saturating_mul(disk.f_frsize);
        let low = free < self.min_free;
        let fault = low.then(|| Fault::Low {
            free,
            min_free: self.min_free,
            folder: self.folder.display().to_string(),
        });
        if !matches!(self.health.get(), Err(Fault::Broken(_))) {
            self.health.set(fault);
        }
    }
}
