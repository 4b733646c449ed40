//! The private servers keep their promises: they answer, restart, crash, freeze, follow, and leave nothing.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use servers::install::Program;
use servers::{Folder, MariaDb, MySql, PgBouncer, PoolMode, Postgres, Proxy};

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

/// A server of the newest PostgreSQL, where one could be fetched, answers beside the system's and is gone once dropped.
#[test]
fn newest_postgres_answers_and_leaves_nothing() {
    if Program::NewestPostgres.folder().is_err() {
        let error = Postgres::start_newest(&[]).unwrap_err();
        assert!(format!("{error:#}").contains("OUTBOX_TEST_POSTGRES_URL"), "{error:#}");
        return;
    }
    let newest = Postgres::start_newest(&[("work_mem", "5MB")]).unwrap();
    let usual = Postgres::start(&[]).unwrap();
    assert_eq!(newest.execute("postgres", "SHOW work_mem").unwrap(), "5MB");
    let major =
        |server: &Postgres| server.version().unwrap().split('.').next().unwrap().parse::<u32>().unwrap();
    assert!(major(&newest) >= major(&usual) && major(&newest) >= 18, "{newest:?} {usual:?}");
    let (folder, address) = (newest.socket_folder().to_path_buf(), newest.address());
    drop(newest);
    assert!(TcpStream::connect(address).is_err());
    assert!(!folder.exists());
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

/// A MariaDB server answers, keeps what is committed over a restart and a crash, loses what is not, takes
/// settings, and is gone with its folder once dropped.
#[test]
fn mariadb_restarts_crashes_and_leaves_nothing() {
    let mut server = MariaDb::start(&[("innodb_lock_wait_timeout", "7")]).unwrap();
    assert_eq!(server.execute("mysql", "SELECT @@innodb_lock_wait_timeout").unwrap(), "7");
    server.create_database("a`b").unwrap();
    server.execute("a`b", "CREATE TABLE t (x int, y text); INSERT INTO t VALUES (1, 'é')").unwrap();
    server.restart().unwrap();
    assert_eq!(server.execute("a`b", "SELECT x, y FROM t").unwrap(), "1\té");
    server.execute("a`b", "INSERT INTO t VALUES (2, NULL); BEGIN; INSERT INTO t VALUES (3, NULL)").unwrap();
    server.crash().unwrap();
    assert!(server.execute("mysql", "SELECT 1").is_err());
    assert!(server.crash().is_err(), "it does not run");
    server.start_again().unwrap();
    assert_eq!(server.execute("a`b", "SELECT group_concat(x ORDER BY x) FROM t").unwrap(), "1,2");
    let (socket, address) = (server.socket(), server.address());
    assert!(socket.exists());
    drop(server);
    assert!(TcpStream::connect(address).is_err());
    assert!(!socket.parent().unwrap().exists());
}

/// Two MariaDB servers run side by side, and what one has the other has not.
#[test]
fn mariadb_servers_are_apart() {
    let servers = [(); 2].map(|()| MariaDb::start(&[]).unwrap());
    servers[0].create_database("mine").unwrap();
    assert!(servers[1].execute("mine", "SELECT 1").unwrap_err().to_string().contains("Unknown database"));
    // Nobody but `root` is there to connect as, and both write to their disks' caches only.
    for server in &servers {
        let strangers = "SELECT count(*) FROM global_priv WHERE user NOT IN ('root', 'mariadb.sys')";
        assert_eq!(server.execute("mysql", strangers).unwrap(), "0");
        assert_eq!(server.execute("mysql", "SELECT @@innodb_flush_method").unwrap(), "nosync");
    }
}

/// A MariaDB server that cannot start says why, at once, with its own words.
#[test]
fn mariadb_that_cannot_start_shows_its_log() {
    let error = MariaDb::start(&[("no_such_setting", "1")]).unwrap_err();
    assert!(format!("{error:#}").contains("no_such_setting"), "{error:#}");
}

/// Paused, a session gets no answer; resumed, it gets the one it waits for. A server that is dropped while it is
/// paused is gone as well.
#[test]
fn mariadb_pauses_with_its_sessions() {
    let server = MariaDb::start(&[]).unwrap();
    server.pause().unwrap();
    std::thread::scope(|scope| {
        let question = scope.spawn(|| server.execute("mysql", "SELECT 42"));
        std::thread::sleep(Duration::from_millis(300));
        assert!(!question.is_finished());
        server.resume().unwrap();
        assert_eq!(question.join().unwrap().unwrap(), "42");
    });
    server.pause().unwrap();
    let (socket, address) = (server.socket(), server.address());
    drop(server);
    assert!(TcpStream::connect(address).is_err());
    assert!(!socket.exists());
}

/// A MySQL server, where one could be fetched, answers as `root` and is gone once dropped.
#[test]
fn mysql_answers_and_leaves_nothing() {
    if Program::MySql.folder().is_err() {
        let error = MySql::start(&[]).unwrap_err();
        assert!(format!("{error:#}").contains("OUTBOX_TEST_MYSQL_URL"), "{error:#}");
        return;
    }
    let server = MySql::start(&[("innodb_lock_wait_timeout", "7")]).unwrap();
    let answer = Command::new("mariadb")
        .args(["--no-defaults", "--user=root", "--host=127.0.0.1", "--batch", "--skip-column-names"])
        .arg(format!("--port={}", server.address().port()))
        .arg("--execute=SELECT @@version, @@innodb_lock_wait_timeout")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&answer.stdout).into_owned();
    assert!(said.starts_with(server.version()) && said.trim_end().ends_with("\t7"), "{answer:?}");
    assert!(!said.contains("MariaDB"));
    let address = server.address();
    drop(server);
    assert!(TcpStream::connect(address).is_err());
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

/// What the child of the next test does: starts servers, says where, and waits to be killed.
fn be_killed() {
    let postgres = Postgres::start(&[]).unwrap();
    let mariadb = MariaDb::start(&[]).unwrap();
    let folder = Folder::new("killed").unwrap();
    println!("\n{}", postgres.socket_folder().join("data/postmaster.pid").display());
    println!("{}", mariadb.socket().with_file_name("mariadbd.pid").display());
    println!("{}", folder.path().join("no.pid").display());
    std::thread::sleep(Duration::from_mins(1));
}

/// A process that dies by SIGKILL leaves neither its servers nor a folder.
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
    let files: Vec<PathBuf> = std::io::BufRead::lines(output)
        .map_while(Result::ok)
        .filter(|line| Path::new(line).is_absolute())
        .map(PathBuf::from)
        .take(3)
        .collect();
    assert_eq!(files.len(), 3, "{files:?}");
    let processes = [&files[0], &files[1]].map(|file| {
        let pid = std::fs::read_to_string(file).unwrap();
        Path::new("/proc").join(pid.lines().next().unwrap())
    });
    assert!(processes.iter().all(|process| process.exists()), "{processes:?}");
    child.kill().unwrap();
    child.wait().unwrap();
    wait_until("the servers are gone", || processes.iter().all(|process| !process.exists()));
    let is_gone = |file: &PathBuf| !file.parent().is_some_and(Path::exists);
    wait_until("the folders are gone", || files.iter().all(is_gone));
}
