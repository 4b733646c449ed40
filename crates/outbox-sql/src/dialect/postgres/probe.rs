//! The statements that look for each tenant's oldest pending message.

use super::Words;
use crate::table::TimeType;

impl Words {
    /// A loose scan of the index: the next tenant's first entry, as often as there are tenants with something.
    pub(super) fn probe(&self) -> String {
        let (start, next) = (self.first("{tenant} > ''"), self.first("{tenant} > oldest.tenant"));
        format!(
            "WITH RECURSIVE oldest AS (\n  (\n    {start}\n  )\n  UNION ALL\n  SELECT next.*\n  \
             FROM oldest CROSS JOIN LATERAL (\n    {next}\n  ) AS next\n)\n{}\nFROM oldest",
            self.oldest(),
        )
    }

    pub(super) fn probe_named(&self) -> String {
        let first = self.first("{tenant} >= named.tenant AND {tenant} <= named.tenant");
        format!(
            "{}\nFROM (SELECT DISTINCT unnest($1::text[]) AS tenant) AS named CROSS JOIN LATERAL (\n    {first}\n) AS \
             oldest",
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
            "SELECT oldest.tenant, oldest.id, {},\n       (extract(epoch FROM clock_timestamp()) * 1000000)::bigint",
            self.micros("occurred"),
        )
    }

    /// A column's time in microseconds, as an integer; null if it is infinite or past what 64 bits hold.
    fn micros(&self, column: &str) -> String {
        let end = match self.time_type {
            TimeType::Micros => "timestamptz '294247-01-01 00:00:00+00'",
            TimeType::UtcMillis => "timestamp '294247-01-01 00:00:00'",
        };
        format!(
            "CASE WHEN isfinite({column}) AND {column} < {end} \
             THEN (extract(epoch FROM {column}) * 1000000)::bigint END"
        )
    }
}
