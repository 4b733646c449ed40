//! The description of an outbox table: its names and its types.

mod columns;
mod invalid;

pub use self::columns::Columns;
pub use self::invalid::InvalidTable;
use crate::dialect::Dialect;
use crate::identifier;

/// How the payload column holds a message's content.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PayloadType {
    /// Bytes, as they are: `bytea`, `blob`. The default.
    #[default]
    Bytes,
    /// UTF-8 text without NUL characters.
    Text,
    /// PostgreSQL's `jsonb`. It keeps the value, not the bytes: spaces, the order of the keys and all but
    /// the last of equal keys are lost.
    Jsonb,
}

/// How the columns `occurred_at` and `published_at` hold a time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TimeType {
    /// To the microsecond: `timestamptz` on PostgreSQL, `datetime(6)` in UTC on MySQL, an integer of
    /// microseconds on SQLite. The default.
    #[default]
    Micros,
    /// PostgreSQL's `timestamp(3)` without a time zone, MySQL's `datetime(3)`, to the millisecond: read and
    /// written as UTC.
    UtcMillis,
}

/// An outbox table: where it is, what its columns are called and how they hold their values.
///
/// Names are given as they are in the database, unquoted; they are checked when a store is made of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutboxTable {
    schema: Option<String>,
    name: String,
    source: Option<String>,
    columns: Columns,
    payload: PayloadType,
    time: TimeType,
}

/// `outbox_message`, in the schema `public` on PostgreSQL, in `main` on SQLite, and in the connection's own
/// database on MySQL.
impl Default for OutboxTable {
    fn default() -> Self {
        Self::new("outbox_message")
    }
}

