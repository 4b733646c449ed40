//! Comparing a live table with what the store needs.

use std::collections::BTreeMap;
use std::path::Path;

use outbox_core::{StoreError, StoreOperation};
use outbox_sql::check::Finding;
use outbox_sql::dialect::Dialect;
use outbox_sql::file_lock::FileLock;
use outbox_sql::schema::sqlite::{describe_columns, describe_indexes, describe_table};
use sqlx::{AssertSqlSafe, Row};

use super::connection::Lent;
use super::error::{place_error, store_error};
use super::place::{MemoryDatabase, Place};
use super::store::{Shared, SqliteStore, within};
use super::writable;

/// How long a check may take.
const TIMEOUT: std::time::Duration = std::time::Duration::from_secs(30);
const CHECK: StoreOperation = StoreOperation::Claim;

/// The findings of a check.
#[derive(Default)]
struct Findings(Vec<Finding>);

impl Findings {
    fn error(&mut self, message: impl Into<String>) {
        self.0.push(Finding::error(message));
    }

    fn warning(&mut self, message: impl Into<String>) {
        self.0.push(Finding::warning(message));
    }
}

impl SqliteStore {
    /// Compares the database with what the store needs; nothing is found if all is well. Changes nothing, but
    /// may leave an empty lock file.
    ///
    /// # Errors
    /// [`StoreError`], if the database cannot be asked.
    pub async fn check(&self) -> Result<Vec<Finding>, StoreError> {
        within(TIMEOUT, CHECK, check(&self.shared)).await
    }
}

async fn check(shared: &Shared) -> Result<Vec<Finding>, StoreError> {
    let mut findings = Findings::default();
    let mut connection = shared.connection(CHECK).await?;
    let place = {
        let connection = connection.get().map_err(|error| store_error(CHECK, error))?;
        shared.place(connection).await.map_err(|error| place_error(CHECK, error))
    };
    let place = match place {
        Ok(place) => place,
        Err(error) => {
            findings.error(error.message());
            return Ok(findings.0);
        }
    };
    let exists =
        table(shared, &mut connection, &mut findings).await.map_err(|error| store_error(CHECK, error))?;
    if exists {
        shared.set_writable(false);
        if let Err(error) = writable::prove(shared, place, &mut connection).await {
            findings.error(error.message());
        }
    }
    match place {
        Place::File(path) => {
            file(shared, path, &mut connection, &mut findings)
                .await
                .map_err(|error| store_error(CHECK, error))?;
        }
        Place::Memory(MemoryDatabase::Private { .. }) => private(shared, &mut findings),
        Place::Memory(MemoryDatabase::Shared { .. }) => {}
    }
    Ok(findings.0)
}

/// The table, its columns and its index; answers whether it is there.
async fn table(shared: &Shared, connection: &mut Lent, findings: &mut Findings) -> sqlx::Result<bool> {
    let table = &shared.table;
    let name = table.display_name(Dialect::Sqlite);
    let sql: Option<Option<String>> =
        sqlx::query_scalar(AssertSqlSafe(describe_table(table))).fetch_optional(connection.get()?).await?;
    let Some(sql) = sql else {
        findings.error(format!("there is no table {name}: run its DDL (SqliteTable::ddl) or its migration"));
        return Ok(false);
    };
    if !sql.unwrap_or_default().to_ascii_uppercase().contains("AUTOINCREMENT") {
        findings.error(format!(
            "{name} has no AUTOINCREMENT: after a delete an id would be issued again, and subscribers would \
             take another message for one that they know"
        ));
    }
    columns(shared, connection, findings).await?;
    index(shared, connection, findings).await?;
    Ok(true)
}

