//! Asking a live database what it is like.

use std::time::Duration;

use outbox_core::{StoreError, StoreOperation};

use super::{
    ColumnFacts, DESCRIBE_COLUMNS, DESCRIBE_DANGERS, DESCRIBE_INDEXES, DESCRIBE_SERVER, DESCRIBE_TABLE,
    FIND_SEQUENCE, Facts, IndexFacts, SESSION, TableFacts, describe_sequence, findings,
};
use crate::check::Finding;
use crate::deadline::within;
use crate::dialect::Dialect;
use crate::driver::{Answer, Asking, Bind, Failed, FromValue, Question, Session as _};
use crate::postgres::driver::PostgresDriver;
use crate::postgres::lock_key::creation_lock_key;
use crate::postgres::store::PostgresStore;
use crate::postgres::watermark::Suitability;
use crate::postgres::{BEGIN_READ, schema};
use crate::row::Cell;
use crate::table::OutboxTable;

/// How long a check may take.
const TIMEOUT: Duration = Duration::from_secs(30);
const CHECK: StoreOperation = StoreOperation::Check;

impl<D: PostgresDriver> PostgresStore<D> {
    /// Compares the database with what the store needs.
    ///
    /// # Errors
    /// [`StoreError`], if the database cannot be asked within 30 s.
    pub async fn check(&self) -> Result<Vec<Finding>, StoreError> {
        let asking = async { self.ask().await.map_err(|error| self.shared.failed(CHECK, error)) };
        within(TIMEOUT, CHECK, asking).await
    }

    async fn ask(&self) -> Result<Vec<Finding>, Failed<D>> {
        let shared = &self.shared;
        let mut session = shared.driver.acquire().await?;
        // In one transaction, so that a pooler keeps preparing and running a statement on one server session.
        session.run(BEGIN_READ).await?;
        let mut table = ask_table(&mut session, &shared.table).await?;
        if let Some(live) = &mut table {
            live.dangers.behind = ask_sequence(&mut session, &shared.table, live).await?;
        }
        let mut server = session.ask_one(Question::unnamed(DESCRIBE_SERVER, &[])).await?;
        let mut facts = Facts::of_server(&mut server).map_err(D::Session::unreadable)?;
        (facts.table, facts.settling) = (table, shared.settling);
        if shared.watermarks.is_some() && facts.table.is_some() {
            let statement = shared.statements.watermark.facts.clone();
            let suitability = Suitability::of(session.ask_one(Question::plain(statement)).await?);
            facts.no_watermark = suitability.map_err(D::Session::unreadable)?.objection(&shared.name);
        }
        session.run("COMMIT").await?;
        let several = shared.driver.max_sessions().is_none_or(|most| most.get() > 1);
        if several && shared.driver.names_statements() && self.is_pooled(&mut session).await? {
            facts.pooled = Some(D::pooled());
        }
        session.release();
        Ok(findings(&shared.table, &facts))
    }

    /// Whether two connections come to one server session: the first is between its transactions, the second
    /// comes then. They do not, as far as is known, if the pool has no second one to give within a second.
    async fn is_pooled(&self, first: &mut D::Session) -> Result<bool, Failed<D>> {
        let acquiring = self.shared.driver.acquire();
        let Ok(second) = tokio::time::timeout(Duration::from_secs(1), acquiring).await else {
            return Ok(false);
        };
        let mut second = second?;
        let mut number = first.ask_one(Question::plain(SESSION)).await?;
        let mut other = second.ask_one(Question::plain(SESSION)).await?;
        second.release();
        let same = number.take::<i64>(0).and_then(|number| Ok(number == other.take::<i64>(0)?));
        same.map_err(D::Session::unreadable)
    }
}

/// Makes a table, unless there is one of that name: that stays as it is, and is compared with what the store needs.
/// Answers what does not suit. To be called in a transaction, to whose end others wait that call it.
///
/// # Errors
/// What a statement fails with.
pub async fn create_if_missing<A: Asking>(
    connection: &mut A,
    table: &OutboxTable,
) -> Result<Vec<Finding>, A::Error> {
    let key = [Bind::Integer(creation_lock_key(table))];
    connection.ask(Question::unnamed("SELECT pg_catalog.pg_advisory_xact_lock($1)", &key)).await?;
    if let Some(live) = ask_table(connection, table).await? {
        return Ok(findings(table, &Facts { table: Some(live), ..Facts::default() }));
    }
    // The description was checked, so that there is always one.
    connection.run(&schema::create_table(table).unwrap_or_default()).await?;
    Ok(Vec::new())
}

