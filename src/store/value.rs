//! Values carry a version in front, so that a later build can still read them.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// The version of every value this build writes.
const VERSION: u8 = 1;

/// Why a value cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ValueError {
    /// Written by another version.
    #[error("written by another version (value format {0}, this build reads {VERSION})")]
    Version(u8),
    /// Not what was written.
    #[error("damaged")]
    Damaged,
}

/// A value as bytes.
///
/// # Errors
/// Never for the plain types the store holds; a type that cannot be written
/// is reported as damaged.
pub fn encode<T: Serialize>(value: &T) -> Result<Vec<u8>, ValueError> {
    postcard::to_extend(value, vec![VERSION]).map_err(|_| ValueError::Damaged)
}

/// Bytes as a value.
///
/// # Errors
/// When they are of another version, or no value.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ValueError> {
    match bytes.split_first() {
        Some((&VERSION, rest)) => postcard::from_bytes(rest).map_err(|_| ValueError::Damaged),
        Some((&version, _)) => Err(ValueError::Version(version)),
        None => Err(ValueError::Damaged),
    }
}

/// As [`decode`], of bytes with nothing behind the value.
///
/// # Errors
/// As there, and when something is behind it.
pub fn decode_all<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ValueError> {
    match bytes.split_first() {
        Some((&VERSION, rest)) => match postcard::take_from_bytes(rest) {
            Ok((value, [])) => Ok(value),
            _ => Err(ValueError::Damaged),
        },
        Some((&version, _)) => Err(ValueError::Version(version)),
        None => Err(ValueError::Damaged),
    }
}

/// Bytes are written all at once, and not one by one as any list is.
pub mod as_bytes {
    use serde::{Deserialize as _, Deserializer, Serializer};

    /// Writes bytes.
    ///
    /// # Errors
    /// As the serializer.
    pub fn serialize<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
        to.serialize_bytes(bytes)
    }

    /// Reads bytes.
    ///
    /// # Errors
    /// As the deserializer.
    pub fn deserialize<'de, D, T>(from: D) -> Result<T, D::Error>
    where
        D: Deserializer<'de>,
        T: From<&'de [u8]>,
    {
        <&[u8]>::deserialize(from).map(T::from)
    }
}
