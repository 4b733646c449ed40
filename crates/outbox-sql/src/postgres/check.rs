//! What a PostgreSQL table and its server must be like.

mod ask;
mod dangers;
mod indexes;

use outbox_core::Settling;

pub use self::ask::create_if_missing;
use self::dangers::Dangers;
pub(super) use self::dangers::{DESCRIBE_DANGERS, FIND_SEQUENCE, describe_sequence};
use self::indexes::check_indexes;

use crate::check::Finding;
use crate::dialect::Dialect;
use crate::identifier::quote;
use crate::postgres::encoding::{ANY_BYTES, NO_ENCODING};
use crate::postgres::schema::version_comment;
use crate::table::{OutboxTable, PayloadType, TimeType};

/// Asks about the server and its database: is it a standby, are transactions read-only by default, the encoding, how
/// full the queue of notifications is; which settings are off that keep what was committed, and which extensions there
/// are that let several servers take writes.
pub(crate) const DESCRIBE_SERVER: &str = "\
SELECT pg_catalog.pg_is_in_recovery(),
       pg_catalog.current_setting('default_transaction_read_only') OPERATOR(pg_catalog.=) 'on',
       pg_catalog.current_setting('server_encoding'), pg_catalog.pg_notification_queue_usage(),
       (SELECT pg_catalog.array_agg(s.setting)
        FROM (VALUES ('fsync'), ('full_page_writes'), ('synchronous_commit')) AS s (setting)
        WHERE pg_catalog.current_setting(s.setting) OPERATOR(pg_catalog.=) 'off'),
       (SELECT pg_catalog.array_agg(e.extname::pg_catalog.text) FROM pg_catalog.pg_extension AS e
        WHERE e.extname OPERATOR(pg_catalog.=) ANY ('{bdr,citus,pgactive,spock}'::pg_catalog.name[]))";

/// Asks which session of the server this is.
pub(crate) const SESSION: &str = "SELECT pg_catalog.pg_backend_pid()";

/// Asks about the table: schema, name.
pub(crate) const DESCRIBE_TABLE: &str = "\
SELECT t.oid::pg_catalog.int8, t.relkind::pg_catalog.text, pg_catalog.row_security_active(t.oid),
       pg_catalog.obj_description(t.oid, 'pg_class'), pg_catalog.has_table_privilege(t.oid, 'DELETE')
FROM pg_catalog.pg_class AS t
JOIN pg_catalog.pg_namespace AS s ON s.oid OPERATOR(pg_catalog.=) t.relnamespace
WHERE s.nspname OPERATOR(pg_catalog.=) $1 AND t.relname OPERATOR(pg_catalog.=) $2";

/// Asks about its columns: the table's oid. Of the server's own types alone the name has no schema, whatever the
/// session's `search_path`.
pub(crate) const DESCRIBE_COLUMNS: &str = "\
SELECT c.attname::pg_catalog.text,
       CASE WHEN y.typnamespace OPERATOR(pg_catalog.=) 'pg_catalog'::pg_catalog.regnamespace
            THEN pg_catalog.replace(pg_catalog.format_type(c.atttypid, c.atttypmod), 'pg_catalog.', '')
            ELSE pg_catalog.format('%I.%I', z.nspname, y.typname) END,
       c.attnotnull, l.collname::pg_catalog.text,
       coalesce(l.collisdeterministic, true),
       pg_catalog.has_column_privilege(c.attrelid, c.attnum, 'SELECT'),
       pg_catalog.has_column_privilege(c.attrelid, c.attnum, 'UPDATE'),
       (SELECT q.seqcache FROM pg_catalog.pg_sequence AS q WHERE q.seqrelid OPERATOR(pg_catalog.=)
           pg_catalog.pg_get_serial_sequence(
               pg_catalog.format('%I.%I', s.nspname, t.relname), c.attname
           )::pg_catalog.regclass)
FROM pg_catalog.pg_attribute AS c
JOIN pg_catalog.pg_class AS t ON t.oid OPERATOR(pg_catalog.=) c.attrelid
JOIN pg_catalog.pg_namespace AS s ON s.oid OPERATOR(pg_catalog.=) t.relnamespace
JOIN pg_catalog.pg_type AS y ON y.oid OPERATOR(pg_catalog.=) c.atttypid
JOIN pg_catalog.pg_namespace AS z ON z.oid OPERATOR(pg_catalog.=) y.typnamespace
LEFT JOIN pg_catalog.pg_collation AS l ON l.oid OPERATOR(pg_catalog.=) c.attcollation
WHERE c.attrelid OPERATOR(pg_catalog.=) $1::pg_catalog.oid
  AND c.attnum OPERATOR(pg_catalog.>) 0 AND NOT c.attisdropped";

