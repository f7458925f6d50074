//! How far a file of lines goes.

use std::io::{self, Read, Seek, SeekFrom};

const CHUNK: usize = 256 << 10;

/// A file as its ends of lines divide it; all but `lines` in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Extent {
    /// Lines that have their end.
    pub(super) lines: u64,
    /// Where the last of them begins.
    pub(super) last: u64,
    /// Where it ends, its line break included.
    pub(super) whole: u64,
    /// Where the file ends.
    pub(super) end: u64,
}

impl Extent {
    /// Reads a file to its end, in memory that does not grow with it.
    pub(super) fn of(file: &mut (impl Read + Seek)) -> io::Result<Self> {
        file.seek(SeekFrom::Start(0))?;
        let mut extent = Self::default();
        let mut buffer = vec![0; CHUNK];
        loop {
            let read = match file.read(&mut buffer) {
                Ok(0) => return Ok(extent),
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            extent.goes_on(buffer.get(..read).unwrap_or_default());
        }
    }

    fn goes_on(&mut self, chunk: &[u8]) {
        let breaks = chunk.iter().filter(|byte| **byte == b'\n').count() as u64;
        let mut ends = chunk
            .iter()
            .rev()
            .zip((self.end..self.end + chunk.len() as u64).rev());
        let mut previous = || {
            ends.find(|(byte, _)| **byte == b'\n')
                .map(|(_, place)| place + 1)
        };
        if let Some(whole) = previous() {
            self.last = previous().unwrap_or(self.whole);
            self.whole = whole;
        }
        self.lines += breaks;
        self.end += chunk.len() as u64;
    }

    /// Bytes behind the last whole line.
    pub(super) fn rest(&self) -> u64 {
        self.end - self.whole
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    fn extent(text: &[u8]) -> Extent {
        Extent::of(&mut Cursor::new(text)).unwrap()
    }

    #[test]
    fn lines_count_when_they_have_their_end() {
        for (text, lines, last, whole) in [
            ("", 0, 0, 0),
            ("ab", 0, 0, 0),
            ("\n", 1, 0, 1),
            ("ab\n", 1, 0, 3),
            ("ab\nc", 1, 0, 3),
            ("ab\nc\n", 2, 3, 5),
            ("ab\n\n\nd", 3, 4, 5),
        ] {
            let end = text.len() as u64;
            assert_eq!(
                extent(text.as_bytes()),
                Extent {
                    lines,
                    last,
                    whole,
                    end
                },
                "{text:?}"
            );
        }
    }

    #[test]
    fn lines_may_begin_and_end_anywhere_around_a_chunk() {
        for first in CHUNK - 2..=CHUNK + 2 {
            for second in [0, 1, 2, CHUNK - 1, CHUNK, 2 * CHUNK + 1] {
                let text = [
                    &vec![b'a'; first][..],
                    b"\n",
                    &vec![b'b'; second],
                    b"\nrest",
                ]
                .concat();
                let (last, whole) = (first as u64 + 1, (first + second) as u64 + 2);
                let end = whole + 4;
                assert_eq!(
                    extent(&text),
                    Extent {
                        lines: 2,
                        last,
                        whole,
                        end
                    }
                );
            }
        }
    }
}
