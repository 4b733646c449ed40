//! The bench: what the relay does in a second, what it costs, and what it is compared with.
//!
//! Each part is a module of its own; what they share is beside them.

mod arrivals;
mod bed;
mod by_diesel;
mod chart;
mod commit;
pub mod counters;
mod cpu;
mod drain;
mod fairness;
mod growth;
mod idle;
mod lanes;
mod latency;
mod ledger;
mod machine;
mod mariadb;
pub mod memory;
mod progress;
mod report;
mod rivals;
mod slow;
mod sqlite;
mod stats;
mod stores;
mod wire;
mod writer;

use std::path::PathBuf;

use anyhow::{Context, Result};
use serde_json::json;

pub use self::writer::write;

use self::machine::Machine;
use self::progress::Progress;
use self::report::Section;
use servers::install::Program;

/// A part of the bench.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Part {
    /// How fast a backlog goes out.
    Drain,
    /// How soon a message goes out.
    Latency,
    /// What a relay costs that has nothing to do.
    Idle,
    /// What an operation costs as the table grows.
    Growth,
    /// How fast messages go out when the receiver takes its time.
    Slow,
    /// What busy and hanging tenants cost another one.
    Fairness,
    /// What each message costs, counted.
    Counters,
    /// How much memory a claim takes.
    Memory,
}

impl Part {
    /// Every part, in the order in which they run.
    pub const ALL: [Self; 8] = [
        Self::Drain,
        Self::Latency,
        Self::Idle,
        Self::Growth,
        Self::Slow,
        Self::Fairness,
        Self::Counters,
        Self::Memory,
    ];

    /// What it is called: `drain`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Drain => "drain",
            Self::Latency => "latency",
            Self::Idle => "idle",
            Self::Growth => "growth",
            Self::Slow => "slow",
            Self::Fairness => "fairness",
            Self::Counters => "counters",
            Self::Memory => "memory",
        }
    }
}

/// What to measure, and where to write it down.
#[derive(Debug)]
pub struct Settings {
    /// Which parts to run.
    pub parts: Vec<Part>,
    /// Whether everything is small, so that all of it takes less than three minutes.
    pub quick: bool,
    /// The folder for the numbers and the picture.
    pub out: PathBuf,
}

/// What the parts share.
#[derive(Debug)]
struct Bench<'a> {
    settings: &'a Settings,
    progress: Progress,
}

impl Bench<'_> {
    /// The number for a quick run, or the one for a real run.
    fn size<T>(&self, quick: T, real: T) -> T {
        if self.settings.quick { quick } else { real }
    }
}

/// Runs the bench and writes what it measured; answers whether every goal was met.
///
/// # Errors
/// If anything was published wrongly, or a server does not do what it should: then nothing is measured.
pub fn run(settings: &Settings) -> Result<bool> {
    Program::Postgres.ensure()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let bench = Bench { settings, progress: Progress::begin() };
    let mut machine = Machine::look();
    let sections = runtime.block_on(measure(&bench, &mut machine))?;
    write_down(&bench, &machine, &sections)?;
    Ok(sections.iter().flat_map(|section| &section.goals).all(|goal| goal.met))
}

async fn measure(bench: &Bench<'_>, machine: &mut Machine) -> Result<Vec<Section>> {
    let version = bed::Bed::start(&[]).await?.version().await?;
    machine.add("PostgreSQL", version);
    machine.add("size", bench.size("quick", "full").to_owned());
    let mut sections = Vec::new();
    for part in &bench.settings.parts {
        bench.progress.tell(&format!("part {}", part.name()));
        let measured = match part {
            Part::Drain => drain::measure(bench).await,
            Part::Latency => latency::measure(bench).await,
            Part::Idle => idle::measure(bench).await,
            Part::Growth => growth::measure(bench).await,
            Part::Slow => slow::measure(bench).await,
            Part::Fairness => fairness::measure(bench).await,
            Part::Counters => counters::section(),
            Part::Memory => memory::section(),
        };
        sections.extend(measured.with_context(|| format!("the bench's part {} failed", part.name()))?);
    }
    Ok(sections)
}

fn write_down(bench: &Bench<'_>, machine: &Machine, sections: &[Section]) -> Result<()> {
    let page = page(machine, sections);
    print!("{page}");
    let out = &bench.settings.out;
    let cannot = || format!("cannot write into {}", out.display());
    std::fs::create_dir_all(out).with_context(cannot)?;
    let all = json!({
        "machine": machine.json(),
        "sections": sections.iter().map(Section::json).collect::<Vec<_>>(),
    });
    std::fs::write(out.join("bench.json"), serde_json::to_vec_pretty(&all)?).with_context(cannot)?;
    std::fs::write(out.join("bench.svg"), chart::svg(sections)).with_context(cannot)?;
    std::fs::write(out.join("bench.md"), page).with_context(cannot)?;
    let seconds = bench.progress.seconds();
    println!("\n{seconds:.0} s; bench.md, bench.json and bench.svg are in {}", out.display());
    Ok(())
}

fn page(machine: &Machine, sections: &[Section]) -> String {
    let tables: Vec<String> = sections.iter().map(Section::markdown).collect();
    format!("{}\n{}", machine.markdown(), tables.join("\n"))
}
