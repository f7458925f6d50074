//! The list of tasks of a run, which is read twice: once to check all of it,
//! once to hand it over.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Seek as _};
use std::path::{Path, PathBuf};

use super::picking::Picking;
use super::{Failure, check, in_folder};
use crate::schedule::ListDigest;

/// A file of tasks, or what came from stdin.
pub(super) struct TaskFile {
    path: PathBuf,
    /// It has no name: no other run can touch it, and nothing is left of it
    /// however this one ends.
    spooled: Option<File>,
}

impl TaskFile {
    /// The file `path`; for `-`, what stdin gives until its end.
    pub(super) fn of(path: &Path, out: &Path) -> Result<Self, Failure> {
        let spooled = if path.as_os_str() == "-" {
            Some(spool(out).map_err(|error| in_folder(out, &error))?)
        } else {
            None
        };
        Ok(Self {
            path: path.to_owned(),
            spooled,
        })
    }

    /// What it is called in what is said of it.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// What it holds and how its lines are read; none where that is not all
    /// there is to a task, since a line names what is looked up when it is read.
    pub(super) fn digest(&self, picking: &Picking) -> Result<Option<ListDigest>, Failure> {
        let file = self.open()?;
        let picking = format!("{picking:?}");
        let is_file = file.metadata()?.is_file();
        let looked_up = regex::bytes::Regex::new("env:").map_err(Failure::usage)?;
        if !is_file || looked_up.is_match(picking.as_bytes()) {
            return Ok(None);
        }
        let mut hasher = blake3::Hasher::new();
        let mut lines = BufReader::with_capacity(1 << 20, file);
        let mut line = Vec::new();
        while lines.read_until(b'\n', &mut line)? > 0 {
            if looked_up.is_match(&line) {
                return Ok(None);
            }
            hasher.update(&line);
            line.clear();
        }
        hasher.update(picking.as_bytes());
        Ok(Some(*hasher.finalize().as_bytes()))
    }

    /// From its beginning.
    pub(super) fn open(&self) -> Result<File, Failure> {
        let Some(spooled) = &self.spooled else {
            return check::open(&self.path);
        };
        let mut file = spooled.try_clone()?;
        file.rewind()?;
        Ok(file)
    }
}

fn spool(out: &Path) -> io::Result<File> {
    std::fs::create_dir_all(out)?;
    let path = out.join(format!(".tasks-from-stdin-{}", std::process::id()));
    let mut file = File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(true)
        .open(&path)?;
    std::fs::remove_file(&path)?;
    io::copy(&mut io::stdin().lock(), &mut file)?;
    Ok(file)
}
