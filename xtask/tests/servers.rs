//! The private servers keep their promises: they answer, restart, crash, freeze, follow, and leave nothing.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use xtask::servers::{Folder, PgBouncer, PoolMode, Postgres, Proxy};

fn wait_until(what: &str, done: impl Fn() -> bool) {
    let begin = Instant::now();
    while !done() {
        assert!(begin.elapsed() < Duration::from_secs(30), "after 30 s, not: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A server answers, keeps what is committed over a restart and a crash, takes settings, and is gone with its
/// folder once dropped.
#[test]
fn postgres_restarts_crashes_and_leaves_nothing() {
    let mut server = Postgres::start(&[("work_mem", "5MB")]).unwrap();
    assert_eq!(server.execute("postgres", "SHOW work_mem").unwrap(), "5MB");
    server.create_database("a\"b").unwrap();
    server.execute("postgres", "CREATE TABLE t (x int); INSERT INTO t VALUES (1)").unwrap();
    server.restart().unwrap();
    assert_eq!(server.execute("postgres", "SELECT x FROM t").unwrap(), "1");
    server.execute("postgres", "INSERT INTO t VALUES (2)").unwrap();
    server.crash().unwrap();
    assert!(server.execute("postgres", "SELECT 1").is_err());
    server.start_again().unwrap();
    assert_eq!(server.execute("postgres", "SELECT count(*) FROM t").unwrap(), "2");
    let (folder, address) = (server.socket_folder().to_path_buf(), server.address());
    drop(server);
    assert!(TcpStream::connect(address).is_err());
    assert!(!folder.exists());
}

/// A server that cannot start says why, at once, with its own words.
#[test]
fn postgres_that_cannot_start_shows_its_log() {
    let error = Postgres::start(&[("no_such_setting", "1")]).unwrap_err();
    assert!(format!("{error:#}").contains("no_such_setting"), "{error:#}");
}

/// Paused, a session gets no answer; resumed, it gets the one it waits for.
#[test]
fn postgres_pauses_with_its_sessions() {
    let server = Postgres::start(&[]).unwrap();
    server.pause().unwrap();
    std::thread::scope(|scope| {
        let question = scope.spawn(|| server.execute("postgres", "SELECT 42"));
        std::thread::sleep(Duration::from_millis(300));
        assert!(!question.is_finished());
        server.resume().unwrap();
        assert_eq!(question.join().unwrap().unwrap(), "42");
    });
}

/// A standby has the primary's rows and refuses to write.
#[test]
fn postgres_standby_follows_and_only_reads() {
    let primary = Postgres::start(&[]).unwrap();
    let standby = primary.standby().unwrap();
    primary.execute("postgres", "CREATE TABLE t AS SELECT 7 AS x").unwrap();
    standby.wait_for_replay(&primary).unwrap();
    assert_eq!(standby.execute("postgres", "SELECT x FROM t").unwrap(), "7");
    let error = standby.execute("postgres", "DELETE FROM t").unwrap_err();
    assert!(error.to_string().contains("read-only"), "{error}");
}

/// The pooler passes statements on to its server.
#[test]
fn postgres_behind_pgbouncer_answers() {
    let server = Postgres::start(&[]).unwrap();
    let pooler = PgBouncer::start(&server, PoolMode::Transaction).unwrap();
    let answer =
        Command::new("psql").args(["-qAtXc", "SELECT 1+1"]).arg(pooler.url("postgres")).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&answer.stdout).trim(), "2", "{answer:?}");
}

/// Answers each connection with what it is sent.
fn echo() -> std::net::SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            std::thread::spawn(move || std::io::copy(&mut stream.try_clone().unwrap(), &mut stream));
        }
    });
    address
}

fn ask(stream: &mut TcpStream) -> std::io::Result<u8> {
    stream.write_all(b"x")?;
    let mut answer = [0];
    stream.read_exact(&mut answer)?;
    Ok(answer[0])
}

/// Frozen, a connection is silent and open, while a new one works; thawed, it goes on where it was; cut, it
/// ends.
#[test]
fn proxy_freezes_thaws_and_cuts() {
    let proxy = Proxy::start(echo()).unwrap();
    let connect = || {
        let stream = TcpStream::connect(("127.0.0.1", proxy.port())).unwrap();
        stream.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
        stream
    };
    let mut old = connect();
    assert_eq!(ask(&mut old).unwrap(), b'x');
    assert_eq!(proxy.connections(), 1);
    proxy.freeze_open_connections();
    assert_eq!(ask(&mut old).unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
    let mut new = connect();
    assert_eq!(ask(&mut new).unwrap(), b'x');
    proxy.freeze();
    assert_eq!(ask(&mut new).unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
    proxy.thaw();
    old.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let mut late = [0];
    old.read_exact(&mut late).unwrap();
    proxy.cut();
    assert_eq!(old.read(&mut [0]).unwrap(), 0);
    wait_until("no connection is left", || proxy.connections() == 0);
}

/// What the child of the next test does: starts a server, says where, and waits to be killed.
fn be_killed() {
    let server = Postgres::start(&[]).unwrap();
    let folder = Folder::new("killed").unwrap();
    println!("\n{}\n{}", server.socket_folder().display(), folder.path().display());
    std::thread::sleep(Duration::from_mins(1));
}

/// A process that dies by SIGKILL leaves neither its server nor a folder.
#[test]
fn nothing_is_left_after_sigkill() {
    const CHILD: &str = "XTASK_TEST_IS_CHILD";
    if std::env::var_os(CHILD).is_some() {
        return be_killed();
    }
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "nothing_is_left_after_sigkill", "--nocapture"])
        .env(CHILD, "1")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let output = std::io::BufReader::new(child.stdout.take().unwrap());
    let folders: Vec<PathBuf> = std::io::BufRead::lines(output)
        .map_while(Result::ok)
        .filter(|line| Path::new(line).is_absolute())
        .map(PathBuf::from)
        .take(2)
        .collect();
    assert!(folders.len() == 2 && folders.iter().all(|folder| folder.exists()), "{folders:?}");
    let pid = std::fs::read_to_string(folders[0].join("data/postmaster.pid")).unwrap();
    let process = Path::new("/proc").join(pid.lines().next().unwrap());
    assert!(process.exists());
    child.kill().unwrap();
    child.wait().unwrap();
    wait_until("the server is gone", || !process.exists());
    wait_until("the folders are gone", || folders.iter().all(|folder| !folder.exists()));
}
