//! The SQLite store keeps every law, on a database in a file and on one in memory.

use outbox_suite::sqlite::On;

use super::driver::OnDiesel;

mod file {
    outbox_testkit::conformance!(super::On<super::OnDiesel, false, false>);
}

mod file_deleting {
    outbox_testkit::conformance!(super::On<super::OnDiesel, false, true>);
}

mod memory {
    outbox_testkit::conformance!(super::On<super::OnDiesel, true, false>);
}
