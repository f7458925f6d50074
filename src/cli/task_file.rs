//! The list of tasks of a run, which is read twice: once to check all of it,
//! once to hand it over.

use std::fs::File;
use std::io::{self, Seek as _};
use std::path::{Path, PathBuf};

use super::{Failure, check, in_folder};

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
