//! The SQLite store keeps every law, on a database in a file and on one in memory.

use outbox_suite::sqlite::On;

use super::driver::OnSqlx;

mod file {
    outbox_testkit::conformance!(super::On<super::OnSqlx, false, false>);
}

mod file_deleting {
    outbox_testkit::conformance!(super::On<super::OnSqlx, false, true>);
}

mod memory {
    outbox_testkit::conformance!(super::On<super::OnSqlx, true, false>);
}
