//! Ctrl-C and its like: what runs is ended, everything is put away, and then we end.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use rustix::process::{Pid, Signal, kill_process_group};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

static INTERRUPTED: AtomicBool = AtomicBool::new(false);
/// The process groups of the commands that run.
static GROUPS: Mutex<Vec<Pid>> = Mutex::new(Vec::new());

/// Whether somebody asked us to end.
pub(crate) fn is_interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}

/// Says which process group to end at an interruption, until the value is dropped.
#[derive(Debug)]
pub(crate) struct Ends(Pid);

impl Ends {
    pub(crate) fn group(leader: Pid) -> Self {
        listen();
        groups().push(leader);
        if is_interrupted() {
            end_groups();
        }
        Self(leader)
    }
}

impl Drop for Ends {
    fn drop(&mut self) {
        groups().retain(|leader| *leader != self.0);
    }
}

fn groups() -> MutexGuard<'static, Vec<Pid>> {
    GROUPS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn end_groups() {
    for leader in groups().iter() {
        let _ = kill_process_group(*leader, Signal::TERM);
    }
}

/// From now on, the first signal ends the commands that run, so that we go on to put everything away; the
/// second ends us at once, and the watchdogs put everything away.
pub(crate) fn listen() {
    static LISTENING: Once = Once::new();
    LISTENING.call_once(|| match Signals::new([SIGHUP, SIGINT, SIGTERM]) {
        Ok(signals) => _ = std::thread::spawn(|| wait(signals)),
        Err(error) => eprintln!("xtask: cannot listen for signals: {error}"),
    });
}

fn wait(mut signals: Signals) {
    for _ in signals.forever() {
        if INTERRUPTED.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
        end_groups();
    }
}
