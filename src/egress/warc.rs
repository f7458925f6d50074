//! Exchanges as WARC/1.1 (ISO 28500:2017): for each answer that arrived whole a `response` and a
//! `request` record, each a gzip member of its own (Annex D), in files that begin with `warcinfo`.
//!
//! Written here, since no library fits: `warc` 0.4 takes a record's block from memory only, puts
//! the whole file into one gzip stream and keeps headers in a hash map; `another_rust_warc` and
//! `rust-warc` have stood still for years. The format is a head, a block and two line ends.
//!
//! A file being written is called `….warc.gz.open`. A kill leaves at most one torn record, at its
//! end; whoever opens the folder next cuts that off and closes the file, and begins another one.
//!
//! Heads are rebuilt from what the HTTP library tells: names in lower case, the standard phrase for
//! a status, and HTTP/1.1 for HTTP/2 (what was spoken is in `WARC-Protocol`). The framing of a body
//! is undone before it gets here, so `transfer-encoding` is told as `x-orig-transfer-encoding`;
//! `content-encoding` and the body under it are as they came.

mod record;
mod torn;

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use tokio::sync::Semaphore;

pub use record::Exchange;
use record::{info, pair};

use super::Request;
use super::reply::Reply;
use crate::clock::{Clock, wall_at, wall_offset};
use crate::target::Located;

/// A folder of WARC files.
#[derive(Debug)]
pub struct Archive {
    shelf: Arc<Shelf>,
    turns: Arc<Semaphore>,
    user_agent: Arc<str>,
}

#[derive(Debug)]
struct Shelf {
    folder: PathBuf,
    most: u64,
    clock: Arc<dyn Clock>,
    user_agent: Arc<str>,
    volume: Mutex<Volume>,
}

#[derive(Debug)]
struct Volume {
    open: Option<Open>,
    next: u64,
}

#[derive(Debug)]
struct Open {
    file: File,
    path: PathBuf,
    /// Length of the whole records in it.
    whole: u64,
}

/// What came with an answer's head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Payload {
    /// The whole body.
    Whole(Bytes),
    /// Its beginning: a body that nobody wants is not read to its end when it is long.
    Beginning(Bytes),
    /// A file that holds the whole body, and its length.
    File(PathBuf, u64),
}

/// Compressed in memory up to this length, so that nobody waits for it; beyond, as it is written.
const SMALL: u64 = 4 << 20;
const GZ: &str = ".warc.gz";
const OPEN: &str = ".warc.gz.open";

impl Archive {
    /// The folder `warc` in `out`; a file in it takes records until it has `most` bytes. What a run
    /// before left open is closed, without the record that it had not finished.
    ///
    /// # Errors
    /// When that cannot be done.
    pub fn in_folder(
        out: &Path,
        most: u64,
        clock: Arc<dyn Clock>,
        user_agent: Arc<str>,
    ) -> io::Result<Self> {
        let folder = out.join("warc");
        fs::create_dir_all(&folder)?;
        let mut last = 0;
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            let name = path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            if name.ends_with(OPEN) {
                torn::close(&path)?;
            }
            let stem = name.strip_suffix(OPEN).or(name.strip_suffix(GZ));
            let serial = stem.and_then(|stem| stem.rsplit_once('-')?.1.parse().ok());
            last = last.max(serial.unwrap_or(0));
        }
        let volume = Volume {
            open: None,
            next: last + 1,
        };
        Ok(Self {
            turns: Arc::new(Semaphore::new(1)),
            shelf: Arc::new(Shelf {
                folder,
                most,
                clock,
                user_agent: user_agent.clone(),
                volume: Mutex::new(volume),
            }),
            user_agent,
        })
    }

    /// What there is to keep of an exchange when the head of its answer has arrived. Of the
    /// request's headers those that may hold a secret are left out: what came from the environment,
    /// what carries credentials, and whatever is called a key or a token.
    #[must_use]
    pub fn exchange(&self, request: &Request, located: &Located, reply: &Reply) -> Exchange {
        let date = date(&*self.shelf.clock);
        Exchange::of(request, &located.url, reply, &self.user_agent, date)
    }

    /// Writes an exchange. Like bodies it is in the hands of the operating system then: a kill
    /// loses nothing of it, a loss of power may.
    ///
    /// # Errors
    /// When it cannot be written; nothing is left of it then.
    pub async fn keep(&self, exchange: Exchange, payload: Payload) -> io::Result<()> {
        let shelf = self.shelf.clone();
        // One at a time is written; more would wait on threads that others need.
        let turn = self.turns.clone().acquire_owned().await;
        let written = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            shelf.keep(&exchange, &payload)
        });
        written
            .await
            .unwrap_or_else(|error| Err(io::Error::other(error)))
    }

    /// Closes the file that is open.
    ///
    /// # Errors
    /// When it cannot be given its name.
    pub fn close(&self) -> io::Result<()> {
        let volume = self.shelf.volume.lock();
        volume.unwrap_or_else(PoisonError::into_inner).close()
    }

    /// The folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.shelf.folder
    }
}

