//! Asking a live database what it is like.

use std::time::Duration;

use outbox_core::{StoreError, StoreOperation};
use outbox_sql::OutboxTable;
use outbox_sql::check::Finding;
use outbox_sql::dialect::Dialect;
use outbox_sql::postgres::BEGIN_READ;
use outbox_sql::postgres::check::{
    ColumnFacts, DESCRIBE_COLUMNS, DESCRIBE_INDEXES, DESCRIBE_SERVER, DESCRIBE_TABLE, Facts, IndexFacts,
    SESSION, TableFacts, findings,
};
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};

use super::store::PostgresStore;
use super::{ArmedConnection, watermark};
use outbox_sql::deadline::within;

/// How long a check may take.
const TIMEOUT: Duration = Duration::from_secs(30);
const CHECK: StoreOperation = StoreOperation::Check;

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

    async fn ask(&self) -> sqlx::Result<Vec<Finding>> {
        let mut connection = ArmedConnection::acquire(&self.pool).await?;
        // In one transaction, so that a pooler keeps preparing and running a statement on one server session.
        sqlx::raw_sql(BEGIN_READ).execute(connection.get()?).await?;
        let table = ask_table(&self.table.description, connection.get()?).await?;
        let mut facts = Facts { table, settling: self.settling, ..Facts::default() };
        let server = sqlx::query(DESCRIBE_SERVER).persistent(false).fetch_one(connection.get()?).await?;
        facts.standby = server.try_get(0)?;
        facts.read_only_by_default = server.try_get(1)?;
        facts.encoding = server.try_get(2)?;
        facts.notification_queue = server.try_get(3)?;
        if self.watermarks.is_some() && facts.table.is_some() {
            let suitability = watermark::facts(connection.get()?, &self.table.statements).await?;
            facts.no_watermark = suitability.objection(&self.display_name);
        }
        sqlx::raw_sql("COMMIT").execute(connection.get()?).await?;
        if self.table.named && self.pool.options().get_max_connections() > 1 {
            facts.pooled = self.is_pooled(connection.get()?).await?;
        }
        connection.give_back();
        Ok(findings(&self.table.description, &facts))
    }

    /// Whether two connections come to one server session: the first is between its transactions, the second
    /// comes then. `None` if the pool has no second one to give within a second.
    async fn is_pooled(&self, first: &mut PgConnection) -> sqlx::Result<Option<bool>> {
        let acquiring = ArmedConnection::acquire(&self.pool);
        let Ok(second) = tokio::time::timeout(Duration::from_secs(1), acquiring).await else {
            return Ok(None);
        };
        let mut second = second?;
        let sessions = [
            sqlx::raw_sql(SESSION).fetch_one(&mut *first).await?.try_get::<i32, _>(0)?,
            sqlx::raw_sql(SESSION).fetch_one(second.get()?).await?.try_get::<i32, _>(0)?,
        ];
        second.give_back();
        Ok(Some(sessions[0] == sessions[1]))
    }
}

/// Compares a live table with its description; `None` if there is none of its name.
pub(super) async fn compare(
    description: &OutboxTable,
    connection: &mut PgConnection,
) -> sqlx::Result<Option<Vec<Finding>>> {
    let table = ask_table(description, connection).await?;
    Ok(table.map(|table| findings(description, &Facts { table: Some(table), ..Facts::default() })))
}

async fn ask_table(
    description: &OutboxTable,
    connection: &mut PgConnection,
) -> sqlx::Result<Option<TableFacts>> {
    let table = sqlx::query(DESCRIBE_TABLE)
        .persistent(false)
        .bind(description.schema_on(Dialect::Postgres))
        .bind(description.name())
        .fetch_optional(&mut *connection)
        .await?;
    let Some(table) = table else { return Ok(None) };
    let oid: i64 = table.try_get(0)?;
    let columns =
        sqlx::query(DESCRIBE_COLUMNS).persistent(false).bind(oid).fetch_all(&mut *connection).await?;
    let indexes = sqlx::query(DESCRIBE_INDEXES).persistent(false).bind(oid).fetch_all(connection).await?;
    Ok(Some(TableFacts {
        kind: table.try_get(1)?,
        row_security: table.try_get(2)?,
        comment: table.try_get(3)?,
        may_delete: table.try_get(4)?,
        columns: columns.iter().map(column).collect::<sqlx::Result<_>>()?,
        indexes: indexes.iter().map(index).collect::<sqlx::Result<_>>()?,
    }))
}

fn column(row: &PgRow) -> sqlx::Result<ColumnFacts> {
    Ok(ColumnFacts {
        name: row.try_get(0)?,
        data_type: row.try_get(1)?,
        not_null: row.try_get(2)?,
        collation: row.try_get(3)?,
        deterministic: row.try_get(4)?,
        may_select: row.try_get(5)?,
        may_update: row.try_get(6)?,
        sequence_cache: row.try_get(7)?,
    })
}

fn index(row: &PgRow) -> sqlx::Result<IndexFacts> {
    Ok(IndexFacts {
        columns: row.try_get::<Option<Vec<String>>, _>(0)?.unwrap_or_default(),
        predicate: row.try_get(1)?,
        valid: row.try_get(2)?,
        unique: row.try_get(3)?,
    })
}
