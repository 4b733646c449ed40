//! A database that becomes read-only: the probe fails, health is red, and it recovers.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use outbox_core::{ProbeRequest, Relay, RelayConfig, Store as _, StoreErrorKind, Tenants};
use outbox_testkit::Recorder;

use crate::chain;
use crate::sqlite::Driver;
use crate::sqlite::database::{FileDatabase, tenant};

const NOBODY: u32 = 54_321;

/// A privileged user may write whatever the mode says: this thread is somebody else from now on.
fn be_somebody() {
    if rustix::process::geteuid().is_root() {
        let (nobody, root) = (rustix::process::Uid::from_raw(NOBODY), rustix::process::Uid::ROOT);
        // What the saved one is lets it come back.
        rustix::thread::set_thread_res_uid(nobody, nobody, root).expect("another user");
    }
}

fn be_yourself() {
    if rustix::process::geteuid().as_raw() == NOBODY {
        let root = rustix::process::Uid::ROOT;
        rustix::thread::set_thread_res_uid(root, root, root).expect("itself again");
    }
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, Permissions::from_mode(mode)).expect("a mode");
}

/// The file, or the folder in which the journal and the lock files are, takes no writes any more: an idle relay says so,
/// though reads succeed; when it does again, all is well.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn a_database_that_became_read_only_turns_health_red(driver: Driver) {
    let database = FileDatabase::new(driver).await;
    let folder = database.directory.path().to_owned();
    set_mode(&database.path(), 0o666);
    set_mode(&folder, 0o777);
    let store = database.store();
    let request = ProbeRequest::new(Tenants::Discovered);
    store.probe(&request).await.expect("all is well");
    for (path, mode, well) in [(database.path(), 0o444, 0o666), (folder, 0o555, 0o777)] {
        set_mode(&path, mode);
        be_somebody();
        let answer = store.probe(&request).await;
        let config = RelayConfig::builder().discover_tenants().poll_interval(Duration::from_millis(50));
        let relay = Relay::builder(store.clone(), Recorder::new(), config.build().expect("options"));
        let relay = relay.build().expect("a relay");
        let red = relay.health().check().await.to_string();
        be_yourself();
        let error = answer.expect_err("it takes no writes");
        assert_eq!(error.kind(), StoreErrorKind::Permanent);
        assert!(chain(&error).contains("takes no writes any more"), "{}", chain(&error));
        assert!(red.contains("takes no writes any more"), "{red}");
        set_mode(&path, well);
        be_somebody();
        let again = store.probe(&request).await;
        be_yourself();
        again.expect("it takes writes again");
    }
    database.commit(&tenant("acme"), 1).await;
    assert_eq!(store.probe(&request).await.expect("found").oldest.len(), 1);
}
