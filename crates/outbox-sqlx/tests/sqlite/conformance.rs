//! The SQLite store keeps every law, on a database in a file and on one in memory.

use super::harness::On;

mod file {
    outbox_testkit::conformance!(super::On<false, false>);
}

mod file_deleting {
    outbox_testkit::conformance!(super::On<false, true>);
}

mod memory {
    outbox_testkit::conformance!(super::On<true, false>);
}
