//! Asking a live database what it is like.

use std::time::Duration;

use diesel::QueryResult;
use diesel::mysql::Mysql;
use diesel::result::Error;
use diesel::sql_types::{Binary, Nullable, Untyped};
use diesel_async::SimpleAsyncConnection;
use outbox_core::{StoreError, StoreOperation};
use outbox_sql::check::Finding;
use outbox_sql::deadline::within;
use outbox_sql::mysql::check::{
    ColumnFacts, DESCRIBE_COLUMNS, DESCRIBE_INDEXES, DESCRIBE_SERVER, DESCRIBE_TABLE, Facts, TableFacts,
    findings, indexes,
};
use outbox_sql::mysql::{SENTINEL, turns};

use super::ArmedConnection;
use super::claim::has_row;
use super::error::number;
use super::row::Values;
use super::store::MySqlStore;
use crate::connection::Failure;
use crate::statement::Statement;

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

    async fn ask(&self) -> Result<Vec<Finding>, Failure> {
        let table = &self.table.description;
        let (mut connection, (_, _, turned)) = self.ask_server().await?;
        if !turned.is_empty() {
            connection.give_back();
            // Not even what is asked here can be relied on.
            return Ok(vec![Finding::error(turns(&turned))]);
        }
        let settings: Vec<Values> =
            Statement::<Mysql, Untyped>::new(DESCRIBE_SERVER).rows(connection.get()?).await?;
        let setting = |row: &Values| Ok((row.expect_text(0)?, row.expect_text(1)?));
        let claims = self.ask_table(&mut connection, &table.claims_name()).await?;
        let sentinel = match &claims {
            Some(claims) if may_read(claims) => {
                Some(has_row(&mut connection, &self.table.statements.exists, SENTINEL).await?)
            }
            _ => None,
        };
        let facts = Facts {
            settings: settings.iter().map(setting).collect::<QueryResult<_>>()?,
            table: self.ask_table(&mut connection, table.name()).await?,
            claims,
            sentinel,
            settling: self.settling,
            may_settle: self.may_settle(&mut connection).await?,
        };
        connection.give_back();
        Ok(findings(table, &facts))
    }

    /// Whether this user may do what a settlement does: a plan of it needs the same rights, and changes nothing.
    async fn may_settle(&self, connection: &mut ArmedConnection) -> Result<Option<bool>, Failure> {
        let plan = format!("EXPLAIN {}", self.table.statements.prove_writable);
        match connection.get()?.batch_execute(&plan).await {
            Ok(()) => Ok(Some(true)),
            Err(Error::DatabaseError(kind, said)) => match number(kind, said.message()) {
                Some(1142 | 1143) => Ok(Some(false)),
                // Another finding says why.
                Some(_) => Ok(None),
                None => Err(Error::DatabaseError(kind, said).into()),
            },
            Err(error) => Err(error.into()),
        }
    }

    async fn ask_table(
        &self,
        connection: &mut ArmedConnection,
        name: &str,
    ) -> Result<Option<TableFacts>, Failure> {
        let tables: Vec<Values> = self.about(DESCRIBE_TABLE, name).rows(connection.get()?).await?;
        let Some(table) = tables.first() else { return Ok(None) };
        let columns: Vec<Values> = self.about(DESCRIBE_COLUMNS, name).rows(connection.get()?).await?;
        let places: Vec<Values> = self.about(DESCRIBE_INDEXES, name).rows(connection.get()?).await?;
        let place = |row: &Values| Ok((row.expect_text(0)?, row.optional_text(1)?, row.expect(2)? == 1));
        Ok(Some(TableFacts {
            kind: table.expect_text(0)?,
            engine: table.optional_text(1)?,
            comment: table.expect_text(2)?,
            triggers: table.optional_text(3)?,
            next_id: table.optional_text(4)?,
            columns: columns.iter().map(column).collect::<QueryResult<_>>()?,
            indexes: indexes(places.iter().map(place).collect::<QueryResult<Vec<_>>>()?),
        }))
    }

    fn about<'q>(&'q self, question: &'static str, name: &'q str) -> Statement<'q, Mysql, Untyped> {
        Statement::new(question)
            .bind::<Nullable<Binary>>(self.table.description.schema().map(str::as_bytes))
            .bind::<Binary>(name.as_bytes())
    }
}

fn may_read(table: &TableFacts) -> bool {
    table.columns.iter().all(|column| column.privileges.contains("select"))
}

fn column(row: &Values) -> QueryResult<ColumnFacts> {
    Ok(ColumnFacts {
        name: row.expect_text(0)?,
        column_type: row.expect_text(1)?,
        nullable: row.expect_text(2)? == "YES",
        extra: row.expect_text(3)?,
        privileges: row.expect_text(4)?,
    })
}
