//! Asking a live database what it is like.

use std::time::Duration;

use outbox_core::{StoreError, StoreOperation};

use super::{
    ColumnFacts, DESCRIBE_COLUMNS, DESCRIBE_INDEXES, DESCRIBE_SERVER, DESCRIBE_TABLE, Facts, TableFacts,
    findings, indexes,
};
use crate::check::Finding;
use crate::deadline::within;
use crate::driver::{Answer, Asking, Bind, Failed, Question, Session as _};
use crate::mysql::driver::{MySqlDriver, MySqlSession as _};
use crate::mysql::lock::has_row;
use crate::mysql::store::MySqlStore;
use crate::mysql::{MySqlStatements, SENTINEL, schema, turns};
use crate::row::Cell;
use crate::table::OutboxTable;

/// How long a check may take.
const TIMEOUT: Duration = Duration::from_secs(30);
const CHECK: StoreOperation = StoreOperation::Check;

impl<D: MySqlDriver> MySqlStore<D> {
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
        let (mut session, (_, _, turned)) = self.ask_server().await?;
        if !turned.is_empty() {
            session.release();
            // Not even what is asked here can be relied on.
            return Ok(vec![Finding::error(turns(&turned))]);
        }
        let settings = session.ask(Question::unnamed(DESCRIBE_SERVER, &[])).await?;
        let settings: Cell<_> = settings.into_iter().map(setting).collect();
        let facts = Facts {
            settings: settings.map_err(D::Session::unreadable)?,
            settling: shared.settling,
            ..ask_tables(&mut session, &shared.statements, &shared.table).await?
        };
        let facts = Facts { may_settle: self.may_settle(&mut session).await?, ..facts };
        session.release();
        Ok(findings(&shared.table, &facts))
    }

    /// Whether this user may do what a settlement does: a plan of it needs the same rights, and changes nothing.
    async fn may_settle(&self, session: &mut D::Session) -> Result<Option<bool>, Failed<D>> {
        let plan = format!("EXPLAIN {}", self.shared.statements.prove_writable);
        match session.run(&plan).await {
            Ok(()) => Ok(Some(true)),
            Err(error) => match D::Session::number(&error) {
                Some(1142 | 1143) => Ok(Some(false)),
                // Another finding says why.
                Some(_) => Ok(None),
                None => Err(error),
            },
        }
    }
}

/// Makes the tables, unless they are there: those stay as they are, and are compared with what the store needs. Answers
/// what does not suit.
///
/// # Errors
/// What a statement fails with.
pub async fn create_if_missing<A: Asking>(
    connection: &mut A,
    statements: &MySqlStatements,
    table: &OutboxTable,
) -> Result<Vec<Finding>, A::Error> {
    let facts = ask_tables(connection, statements, table).await?;
    if facts.table.is_some() && facts.claims.is_some() && facts.sentinel != Some(false) {
        return Ok(findings(table, &facts));
    }
    // The description was checked, so that there is always one.
    connection.run(&schema::create_table_if_missing(table).unwrap_or_default()).await?;
    Ok(findings(table, &ask_tables(connection, statements, table).await?))
}

/// What the tables are like.
async fn ask_tables<A: Asking>(
    connection: &mut A,
    statements: &MySqlStatements,
    table: &OutboxTable,
) -> Result<Facts, A::Error> {
    let claims = ask_table(connection, table, &table.claims_name()).await?;
    let may_read =
        |table: &TableFacts| table.columns.iter().all(|column| column.privileges.contains("select"));
    let sentinel = if claims.as_ref().is_some_and(may_read) {
        Some(has_row(connection, &statements.exists, SENTINEL).await?)
    } else {
        None
    };
    let live = ask_table(connection, table, table.name()).await?;
    Ok(Facts { table: live, claims, sentinel, ..Facts::default() })
}

async fn ask_table<A: Asking>(
    connection: &mut A,
    table: &OutboxTable,
    name: &str,
) -> Result<Option<TableFacts>, A::Error> {
    let binds = [table.schema().map_or(Bind::Null, Bind::Text), Bind::Text(name)];
    let found = connection.ask(Question::unnamed(DESCRIBE_TABLE, &binds)).await?;
    let Some(found) = found.into_iter().next() else { return Ok(None) };
    let columns = connection.ask(Question::unnamed(DESCRIBE_COLUMNS, &binds)).await?;
    let places = connection.ask(Question::unnamed(DESCRIBE_INDEXES, &binds)).await?;
    TableFacts::of(found, columns, places).map(Some).map_err(A::unreadable)
}

fn setting(mut answer: Answer) -> Cell<(String, String)> {
    Ok((answer.take(0)?, answer.take(1)?))
}

impl TableFacts {
    fn of(mut table: Answer, columns: Vec<Answer>, places: Vec<Answer>) -> Cell<Self> {
        let place = |mut place: Answer| Ok((place.take(0)?, place.take(1)?, place.take::<i64>(2)? == 1));
        Ok(Self {
            kind: table.take(0)?,
            engine: table.take(1)?,
            comment: table.take(2)?,
            triggers: table.take(3)?,
            next_id: table.take(4)?,
            columns: columns.into_iter().map(ColumnFacts::of).collect::<Cell<_>>()?,
            indexes: indexes(places.into_iter().map(place).collect::<Cell<Vec<_>>>()?),
        })
    }
}

impl ColumnFacts {
    fn of(mut answer: Answer) -> Cell<Self> {
        Ok(Self {
            name: answer.take(0)?,
            column_type: answer.take(1)?,
            nullable: answer.take::<String>(2)? == "YES",
            extra: answer.take(3)?,
            privileges: answer.take(4)?,
        })
    }
}
