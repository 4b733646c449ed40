//! The reference store keeps every law, marking and deleting.

mod support;

mod marking {
    outbox_testkit::conformance!(crate::support::Memory);
}

mod deleting {
    outbox_testkit::conformance!(crate::support::Memory<true>);
}