/// Asks about its indexes: the table's oid.
pub(crate) const DESCRIBE_INDEXES: &str = "\
SELECT (SELECT pg_catalog.array_agg(coalesce(c.attname::pg_catalog.text, '') ORDER BY k.place)
        FROM pg_catalog.unnest(i.indkey::pg_catalog.int2[]) WITH ORDINALITY AS k (attnum, place)
        LEFT JOIN pg_catalog.pg_attribute AS c
               ON c.attrelid OPERATOR(pg_catalog.=) i.indrelid AND c.attnum OPERATOR(pg_catalog.=) k.attnum),
       pg_catalog.pg_get_expr(i.indpred, i.indrelid), i.indisvalid, i.indisunique
FROM pg_catalog.pg_index AS i
WHERE i.indrelid OPERATOR(pg_catalog.=) $1::pg_catalog.oid";

/// What a database said about itself and the table.
#[derive(Debug, Clone, Default)]
pub(crate) struct Facts {
    /// Whether the server is a standby.
    pub(crate) standby: bool,
    /// Whether its transactions are read-only by default.
    pub(crate) read_only_by_default: bool,
    /// The database's encoding.
    pub(crate) encoding: String,
    /// How full the server's queue of notifications is, from 0 to 1.
    pub(crate) notification_queue: f64,
    /// Which settings are off that keep what was committed.
    pub(crate) off: Vec<String>,
    /// Which extensions there are that let several servers take writes.
    pub(crate) primaries: Vec<String>,
    /// What it means that two connections came to one server session, with a transaction pooler between. `None` if they
    /// did not, or it does not matter because no statement has a name.
    pub(crate) pooled: Option<Finding>,
    /// What the store does with a published row.
    pub(crate) settling: Settling,
    /// Why the table cannot have the watermarks that the store is to keep; `None` if it can, or keeps none.
    pub(crate) no_watermark: Option<String>,
    /// The table; `None` if there is none of this name.
    pub(crate) table: Option<TableFacts>,
}

/// What the database said about the table.
#[derive(Debug, Clone, Default)]
pub(crate) struct TableFacts {
    /// `pg_class.relkind`: `r` is a table, `p` a partitioned one.
    pub(crate) kind: String,
    /// Whether row security holds for this role.
    pub(crate) row_security: bool,
    /// Its comment.
    pub(crate) comment: Option<String>,
    /// Whether this role may delete its rows.
    pub(crate) may_delete: bool,
    /// Its columns.
    pub(crate) columns: Vec<ColumnFacts>,
    /// Its indexes.
    pub(crate) indexes: Vec<IndexFacts>,
    /// What can break a promise though all of this fits.
    pub(crate) dangers: Dangers,
}

/// What the database said about a column.
#[expect(clippy::struct_excessive_bools, reason = "each is a column of the answer")]
#[derive(Debug, Clone, Default)]
pub(crate) struct ColumnFacts {
    /// Its name.
    pub(crate) name: String,
    /// Its type, as PostgreSQL writes it.
    pub(crate) data_type: String,
    /// Whether it refuses null.
    pub(crate) not_null: bool,
    /// Its collation.
    pub(crate) collation: Option<String>,
    /// Whether that compares by bytes in the end.
    pub(crate) deterministic: bool,
    /// Whether this role may read it.
    pub(crate) may_select: bool,
    /// Whether this role may write it.
    pub(crate) may_update: bool,
    /// How many numbers a session takes at once from the sequence behind it, if it has one.
    pub(crate) sequence_cache: Option<i64>,
}

/// What the database said about an index.
#[derive(Debug, Clone, Default)]
pub(crate) struct IndexFacts {
    /// Its columns; an expression is empty.
    pub(crate) columns: Vec<String>,
    /// Its condition.
    pub(crate) predicate: Option<String>,
    /// Whether it is complete.
    pub(crate) valid: bool,
    /// Whether it is unique.
    pub(crate) unique: bool,
}

/// From here on somebody keeps the queue from being emptied.
const MUCH_OF_THE_QUEUE: f64 = 0.01;

