//! Room for bodies: where they take more than they may, the oldest go first.

use std::collections::BTreeMap;
use std::fs::{DirEntry, Metadata};
use std::io;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::SystemTime;

use super::save::{Bodies, UNFINISHED};

/// Bodies that go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LetGo {
    /// How many.
    pub files: u64,
    /// What they hold.
    pub bytes: u64,
}

/// Bodies for which there is no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Surplus {
    /// All up to this minute.
    until: u64,
    /// How much that is.
    pub total: LetGo,
}

impl Bodies {
    /// Bytes written since all were last looked at by [`Self::surplus`].
    #[must_use]
    pub fn grown(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    /// Which bodies have to go where all take more than `most` bytes: the
    /// oldest, until nine tenths of that are left, or a little less. Those of
    /// one minute go together; those of the last two minutes stay, since
    /// somebody may be about to name or read them. None where there is room.
    /// Blocks, for as long as it takes to look at every file.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn surplus(&self, most: u64, now: SystemTime) -> io::Result<Option<Surplus>> {
        self.written.store(0, Ordering::Relaxed);
        let mut by_minute: BTreeMap<u64, LetGo> = BTreeMap::new();
        each(&self.folder, &mut |_, found| {
            let minute = by_minute.entry(minute(modified(found))).or_default();
            minute.files += 1;
            minute.bytes += found.len();
        })?;
        let mut left: u64 = by_minute.values().map(|minute| minute.bytes).sum();
        if left <= most {
            return Ok(None);
        }
        let recent = minute(now).saturating_sub(1);
        let mut surplus = None;
        let mut total = LetGo::default();
        for (until, LetGo { files, bytes }) in by_minute.range(..recent) {
            if left <= most / 10 * 9 {
                break;
            }
            left -= bytes;
            total.files += files;
            total.bytes += bytes;
            surplus = Some(Surplus {
                until: *until,
                total,
            });
        }
        Ok(surplus)
    }

    /// Removes what is too much. A body that was named again meanwhile, or
    /// cannot be removed, stays.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn let_go(&self, surplus: Surplus) -> io::Result<()> {
        each(&self.folder, &mut |entry, found| {
            if minute(modified(found)) <= surplus.until {
                let _ = std::fs::remove_file(entry.path());
            }
        })
    }
}

/// Every body; one that goes meanwhile is passed over.
fn each(folder: &Path, look: &mut impl FnMut(&DirEntry, &Metadata)) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && entry.file_name() != UNFINISHED => {
                each(&entry.path(), look)?;
            }
            Ok(kind) if kind.is_file() => {
                if let Ok(found) = entry.metadata() {
                    look(&entry, &found);
                }
            }
            _ => {}
        }
    }
    Ok(())
}

fn modified(found: &Metadata) -> SystemTime {
    found.modified().unwrap_or(SystemTime::UNIX_EPOCH)
}

/// Bodies are told apart by the minute, so that memory grows with time and not
/// with their number.
fn minute(at: SystemTime) -> u64 {
    let since = at.duration_since(SystemTime::UNIX_EPOCH);
    since.unwrap_or_default().as_secs() / 60
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::time::Duration;

    use super::*;

    fn now() -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000)
    }

    fn body(folder: &Path, name: &str, bytes: usize, minutes_ago: u64) {
        let place = folder.join("bodies").join(name);
        std::fs::create_dir_all(place.parent().unwrap()).unwrap();
        std::fs::write(&place, vec![b'.'; bytes]).unwrap();
        let file = File::options().write(true).open(&place).unwrap();
        file.set_modified(now() - Duration::from_secs(minutes_ago * 60))
            .unwrap();
    }

    #[test]
    fn the_oldest_go_until_there_is_room_and_nothing_goes_where_there_is() {
        let folder = tempfile::tempdir().unwrap();
        let bodies = Bodies::in_folder(folder.path()).unwrap();
        for minute in 0..20 {
            body(folder.path(), &format!("ab/cd/{minute}"), 100, minute);
        }
        body(folder.path(), "unfinished/7", 5_000, 500);
        assert_eq!(bodies.surplus(2_000, now()).unwrap(), None);
        let surplus = bodies.surplus(1_000, now()).unwrap().unwrap();
        assert_eq!((surplus.total.files, surplus.total.bytes), (11, 1_100));
        // Named again meanwhile: it is young now.
        body(folder.path(), "ab/cd/15", 100, 0);
        bodies.let_go(surplus).unwrap();
        let left = |minute: &u64| {
            folder
                .path()
                .join(format!("bodies/ab/cd/{minute}"))
                .exists()
        };
        let there: Vec<_> = (0..20).filter(left).collect();
        assert_eq!(there, [0, 1, 2, 3, 4, 5, 6, 7, 8, 15]);
        assert!(
            folder.path().join("bodies/unfinished/7").exists(),
            "it is being written"
        );
        // However little room there is, what is new stays.
        let surplus = bodies.surplus(50, now()).unwrap().unwrap();
        bodies.let_go(surplus).unwrap();
        let there: Vec<_> = (0..20).filter(left).collect();
        assert_eq!(there, [0, 1, 15]);
        assert_eq!(bodies.surplus(50, now()).unwrap(), None);
    }
}
