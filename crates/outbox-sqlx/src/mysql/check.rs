//! Asking a live database what it is like.

use std::sync::Arc;
use std::time::Duration;

use outbox_core::{StoreError, StoreOperation};
use outbox_sql::OutboxTable;
use outbox_sql::check::Finding;
use outbox_sql::deadline::within;
use outbox_sql::mysql::check::{
    ColumnFacts, DESCRIBE_COLUMNS, DESCRIBE_INDEXES, DESCRIBE_SERVER, DESCRIBE_TABLE, Facts, TableFacts,
    findings, indexes,
};
use outbox_sql::mysql::{SENTINEL, turns};
use sqlx::mysql::{MySqlArguments, MySqlRow};
use sqlx::query::Query;
use sqlx::{AssertSqlSafe, MySql, MySqlConnection, Row};

use super::MySqlTable;
use super::error::number;
use super::store::MySqlStore;

/// How long a check may take.
const TIMEOUT: Duration = Duration::from_secs(30);
const CHECK: StoreOperation = StoreOperation::Check;

impl MySqlStore {
    /// Compares the database with what the store needs: the table and the table of claims, their engine, columns,
    /// types, index and privileges, the sentinel; the server's version, a read-only server, settings that break a
    /// promise, a cluster with several nodes to write to. Nothing is found if all is well. Changes nothing.
    ///
    /// # Errors
    /// [`StoreError`], if the database cannot be asked within 30 s.
    pub async fn check(&self) -> Result<Vec<Finding>, StoreError> {
        let context = self.context(CHECK);
        within(TIMEOUT, CHECK, async { self.ask().await.map_err(|error| context.error(error)) }).await
    }

    async fn ask(&self) -> sqlx::Result<Vec<Finding>> {
        let table = &self.table.description;
        let (mut connection, (_, _, turned)) = self.ask_server().await?;
        if !turned.is_empty() {
            connection.give_back();
            // Not even what is asked here can be relied on.
            return Ok(vec![Finding::error(turns(&turned))]);
        }
        let session = connection.get()?;
        let settings = sqlx::query(DESCRIBE_SERVER).persistent(false).fetch_all(&mut *session).await?;
        let claims = ask_table(table, session, &table.claims_name()).await?;
        let sentinel = ask_sentinel(&self.table, claims.as_ref(), session).await?;
        let facts = Facts {
            settings: settings
                .iter()
                .map(|row| Ok((row.try_get(0)?, row.try_get(1)?)))
                .collect::<sqlx::Result<_>>()?,
            table: ask_table(table, session, table.name()).await?,
            claims,
            sentinel,
            settling: self.settling,
            may_settle: self.may_settle(session).await?,
        };
        connection.give_back();
        Ok(findings(table, &facts))
    }

    /// Whether this user may do what a settlement does: a plan of it needs the same rights, and changes nothing.
    async fn may_settle(&self, session: &mut MySqlConnection) -> sqlx::Result<Option<bool>> {
        let plan = format!("EXPLAIN {}", self.table.statements.prove_writable);
        match sqlx::raw_sql(AssertSqlSafe(plan)).execute(session).await {
            Ok(_) => Ok(Some(true)),
            Err(error) => match number(&error) {
                Some(1142 | 1143) => Ok(Some(false)),
                // Another finding says why.
                Some(_) => Ok(None),
                None => Err(error),
            },
        }
    }
}

/// Compares live tables with their description, and says whether something is missing that the DDL makes.
pub(super) async fn compare(
    table: &MySqlTable,
    session: &mut MySqlConnection,
) -> sqlx::Result<(Vec<Finding>, bool)> {
    let description = &table.description;
    let claims = ask_table(description, session, &description.claims_name()).await?;
    let sentinel = ask_sentinel(table, claims.as_ref(), session).await?;
    let live = ask_table(description, session, description.name()).await?;
    let missing = live.is_none() || claims.is_none() || sentinel == Some(false);
    let facts = Facts { table: live, claims, sentinel, ..Facts::default() };
    Ok((findings(description, &facts), missing))
}

async fn ask_sentinel(
    table: &MySqlTable,
    claims: Option<&TableFacts>,
    session: &mut MySqlConnection,
) -> sqlx::Result<Option<bool>> {
    if !claims.is_some_and(may_read) {
        return Ok(None);
    }
    let exists = sqlx::query(AssertSqlSafe(Arc::clone(&table.statements.exists))).bind(SENTINEL.as_bytes());
    Ok(Some(exists.fetch_optional(session).await?.is_some()))
}

async fn ask_table(
    description: &OutboxTable,
    session: &mut MySqlConnection,
    name: &str,
) -> sqlx::Result<Option<TableFacts>> {
    let Some(table) = about(description, DESCRIBE_TABLE, name).fetch_optional(&mut *session).await? else {
        return Ok(None);
    };
    let columns = about(description, DESCRIBE_COLUMNS, name).fetch_all(&mut *session).await?;
    let places = about(description, DESCRIBE_INDEXES, name).fetch_all(session).await?;
    let places =
        places.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?, row.try_get::<i64, _>(2)? == 1)));
    Ok(Some(TableFacts {
        kind: table.try_get(0)?,
        engine: table.try_get(1)?,
        comment: table.try_get(2)?,
        triggers: table.try_get(3)?,
        next_id: table.try_get(4)?,
        columns: columns.iter().map(column).collect::<sqlx::Result<_>>()?,
        indexes: indexes(places.collect::<sqlx::Result<Vec<_>>>()?),
    }))
}

fn about<'q>(
    description: &OutboxTable,
    question: &'static str,
    name: &'q str,
) -> Query<'q, MySql, MySqlArguments> {
    let schema = description.schema().map(|schema| schema.as_bytes().to_vec());
    sqlx::query(question).persistent(false).bind(schema).bind(name.as_bytes())
}

fn may_read(table: &TableFacts) -> bool {
    table.columns.iter().all(|column| column.privileges.contains("select"))
}

fn column(row: &MySqlRow) -> sqlx::Result<ColumnFacts> {
    Ok(ColumnFacts {
        name: row.try_get(0)?,
        column_type: row.try_get(1)?,
        nullable: row.try_get::<String, _>(2)? == "YES",
        extra: row.try_get(3)?,
        privileges: row.try_get(4)?,
    })
}
