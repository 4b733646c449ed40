//! CPU time, of this process and of all of a server's.

use std::fs;
use std::path::Path;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// CPU time used so far.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cpu {
    client: Duration,
    server: Option<Duration>,
}

/// CPU time used in between.
#[derive(Debug, Clone, Copy)]
pub(super) struct Used {
    pub(super) client: Duration,
    /// `None` where the system does not tell.
    pub(super) server: Option<Duration>,
}

impl Cpu {
    /// Of this process, and of the server with this first process.
    pub(super) fn now(server: Option<u32>) -> Self {
        Self { client: of_this_process(), server: server.and_then(of_tree) }
    }

    /// What was used since.
    pub(super) fn used_since(self, before: Self) -> Used {
        Used {
            client: self.client.saturating_sub(before.client),
            server: self.server.zip(before.server).map(|(now, before)| now.saturating_sub(before)),
        }
    }
}

fn of_this_process() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or_default())
}

/// A process, its children that live, and those that have ended.
fn of_tree(root: u32) -> Option<Duration> {
    let ended = of_ended_children(root)?;
    let mut sum = of_process(root)? + ended;
    for entry in fs::read_dir("/proc").ok()?.filter_map(Result::ok) {
        let child = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok());
        if let Some(child) = child
            && parent_of(child) == Some(root)
        {
            // One that ends right now is among the ended ones next time.
            sum += of_process(child).unwrap_or_default();
        }
    }
    Some(sum)
}

/// To the nanosecond, of a process with one thread, as PostgreSQL's are; of one with several, thread by thread.
fn of_process(process: u32) -> Option<Duration> {
    let mut sum = Duration::ZERO;
    for thread in fs::read_dir(Path::new("/proc").join(process.to_string()).join("task")).ok()? {
        let text = fs::read_to_string(thread.ok()?.path().join("schedstat")).unwrap_or_default();
        sum += Duration::from_nanos(text.split(' ').next().and_then(|nanos| nanos.parse().ok()).unwrap_or(0));
    }
    Some(sum)
}

/// To the tick, which is 10 ms.
fn of_ended_children(process: u32) -> Option<Duration> {
    let fields = stat(process)?;
    let ticks = |place: usize| fields.get(place).and_then(|ticks| ticks.parse::<u64>().ok());
    Some(Duration::from_millis((ticks(13)? + ticks(14)?) * 10))
}

fn parent_of(process: u32) -> Option<u32> {
    stat(process)?.get(1)?.parse().ok()
}

/// The fields after the name, which may have spaces and brackets: state, parent, …
fn stat(process: u32) -> Option<Vec<String>> {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    Some(text.rsplit_once(") ")?.1.split_whitespace().map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Work shows in this process's time, and a child's in its parent's tree, while it lives and afterwards.
    #[test]
    #[cfg(target_os = "linux")]
    fn work_shows() {
        let before = Cpu::now(Some(std::process::id()));
        let spin = "i=0; while [ $i -lt 60000 ]; do i=$((i + 1)); done";
        assert!(std::process::Command::new("/bin/sh").args(["-c", spin]).status().unwrap().success());
        let used = Cpu::now(Some(std::process::id())).used_since(before);
        assert!(used.client > Duration::ZERO);
        assert!(used.server.unwrap() >= Duration::from_millis(10), "{used:?}");
    }
}
