//! Ctrl-C and its like: what runs is ended, everything is put away, and then we end.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, Once, PoisonError};

use rustix::process::{Pid, Signal, kill_process_group};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

static INTERRUPTED: AtomicBool = AtomicBool::new(false);
/// The process group of the command that runs.
static GROUP: Mutex<Option<Pid>> = Mutex::new(None);

/// Whether somebody asked us to end.
pub(crate) fn is_interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}

/// Says which process group to end at an interruption, until the value is dropped.
#[derive(Debug)]
pub(crate) struct Ends(());

impl Ends {
    pub(crate) fn group(leader: Option<Pid>) -> Self {
        listen();
        *GROUP.lock().unwrap_or_else(PoisonError::into_inner) = leader;
        if is_interrupted() {
            end_group();
        }
        Self(())
    }
}

impl Drop for Ends {
    fn drop(&mut self) {
        *GROUP.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

fn end_group() {
    if let Some(leader) = *GROUP.lock().unwrap_or_else(PoisonError::into_inner) {
        let _ = kill_process_group(leader, Signal::TERM);
    }
}

/// From now on, the first signal ends the command that runs, so that we go on to put everything away; the
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
        end_group();
    }
}
