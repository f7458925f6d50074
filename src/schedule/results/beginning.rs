//! Is a file a beginning of the store's list?

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use super::extent::Extent;
use super::{Stored, result};

/// Whether the file is what an earlier run left: lines of the store, and perhaps a part of the
/// next. Its last line stands for those before it.
pub(super) fn is_beginning(
    file: &mut File,
    extent: &Extent,
    stored: Stored<'_>,
    count: u64,
) -> io::Result<bool> {
    if extent.lines > count {
        return Ok(false);
    }
    if extent.lines > 0 {
        let last = result(stored, extent.lines - 1)? + "\n";
        let length = extent.whole - extent.last;
        if length != last.len() as u64 || !holds(file, extent.last, length, &last)? {
            return Ok(false);
        }
    }
    if extent.rest() == 0 {
        return Ok(true);
    }
    if extent.lines == count {
        return Ok(false);
    }
    holds(
        file,
        extent.whole,
        extent.rest(),
        &result(stored, extent.lines)?,
    )
}

/// Whether the `length` bytes at `start` are the first of `text`.
fn holds(file: &mut File, start: u64, length: u64, text: &str) -> io::Result<bool> {
    let Some(expected) = usize::try_from(length)
        .ok()
        .and_then(|length| text.as_bytes().get(..length))
    else {
        return Ok(false);
    };
    let mut found = vec![0; expected.len()];
    file.seek(SeekFrom::Start(start))?;
    file.read_exact(&mut found)?;
    Ok(found == expected)
}