async fn columns(shared: &Shared, connection: &mut Lent, findings: &mut Findings) -> sqlx::Result<()> {
    let rows =
        sqlx::query(AssertSqlSafe(describe_columns(&shared.table))).fetch_all(connection.get()?).await?;
    let mut found = BTreeMap::new();
    for row in &rows {
        let (name, kind, key): (String, String, i64) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
        found.insert(name.to_ascii_lowercase(), (kind, key));
    }
    for (part, column) in shared.table.columns().named() {
        let Some((kind, key)) = found.get(&column.to_ascii_lowercase()) else {
            findings.error(format!("the column {column:?} ({part}) is missing: add it"));
            continue;
        };
        let wanted: &[&str] = match part {
            "id" | "occurred_at" | "published_at" => &["INTEGER"],
            "payload" => &["BLOB", "TEXT", "ANY"],
            _ => &["TEXT"],
        };
        if !wanted.contains(&kind.as_str()) {
            let wanted = wanted.join(" or ");
            findings.error(format!("the column {column:?} ({part}) is {kind:?}, and has to be {wanted}"));
        }
        if part == "id" && *key != 1 {
            findings.error(format!("the column {column:?} (id) has to be the primary key"));
        }
    }
    Ok(())
}

/// Looks for the partial index on tenant and id, in the collation that compares bytes.
async fn index(shared: &Shared, connection: &mut Lent, findings: &mut Findings) -> sqlx::Result<()> {
    let rows =
        sqlx::query(AssertSqlSafe(describe_indexes(&shared.table))).fetch_all(connection.get()?).await?;
    let mut indexes: BTreeMap<String, Vec<(String, String)>> = BTreeMap::new();
    for row in &rows {
        let (name, partial): (String, i64) = (row.try_get(0)?, row.try_get(1)?);
        let column: (Option<String>, String) = (row.try_get(2)?, row.try_get(3)?);
        if partial != 0 {
            indexes.entry(name).or_default().push((column.0.unwrap_or_default(), column.1));
        }
    }
    let columns = shared.table.columns();
    let is_it = |parts: &Vec<(String, String)>| {
        parts.first().is_some_and(|(name, _)| name.eq_ignore_ascii_case(&columns.tenant_id))
    };
    match indexes.values().find(|parts| is_it(parts)) {
        None => findings.warning(format!(
            "there is no index ({}, {}) WHERE {} IS NULL: every look reads the whole table",
            columns.tenant_id, columns.id, columns.published_at
        )),
        Some(parts) => {
            if parts.iter().any(|(_, collation)| !collation.eq_ignore_ascii_case("BINARY")) {
                findings.error(format!(
                    "the column {:?} is not compared by bytes: give it the collation BINARY, or tenants \
                     that differ in case or spaces become one",
                    columns.tenant_id
                ));
            }
        }
    }
    Ok(())
}

/// What matters for a database in a file: WAL, a busy timeout, and a directory to put lock files in.
async fn file(
    shared: &Shared,
    path: &Path,
    connection: &mut Lent,
    findings: &mut Findings,
) -> sqlx::Result<()> {
    let schema = shared.table.schema_on(Dialect::Sqlite).replace('"', "\"\"");
    let journal: String = sqlx::query_scalar(AssertSqlSafe(format!("PRAGMA \"{schema}\".journal_mode")))
        .fetch_one(connection.get()?)
        .await?;
    if !journal.eq_ignore_ascii_case("wal") {
        findings.warning(format!(
            "the journal mode is {journal}: writers wait for readers; use WAL (PRAGMA journal_mode = WAL)"
        ));
    }
    let busy: i64 = sqlx::query_scalar("PRAGMA busy_timeout").fetch_one(connection.get()?).await?;
    if busy == 0 {
        findings.warning(
            "the busy timeout is 0: the application's writes fail at once while a message is marked; set one",
        );
    }
    let mut probe = path.as_os_str().to_owned();
    probe.push("-outbox-check.lock");
    if let Err(error) = FileLock::try_lock(Path::new(&probe)) {
        findings.error(error.to_string());
    }
    Ok(())
}

/// A database that lives and dies with its only connection.
fn private(shared: &Shared, findings: &mut Findings) {
    let options = shared.pool.options();
    if options.get_max_lifetime().is_some() || options.get_idle_timeout().is_some() {
        findings.error(
            "the database is in the memory of the pool's only connection, and the pool closes that after a \
             while: build it with max_lifetime(None), idle_timeout(None) and min_connections(1)",
        );
    }
}
