//! Room for bodies: where they take more than they may, the oldest go first.

use std::collections::BTreeMap;
use std::fs::{DirEntry, Metadata};
use std::io;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use super::save::{Bodies, UNFINISHED};

/// Bodies that went to make room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LetGo {
    /// How many.
    pub files: u64,
    /// What they held.
    pub bytes: u64,
}

/// Ages are told apart by this, so that memory grows with time and not with
/// the number of bodies.
const AGE: Duration = Duration::from_secs(60);

impl Bodies {
    /// Bytes written since this was last asked with [`Self::make_room`].
    #[must_use]
    pub fn grown(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    /// Where the bodies take more than `most` bytes, lets the oldest go until
    /// nine tenths of that are left, or a little less: those of one minute go
    /// together. Blocks, for as long as it takes to look at every file.
    ///
    /// # Errors
    /// When the folder cannot be read. A body that cannot be removed stays.
    pub fn make_room(&self, most: u64) -> io::Result<LetGo> {
        self.written.store(0, Ordering::Relaxed);
        let mut by_age: BTreeMap<u64, u64> = BTreeMap::new();
        each(&self.folder, &mut |_, found| {
            *by_age.entry(age(found)).or_default() += found.len();
        })?;
        let mut total: u64 = by_age.values().sum();
        if total <= most {
            return Ok(LetGo::default());
        }
        let kept = most / 10 * 9;
        let last = by_age.into_iter().find_map(|(age, bytes)| {
            total -= bytes;
            (total <= kept).then_some(age)
        });
        let mut gone = LetGo::default();
        each(&self.folder, &mut |entry, found| {
            if last.is_none_or(|last| age(found) <= last)
                && std::fs::remove_file(entry.path()).is_ok()
            {
                gone.files += 1;
                gone.bytes += found.len();
            }
        })?;
        Ok(gone)
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

fn age(found: &Metadata) -> u64 {
    let written = found.modified().unwrap_or(SystemTime::UNIX_EPOCH);
    let since = written.duration_since(SystemTime::UNIX_EPOCH);
    since.unwrap_or_default().as_secs() / AGE.as_secs()
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    fn body(folder: &Path, name: &str, bytes: usize, minutes_ago: u64) -> bool {
        let place = folder.join("bodies").join(name);
        std::fs::create_dir_all(place.parent().unwrap()).unwrap();
        std::fs::write(&place, vec![b'.'; bytes]).unwrap();
        let at = SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000 - minutes_ago * 60);
        File::options()
            .write(true)
            .open(&place)
            .unwrap()
            .set_modified(at)
            .is_ok()
    }

    #[test]
    fn the_oldest_go_until_there_is_room_and_nothing_goes_where_there_is() {
        let folder = tempfile::tempdir().unwrap();
        let bodies = Bodies::in_folder(folder.path()).unwrap();
        for minute in 0..20 {
            assert!(body(folder.path(), &format!("ab/cd/{minute}"), 100, minute));
        }
        assert!(body(folder.path(), "unfinished/7", 5_000, 500));
        assert_eq!(bodies.make_room(2_000).unwrap(), LetGo::default());
        let gone = bodies.make_room(1_000).unwrap();
        assert_eq!((gone.files, gone.bytes), (11, 1_100));
        let left = |minute: u64| {
            folder
                .path()
                .join(format!("bodies/ab/cd/{minute}"))
                .exists()
        };
        assert!((0..9).all(left) && !(9..20).any(left));
        assert!(
            folder.path().join("bodies/unfinished/7").exists(),
            "it is being written"
        );
        // A single one that is too large for the room goes too.
        assert_eq!(bodies.make_room(50).unwrap().files, 9);
    }
}
