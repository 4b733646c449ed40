//! The statements that look for each tenant's oldest pending message.

use super::Words;
use super::operator::{GE, GT, LE, LT, TIMES};
use crate::postgres::server::SERVER;
use crate::table::TimeType;

impl Words {
    /// A loose scan of the index: the next tenant's first entry, as often as there are tenants with something.
    pub(super) fn probe(&self) -> String {
        let (start, next) = (
            self.first(&format!("{{tenant}} {GT} ''")),
            self.first(&format!("{{tenant}} {GT} oldest.tenant")),
        );
        format!(
            "WITH RECURSIVE oldest AS (\n  (\n    {start}\n  )\n  UNION ALL\n  SELECT next.*\n  \
             FROM oldest CROSS JOIN LATERAL (\n    {next}\n  ) AS next\n)\n{}\nFROM oldest\nUNION ALL\n{SERVER}",
            self.oldest(),
        )
    }

    pub(super) fn probe_named(&self) -> String {
        let first = self.first(&format!("{{tenant}} {GE} named.tenant AND {{tenant}} {LE} named.tenant"));
        format!(
            "{}\nFROM (SELECT DISTINCT pg_catalog.unnest($1::pg_catalog.text[]) AS tenant) AS named \
             CROSS JOIN LATERAL (\n    {first}\n) AS oldest\nUNION ALL\n{SERVER}",
            self.oldest(),
        )
    }

    /// The first entry of the index of which this is true, in which `{tenant}` is its tenant, and `{id}` its id.
    pub(super) fn first(&self, condition: &str) -> String {
        let Self { table, id, tenant, occurred_at, published_at, .. } = self;
        let condition =
            condition.replace("{tenant}", &format!("m.{tenant}")).replace("{id}", &format!("m.{id}"));
        format!(
            "SELECT m.{tenant} AS tenant, m.{id} AS id, m.{occurred_at} AS occurred\n    FROM {table} AS m\n    \
             WHERE m.{published_at} IS NULL AND {condition}\n    ORDER BY m.{tenant}, m.{id} LIMIT 1"
        )
    }

    /// What a probe answers of each.
    pub(super) fn oldest(&self) -> String {
        format!(
            "SELECT oldest.tenant, oldest.id, {},\n       {}",
            self.micros("occurred"),
            since_epoch("pg_catalog.clock_timestamp()"),
        )
    }

    /// A column's time in microseconds, as an integer; null if it is infinite or past what 64 bits hold.
    fn micros(&self, column: &str) -> String {
        let end = match self.time_type {
            TimeType::Micros => "pg_catalog.timestamptz '294247-01-01 00:00:00+00'",
            TimeType::UtcMillis => "pg_catalog.timestamp '294247-01-01 00:00:00'",
        };
        format!(
            "CASE WHEN pg_catalog.isfinite({column}) AND {column} {LT} {end} THEN {} END",
            since_epoch(column)
        )
    }
}

/// Microseconds since 1970. `extract` is syntax, which no schema hides.
fn since_epoch(time: &str) -> String {
    format!("(extract(epoch FROM {time}) {TIMES} 1000000)::pg_catalog.int8")
}
