//! Locking a tenant's row among the claims, and adding it where there is none: what is asked in which order.

use std::sync::Arc;

use outbox_core::{StoreError, StoreOperation};

use crate::driver::{Asking, Bind, Question};
use crate::mysql::driver::MySqlSession;
use crate::mysql::error::is_conflict;
use crate::mysql::{BeginClaim, COMMIT, MySqlStatements, SENTINEL};

/// What came of locking a tenant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lock {
    /// The session has it.
    Taken,
    /// Another has it. To be ended by [`ROLLBACK`](crate::mysql::ROLLBACK), whether or not a transaction is open.
    Held,
    /// Another was adding its row. The connection is to be closed: the server may have ended the transaction.
    Conflict,
    /// There is no [`SENTINEL`]; see [`no_sentinel`]. The connection is to be closed.
    NoSentinel,
}

/// Whose a row of the claims is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Row {
    Ours,
    Anothers,
    Missing,
}

/// Begins a transaction as [`begin_claim`](crate::mysql::begin_claim) says, and locks a tenant in it. Waits for no session
/// that holds a tenant. A tenant without a row is added: while another adds one this waits, a while, and where another
/// adds the same row without the sentinel, no longer than a lock may be waited for.
///
/// # Errors
/// What a statement fails with. The connection is to be closed then.
///
/// # Cancellation
/// The connection is to be closed with the future.
pub(super) async fn lock<S: MySqlSession>(
    session: &mut S,
    statements: &MySqlStatements,
    begin: &BeginClaim,
    tenant: &str,
) -> Result<Lock, S::Error> {
    session.run(&begin.text).await?;
    match try_row(session, statements, tenant).await? {
        Row::Ours => return Ok(Lock::Taken),
        Row::Anothers => return Ok(Lock::Held),
        Row::Missing => {}
    }

    // Whoever adds a row has the sentinel locked, so that nobody waits for another's insert.
    match lock_sentinel(session, statements, begin).await? {
        Row::Ours => {}
        Row::Anothers => return Ok(Lock::Held),
        Row::Missing => return Ok(Lock::NoSentinel),
    }
    // Another may have added it before the sentinel was locked.
    if !has_row(session, &statements.exists, tenant).await? {
        let tenant = [Bind::Text(tenant)];
        match session.change(Question::named(&statements.add, &tenant)).await {
            Ok(_) => {}
            Err(error) if S::number(&error).is_some_and(is_conflict) => return Ok(Lock::Conflict),
            Err(error) => return Err(error),
        }
    }
    session.run(COMMIT).await?;
    session.run(&begin.text).await?;
    Ok(match try_row(session, statements, tenant).await? {
        Row::Ours => Lock::Taken,
        Row::Anothers | Row::Missing => Lock::Held,
    })
}

/// Whether a question about a tenant is answered by a row.
///
/// # Errors
/// What the statement fails with.
pub(in crate::mysql) async fn has_row<A: Asking>(
    session: &mut A,
    question: &Arc<str>,
    tenant: &str,
) -> Result<bool, A::Error> {
    let tenant = [Bind::Text(tenant)];
    Ok(!session.ask(Question::named(question, &tenant)).await?.is_empty())
}

/// Locks a row of the claims, if it is there and nobody has. Neither question waits.
async fn try_row<S: MySqlSession>(
    session: &mut S,
    statements: &MySqlStatements,
    tenant: &str,
) -> Result<Row, S::Error> {
    if has_row(session, &statements.lock, tenant).await? {
        return Ok(Row::Ours);
    }
    Ok(if has_row(session, &statements.exists, tenant).await? { Row::Anothers } else { Row::Missing })
}

/// Locks the sentinel. Another has it for as long as it takes to add a row, and never for a batch: so it is waited for,
/// with nothing locked meanwhile that anybody else could wait for.
async fn lock_sentinel<S: MySqlSession>(
    session: &mut S,
    statements: &MySqlStatements,
    begin: &BeginClaim,
) -> Result<Row, S::Error> {
    let row = try_row(session, statements, SENTINEL).await?;
    let Some(seconds) = begin.a_while.filter(|_| row == Row::Anothers) else { return Ok(row) };
    session.run(&format!("SET SESSION innodb_lock_wait_timeout = {seconds}")).await?;
    match has_row(session, &statements.wait, SENTINEL).await {
        Ok(true) => Ok(Row::Ours),
        Ok(false) => Ok(Row::Missing),
        // Whether the server ended the statement or the transaction, a rollback is right.
        Err(error) if S::number(&error).is_some_and(is_conflict) => Ok(Row::Anothers),
        Err(error) => Err(error),
    }
}

/// The error of a claim that [`Lock::NoSentinel`] came of. `table` is for a person to read.
pub(super) fn no_sentinel(table: &str) -> StoreError {
    StoreError::permanent(
        StoreOperation::Claim,
        format!(
            "the table of claims of {table} lacks its empty row, which whoever adds a row locks: insert it, as the \
             DDL does; check() has the statement"
        ),
    )
}
