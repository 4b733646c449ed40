//! What can break a promise though the table fits: its sequence, rules, triggers, a default, what a crash takes away,
//! tables below it; and of the server, settings and other primaries.

use crate::check::Finding;
use crate::dialect::Dialect;
use crate::identifier::{literal, quote};
use crate::table::OutboxTable;

/// Asks what can break a promise: the table's oid, the column of ids, the column of the mark. Answers what it is, and
/// more about it.
pub(crate) const DESCRIBE_DANGERS: &str = "\
WITH RECURSIVE asked AS (
    SELECT t.oid, t.relkind, t.relpersistence, c.attidentity, q.*,
           pg_catalog.pg_get_expr(d.adbin, d.adrelid) AS default_of_id
    FROM pg_catalog.pg_class AS t
    JOIN pg_catalog.pg_namespace AS s ON s.oid OPERATOR(pg_catalog.=) t.relnamespace
    LEFT JOIN pg_catalog.pg_attribute AS c
           ON c.attrelid OPERATOR(pg_catalog.=) t.oid AND c.attname OPERATOR(pg_catalog.=) $2 AND NOT c.attisdropped
    LEFT JOIN pg_catalog.pg_attrdef AS d
           ON d.adrelid OPERATOR(pg_catalog.=) t.oid AND d.adnum OPERATOR(pg_catalog.=) c.attnum
    LEFT JOIN pg_catalog.pg_sequence AS q ON q.seqrelid OPERATOR(pg_catalog.=) pg_catalog.pg_get_serial_sequence(
        pg_catalog.format('%I.%I', s.nspname, t.relname), c.attname
    )::pg_catalog.regclass
    WHERE t.oid OPERATOR(pg_catalog.=) $1::pg_catalog.oid
), below AS (
    SELECT i.inhrelid AS part FROM pg_catalog.pg_inherits AS i JOIN asked ON i.inhparent OPERATOR(pg_catalog.=) asked.oid
    UNION
    SELECT i.inhrelid FROM pg_catalog.pg_inherits AS i JOIN below ON i.inhparent OPERATOR(pg_catalog.=) below.part
)
SELECT 'cycle', seqmax::pg_catalog.text FROM asked WHERE seqcycle
UNION ALL
SELECT 'down', seqincrement::pg_catalog.text FROM asked WHERE seqincrement OPERATOR(pg_catalog.<) 0
UNION ALL
SELECT 'end', seqmax::pg_catalog.text FROM asked WHERE seqmax OPERATOR(pg_catalog.<) 4611686018427387904
UNION ALL
SELECT 'number', default_of_id FROM asked
WHERE seqrelid IS NOT NULL AND attidentity OPERATOR(pg_catalog.=) ''
  AND (default_of_id OPERATOR(pg_catalog.~~) '%nextval(%') IS NOT TRUE
UNION ALL
SELECT 'lost', CASE WHEN relpersistence OPERATOR(pg_catalog.=) 'u' THEN 'unlogged' ELSE 'temporary' END FROM asked
WHERE relpersistence OPERATOR(pg_catalog.<>) 'p'
UNION ALL
SELECT CASE WHEN t.relkind OPERATOR(pg_catalog.=) 'f' THEN 'foreign'
            WHEN t.relpersistence OPERATOR(pg_catalog.<>) 'p' THEN 'lost below' ELSE 'inherits' END,
       t.relname::pg_catalog.text
FROM below JOIN pg_catalog.pg_class AS t ON t.oid OPERATOR(pg_catalog.=) below.part CROSS JOIN asked
WHERE t.relkind OPERATOR(pg_catalog.=) 'f' OR t.relpersistence OPERATOR(pg_catalog.<>) 'p'
   OR asked.relkind OPERATOR(pg_catalog.=) 'r'
UNION ALL
SELECT 'rule', r.rulename::pg_catalog.text FROM asked
JOIN pg_catalog.pg_rewrite AS r ON r.ev_class OPERATOR(pg_catalog.=) asked.oid
WHERE r.is_instead AND r.ev_type OPERATOR(pg_catalog.<>) '1' AND r.ev_enabled OPERATOR(pg_catalog.<>) 'D'
UNION ALL
SELECT 'trigger', g.tgname::pg_catalog.text FROM asked
JOIN pg_catalog.pg_trigger AS g ON g.tgrelid OPERATOR(pg_catalog.=) asked.oid
WHERE NOT g.tgisinternal AND g.tgenabled OPERATOR(pg_catalog.<>) 'D'
  AND (g.tgtype OPERATOR(pg_catalog.&) 3::pg_catalog.int2) OPERATOR(pg_catalog.=) 3
UNION ALL
SELECT 'default', pg_catalog.pg_get_expr(d.adbin, d.adrelid) FROM asked
JOIN pg_catalog.pg_attribute AS c
  ON c.attrelid OPERATOR(pg_catalog.=) asked.oid AND c.attname OPERATOR(pg_catalog.=) $3 AND NOT c.attisdropped
JOIN pg_catalog.pg_attrdef AS d
  ON d.adrelid OPERATOR(pg_catalog.=) asked.oid AND d.adnum OPERATOR(pg_catalog.=) c.attnum
WHERE pg_catalog.pg_get_expr(d.adbin, d.adrelid) OPERATOR(pg_catalog.!~) '^NULL(::|$)'";

/// Asks for the sequence of a column, and whether this role may read all of it, or where it stands alone. Parameters: the
/// table, in quotes where it needs them, and the column.
pub(crate) const FIND_SEQUENCE: &str =
    "SELECT q.sequence, pg_catalog.has_sequence_privilege(q.sequence, 'SELECT'),
       pg_catalog.has_sequence_privilege(q.sequence, 'USAGE')
