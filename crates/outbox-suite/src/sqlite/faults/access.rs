//! Who may take a tenant's lock: whoever may open the database.

use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use crate::sqlite::Driver;
use crate::sqlite::database::{FileDatabase, claim, tenant};

/// Somebody who has nothing to do with the database, and somebody whose database it is.
const STRANGER: u32 = 54_321;
const OWNER: u32 = 54_320;
const GROUP: u32 = 54_322;

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, Permissions::from_mode(mode)).expect("a mode");
}

async fn lock_file(database: &FileDatabase, name: &str) -> std::path::PathBuf {
    for file in database.lock_files() {
        std::fs::remove_file(file).expect("removed");
    }
    drop(claim(&database.store(), &tenant(name)).await);
    let [file] = database.lock_files().try_into().expect("one lock file");
    file
}

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn a_lock_file_has_the_mode_of_its_database(driver: Driver) {
    let database = FileDatabase::new(driver).await;
    for mode in [0o600, 0o660, 0o644, 0o664] {
        set_mode(&database.path(), mode);
        let file = lock_file(&database, "acme").await;
        assert_eq!(file.metadata().expect("it is there").mode() & 0o777, mode, "{mode:o}");
    }
    // It follows the database: who may write that since, may lock since.
    set_mode(&database.path(), 0o660);
    drop(claim(&database.store(), &tenant("acme")).await);
    let [file] = database.lock_files().try_into().expect("one lock file");
    assert_eq!(file.metadata().expect("it is there").mode() & 0o777, 0o660);
}

/// What stands at the place of a lock file and is none keeps its mode: a link to something else, most of all.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn a_link_in_the_place_of_a_lock_file_gives_nothing_away(driver: Driver) {
    let database = FileDatabase::new(driver).await;
    let file = lock_file(&database, "acme").await;
    let secret = database.directory.path().join("secret");
    std::fs::write(&secret, "").expect("a file");
    set_mode(&secret, 0o600);
    set_mode(&database.path(), 0o666);
    for link in [
        |to: &Path, at: &Path| std::os::unix::fs::symlink(to, at),
        |to: &Path, at: &Path| std::fs::hard_link(to, at),
    ] {
        std::fs::remove_file(&file).expect("removed");
        link(&secret, &file).expect("a link");
        drop(claim(&database.store(), &tenant("acme")).await);
        assert_eq!(secret.metadata().expect("it is there").mode() & 0o777, 0o600);
    }
}

fn may_open(file: &Path, user: u32, group: u32) -> bool {
    let mut open = Command::new("sh");
    open.args(["-c", "true < \"$1\"", "sh"]).arg(file).uid(user).gid(group);
    open.output().expect("a shell").status.success()
}

/// Another user's relay that may write the database can lock; one that may not open it cannot. Only a privileged
/// process can be two users.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn another_user_s_relay_may_lock_what_it_may_write_and_a_stranger_may_not(driver: Driver) {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let database = FileDatabase::new(driver).await;
    set_mode(database.directory.path(), 0o755);
    for (mode, group_may) in [(0o600, false), (0o660, true)] {
        chown(database.path(), Some(OWNER), Some(GROUP)).expect("given away");
        set_mode(&database.path(), mode);
        let file = lock_file(&database, "acme").await;
        assert!(may_open(&file, OWNER, STRANGER), "its owner: {mode:o}");
        assert_eq!(may_open(&file, STRANGER, GROUP), group_may, "its group: {mode:o}");
        assert!(!may_open(&file, STRANGER, STRANGER), "a stranger: {mode:o}");
    }
}
