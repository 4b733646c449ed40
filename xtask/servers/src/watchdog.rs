//! The watchdog: a shell that outlives us by a moment.
//!
//! A process cannot clean up after its own SIGKILL, so somebody else has to. The watchdog reads a pipe whose
//! other end only we hold; when that end closes, because we closed it or because we are gone, it ends its
//! server. A server that runs in a process group of its own does not see the terminal's Ctrl-C either, so
//! that its end is always the watchdog's doing.

use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};

use anyhow::{Context, Result};

/// `$1` is the signal that asks the server to end in good order; the rest is the server.
const SERVER: &str = r#"
signal=$1; shift
exec 3<&0
"$@" </dev/null 3<&- &
server=$!
(
    while read -r _; do :; done
    kill -s "$signal" "$server" 2>/dev/null || exit 0
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        sleep 0.5
        kill -0 "$server" 2>/dev/null || exit 0
    done
    pkill -CONT -P "$server" 2>/dev/null
    kill -s CONT "$server" 2>/dev/null
    kill -s QUIT "$server" 2>/dev/null
    sleep 2
    kill -s KILL "$server" 2>/dev/null
) <&3 >/dev/null 2>&1 &
watch=$!
exec 3<&-
wait "$server"
status=$?
kill "$watch" 2>/dev/null
exit "$status"
"#;

/// `$1` is the folder. A server may still write into it while it ends, hence the tries.
const FOLDER: &str = r#"
while read -r _; do :; done
for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    rm -rf -- "$1" 2>/dev/null
    test -e "$1" || exit 0
    sleep 0.5
done
exit 1
"#;

/// A watchdog at work. Dropping it ends what it watches and waits for that.
#[derive(Debug)]
pub struct Watchdog {
    shell: Child,
    line: Option<ChildStdin>,
}

impl Watchdog {
    /// Starts a server and watches it. `prepare` sets what the server needs: its account, its folder, where
    /// its output goes. `signal` is the name of the signal that ends it in good order (`INT`).
    ///
    /// # Errors
    /// If the shell cannot be started. A server that cannot start ends the watchdog: see
    /// [`ended`](Self::ended).
    pub fn over_server(
        mut shell: Command,
        signal: &str,
        server: &[impl AsRef<std::ffi::OsStr>],
    ) -> Result<Self> {
        shell.arg("-c").arg(SERVER).arg("watchdog").arg(signal).args(server);
        Self::start(shell)
    }

    /// Watches a folder that is to be removed when we are gone.
    ///
    /// # Errors
    /// If the shell cannot be started.
    pub fn over_folder(mut shell: Command, folder: &std::path::Path) -> Result<Self> {
        shell.arg("-c").arg(FOLDER).arg("watchdog").arg(folder);
        shell.stdout(Stdio::null()).stderr(Stdio::null());
        Self::start(shell)
    }

    fn start(mut shell: Command) -> Result<Self> {
        shell.stdin(Stdio::piped()).process_group(0);
        let mut shell = shell.spawn().context("cannot start the watchdog's shell")?;
        let line = shell.stdin.take();
        Ok(Self { shell, line })
    }

    /// How the server ended, if it has.
    ///
    /// # Errors
    /// If the system cannot tell.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>> {
        Ok(self.shell.try_wait()?)
    }

    /// Ends what is watched and waits until it is gone: at once for most, seven seconds at most for a server
    /// that does not answer.
    pub fn end(&mut self) {
        drop(self.line.take());
        let _ = self.shell.wait();
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.end();
    }
}
