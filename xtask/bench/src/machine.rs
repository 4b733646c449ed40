//! What the numbers were measured on.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

/// The machine and the versions.
#[derive(Debug)]
pub(super) struct Machine {
    facts: Vec<(&'static str, String)>,
}

impl Machine {
    /// Asks the system.
    pub(super) fn look() -> Self {
        let cores = std::thread::available_parallelism().map_or(0, usize::from);
        let cpu = line_of("/proc/cpuinfo", "model name").unwrap_or_else(|| std::env::consts::ARCH.to_owned());
        let memory = line_of("/proc/meminfo", "MemTotal")
            .and_then(|text| text.trim_end_matches("kB").trim().parse::<u64>().ok());
        let mut facts = vec![("processor", format!("{cpu}, {cores} cores"))];
        if let Some(kibibytes) = memory {
            facts.push(("memory", format!("{} GiB", kibibytes / 1_048_576)));
        }
        facts.push(("system", first_line("uname", &["-srm"])));
        facts.push(("compiler", first_line("rustc", &["--version"])));
        Self { facts }
    }

    /// Adds what else there is to know.
    pub(super) fn add(&mut self, what: &'static str, value: String) {
        self.facts.push((what, value));
    }

    pub(super) fn markdown(&self) -> String {
        let lines: Vec<String> =
            self.facts.iter().map(|(what, value)| format!("- {what}: {value}")).collect();
        lines.join("\n") + "\n"
    }

    pub(super) fn json(&self) -> Value {
        self.facts.iter().map(|(what, value)| ((*what).to_owned(), json!(value))).collect()
    }
}

fn line_of(file: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

fn first_line(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    output.ok().map_or_else(String::new, |output| {
        String::from_utf8_lossy(&output.stdout).lines().next().unwrap_or_default().to_owned()
    })
}
