//! What a configuration that is read anew can change while a gate runs.

use super::Config;

impl Config {
    /// The keys in which `newer` differs, and that a gate looks at only when
    /// it starts. All others are followed at once.
    #[must_use]
    pub fn waits_for_restart(&self, newer: &Self) -> Vec<&'static str> {
        // Named one by one, so that a new key is not forgotten here.
        let Self {
            store,
            contact,
            allow_private: _,
            paths,
            steps,
            min_free,
            retention,
            max_store,
            resolve,
            ca_file,
            rulebook: _,
            source: _,
        } = self;
        let differs = [
            ("store", *store != newer.store),
            ("contact", *contact != newer.contact),
            ("paths", *paths != newer.paths),
            ("require_step", *steps != newer.steps),
            ("min_free", *min_free != newer.min_free),
            ("retention", *retention != newer.retention),
            ("max_store", *max_store != newer.max_store),
            ("resolve", *resolve != newer.resolve),
            ("ca_file", *ca_file != newer.ca_file),
        ];
        let names = differs.into_iter().filter(|(_, differs)| *differs);
        names.map(|(name, _)| name).collect()
    }
}
