use super::*;

fn open(folder: &Path) -> Result<Store, StoreError> {
    Store::open(folder, IfMissing::Create, 0)
}

#[test]
fn what_is_acknowledged_is_there_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).unwrap();
    let mut changes = Changes::default();
    changes.put(Space::Job, &numbered(7), &"seven");
    store.write(changes).wait_blocking().unwrap();
    drop(store);
    let store = open(folder.path()).unwrap();
    assert_eq!(
        store
            .get::<String>(Space::Job, &numbered(7))
            .unwrap()
            .as_deref(),
        Some("seven")
    );
    let all: Vec<_> = store
        .scan::<String>(Space::Job, ..)
        .map(Result::unwrap)
        .collect();
    assert_eq!(all, [(numbered(7).to_vec(), "seven".to_owned())]);
    assert_eq!(
        last_number(&store.last_key(Space::Job).unwrap().unwrap()),
        7
    );
}

#[test]
fn a_folder_belongs_to_one_process_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let _store = open(folder.path()).unwrap();
    assert!(matches!(open(folder.path()), Err(StoreError::InUse(_))));
}

#[test]
fn somebody_elses_folder_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("thesis.tex"), "mine").unwrap();
    assert!(matches!(open(folder.path()), Err(StoreError::NotAStore(_))));
    let names: Vec<_> = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|e| e.unwrap().file_name())
        .collect();
    assert_eq!(names, ["thesis.tex"]);
}

#[test]
fn a_store_whose_making_was_cut_is_made_to_its_end() {
    let settings = "segment_size: 524288\nuse_compression: false\nversion: 0.34\n";
    let cuts: [&[(&str, &str)]; 5] = [
        &[("tidegate-store.new", "")],
        &[("tidegate-store.new", "form")],
        &[("lock", "")],
        // sled writes a checksum behind its settings.
        &[("tidegate-store.new", ""), ("db/conf", settings)],
        &[
            ("tidegate-store.new", ""),
            ("db/conf", ""),
            ("db/db", "noise"),
        ],
    ];
    for files in cuts {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path()).unwrap();
        for (file, text) in files {
            let path = folder.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        for _ in 0..2 {
            open(folder.path()).unwrap_or_else(|error| panic!("{files:?}: {error}"));
        }
    }
}

#[test]
fn a_store_whose_marker_lost_its_last_name_with_the_power_keeps_what_it_holds() {
    for if_missing in [IfMissing::Create, IfMissing::Fail] {
        let folder = tempfile::tempdir().unwrap();
        let store = open(folder.path()).unwrap();
        let mut changes = Changes::default();
        changes.put(Space::Job, &numbered(7), &"seven");
        store.write(changes).wait_blocking().unwrap();
        drop(store);
        let marker = folder.path().join(folder::MARKER);
        std::fs::rename(&marker, folder.path().join("tidegate-store.new")).unwrap();
        let store = Store::open(folder.path(), if_missing, 0).unwrap();
        let found = store.get::<String>(Space::Job, &numbered(7)).unwrap();
        assert_eq!(found.as_deref(), Some("seven"));
        assert!(marker.exists());
    }
}

#[test]
fn a_database_that_is_gone_or_unreadable_is_not_made_anew() {
    for damage in ["", "noise that was a log once"] {
        let folder = tempfile::tempdir().unwrap();
        drop(open(folder.path()).unwrap());
        std::fs::write(folder.path().join("db/db"), damage.repeat(1000)).unwrap();
        let error = open(folder.path()).unwrap_err().to_string();
        assert!(error.contains("cannot be read"), "{error}");
        std::fs::remove_dir_all(folder.path().join("db")).unwrap();
        let error = open(folder.path()).unwrap_err().to_string();
        assert!(error.contains("is gone"), "{error}");
    }
}

#[test]
fn another_format_and_a_missing_store_are_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join(folder::MARKER), "format 99\n").unwrap();
    let error = open(folder.path()).unwrap_err();
    assert!(error.to_string().contains("store format 99"), "{error}");
    let nowhere = folder.path().join("nowhere");
    assert!(matches!(
        Store::open(&nowhere, IfMissing::Fail, 0),
        Err(StoreError::Missing(_))
    ));
    assert!(!nowhere.exists());
}

#[test]
fn a_value_of_another_version_is_an_error_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).unwrap();
    let mut changes = Changes::default();
    changes.put_bytes(Space::Job, &numbered(1), vec![9, 1]);
    changes.put_bytes(Space::Job, &numbered(2), vec![1, 255, 255, 255, 255, 255]);
    store.write(changes).wait_blocking().unwrap();
    for number in [1, 2] {
        let error = store
            .get::<String>(Space::Job, &numbered(number))
            .unwrap_err();
        assert!(
            error
                .to_string()
                .contains(&folder.path().display().to_string())
        );
    }
    assert_eq!(
        store.scan::<String>(Space::Job, ..).count(),
        2,
        "damage of one value hides no other"
    );
}

#[test]
fn with_too_little_room_nothing_new_is_granted_and_what_runs_is_still_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), IfMissing::Create, u64::MAX).unwrap();
    let fault = store.health().unwrap_err();
    assert!(fault.to_string().contains("min_free"), "{fault}");
    let mut changes = Changes::default();
    changes.put(Space::Job, &numbered(1), &1_u8);
    store.write(changes).wait_blocking().unwrap();
}

#[test]
fn changes_run_what_follows_them_after_they_are_durable() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).unwrap();
    let (sent, received) = std::sync::mpsc::channel();
    let mut changes = Changes::default();
    changes.put(Space::Job, &numbered(1), &1_u8);
    changes.then(move || sent.send(()).unwrap());
    store.write(changes).wait_blocking().unwrap();
    received.try_recv().unwrap();
}
