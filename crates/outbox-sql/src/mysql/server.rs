//! What a store asks before it looks for anything: whether server and session keep a claim's promise.

use std::sync::atomic::{AtomicBool, Ordering};

use outbox_core::{StoreError, StoreOperation};

/// Asks whether a read of this session ends its own transaction, as a number that is 0 if not; what the server calls
/// itself, as a text; and, as a text, which settings of the session turn what a read sees or what is bound to it, empty
/// if none does: for [`KnownServer::learn`]. (In the mode `EMPTY_STRING_IS_NULL` MariaDB takes an empty text that is
/// bound for none: a walk over the tenants begins with one, and a subject can be one.)
pub(crate) const ASK_SERVER: &str = "SELECT cast(@@autocommit AS signed), \
     cast(concat_ws(', ', version(), @@version_comment) AS char), \
     cast(concat_ws(', ', \
     if(/*M! @@SESSION.tx_isolation */ /*!80000 @@SESSION.transaction_isolation */ = 'READ-UNCOMMITTED', \
     'transaction_isolation', NULL), \
     if(@@SESSION.sql_select_limit < 9223372036854775807, 'sql_select_limit', NULL), \
     if(abs(timestampdiff(SECOND, now(), sysdate())) > 60, 'timestamp', NULL), \
     if(find_in_set('EMPTY_STRING_IS_NULL', @@SESSION.sql_mode), 'the sql_mode EMPTY_STRING_IS_NULL', NULL) \
     /*M! , if(@@SESSION.system_versioning_asof <> 'DEFAULT', 'system_versioning_asof', NULL) */) AS char)";

/// Whether a pool's server and sessions were seen to keep a claim's promise. A pool's sessions are alike: they are
/// asked once, and again after an error, since another server may have the address by then.
#[derive(Debug, Default)]
pub(crate) struct KnownServer(AtomicBool);

impl KnownServer {
    /// Whether nothing has to be asked.
    pub(crate) fn is_known(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Takes in the answer to [`ASK_SERVER`].
    ///
    /// # Errors
    /// A permanent error where a claim excludes nobody, since the server locks nothing; where a probe would see what
    /// was there at its session's first read, for ever; and where a read would see what is not committed, not all of
    /// it, nothing at all, or what was there in the past. Nobody would be told of any.
    pub(crate) fn learn(
        &self,
        operation: StoreOperation,
        (autocommit, server, turned): (i64, &str, &str),
    ) -> Result<(), StoreError> {
        check(operation, autocommit, server)?;
        if !turned.is_empty() {
            return Err(StoreError::permanent(operation, turns(turned)));
        }
        self.0.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// An operation failed: it is asked again before the next.
    pub(crate) fn forget(&self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

/// A row of a probe's answer that is no tenant's: which server it is, as the bytes of a text, and in the place of a
/// tenant's entries -1, or [`READ_ONLY`].
pub(super) const SERVER: &str = "SELECT cast(concat_ws(' ', @@hostname, @@port, @@server_id) AS binary), 0, \
     if(cast(@@GLOBAL.read_only AS char) IN ('0', 'OFF'), -1, -2), 0, 0";

/// That the server is read-only.
pub(super) const READ_ONLY: i64 = -2;

/// Why nothing is claimed on a server that is read-only. Who has a privilege for it may write there all the same, which is
/// not who the applications are.
pub(super) fn read_only() -> StoreError {
    StoreError::transient(
        StoreOperation::Probe,
        "the server is read-only (read_only), as a replica is: nothing is published until the address leads to a server \
         that takes writes; every probe closes its connection, so that the pool makes new ones",
    )
}

fn check(operation: StoreOperation, autocommit: i64, server: &str) -> Result<(), StoreError> {
    if let Some(why) = locks_nothing(server) {
        return Err(StoreError::permanent(operation, why));
    }
    if autocommit == 0 {
        return Err(StoreError::permanent(
            operation,
            "autocommit is off in the pool's sessions, where every read would see an old snapshot: switch it on for \
             the relay's pool",
        ));
    }
    Ok(())
}

/// What is said of settings that turn what a read sees: those that [`ASK_SERVER`] answers.
pub(crate) fn turns(settings: &str) -> String {
    format!(
        "sessions of the relay's pool do not see just what is committed now, by these settings: {settings}; give that \
         pool sessions with the server's own defaults for them, and READ COMMITTED or a stronger isolation"
    )
}

/// Why a server of this name cannot be used: it takes what the claim's lock says, and does nothing.
pub(crate) fn locks_nothing(server: &str) -> Option<String> {
    server.to_ascii_lowercase().contains("tidb").then(|| {
        format!(
            "the server is TiDB ({server}), which takes SKIP LOCKED and locks nothing, so that two relays would hold \
             one tenant: use MySQL or MariaDB; docs/scaling.md tells of other engines"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_known_once_it_was_not_refused_and_until_an_error() {
        let known = KnownServer::default();
        assert!(known.learn(StoreOperation::Claim, (1, "8.0.11-TiDB-v8.5.0", "")).is_err());
        assert!(known.learn(StoreOperation::Probe, (0, "8.4.0", "")).is_err());
        assert!(!known.is_known());
        assert!(known.learn(StoreOperation::Pending, (1, "8.4.0", "sql_select_limit")).is_err());
        assert!(!known.is_known());
        assert!(known.learn(StoreOperation::Claim, (1, "8.4.0", "")).is_ok());
        assert!(known.is_known());
        known.forget();
        assert!(!known.is_known());
    }

    #[test]
    fn a_server_that_locks_nothing_is_refused_by_its_name() {
        for server in [
            "8.0.11-TiDB-v8.5.0, TiDB Server (Apache License 2.0) Community Edition, MySQL 8.0 compatible",
            "5.7.25-TiDB-v4.0.0-beta.2-720-g0df3b74f5, MySQL",
            // Its version can be set to another server's.
            "8.0.36, TiDB Server (Apache License 2.0) Community Edition, MySQL 8.0 compatible",
        ] {
            let said = check(StoreOperation::Claim, 1, server).map_err(|error| error.to_string());
            assert!(said.as_ref().is_err_and(|said| said.contains(&format!("TiDB ({server})"))), "{said:?}");
        }
        for server in ["10.11.8-MariaDB, Debian 12", "8.4.0, MySQL Community Server - GPL", "8.0.30-Vitess, "]
        {
            assert!(check(StoreOperation::Claim, 1, server).is_ok(), "{server}");
        }
    }
}
