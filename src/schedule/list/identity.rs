//! When two lines are one task, and when they contradict each other.

/// The same call twice is one task, and a file that has grown can be run again.
pub(in crate::schedule) fn default_id(method: &str, url: &str, body: &[u8]) -> String {
    let hash = digest([method.as_bytes(), url.as_bytes(), body]);
    format!("{:032x}", u128::from_be_bytes(hash))
}

/// What two tasks of one id must agree in. The order of headers and the case of their names mean
/// nothing to a target.
pub(in crate::schedule) fn content(
    method: &str,
    url: &str,
    headers: &[(String, String)],
    body: &[u8],
    key: Option<&str>,
) -> [u8; 16] {
    let lower = |(name, value): &(String, String)| (name.to_ascii_lowercase(), value.clone());
    let mut headers: Vec<_> = headers.iter().map(lower).collect();
    headers.sort_unstable();
    let headers = headers
        .iter()
        .flat_map(|(name, value)| [name.as_bytes(), value.as_bytes()]);
    let call = [
        method.as_bytes(),
        url.as_bytes(),
        body,
        key.unwrap_or_default().as_bytes(),
    ];
    digest(call.into_iter().chain(headers))
}

/// A hash of parts that cannot run into one another.
pub(super) fn digest<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> [u8; 16] {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    let mut digest = [0; 16];
    hasher.finalize_xof().fill(&mut digest);
    digest
}
