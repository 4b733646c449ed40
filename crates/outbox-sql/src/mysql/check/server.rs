//! What the server must be like.

use super::Facts;
use crate::check::Finding;
use crate::mysql::server::locks_nothing;

pub(super) fn check_server(facts: &Facts, found: &mut Vec<Finding>) {
    let version = facts.setting("version").unwrap_or_default();
    let comment = facts.setting("version_comment").unwrap_or_default();
    if let Some(why) = locks_nothing(&format!("{version}, {comment}")) {
        found.push(Finding::error(why));
    } else if !is_recent(version) {
        found.push(Finding::error(format!(
            "the server is {version}: the store needs MariaDB from 10.6 or MySQL from 8.0.14"
        )));
    }
    for setting in ["read_only", "super_read_only", "innodb_read_only"] {
        if is_set(facts, setting) {
            found.push(Finding::error(format!(
                "the server is read-only ({setting}), where no claim can mark: connect to the primary"
            )));
        }
    }
    if facts.setting("autocommit").is_some_and(|value| !is_true(value)) {
        found.push(Finding::error(
            "autocommit is off in the pool's sessions, where a read opens a transaction that nothing ends: switch it \
             on",
        ));
    }
    if facts.is_on("log_bin") && facts.setting("binlog_format").is_some_and(|format| format == "STATEMENT") {
        found.push(Finding::error(
            "the binary log is in the format STATEMENT, which READ COMMITTED cannot write: set binlog_format to ROW \
             or MIXED",
        ));
    }
    if facts.setting("sql_mode").is_some_and(|modes| modes.contains("EMPTY_STRING_IS_NULL")) {
        found.push(Finding::error(
            "the sql_mode EMPTY_STRING_IS_NULL takes an empty subject for none: remove it in the pool's sessions",
        ));
    }
    if facts.is_on("wsrep_on") {
        found.push(Finding::warning(
            "the server is a node of a Galera cluster, whose nodes do not see each other's locks: let every replica \
             and every writer use one and the same node",
        ));
    }
    let grouped = facts.setting("group_replication_group_name").is_some_and(|name| !name.is_empty());
    if grouped && !facts.is_on("group_replication_single_primary_mode") {
        found.push(Finding::warning(
            "the server is in a replication group with several primaries, which do not see each other's locks: let \
             every replica and every writer use one and the same server",
        ));
    }
    check_durability(facts, found);
    for setting in ["idle_transaction_timeout", "idle_write_transaction_timeout"] {
        if let Some(seconds) = facts.setting(setting).filter(|seconds| *seconds != "0") {
            found.push(Finding::warning(format!(
                "{setting} ends idle transactions after {seconds} s: a claim lifts it for itself, and your own \
                 transactions have to be shorter"
            )));
        }
    }
}

/// What a crash may take back: a message that was published, or its mark.
fn check_durability(facts: &Facts, found: &mut Vec<Finding>) {
    if let Some(value) = facts.setting("innodb_flush_log_at_trx_commit").filter(|value| *value != "1") {
        found.push(Finding::warning(format!(
            "innodb_flush_log_at_trx_commit is {value}: a crash may take back what was committed and published, and its \
             id is issued again; set it to 1"
        )));
    }
    if let Some(method) = facts.setting("innodb_flush_method").filter(|method| method.contains("nosync")) {
        found.push(Finding::warning(format!(
            "innodb_flush_method is {method}: a crash of the machine may take back what was committed and published, and \
             damage the table"
        )));
    }
    if facts
        .setting("innodb_doublewrite")
        .is_some_and(|value| value.eq_ignore_ascii_case("OFF") || value == "0")
    {
        found.push(Finding::warning(
            "innodb_doublewrite is off: a crash of the machine may damage the table; switch it on, unless the file \
             system writes whole pages",
        ));
    }
    let not_synced = facts.setting("sync_binlog").filter(|value| facts.is_on("log_bin") && *value != "1");
    if let Some(value) = not_synced {
        found.push(Finding::warning(format!(
            "sync_binlog is {value}: after a crash a replica may have what the server took back, or lack what it kept; \
             set it to 1"
        )));
    }
}

/// `read_only` has further words on newer servers; each of them restricts somebody.
fn is_set(facts: &Facts, setting: &str) -> bool {
    facts.setting(setting).is_some_and(|value| !matches!(value, "OFF" | "0" | "NO"))
}

fn is_true(value: &str) -> bool {
    value == "1" || value.eq_ignore_ascii_case("ON")
}

/// Whether the server has what the statements say. A version that cannot be read is given the benefit of the doubt.
fn is_recent(version: &str) -> bool {
    // A MariaDB may say 5.5.5-10.11.8-MariaDB, for replicas of old.
    let version = version.strip_prefix("5.5.5-").unwrap_or(version);
    let numbers: Vec<u32> =
        version.split(['.', '-', '+']).map_while(|part| part.parse().ok()).take(3).collect();
    let least: &[u32] = if version.contains("MariaDB") { &[10, 6] } else { &[8, 0, 14] };
    numbers.len() < 2 || numbers.as_slice() >= least
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_lacks_what_the_statements_say_is_too_old() {
        for recent in [
            "10.6.0-MariaDB",
            "11.4.2-MariaDB-log",
            "5.5.5-10.11.8-MariaDB",
            "8.0.14",
            "8.4.0",
            "9.1.0-1",
            "x",
        ] {
            assert!(is_recent(recent), "{recent}");
        }
        for old in ["10.5.25-MariaDB", "5.5.5-10.4.1-MariaDB", "8.0.13", "5.7.44-log"] {
            assert!(!is_recent(old), "{old}");
        }
    }
}
