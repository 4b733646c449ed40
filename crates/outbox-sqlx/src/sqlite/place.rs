//! Where a database lives, which decides what can hold its tenants.

use std::path::PathBuf;

use outbox_sql::file_lock::network_file_system;
use sqlx::sqlite::{SqliteConnectOptions, SqlitePool};
use sqlx::{ConnectOptions, SqliteConnection};

/// Where a database lives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    /// In a file, by the absolute path that SQLite itself tells, so that every process agrees.
    File(PathBuf),
    /// In the memory of this process.
    Memory(MemoryDatabase),
}

/// What tells one database in memory from another.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum MemoryDatabase {
    /// Shared by name between the connections of this process: by a shared cache, or by the `memdb` file system.
    Shared { vfs: &'static str, name: String },
    /// That of one connection, and so of the pool that has this connection only; its schema by name.
    Private { pool: usize, schema: String },
}

/// Why a database cannot be claimed from.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoPlace {
    #[error("no database is attached as {schema:?}: attach it on every connection of the pool")]
    NotAttached { schema: String },
    #[error(
        "every connection of this pool has an in-memory database of its own: use a pool of exactly one \
         connection (max_connections(1)), a shared one (`sqlite::memory:`), or a file"
    )]
    PrivateMemory,
    #[error("the database {} is on a network file system ({file_system}), where locks cannot be relied on: move it to a local disk", path.display())]
    Network { path: PathBuf, file_system: String },
    #[error("the database's file {} does not exist on this machine's file system: use the default VFS or `memdb`", path.display())]
    NoFile { path: PathBuf },
    #[error("SQLite does not say where the database is")]
    Silent(#[from] sqlx::Error),
}

impl Place {
    /// Asks SQLite where a schema of the connection lives.
    pub(super) async fn of(
        pool: &SqlitePool,
        connection: &mut SqliteConnection,
        schema: &str,
    ) -> Result<Self, NoPlace> {
        let found: Option<Option<String>> =
            sqlx::query_scalar("SELECT file FROM pragma_database_list WHERE name = ?1 COLLATE NOCASE")
                .bind(schema.to_owned())
                .fetch_optional(connection)
                .await?;
        let Some(file) = found else { return Err(NoPlace::NotAttached { schema: schema.to_owned() }) };
        let options = Options::of(&pool.connect_options());
        let main = schema.eq_ignore_ascii_case("main");
        match file.filter(|file| !file.is_empty()) {
            Some(path) if !(main && options.memdb) => Self::file(PathBuf::from(path)),
            _ if main => match options.shared_memory() {
                Some(database) => Ok(Self::Memory(database)),
                None => Self::private(pool, schema),
            },
            _ => Self::private(pool, schema),
        }
    }

    fn file(path: PathBuf) -> Result<Self, NoPlace> {
        if !path.is_file() {
            return Err(NoPlace::NoFile { path });
        }
        match network_file_system(&path) {
            Some(file_system) => Err(NoPlace::Network { path, file_system }),
            None => Ok(Self::File(path)),
        }
    }

    fn private(pool: &SqlitePool, schema: &str) -> Result<Self, NoPlace> {
        if pool.options().get_max_connections() != 1 {
            return Err(NoPlace::PrivateMemory);
        }
        // All clones of a pool have their options in one place, where they stay while one of them lives.
        let pool = std::ptr::from_ref(pool.options()).addr();
        Ok(Self::Memory(MemoryDatabase::Private { pool, schema: schema.to_ascii_lowercase() }))
    }
}

/// What a pool's options say about a database in memory. They tell it in their URL only.
struct Options {
    name: String,
    shared: bool,
    memdb: bool,
}

impl Options {
    fn of(options: &SqliteConnectOptions) -> Self {
        let filename = options.get_filename().to_string_lossy().into_owned();
        // A name may be a URI itself, whose parameters overrule those of the options.
        let (name, inner) = match filename.strip_prefix("file:") {
            Some(uri) => uri.split_once('?').unwrap_or((uri, "")),
            None => (filename.as_str(), ""),
        };
        // Without the name, which sqlx 0.9 panics on if it has a colon, as those that it makes up itself.
        let url = options.clone().filename("database").to_url_lossy();
        let outer = url.query().unwrap_or_default();
        let value = |key: &str| parameter(inner, key).or_else(|| parameter(outer, key)).unwrap_or_default();
        // SQLite shares a database in memory if its name is a URI, which sqlx makes of it for these options.
        let is_uri =
            filename.starts_with("file:") || ["vfs", "immutable"].iter().any(|key| !value(key).is_empty());
        Self {
            shared: is_uri && value("cache") == "shared",
            memdb: value("vfs") == "memdb",
            name: name.to_owned(),
        }
    }

    /// The database that connections share by its name. One without a name is temporary and private, and so
    /// is one of `memdb` whose name does not begin with a slash.
    fn shared_memory(&self) -> Option<MemoryDatabase> {
        let (vfs, shared) =
            if self.memdb { ("memdb", self.name.starts_with('/')) } else { ("", self.shared) };
        (shared && !self.name.is_empty()).then(|| MemoryDatabase::Shared { vfs, name: self.name.clone() })
    }
}

fn parameter<'a>(query: &'a str, key: &str) -> Option<&'a str> {
    query
        .split('&')
        .find_map(|pair| pair.split_once('=').filter(|(name, _)| *name == key))
        .map(|(_, value)| value)
}