impl Payload {
    fn len(&self) -> u64 {
        match self {
            Self::Whole(bytes) | Self::Beginning(bytes) => bytes.len() as u64,
            Self::File(_, length) => *length,
        }
    }
}

impl Shelf {
    fn keep(&self, exchange: &Exchange, payload: &Payload) -> io::Result<()> {
        let is_small = payload.len() <= SMALL;
        let packed = match is_small {
            true => pair(Vec::new(), exchange, payload)?,
            false => Vec::new(),
        };
        let mut volume = self.volume.lock().unwrap_or_else(PoisonError::into_inner);
        let open = volume.ready(self)?;
        open.write(|file| {
            if is_small {
                file.write_all(&packed)
            } else {
                let file = io::BufWriter::with_capacity(1 << 16, file);
                pair(file, exchange, payload)?.flush()
            }
        })
    }
}

impl Volume {
    /// The file that takes the next record.
    fn ready(&mut self, shelf: &Shelf) -> io::Result<&mut Open> {
        if self
            .open
            .as_ref()
            .is_some_and(|open| open.whole >= shelf.most)
        {
            self.close()?;
        }
        let open = match self.open.take() {
            Some(open) => open,
            None => {
                let open = begin(shelf, self.next)?;
                self.next += 1;
                open
            }
        };
        Ok(self.open.insert(open))
    }

    fn close(&mut self) -> io::Result<()> {
        let Some(open) = self.open.take() else {
            return Ok(());
        };
        fs::rename(&open.path, torn::closed(&open.path))
    }
}

/// Begins a file. The name is unlike that of any other crawl, as archives expect.
fn begin(shelf: &Shelf, serial: u64) -> io::Result<Open> {
    let date = date(&*shelf.clock);
    let digits: String = date.chars().filter(char::is_ascii_digit).take(14).collect();
    let name = format!("tidegate-{digits}-{serial:05}{GZ}");
    let path = shelf.folder.join(format!("{name}.open"));
    let file = OpenOptions::new()
        .append(true)
        .create_new(true)
        .open(&path)?;
    let mut open = Open {
        file,
        path,
        whole: 0,
    };
    open.write(|file| file.write_all(&info(&name, &date, &shelf.user_agent)?))?;
    Ok(open)
}

impl Open {
    fn write(&mut self, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
        let written = write(&mut self.file).and_then(|()| self.file.metadata());
        match written {
            Ok(metadata) => {
                self.whole = metadata.len();
                Ok(())
            }
            Err(error) => {
                // Where this fails as well, the next run finds a torn end and cuts it off.
                self.file.set_len(self.whole)?;
                Err(error)
            }
        }
    }
}

/// RFC 3339 in UTC with milliseconds, a form that WARC/1.1 takes (section 5.4).
fn date(clock: &dyn Clock) -> String {
    let wall = wall_at(clock.now(), wall_offset(clock));
    jiff::Timestamp::try_from(wall)
        .unwrap_or_default()
        .strftime("%Y-%m-%dT%H:%M:%S%.3fZ")
        .to_string()
}
