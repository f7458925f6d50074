//! The end of a file that a kill left open.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, ErrorKind, Seek as _};
use std::path::{Path, PathBuf};

use flate2::bufread::GzDecoder;

/// What a file is called when nothing is added to it any more.
pub(super) fn closed(open: &Path) -> PathBuf {
    open.with_extension("")
}

/// Cuts off a record that is not whole, and gives the file its name. One without any is removed.
pub(super) fn close(open: &Path) -> io::Result<()> {
    let whole = whole(open)?;
    if whole == 0 {
        return fs::remove_file(open);
    }
    let file = OpenOptions::new().write(true).open(open)?;
    file.set_len(whole)?;
    file.sync_all()?;
    fs::rename(open, closed(open))
}

/// Up to where a file consists of whole gzip members (RFC 1952, section 2.2): each holds a record.
fn whole(path: &Path) -> io::Result<u64> {
    let mut reader = BufReader::with_capacity(1 << 18, File::open(path)?);
    let mut whole = 0;
    while !reader.fill_buf()?.is_empty() {
        let mut member = GzDecoder::new(reader);
        match io::copy(&mut member, &mut io::sink()) {
            Ok(_) => {}
            Err(error) => match error.kind() {
                ErrorKind::UnexpectedEof | ErrorKind::InvalidInput | ErrorKind::InvalidData => {
                    break;
                }
                _ => return Err(error),
            },
        }
        reader = member.into_inner();
        whole = reader.stream_position()?;
    }
    Ok(whole)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::{Compression, write::GzEncoder};
    use std::io::Write as _;

    fn member(text: &str) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn wherever_a_file_was_cut_its_whole_members_stay_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let (one, two) = (member("one"), member("two two two"));
        let all = [one.clone(), two].concat();
        for length in 0..=all.len() {
            let open = folder.path().join("a.warc.gz.open");
            fs::write(&open, &all[..length]).unwrap();
            close(&open).unwrap();
            let closed = folder.path().join("a.warc.gz");
            let found = fs::read(&closed).ok();
            let _ = fs::remove_file(closed);
            let expected = match length {
                _ if length == all.len() => Some(all.clone()),
                _ if length >= one.len() => Some(one.clone()),
                _ => None,
            };
            assert_eq!(found, expected, "{length}");
            assert!(!open.exists());
        }
    }
}
