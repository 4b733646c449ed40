//! The registry of PostgreSQL's advisory-lock keys.
//!
//! An application has its own advisory locks in the same database, and every replica, whatever it is written
//! in, must come to the same key for ever. So there is one list of them, and golden tests pin them:
//!
//! | purpose | key space | key |
//! | --- | --- | --- |
//! | holding a tenant | two 32-bit integers | `hashtext('schema.table')`, `hashtext(tenant)` |
//! | making a table if it is missing | one 64-bit integer | FNV-1a of `create`, a NUL, schema, a NUL, table |
//!
//! The names are as they are, unquoted. It is the key of the TypeScript relay. Two tenants whose hashes are
//! equal share a key and take turns. A key of another purpose goes into the 64-bit key space, which PostgreSQL
//! keeps apart from the other, and gets a line here.

use crate::dialect::Dialect;
use crate::hash::fnv1a;
use crate::table::OutboxTable;

/// The text that is hashed for the first half of the key that holds a tenant: `public.outbox_message`.
pub fn tenant_lock_name(table: &OutboxTable) -> String {
    format!("{}.{}", table.schema_on(Dialect::Postgres), table.name())
}

/// The key under which a table is looked for and made, so that two who start at once do not both make it.
pub fn creation_lock_key(table: &OutboxTable) -> i64 {
    let names = [table.schema_on(Dialect::Postgres), table.name()];
    let bytes =
        "create".bytes().chain(names.into_iter().flat_map(|name| [0].into_iter().chain(name.bytes())));
    fnv1a(bytes).cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_of_making_a_table_is_the_golden_one() {
        assert_eq!(creation_lock_key(&OutboxTable::default()), 1_026_342_866_252_046_959);
    }

    #[test]
    fn the_lock_name_is_unquoted_and_has_its_schema() {
        assert_eq!(tenant_lock_name(&OutboxTable::default()), "public.outbox_message");
        assert_eq!(tenant_lock_name(&OutboxTable::prisma("OutboxMessage")), "public.outboxMessage");
        assert_eq!(tenant_lock_name(&OutboxTable::new("a.b").with_schema("S")), "S.a.b");
    }
}
