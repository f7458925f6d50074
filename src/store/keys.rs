//! The spaces of the store. One tree, because sled applies a batch atomically
//! per tree only; a byte in front of each key says whose it is.

/// Who owns a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Space {
    /// Single values: the clock's anchor, sequence numbers.
    Meta = b'm',
    /// What was spent, by scope.
    Bucket = b'b',
    /// Pauses and holds, by scope.
    Stop = b'p',
    /// What operators put in place of the rules, by scope.
    Manual = b'v',
    /// Envelopes, by revision.
    Envelope = b'r',
    /// Calls under way and events not packed yet, by sequence number.
    Open = b'o',
    /// How far the volumes of packed events reach, by day.
    Volume = b's',
    /// Blocks of packed events, by volume and first segment.
    Block = b'i',
    /// Strings that segments name, by number.
    Name = b'd',
    /// Jobs, by number.
    Job = b'j',
    /// How many of a job's tasks ended how, by job.
    Outcomes = b'u',
    /// Tasks that are not complete, by job and number.
    Task = b't',
    /// What a job knows of an id, by job and hash.
    TaskId = b'n',
    /// The list that a job has taken up whole, by job.
    List = b'l',
    /// Where the last refresh of a job began, by job.
    Round = b'w',
    /// What targets call the state of what they answered with, by job and
    /// hash of the task's id.
    Validators = b'e',
    /// Tasks whose call was under way when a gate was killed, until their
    /// schedule has taken that in.
    Cut = b'c',
    /// Results, by job and place in the list.
    Result = b'k',
    /// Where the result of a complete task is, by job and number of the task,
    /// for as long as it counts.
    Placed = b'z',
    /// Ids that the next list makes new tasks of, by job and hash.
    Again = b'a',
    /// Results that count no longer: their task was asked for again. By job
    /// and place.
    Superseded = b'x',
}

/// A key of a space.
#[must_use]
pub fn key(space: Space, rest: &[u8]) -> Vec<u8> {
    let mut key = Vec::with_capacity(1 + rest.len());
    key.push(space as u8);
    key.extend_from_slice(rest);
    key
}

/// A key that sorts by number.
#[must_use]
pub fn numbered(number: u64) -> [u8; 8] {
    number.to_be_bytes()
}

/// A key that sorts by one number and then by another.
#[must_use]
pub fn paired(first: u64, second: u64) -> [u8; 16] {
    let mut key = [0; 16];
    let (front, back) = key.split_at_mut(8);
    front.copy_from_slice(&first.to_be_bytes());
    back.copy_from_slice(&second.to_be_bytes());
    key
}

/// The last number of a key written by [`numbered`] or [`paired`].
#[must_use]
pub fn last_number(key: &[u8]) -> u64 {
    key.last_chunk::<8>()
        .map_or(0, |bytes| u64::from_be_bytes(*bytes))
}