async fn ask_table<A: Asking>(
    connection: &mut A,
    table: &OutboxTable,
) -> Result<Option<TableFacts>, A::Error> {
    let names = [Bind::Text(table.schema_on(Dialect::Postgres)), Bind::Text(table.name())];
    let found = connection.ask(Question::unnamed(DESCRIBE_TABLE, &names)).await?;
    let Some(mut found) = found.into_iter().next() else { return Ok(None) };
    let oid = Bind::Integer(found.take(0).map_err(A::unreadable)?);
    let columns = connection.ask(Question::unnamed(DESCRIBE_COLUMNS, &[oid])).await?;
    let indexes = connection.ask(Question::unnamed(DESCRIBE_INDEXES, &[oid])).await?;
    let mut live = TableFacts::of(found, columns, indexes).map_err(A::unreadable)?;
    let names = table.columns();
    let about = [oid, Bind::Text(&names.id), Bind::Text(&names.published_at)];
    let dangers = connection.ask(Question::unnamed(DESCRIBE_DANGERS, &about)).await?;
    live.dangers.found = dangers.into_iter().map(two).collect::<Cell<_>>().map_err(A::unreadable)?;
    Ok(Some(live))
}

/// Whether the sequence is behind the rows: where it stands, and the highest id. Without an index that leads to that, it is
/// not asked for: all rows would be read.
async fn ask_sequence<A: Asking>(
    connection: &mut A,
    table: &OutboxTable,
    live: &TableFacts,
) -> Result<Option<(String, String)>, A::Error> {
    let id = &table.columns().id;
    let numbered =
        |column: &ColumnFacts| column.name == *id && column.may_select && column.sequence_cache.is_some();
    let leads =
        |index: &IndexFacts| index.valid && index.predicate.is_none() && index.columns.first() == Some(id);
    if !live.columns.iter().any(numbered) || !live.indexes.iter().any(leads) {
        return Ok(None);
    }
    let quoted = table.quoted(Dialect::Postgres);
    let names = [Bind::Text(&quoted), Bind::Text(id)];
    let found = connection.ask(Question::unnamed(FIND_SEQUENCE, &names)).await?;
    let Some(mut found) = found.into_iter().next() else { return Ok(None) };
    let name: String = found.take(0).map_err(A::unreadable)?;
    let (may_select, may_use) = (found.take(1), found.take::<bool>(2));
    let may_select: bool = may_select.map_err(A::unreadable)?;
    if !may_select && !may_use.map_err(A::unreadable)? {
        return Ok(None);
    }
    let behind = connection.ask(Question::plain(describe_sequence(table, &name, may_select))).await?;
    behind.into_iter().next().map(two).transpose().map_err(A::unreadable)
}

/// The first two values of a row.
fn two<One: FromValue, Other: FromValue>(mut answer: Answer) -> Cell<(One, Other)> {
    Ok((answer.take(0)?, answer.take(1)?))
}

impl Facts {
    fn of_server(answer: &mut Answer) -> Cell<Self> {
        Ok(Self {
            standby: answer.take(0)?,
            read_only_by_default: answer.take(1)?,
            encoding: answer.take(2)?,
            notification_queue: answer.take(3)?,
            off: answer.take::<Option<_>>(4)?.unwrap_or_default(),
            primaries: answer.take::<Option<_>>(5)?.unwrap_or_default(),
            ..Self::default()
        })
    }
}

impl TableFacts {
    fn of(mut table: Answer, columns: Vec<Answer>, indexes: Vec<Answer>) -> Cell<Self> {
        Ok(Self {
            kind: table.take(1)?,
            row_security: table.take(2)?,
            comment: table.take(3)?,
            may_delete: table.take(4)?,
            columns: columns.into_iter().map(ColumnFacts::of).collect::<Cell<_>>()?,
            indexes: indexes.into_iter().map(IndexFacts::of).collect::<Cell<_>>()?,
            ..Self::default()
        })
    }
}

impl ColumnFacts {
    fn of(mut answer: Answer) -> Cell<Self> {
        Ok(Self {
            name: answer.take(0)?,
            data_type: answer.take(1)?,
            not_null: answer.take(2)?,
            collation: answer.take(3)?,
            deterministic: answer.take(4)?,
            may_select: answer.take(5)?,
            may_update: answer.take(6)?,
            sequence_cache: answer.take(7)?,
        })
    }
}

impl IndexFacts {
    fn of(mut answer: Answer) -> Cell<Self> {
        Ok(Self {
            columns: answer.take::<Option<_>>(0)?.unwrap_or_default(),
            predicate: answer.take(1)?,
            valid: answer.take(2)?,
            unique: answer.take(3)?,
        })
    }
}
