//! The hint that something was committed, between processes, on PostgreSQL: a notification that carries nothing.
//!
//! It has no row in it, no tenant and no name, so that it can neither grow too large nor tell anything: whoever
//! hears it looks into the table.

use crate::dialect::Dialect::Postgres;
use crate::hash::fnv1a;
use crate::identifier::quote;
use crate::table::{InvalidTable, OutboxTable};

/// The channel of a table's hints: `outbox_` and 16 hexadecimal digits, which need no quotes. The digits are a
/// hash of schema and name, the same for every process, build and version. Two tables with the same hash wake
/// each other's relays.
pub fn channel(table: &OutboxTable) -> String {
    let (schema, name) = (table.schema_on(Postgres), table.name());
    format!("outbox_{:016x}", fnv1a(schema.bytes().chain([0]).chain(name.bytes())))
}

/// The statement that gives the hint, when its transaction commits.
pub fn notify(table: &OutboxTable) -> String {
    format!("NOTIFY {}", channel(table))
}

/// Asks whether this session still listens to a channel, which it names.
pub const IS_LISTENING: &str = "SELECT pg_catalog.count(*) FROM pg_catalog.pg_listening_channels() AS channel \
     WHERE channel OPERATOR(pg_catalog.=) $1";

/// The DDL of a trigger that gives the hint for every statement that appends, whoever runs it. Optional: it
/// changes how commits share a flush, see `docs/wake-ups.md`.
///
/// # Errors
/// [`InvalidTable`], if PostgreSQL can hold no such table.
pub fn notify_trigger_ddl(table: &OutboxTable) -> Result<String, InvalidTable> {
    table.check(Postgres)?;
    Ok(format!(
        "\
-- Optional: wakes the table's relays at each commit that appended to it.
CREATE FUNCTION {function}() RETURNS pg_catalog.trigger LANGUAGE plpgsql AS $$
BEGIN
    {notify};
    RETURN NULL;
END
$$;

CREATE TRIGGER {TRIGGER} AFTER INSERT ON {table}
    FOR EACH STATEMENT EXECUTE FUNCTION {function}();
",
        table = table.quoted(Postgres),
        function = function(table),
        notify = notify(table),
    ))
}

/// The DDL that takes the trigger of [`notify_trigger_ddl`] away.
///
/// # Errors
/// [`InvalidTable`], if PostgreSQL can hold no such table.
pub fn drop_notify_trigger_ddl(table: &OutboxTable) -> Result<String, InvalidTable> {
    table.check(Postgres)?;
    let (function, table) = (function(table), table.quoted(Postgres));
    Ok(format!("DROP TRIGGER {TRIGGER} ON {table};\n\nDROP FUNCTION {function}();\n"))
}

const TRIGGER: &str = "outbox_notify";

/// The trigger's function, in the table's schema, called as the channel: of each table its own, and short enough.
fn function(table: &OutboxTable) -> String {
    format!("{}.{}", quote(table.schema_on(Postgres), Postgres), channel(table))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writers and relays of all versions meet there: these values must never change.
    #[test]
    fn the_channels_are_the_golden_ones() {
        assert_eq!(channel(&OutboxTable::default()), "outbox_2362c82a58615c35");
        assert_eq!(channel(&OutboxTable::prisma("OutboxMessage")), "outbox_5b9687ec8be3582c");
        assert_eq!(channel(&OutboxTable::new("Å".repeat(31)).with_schema("S ")), "outbox_a7b1a18a030bee72");
    }

    #[test]
    fn schema_and_name_are_told_apart() {
        let one = OutboxTable::new("b").with_schema("a.");
        let other = OutboxTable::new(".b").with_schema("a");
        assert_ne!(channel(&one), channel(&other));
    }

    #[test]
    fn a_table_that_cannot_be_has_no_trigger() {
        assert!(notify_trigger_ddl(&OutboxTable::new("")).is_err());
        assert!(drop_notify_trigger_ddl(&OutboxTable::new("")).is_err());
    }
}