FROM (SELECT pg_catalog.pg_get_serial_sequence($1, $2) AS sequence) AS q
WHERE q.sequence IS NOT NULL";

/// Asks whether a sequence of this name is behind the rows: where it stands, and the highest id, if it is. What it hands
/// out next is known to who may read all of it; to others it is not, as long as it handed out nothing since it was made or
/// restarted.
pub(crate) fn describe_sequence(table: &OutboxTable, sequence: &str, may_select: bool) -> String {
    let stands = if may_select {
        format!(
            "(SELECT s.last_value OPERATOR(pg_catalog.-) CASE WHEN s.is_called THEN 0 ELSE 1 END FROM {sequence} AS s)"
        )
    } else {
        let name = literal(sequence, Dialect::Postgres);
        format!("pg_catalog.pg_sequence_last_value({name}::pg_catalog.regclass)")
    };
    format!(
        "SELECT q.stands::pg_catalog.text, q.id::pg_catalog.text
FROM (SELECT {stands} AS stands, (SELECT pg_catalog.max({id}) FROM {table}) AS id) AS q
WHERE q.stands OPERATOR(pg_catalog.<) q.id",
        id = quote(&table.columns().id, Dialect::Postgres),
        table = table.quoted(Dialect::Postgres),
    )
}

/// What was found out beside the table's shape.
#[derive(Debug, Clone, Default)]
pub(crate) struct Dangers {
    /// What [`DESCRIBE_DANGERS`] answered.
    pub(crate) found: Vec<(String, Option<String>)>,
    /// What [`describe_sequence`] answered.
    pub(crate) behind: Option<(String, String)>,
}

impl Dangers {
    /// In words that say what to do.
    pub(super) fn findings(&self, table: &OutboxTable) -> Vec<Finding> {
        let name = table.display_name(Dialect::Postgres);
        let columns = table.columns();
        let found = self.found.iter().filter_map(|(danger, detail)| {
            let detail = detail.as_deref().unwrap_or("nothing");
            told(danger, detail, &name, &columns.id, &columns.published_at)
        });
        let behind = self.behind.as_ref().map(|(stands, id)| {
            let literal = |text: &str| literal(text, Dialect::Postgres);
            Finding::error(format!(
                "the sequence of {name}.{} stands at {stands}, behind row {id}, as after a dump that was restored without \
                 it: ids are issued again, or appends fail: SELECT setval(pg_get_serial_sequence({}, {}), an id past \
                 every one that may have gone out)",
                columns.id,
                literal(&table.quoted(Dialect::Postgres)),
                literal(&columns.id),
            ))
        });
        found.chain(behind).collect()
    }
}

fn told(danger: &str, detail: &str, name: &str, id: &str, published_at: &str) -> Option<Finding> {
    let error = |text: String| Some(Finding::error(text));
    let warning = |text: String| Some(Finding::warning(text));
    match danger {
        "cycle" => error(format!(
            "the sequence of {name}.{id} begins anew past {detail}, and ids are issued again: ALTER SEQUENCE … NO CYCLE"
        )),
        "down" => error(format!(
            "the sequence of {name}.{id} counts down, by {detail}, so that later messages get lower ids: ALTER SEQUENCE … \
             INCREMENT BY 1"
        )),
        "end" => warning(format!(
            "the sequence of {name}.{id} ends at {detail}, and nothing can be appended past it: ALTER SEQUENCE … AS \
             bigint NO MAXVALUE"
        )),
        "number" => error(format!(
            "{name}.{id} is {detail} unless it is given, and not the next number of its sequence: SET DEFAULT nextval(…), \
             or make it GENERATED BY DEFAULT AS IDENTITY"
        )),
        "lost" => error(format!(
            "{name} is {detail}: a crash or the end of a session takes away what was committed; make it a permanent table \
             (ALTER TABLE … SET LOGGED)"
        )),
        "lost below" => error(format!(
            "{detail}, a part of {name}, is unlogged or temporary: a crash takes away what was committed; ALTER TABLE … \
             SET LOGGED"
        )),
        "foreign" => error(format!(
            "{detail}, a part of {name}, is on another server, where a claim locks nothing and a mark can be lost by \
             itself: keep the whole table on one server"
        )),
        "inherits" => error(format!(
            "{detail} inherits from {name}, and its rows can have ids that rows of {name} have: let nothing inherit from \
             it (partitions may)"
        )),
        "rule" => error(format!(
            "the rule {detail} of {name} does something else instead of what is asked: an append or a mark is lost; drop \
             the rule"
        )),
        "trigger" => warning(format!(
            "the trigger {detail} runs before a row of {name} is written, marked or deleted, and may keep it from that or \
             change it: let it skip no row, and leave {id} and {published_at} alone"
        )),
        "default" => error(format!(
            "{name}.{published_at} is {detail} unless it is given, so that messages are born marked and never published: \
             ALTER TABLE … ALTER COLUMN … DROP DEFAULT"
        )),
        _ => None,
    }
}

/// What of the server may break a promise: these settings are off, and these extensions are there.
pub(super) fn check_server(off: &[String], primaries: &[String], found: &mut Vec<Finding>) {
    found.extend(off.iter().map(|setting| {
        Finding::warning(if setting == "synchronous_commit" {
            "synchronous_commit is off in the pool's sessions: where appends have it too, a crash takes back what was \
             published, and ids are issued again; switch it on"
                .to_owned()
        } else {
            format!(
                "{setting} is off: a crash of the machine may take back what was committed and published, and damage the \
                 table; switch it on"
            )
        })
    }));
    found.extend(primaries.iter().map(|extension| {
        Finding::warning(format!(
            "the extension {extension} is installed: servers that all take writes do not see each other's advisory \
             locks; let every replica and every writer use one and the same server"
        ))
    }));
}
