//! The registry of PostgreSQL's advisory-lock keys.
//!
//! An application has its own advisory locks in the same database, and every replica, whatever it is written
//! in, must come to the same key for ever. So there is one list of them, and golden tests pin them:
//!
//! | purpose | key space | key |
//! | --- | --- | --- |
//! | holding a tenant | two 32-bit integers | `hashtext('schema.table')`, `hashtext(tenant)` |
//!
//! The names are as they are, unquoted. It is the key of the TypeScript relay. Two tenants whose hashes are
//! equal share a key and take turns. A key of another purpose goes into the 64-bit key space, which PostgreSQL
//! keeps apart from the other, and gets a line here.

use crate::dialect::Dialect;
use crate::table::OutboxTable;

/// The text that is hashed for the first half of the key that holds a tenant: `public.outbox_message`.
pub fn tenant_lock_name(table: &OutboxTable) -> String {
    format!("{}.{}", table.schema_on(Dialect::Postgres), table.name())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lock_name_is_unquoted_and_has_its_schema() {
        assert_eq!(tenant_lock_name(&OutboxTable::default()), "public.outbox_message");
        assert_eq!(tenant_lock_name(&OutboxTable::prisma("OutboxMessage")), "public.outboxMessage");
        assert_eq!(tenant_lock_name(&OutboxTable::new("a.b").with_schema("S")), "S.a.b");
    }
}
