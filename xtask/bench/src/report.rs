//! What was measured: tables with their goals, for the terminal, a page and a program.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::chart::Bar;

/// A table of the report.
#[derive(Debug)]
pub(super) struct Section {
    pub(super) title: String,
    /// What the numbers are, in a sentence or two.
    pub(super) note: String,
    pub(super) columns: Vec<String>,
    pub(super) rows: Vec<Vec<String>>,
    pub(super) goals: Vec<Goal>,
    pub(super) bars: Vec<Bar>,
}

/// What a number was to be, and what it is.
#[derive(Debug)]
pub(super) struct Goal {
    pub(super) what: String,
    pub(super) wanted: String,
    pub(super) measured: String,
    pub(super) met: bool,
}

impl Section {
    pub(super) fn new(title: impl Into<String>, note: impl Into<String>, columns: &[&str]) -> Self {
        Self {
            title: title.into(),
            note: note.into(),
            columns: columns.iter().map(|&column| column.to_owned()).collect(),
            rows: Vec::new(),
            goals: Vec::new(),
            bars: Vec::new(),
        }
    }

    pub(super) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    pub(super) fn bar(&mut self, name: impl Into<String>, value: f64) {
        self.bars.push(Bar { name: name.into(), value });
    }

    /// A number that is to be at least this.
    pub(super) fn at_least(&mut self, what: impl Into<String>, wanted: f64, measured: f64, unit: &str) {
        self.goal(what, format!("at least {}", number(wanted)), measured, unit, measured >= wanted);
    }

    /// A number that is to be at most this.
    pub(super) fn at_most(&mut self, what: impl Into<String>, wanted: f64, measured: f64, unit: &str) {
        self.goal(what, format!("at most {}", number(wanted)), measured, unit, measured <= wanted);
    }

    fn goal(&mut self, what: impl Into<String>, wanted: String, measured: f64, unit: &str, met: bool) {
        let unit = if unit.is_empty() { String::new() } else { format!(" {unit}") };
        self.goals.push(Goal {
            what: what.into(),
            wanted: wanted + &unit,
            measured: number(measured) + &unit,
            met,
        });
    }

    /// The table as Markdown, which also reads well in a terminal: its columns are padded.
    pub(super) fn markdown(&self) -> String {
        let mut text = format!("### {}\n\n{}\n\n", self.title, self.note);
        text.push_str(&table(&self.columns, &self.rows));
        if !self.goals.is_empty() {
            let columns = ["goal", "wanted", "measured", ""].map(str::to_owned);
            let rows: Vec<Vec<String>> = self.goals.iter().map(Goal::cells).collect();
            let _ = write!(text, "\n{}", table(&columns, &rows));
        }
        text
    }

    pub(super) fn json(&self) -> Value {
        let rows: Vec<Value> = self
            .rows
            .iter()
            .map(|row| {
                let cells = self.columns.iter().cloned().zip(row.iter().cloned().map(Value::from));
                Value::Object(cells.collect())
            })
            .collect();
        let goals: Vec<Value> = self
            .goals
            .iter()
            .map(|goal| {
                json!({ "goal": goal.what, "wanted": goal.wanted, "measured": goal.measured, "met": goal.met })
            })
            .collect();
        let bars: Vec<Value> =
            self.bars.iter().map(|bar| json!({ "name": bar.name, "value": bar.value })).collect();
        json!({ "title": self.title, "note": self.note, "rows": rows, "goals": goals, "bars": bars })
    }
}

impl Goal {
    fn cells(&self) -> Vec<String> {
        let verdict = if self.met { "met" } else { "**missed**" };
        vec![self.what.clone(), self.wanted.clone(), self.measured.clone(), verdict.to_owned()]
    }
}

fn table(columns: &[String], rows: &[Vec<String>]) -> String {
    let width = |place: usize| {
        let cells = rows.iter().filter_map(|row| row.get(place)).chain(columns.get(place));
        cells.map(|cell| cell.chars().count()).max().unwrap_or_default().max(3)
    };
    let widths: Vec<usize> = (0..columns.len()).map(width).collect();
    let line = |cells: &[String]| {
        let padded = widths.iter().enumerate().map(|(place, width)| {
            let cell = cells.get(place).map_or("", String::as_str);
            // Names to the left, numbers to the right.
            if place == 0 { format!(" {cell:<width$} ") } else { format!(" {cell:>width$} ") }
        });
        format!("|{}|\n", padded.collect::<Vec<_>>().join("|"))
    };
    let rule: Vec<String> = widths
        .iter()
        .enumerate()
        .map(|(place, width)| if place == 0 { "-".repeat(*width) } else { "-".repeat(width - 1) + ":" })
        .collect();
    let mut text = line(columns) + &line(&rule);
    for row in rows {
        text.push_str(&line(row));
    }
    text
}

/// A number as a person reads it: three digits that matter, thousands apart.
pub(super) fn number(value: f64) -> String {
    if value.abs() >= 100.0 {
        let digits = format!("{:.0}", value.abs());
        let mut text = String::new();
        for (place, digit) in digits.chars().enumerate() {
            if place > 0 && (digits.len() - place).is_multiple_of(3) {
                text.push(',');
            }
            text.push(digit);
        }
        return if value < 0.0 { format!("-{text}") } else { text };
    }
    let places = if value.abs() >= 10.0 {
        1
    } else if value.abs() >= 0.1 || value == 0.0 {
        2
    } else {
        3
    };
    format!("{value:.places$}")
}

/// A count, whole, thousands apart.
pub(super) fn count(value: u64) -> String {
    let value = super::stats::as_f64(value);
    if value < 100.0 { value.to_string() } else { number(value) }
}

/// How many times one number is another: `12.3x`.
pub(super) fn times(value: f64, of: f64) -> String {
    if of > 0.0 { format!("{}x", number(value / of)) } else { "-".to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers are short and keep what matters.
    #[test]
    fn numbers_are_readable() {
        let shown = [1_234_567.0, 999.6, 100.0, 12.34, 1.234, 0.01, 0.0, -1_500.0].map(number);
        assert_eq!(shown, ["1,234,567", "1,000", "100", "12.3", "1.23", "0.010", "0.00", "-1,500"]);
        assert_eq!([1, 99, 100, 10_000].map(count), ["1", "99", "100", "10,000"]);
        assert_eq!(times(5.0, 2.0), "2.50x");
        assert_eq!(times(5.0, 0.0), "-");
    }

    /// A goal that was missed says so, in the table and in the JSON.
    #[test]
    fn a_missed_goal_is_told() {
        let mut section = Section::new("Title", "Note.", &["what", "rows/s"]);
        section.row(["relay".to_owned(), number(1_000.0)]);
        section.at_least("ratio", 0.9, 0.5, "");
        section.at_most("p99", 10.0, 3.0, "ms");
        let text = section.markdown();
        assert!(text.contains("| relay |  1,000 |"), "{text}");
        assert!(text.contains("**missed**") && text.contains("met"), "{text}");
        let json = section.json();
        assert_eq!(json["goals"][0]["met"], false);
        assert_eq!(json["rows"][0]["rows/s"], "1,000");
    }
}
