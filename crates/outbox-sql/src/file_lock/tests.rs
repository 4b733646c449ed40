use super::*;

/// A directory that goes with the test.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("outbox-lock-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a directory for the test");
        Self(path)
    }

    fn file(&self) -> PathBuf {
        self.0.join("app.db-outbox-0.lock")
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn lock(path: &Path) -> Option<FileLock> {
    FileLock::try_lock(path, path).expect("a lock file that can be used")
}

/// Every process of every version must agree on the name, for ever.
#[test]
fn the_names_of_lock_files_never_change() {
    let name = |table, tenant| lock_path(Path::new("/var/app.db"), table, tenant);
    assert_eq!(name("outbox_message", "acme"), Path::new("/var/app.db-outbox-23a189eb6b8f999a.lock"));
    assert_eq!(name("outbox_message", "ACME"), Path::new("/var/app.db-outbox-37b98af6ceea659a.lock"));
    assert_eq!(name("Outbox_Message", "acme"), name("outbox_message", "acme"));
    assert_ne!(name("outbox_messagea", "cme"), name("outbox_message", "acme"));
}

#[test]
fn one_at_a_time_holds_a_file_and_dropping_it_frees_it() {
    let directory = Directory::new("exclusive");
    let held = lock(&directory.file());
    assert!(held.is_some());
    assert!(lock(&directory.file()).is_none());
    drop(held);
    assert!(directory.file().exists(), "the file stays, or two could hold it");
    assert!(lock(&directory.file()).is_some());
}

#[test]
fn a_holder_whose_file_was_deleted_no_longer_verifies_and_the_next_one_does() {
    let directory = Directory::new("deleted");
    let first = lock(&directory.file()).expect("free");
    std::fs::remove_file(directory.file()).expect("deleted");
    assert!(matches!(first.verify(), Err(FileLockError::Replaced { .. })));
    let second = lock(&directory.file()).expect("another file, so it is free");
    assert!(matches!(first.verify(), Err(FileLockError::Replaced { .. })));
    second.verify().expect("the file that the path names");
}

#[test]
fn a_copy_of_the_descriptor_elsewhere_does_not_keep_the_lock() {
    let directory = Directory::new("copy");
    let held = lock(&directory.file()).expect("free");
    let copy = held.file.try_clone().expect("as a child process that is being started has it");
    drop(held);
    assert!(lock(&directory.file()).is_some());
    drop(copy);
}

#[test]
fn a_directory_that_does_not_exist_is_an_error_that_names_the_file() {
    let path = Path::new("/nonexistent-directory/app.db.lock");
    let error = FileLock::try_lock(path, path).expect_err("no such directory");
    assert!(error.to_string().contains("/nonexistent-directory/app.db.lock"), "{error}");
}
