//! Asking a live database what it is like.

use std::time::Duration;

use diesel::pg::Pg;
use diesel::sql_types::{Array, BigInt, Bool, Double, Integer, Nullable, Text};
use diesel_async::{AsyncPgConnection, SimpleAsyncConnection};
use outbox_core::{StoreError, StoreOperation};
use outbox_sql::check::Finding;
use outbox_sql::deadline::within;
use outbox_sql::dialect::Dialect;
use outbox_sql::postgres::BEGIN_READ;
use outbox_sql::postgres::check::{
    ColumnFacts, DESCRIBE_COLUMNS, DESCRIBE_INDEXES, DESCRIBE_SERVER, DESCRIBE_TABLE, Facts, IndexFacts,
    SESSION, TableFacts, findings,
};

use super::store::PostgresStore;
use super::watermark;
use crate::connection::{ArmedConnection, Failure};
use crate::statement::Statement;

/// How long a check may take.
const TIMEOUT: Duration = Duration::from_secs(30);
const CHECK: StoreOperation = StoreOperation::Check;

/// What is said of a transaction pooler: whether it serves cannot be asked.
const POOLED: &str = "a transaction pooler is between here and the server: diesel-async gives every statement a name, \
    which the pooler has to keep track of (PgBouncer from 1.21 on, with max_prepared_statements above 0); else connect \
    directly";

type TableColumns = (BigInt, Text, Bool, Nullable<Text>, Bool);
type ColumnColumns = (Text, Text, Bool, Nullable<Text>, Bool, Bool, Bool, Nullable<BigInt>);
type IndexColumns = (Nullable<Array<Text>>, Nullable<Text>, Bool, Bool);

impl PostgresStore {
    /// Compares the database with what the store needs: the table, its columns and types, collation, index,
    /// sequence, privileges, row security, a standby, a transaction pooler. Nothing is found if all is well.
    /// Changes nothing.
    ///
    /// # Errors
    /// [`StoreError`], if the database cannot be asked within 30 s.
    pub async fn check(&self) -> Result<Vec<Finding>, StoreError> {
        let context = self.context(CHECK);
        within(TIMEOUT, CHECK, async { self.ask().await.map_err(|error| context.error(error)) }).await
    }

    async fn ask(&self) -> Result<Vec<Finding>, Failure> {
        let mut connection = ArmedConnection::acquire(&self.pool).await?;
        // In one transaction, so that a pooler keeps preparing and running a statement on one server session.
        connection.get()?.batch_execute(BEGIN_READ).await?;
        let table = self.ask_table(connection.get()?).await?;
        let mut facts = Facts { table, settling: self.settling, ..Facts::default() };
        let server = Statement::<Pg, (Bool, Bool, Text, Double)>::new(DESCRIBE_SERVER);
        (facts.standby, facts.read_only_by_default, facts.encoding, facts.notification_queue) =
            server.one_row(connection.get()?).await?;
        let several = self.pool.adapter().max_size().is_none_or(|size| size.get() > 1);
        if self.watermarks.is_some() && facts.table.is_some() {
            let suitability = watermark::facts(connection.get()?, &self.table.statements).await?;
            facts.no_watermark = suitability.objection(&self.display_name);
        }
        connection.get()?.batch_execute("COMMIT").await?;
        let pooled = several && self.is_pooled(connection.get()?).await? == Some(true);
        connection.give_back();
        let mut found = findings(&self.table.description, &facts);
        found.extend(pooled.then(|| Finding::warning(POOLED)));
        Ok(found)
    }

    /// Whether two connections come to one server session: the first is between its transactions, the second
    /// comes then. `None` if the pool has no second one to give within a second.
    async fn is_pooled(&self, first: &mut AsyncPgConnection) -> Result<Option<bool>, Failure> {
        let acquiring = ArmedConnection::acquire(&self.pool);
        let Ok(second) = tokio::time::timeout(Duration::from_secs(1), acquiring).await else {
            return Ok(None);
        };
        let mut second = second?;
        let session = || Statement::<Pg, Integer>::new(SESSION);
        let sessions: [i32; 2] = [session().one_row(first).await?, session().one_row(second.get()?).await?];
        second.give_back();
        Ok(Some(sessions[0] == sessions[1]))
    }

    async fn ask_table(&self, connection: &mut AsyncPgConnection) -> Result<Option<TableFacts>, Failure> {
        let table = Statement::<Pg, TableColumns>::new(DESCRIBE_TABLE)
            .bind::<Text>(self.table.description.schema_on(Dialect::Postgres))
            .bind::<Text>(self.table.description.name());
        let table = table.rows::<(i64, String, bool, Option<String>, bool), _>(connection).await?;
        let Some((oid, kind, row_security, comment, may_delete)) = table.into_iter().next() else {
            return Ok(None);
        };
        let columns = Statement::<Pg, ColumnColumns>::new(DESCRIBE_COLUMNS).bind::<BigInt>(oid);
        let indexes = Statement::<Pg, IndexColumns>::new(DESCRIBE_INDEXES).bind::<BigInt>(oid);
        let columns: Vec<ColumnRow> = columns.rows(connection).await?;
        let indexes: Vec<IndexRow> = indexes.rows(connection).await?;
        let (columns, indexes) =
            (columns.into_iter().map(column).collect(), indexes.into_iter().map(index).collect());
        Ok(Some(TableFacts { kind, row_security, comment, may_delete, columns, indexes }))
    }
}

type ColumnRow = (String, String, bool, Option<String>, bool, bool, bool, Option<i64>);

fn column(row: ColumnRow) -> ColumnFacts {
    let (name, data_type, not_null, collation, deterministic, may_select, may_update, sequence_cache) = row;
    ColumnFacts {
        name,
        data_type,
        not_null,
        collation,
        deterministic,
        may_select,
        may_update,
        sequence_cache,
    }
}

type IndexRow = (Option<Vec<String>>, Option<String>, bool, bool);

fn index((columns, predicate, valid, unique): IndexRow) -> IndexFacts {
    IndexFacts { columns: columns.unwrap_or_default(), predicate, valid, unique }
}