/// Compares the facts with what the store needs. Nothing is found if all is well.
pub(crate) fn findings(table: &OutboxTable, facts: &Facts) -> Vec<Finding> {
    let name = table.display_name(Dialect::Postgres);
    let mut found = Vec::new();
    if facts.standby {
        found
            .push(Finding::error("the server is a standby, where no claim can mark: connect to the primary"));
    }
    if facts.read_only_by_default {
        found.push(Finding::warning(
            "transactions are read-only by default here: claims are read-write all the same, and the \
             application's appends fail; reset default_transaction_read_only",
        ));
    }
    if facts.encoding == ANY_BYTES {
        found.push(Finding::error(NO_ENCODING));
    }
    if facts.notification_queue >= MUCH_OF_THE_QUEUE {
        found.push(Finding::warning(format!(
            "the server's queue of notifications is full by {:.0} %: a session that listens stays in a transaction and \
             reads none. Once it is full, every commit that notifies fails, and with the trigger these are the \
             application's appends: end the session (of those in pg_stat_activity, the one with the oldest xact_start)",
            facts.notification_queue * 100.0
        )));
    }
    dangers::check_server(&facts.off, &facts.primaries, &mut found);
    found.extend(facts.pooled.clone());
    let Some(live) = &facts.table else {
        found.push(Finding::error(format!(
            "there is no table {name}: run its DDL (PostgresTable::ddl) or its migration, or correct schema and name"
        )));
        return found;
    };
    if !matches!(live.kind.as_str(), "r" | "p") {
        found.push(Finding::error(format!("{name} is no table: name the table itself, not a view of it")));
    }
    if live.row_security {
        found.push(Finding::error(format!(
            "row security holds for this role on {name}, and may hide rows from the relay: let its role bypass it \
             (BYPASSRLS)"
        )));
    }
    if live
        .comment
        .as_deref()
        .is_some_and(|comment| comment.starts_with("outbox schema ") && comment != version_comment())
    {
        found.push(Finding::error(format!(
            "{name} has another version than this library's {:?}: run the migrations between",
            version_comment()
        )));
    }
    if facts.settling == Settling::Delete && !live.may_delete {
        found.push(Finding::error(format!(
            "this role may not delete from {name}: GRANT DELETE ON {}",
            table.quoted(Dialect::Postgres)
        )));
    }
    let marked = &table.columns().published_at;
    if facts.settling == Settling::Mark
        && live.columns.iter().any(|column| column.name == *marked && !column.may_update)
    {
        found.push(Finding::error(format!(
            "this role may not mark {name}.{marked}: GRANT UPDATE ({}) ON {}",
            quote(marked, Dialect::Postgres),
            table.quoted(Dialect::Postgres)
        )));
    }
    for (part, column) in table.columns().named() {
        match live.columns.iter().find(|live| live.name == column) {
            Some(live) => check_column(table, part, live, &name, &mut found),
            None => found.push(Finding::error(format!(
                "{name} has no column {column:?} ({part}): add it, or correct the name in the table's description"
            ))),
        }
    }
    check_indexes(table, live, &name, &mut found);
    found.extend(live.dangers.findings(table));
    found.extend(facts.no_watermark.clone().map(Finding::error));
    found
}

fn check_column(table: &OutboxTable, part: &str, live: &ColumnFacts, name: &str, found: &mut Vec<Finding>) {
    let column = format!("{name}.{}", live.name);
    let types = types_of(table, part);
    let bounded_text = types == TEXT && live.data_type.starts_with("character varying");
    if !bounded_text && !types.contains(&live.data_type.as_str()) {
        found.push(Finding::error(format!(
            "{column} is {}: make it {}, or correct the table's description",
            live.data_type, types[0]
        )));
    }
    let required = matches!(part, "id" | "tenant_id" | "kind" | "subject_id" | "occurred_at");
    if required && !live.not_null {
        found.push(Finding::warning(format!(
            "{column} may be null, and a row with a null there stops its tenant: make it NOT NULL"
        )));
    }
    if !required && live.not_null {
        let fix = if part == "published_at" { "null is what is pending" } else { "null is needed there" };
        found.push(Finding::error(format!("{column} is NOT NULL, and {fix}: drop the constraint")));
    }
    if !live.deterministic {
        found.push(Finding::error(format!(
            "{column} has a collation that takes different texts for equal ones: make it COLLATE \"C\""
        )));
    } else if part == "tenant_id"
        && live.collation.as_deref().is_some_and(|name| name != "C" && name != "POSIX")
    {
        found.push(Finding::warning(format!(
            "{column} has a collation whose order an upgrade of the system may change under the index: make it \
             COLLATE \"C\", or REINDEX INDEX CONCURRENTLY after each (REINDEX TABLE can deadlock with a claim)"
        )));
    }
    if !live.may_select {
        found.push(Finding::error(format!(
            "this role may not read {column}: GRANT SELECT ON {}",
            table.quoted(Dialect::Postgres)
        )));
    }
    if part == "id" {
        match live.sequence_cache {
            None => found.push(Finding::error(format!(
                "{column} draws from no sequence of its own: make it GENERATED BY DEFAULT AS IDENTITY"
            ))),
            Some(1) => {}
            Some(cache) => found.push(Finding::error(format!(
                "the sequence of {column} hands each session {cache} numbers at once, so that later messages get \
                 lower ids: ALTER SEQUENCE … CACHE 1"
            ))),
        }
    }
}

const TEXT: &[&str] = &["text"];

fn types_of(table: &OutboxTable, part: &str) -> &'static [&'static str] {
    match part {
        "id" => &["bigint"],
        "headers" => &["jsonb", "json"],
        "payload" => match table.payload_type() {
            PayloadType::Bytes => &["bytea"],
            PayloadType::Text => TEXT,
            PayloadType::Jsonb => &["jsonb"],
        },
        "occurred_at" | "published_at" => match table.time_type() {
            TimeType::Micros => {
                &["timestamp with time zone", "timestamp(6) with time zone", "timestamp(3) with time zone"]
            }
            TimeType::UtcMillis => &["timestamp(3) without time zone", "timestamp without time zone"],
        },
        _ => TEXT,
    }
}
