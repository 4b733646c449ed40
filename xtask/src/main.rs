//! The workspace's automation.
fn main() {}