impl OutboxTable {
    /// A table of this name with our columns and types, in the schema `public` on PostgreSQL, in `main` on
    /// SQLite, and in the connection's own database on MySQL.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            schema: None,
            name: name.into(),
            source: None,
            columns: Columns::default(),
            payload: PayloadType::Bytes,
            time: TimeType::Micros,
        }
    }

    /// The table of a Prisma model: `OutboxMessage` is `public."outboxMessage"`, with camelCase columns, a
    /// text payload, times of `timestamp(3)` and no headers. Its lock key is that of the TypeScript relay, so
    /// that both can take turns on it.
    ///
    /// A model that maps its times to `timestamptz` needs [`with_time_type`](Self::with_time_type).
    ///
    /// On MySQL it is `outboxMessage` in the connection's own database, with times of `datetime(3)`. Prisma's
    /// own text columns there take `T` for `t`: the model has to map tenant and subject to bytes
    /// (`Bytes @db.VarBinary(255)`), and `check` says so.
    pub fn prisma(model: &str) -> Self {
        let mut letters = model.chars();
        let first = letters.next().into_iter().flat_map(char::to_lowercase);
        Self {
            columns: Columns::camel_case(),
            payload: PayloadType::Text,
            time: TimeType::UtcMillis,
            ..Self::new(first.chain(letters).collect::<String>())
        }
    }

    /// Sets the schema. On SQLite it is the name of an attached database, on MySQL that of a database.
    pub fn with_schema(mut self, schema: impl Into<String>) -> Self {
        self.schema = Some(schema.into());
        self
    }

    /// Sets the name that subscribers deduplicate by, with the id. Default: the table's name. Never change it
    /// once messages went out.
    pub fn with_source(mut self, source: impl Into<String>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Sets the names of the columns.
    pub fn with_columns(mut self, columns: Columns) -> Self {
        self.columns = columns;
        self
    }

    /// Sets how the payload is held.
    pub fn with_payload_type(mut self, payload: PayloadType) -> Self {
        self.payload = payload;
        self
    }

    /// Sets how times are held.
    pub fn with_time_type(mut self, time: TimeType) -> Self {
        self.time = time;
        self
    }

    /// The schema, if one was set.
    pub fn schema(&self) -> Option<&str> {
        self.schema.as_deref()
    }

    /// The schema, or the one that the database has by default: `public` on PostgreSQL, `main` on SQLite. On
    /// MySQL it is empty then, which stands for the connection's own database.
    pub fn schema_on(&self, dialect: Dialect) -> &str {
        self.schema.as_deref().unwrap_or(match dialect {
            Dialect::MySql => "",
            Dialect::Postgres => "public",
            Dialect::Sqlite => "main",
        })
    }

    /// The table's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name that subscribers deduplicate by, with the id.
    pub fn source(&self) -> &str {
        self.source.as_deref().unwrap_or(&self.name)
    }

    /// The names of the columns.
    pub fn columns(&self) -> &Columns {
        &self.columns
    }

    /// How the payload is held.
    pub fn payload_type(&self) -> PayloadType {
        self.payload
    }

    /// How times are held.
    pub fn time_type(&self) -> TimeType {
        self.time
    }

    /// Schema and table, quoted: `"public"."outbox_message"`. Without a schema on MySQL, the table alone.
    pub fn quoted(&self, dialect: Dialect) -> String {
        self.beside(&self.name, dialect)
    }

    /// Another name in the table's schema, quoted as the table is.
    pub(crate) fn beside(&self, name: &str, dialect: Dialect) -> String {
        let name = identifier::quote(name, dialect);
        match self.schema_on(dialect) {
            "" => name,
            schema => format!("{}.{name}", identifier::quote(schema, dialect)),
        }
    }

    /// Schema and table for a person to read, unquoted: `public.outbox_message`.
    pub fn display_name(&self, dialect: Dialect) -> String {
        match self.schema_on(dialect) {
            "" => self.name.clone(),
            schema => format!("{schema}.{}", self.name),
        }
    }

    /// The name of the table beside it that MySQL's claims lock a row of: `outbox_message_claims`.
    pub fn claims_name(&self) -> String {
        format!("{}_claims", self.name)
    }

    /// Whether this database can hold such a table.
    ///
    /// # Errors
    /// [`InvalidTable`] if a name cannot be one, two columns have the same name, or a type is not one of this
    /// database.
    pub fn check(&self, dialect: Dialect) -> Result<(), InvalidTable> {
        let named = |part, name: &str| {
            identifier::check(name, dialect).map_err(|problem| InvalidTable::Name {
                part,
                name: name.to_owned(),
                problem,
            })
        };
        if let Some(schema) = self.schema() {
            named("schema", schema)?;
        }
        named("table", &self.name)?;
        if dialect == Dialect::MySql {
            named("the table of claims", &self.claims_name())?;
        }
        let mut seen: Vec<(&'static str, &str)> = Vec::new();
        for (part, name) in self.columns.named() {
            named(part, name)?;
            if let Some((other, _)) = seen.iter().find(|(_, seen)| dialect.same_column(seen, name)) {
                return Err(InvalidTable::SameColumn { name: name.to_owned(), first: other, second: part });
            }
            seen.push((part, name));
        }
        let unsupported = |option| Err(InvalidTable::Unsupported { option, dialect });
        match (dialect, self.payload, self.time) {
            (Dialect::MySql | Dialect::Sqlite, PayloadType::Jsonb, _) => {
                unsupported("a payload of type jsonb")
            }
            (Dialect::Sqlite, _, TimeType::UtcMillis) => unsupported("times of type timestamp(3)"),
            _ => Ok(()),
        }
    }
}

impl Dialect {
    /// Whether the database takes two column names for one. SQLite ignores the case of ASCII letters, MySQL that
    /// of all.
    fn same_column(self, a: &str, b: &str) -> bool {
        match self {
            Self::MySql => a.to_lowercase() == b.to_lowercase(),
            Self::Postgres => a == b,
            Self::Sqlite => a.eq_ignore_ascii_case(b),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prisma_model_names_its_table_as_the_typescript_relay_does() {
        let table = OutboxTable::prisma("OutboxMessage");
        assert_eq!(table.quoted(Dialect::Postgres), r#""public"."outboxMessage""#);
        assert_eq!(table.display_name(Dialect::Postgres), "public.outboxMessage");
        assert_eq!(table.source(), "outboxMessage");
        assert_eq!(table.check(Dialect::Postgres), Ok(()));
    }

    #[test]
    fn a_bad_name_is_refused_with_what_it_names() {
        let table = OutboxTable::new("t").with_schema("");
        assert_eq!(
            table.check(Dialect::Postgres).map_err(|error| error.to_string()),
            Err(r#"the name of schema, "": a name must not be empty"#.to_owned())
        );
    }

    #[test]
    fn two_columns_of_one_name_are_refused() {
        let columns = Columns { kind: "ID".into(), ..Columns::default() };
        let table = OutboxTable::default().with_columns(columns);
        assert_eq!(table.check(Dialect::Postgres), Ok(()));
        assert!(matches!(table.check(Dialect::Sqlite), Err(InvalidTable::SameColumn { .. })));
        assert!(matches!(table.check(Dialect::MySql), Err(InvalidTable::SameColumn { .. })));
    }

    #[test]
    fn mysql_s_table_is_in_the_connection_s_database_and_has_claims_beside_it() {
        let table = OutboxTable::default();
        assert_eq!(table.quoted(Dialect::MySql), "`outbox_message`");
        assert_eq!(table.display_name(Dialect::MySql), "outbox_message");
        let elsewhere = table.with_schema("a`b");
        assert_eq!(elsewhere.quoted(Dialect::MySql), "`a``b`.`outbox_message`");
        assert_eq!(OutboxTable::new("t".repeat(57)).check(Dialect::MySql), Ok(()));
        let refused = OutboxTable::new("t".repeat(58)).check(Dialect::MySql);
        assert!(matches!(refused, Err(InvalidTable::Name { part: "the table of claims", .. })));
    }

    #[test]
    fn a_type_that_a_database_does_not_have_is_refused() {
        let json = OutboxTable::default().with_payload_type(PayloadType::Jsonb);
        assert!(matches!(json.check(Dialect::Sqlite), Err(InvalidTable::Unsupported { .. })));
        assert_eq!(json.check(Dialect::Postgres), Ok(()));
    }
}
