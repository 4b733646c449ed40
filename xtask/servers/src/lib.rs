//! Private servers for tests, the demo and the bench: each in a temporary folder of its own, on a free port, and
//! gone when its value is dropped.
//!
//! - [`Postgres`]: a PostgreSQL server, its restart, crash, pause, and a hot standby of it; the system's version, or the
//!   newest.
//! - [`PgBouncer`]: a pooler in front of it.
//! - [`MariaDb`]: a MariaDB server, its restart, crash and pause.
//! - [`MySql`]: a MySQL server, to ask.
//! - [`Proxy`]: a TCP hop that can freeze (a half-open connection) or be cut.
//!
//! Nothing is left behind, whatever happens to the process that started a server: each server is the child of
//! a small watchdog (see [`watchdog`]) that ends it, and removes its folder, once that process is gone. A
//! panic, Ctrl-C and SIGKILL are all the same to it.
//!
//! Everything here is blocking and quick (a server starts in about half a second); an asynchronous test calls
//! it directly.

mod account;
mod cluster;
mod control;
mod folder;
pub mod install;
mod local;
mod mariadb;
mod mysql;
mod newest;
mod pgbouncer;
mod port;
mod postgres;
mod proxy;
mod standby;
mod unpacked;
pub mod watchdog;

pub use self::folder::Folder;
pub use self::mariadb::MariaDb;
pub use self::mysql::MySql;
pub use self::pgbouncer::{PgBouncer, PoolMode};
pub use self::postgres::Postgres;
pub use self::proxy::{Cut, Proxy};

/// The superuser of every private PostgreSQL server. It has no password.
pub const SUPERUSER: &str = "postgres";
