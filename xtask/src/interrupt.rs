//! Ctrl-C and its like: what runs is ended, everything is put away, and then we end.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, Once, PoisonError};

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::signal::unix::{SignalKind, signal};

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
    LISTENING.call_once(|| {
        std::thread::spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build();
            if let Err(error) = runtime.and_then(|runtime| runtime.block_on(wait())) {
                eprintln!("xtask: cannot listen for signals: {error}");
            }
        });
    });
}

async fn wait() -> std::io::Result<()> {
    loop {
        requested().await?;
        if INTERRUPTED.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
        end_group();
    }
}

/// Ends when somebody asks us to end.
pub(crate) async fn requested() -> std::io::Result<()> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
        _ = hang_up.recv() => {}
    }
    Ok(())
}
