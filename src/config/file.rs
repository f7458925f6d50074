//! What the file says, checked, before anything else is laid over it.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ipnet::IpNet;

use super::field::Field;
use super::report::{Report, Spot};
use super::section::Section;
use super::{rules, values};
use crate::admission::{PathRecording, StepPolicy};
use crate::budget::Rulebook;

const RECORDINGS: [(&str, PathRecording); 2] = [
    ("masked", PathRecording::Masked),
    ("full", PathRecording::Full),
];
/// What every certificate in PEM begins with (RFC 7468 section 5).
const CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----";

/// The values of a file. None: the file does not say, or says it wrongly.
#[derive(Debug, Default)]
pub(super) struct Written {
    pub(super) store: Option<PathBuf>,
    pub(super) contact: Option<String>,
    pub(super) allow_private: Vec<IpNet>,
    pub(super) paths: Option<PathRecording>,
    pub(super) steps: Option<StepPolicy>,
    pub(super) min_free: Option<u64>,
    pub(super) retention: Option<Duration>,
    pub(super) max_store: Option<u64>,
    pub(super) ca_file: Option<PathBuf>,
    pub(super) resolve: BTreeMap<String, Vec<IpAddr>>,
    pub(super) rulebook: Option<Rulebook>,
}

impl Written {
    /// Reads the text of `report`, named `name`; every fault is entered there.
    pub(super) fn read(report: &Report<'_>, name: &Path) -> Self {
        let Some(table) = report.parse() else {
            return Self::default();
        };
        let mut root = Section::new(report, &table, Spot::start());
        let folder = name.parent().unwrap_or(Path::new(""));
        let file_name = name.file_name().map(OsStr::to_string_lossy);
        let author = format!("file:{}", file_name.unwrap_or_default());
        let store = root.take_text("store", values::path);
        let contact = root.take_text("contact", values::contact);
        let ranges = root.take("allow_private");
        let paths = root
            .take("paths")
            .and_then(|value| value.choice(&RECORDINGS));
        let require_step = root.take("require_step").and_then(|value| value.flag());
        let min_free = root.take_text("min_free", values::size);
        let retention = root.take_text("retention", values::retention);
        let max_store = root.take_text("max_store", values::size);
        let ca_file = root
            .take("ca_file")
            .and_then(|value| ca_file(&value, folder));
        let resolve = root.take("resolve").and_then(Field::section);
        let rulebook = rules::take(&mut root, &author);
        root.close();
        Self {
            store: store.map(|store| folder.join(store)),
            contact,
            allow_private: ranges
                .and_then(|ranges| ranges.texts(values::range))
                .unwrap_or_default(),
            paths,
            steps: require_step.map(|required| match required {
                true => StepPolicy::Required,
                false => StepPolicy::Optional,
            }),
            min_free,
            retention,
            max_store,
            ca_file,
            resolve: resolve.map(pinned).unwrap_or_default(),
            rulebook,
        }
    }
}

fn ca_file(value: &Field<'_, '_>, folder: &Path) -> Option<PathBuf> {
    let path = folder.join(value.text(values::path)?);
    match std::fs::read_to_string(&path) {
        Ok(text) if text.contains(CERTIFICATE) => Some(path),
        Ok(_) => value.fault(format_args!(
            "{} holds no certificate in PEM ({CERTIFICATE})",
            path.display()
        )),
        Err(error) => value.fault(format_args!("{} cannot be read: {error}", path.display())),
    }
}

fn pinned(section: Section<'_, '_>) -> BTreeMap<String, Vec<IpAddr>> {
    let mut pinned = BTreeMap::new();
    for (written, value) in section.into_entries() {
        let name = match values::host_name(written) {
            Ok(name) => Some(name),
            Err(error) => value.fault(error),
        };
        if value.is_empty_list() {
            value.fault::<()>("pins the name to nothing: write its addresses or leave it out");
        }
        let addresses = value.texts(values::address).unwrap_or_default();
        let Some(name) = name else { continue };
        if pinned.contains_key(&name) {
            value.fault::<()>(format_args!("`{name}` is pinned twice"));
        }
        pinned.insert(name, addresses);
    }
    pinned
}
