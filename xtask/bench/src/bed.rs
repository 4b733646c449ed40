//! A PostgreSQL server of the bench's own, with an outbox table that is filled as each measurement wants it.

use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use async_trait::async_trait;
use outbox_sqlx::OutboxTable;
use outbox_sqlx::postgres::{PostgresStore, PostgresTable};
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions};
use sqlx::{AssertSqlSafe, ConnectOptions, PgConnection};

use super::cpu::Cpu;
use super::lanes::Database;
use servers::Postgres;

/// How many published rows lie before the pending ones of a drain.
pub(super) const PUBLISHED: u64 = 20_000;
/// How large a payload is, in bytes.
pub(super) const PAYLOAD: usize = 200;

/// What a filled table holds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Filled {
    /// The first pending message's id; the others follow without a gap.
    pub(super) first: i64,
    pub(super) rows: u64,
    /// How many published rows lie before them.
    pub(super) published: u64,
}

/// The server and its table.
#[derive(Debug)]
pub(super) struct Bed {
    pub(super) server: Postgres,
    /// The bench's own connections; no store uses them.
    pub(super) admin: PgPool,
    pid: u32,
}

impl Bed {
    /// Starts a server with PostgreSQL's own defaults: what is committed is on the disk.
    pub(super) async fn start(settings: &[(&str, &str)]) -> Result<Self> {
        let mut all = vec![("fsync", "on"), ("shared_buffers", "128MB"), ("max_wal_size", "4GB")];
        all.extend_from_slice(settings);
        let server = Postgres::start(&all)?;
        let pid = u32::try_from(server.pid()?.as_raw_nonzero().get())?;
        let admin = PgPoolOptions::new().max_connections(4).connect(&server.url("postgres")).await?;
        let bed = Self { server, admin, pid };
        let mut connection = bed.admin.acquire().await?;
        PostgresTable::new(OutboxTable::default())?.create(&mut connection).await?;
        drop(connection);
        Ok(bed)
    }

    /// How to connect to it.
    pub(super) fn options(&self) -> Result<PgConnectOptions> {
        Ok(self.server.url("postgres").parse()?)
    }

    /// A pool of this many connections, all of them open.
    pub(super) async fn pool(&self, size: u32) -> Result<PgPool> {
        let pool = PgPoolOptions::new().max_connections(size).min_connections(size);
        Ok(pool.connect_with(self.options()?).await?)
    }

    /// A store with a pool of its own.
    pub(super) async fn store(&self, connections: u32) -> Result<PostgresStore> {
        Ok(PostgresStore::new(self.pool(connections).await?, OutboxTable::default())?)
    }

    /// A connection of its own.
    pub(super) async fn connect(&self) -> Result<PgConnection> {
        Ok(self.options()?.connect().await?)
    }

    /// The CPU time that this process and the server's have used.
    pub(super) fn cpu(&self) -> Cpu {
        Cpu::now(Some(self.pid))
    }

    /// Runs statements.
    pub(super) async fn run(&self, sql: impl Into<String>) -> Result<()> {
        let sql = sql.into();
        let done = sqlx::raw_sql(AssertSqlSafe(sql.clone())).execute(&self.admin).await;
        done.map(drop).with_context(|| format!("the bench's own statement failed: {sql}"))
    }

    /// A number that a query answers.
    pub(super) async fn number(&self, sql: impl Into<String>) -> Result<i64> {
        let sql = sql.into();
        let number = sqlx::query_scalar(AssertSqlSafe(sql.clone())).fetch_one(&self.admin).await;
        number.with_context(|| format!("the bench's own query failed: {sql}"))
    }

    /// Empties the table and fills it: published rows first, then pending ones, of the tenants in turn.
    ///
    /// The statistics are those of before the backlog, as they are when one builds up within minutes.
    pub(super) async fn fill(&self, published: u64, rows: u64, tenants: usize) -> Result<Filled> {
        self.run("TRUNCATE public.outbox_message RESTART IDENTITY").await?;
        self.append(published, tenants, true).await?;
        self.run("VACUUM (ANALYZE) public.outbox_message").await?;
        self.append(rows, tenants, false).await?;
        self.run("CHECKPOINT").await?;
        let first = i64::try_from(published)? + 1;
        let filled = Filled { first, rows, published };
        let strange = format!(
            "SELECT count(*) FROM public.outbox_message WHERE published_at IS NULL
             AND tenant_id <> 'tenant-' || (id - {first}) % {tenants}"
        );
        ensure!(self.number(strange).await? == 0, "the rows were not filled in order");
        self.expect(filled, rows, published).await?;
        Ok(filled)
    }

    /// Appends rows of the tenants in turn.
    pub(super) async fn append(&self, rows: u64, tenants: usize, published: bool) -> Result<()> {
        let when = if published { "clock_timestamp()" } else { "NULL" };
        self.run(format!(
            "INSERT INTO public.outbox_message (tenant_id, kind, subject_id, payload, published_at)
             SELECT 'tenant-' || (n - 1) % {tenants}, 'order.placed', 'order-' || n % 1000, {}, {when}
             FROM generate_series(1, {rows}) AS n",
            payload()
        ))
        .await
    }

    /// Checks how many rows are pending and how many are published.
    pub(super) async fn expect(&self, filled: Filled, pending: u64, published: u64) -> Result<()> {
        let count = |condition: &str| {
            format!("SELECT count(*) FROM public.outbox_message WHERE published_at IS {condition}")
        };
        let found = (self.number(count("NULL")).await?, self.number(count("NOT NULL")).await?);
        let expected = (i64::try_from(pending)?, i64::try_from(published)?);
        ensure!(
            found == expected,
            "of {filled:?}, {} are pending and {} published; expected {} and {}",
            found.0,
            found.1,
            expected.0,
            expected.1
        );
        Ok(())
    }

    /// The server's version, as it says it.
    pub(super) async fn version(&self) -> Result<String> {
        Ok(sqlx::query_scalar("SHOW server_version").fetch_one(&self.admin).await?)
    }
}

#[async_trait]
impl Database for Bed {
    fn url(&self) -> Option<String> {
        Some(self.server.url("postgres"))
    }

    async fn refill(&self, rows: usize, tenants: usize) -> Result<Vec<i64>> {
        let filled = self.fill(0, rows as u64, tenants).await?;
        Ok((filled.first..).take(rows).collect())
    }

    async fn expect_published(&self, rows: usize) -> Result<()> {
        let rows = rows as u64;
        self.expect(Filled { first: 1, rows, published: 0 }, 0, rows).await
    }
}

/// The tenants' names, in turn.
pub(super) fn tenants(count: usize) -> Arc<[String]> {
    (0..count).map(|number| format!("tenant-{number}")).collect()
}

/// A payload of a row `n`: JSON of the size that is measured with.
fn payload() -> String {
    let text = PAYLOAD - 2;
    format!(r#"convert_to(rpad('{{"order":' || n || ',"text":"', {text}, md5(n::text)) || '"}}', 'UTF8')"#)
}
