//! Which database: the choice, and its way to a replica.

use std::path::PathBuf;
use std::str::FromStr;

use anyhow::{Context, Result, bail};

/// The environment variable that tells a replica its database.
pub(super) const PLACE: &str = "OUTBOX_DEMO_PLACE";

/// Where the tables are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// In a file.
    Sqlite(PathBuf),
    /// In a schema of our own.
    Postgres {
        /// The schema, which the demo makes.
        schema: String,
        /// The server's address.
        url: String,
    },
    /// In a database of our own.
    MySql {
        /// The database, which the demo makes.
        database: String,
        /// The server's address.
        url: String,
    },
}

impl Place {
    /// A server, with a schema of our own on it.
    pub(super) fn on_server(url: String) -> Result<Self> {
        let ours = format!("outbox_demo_{}", std::process::id());
        match url.split_once("://").map(|(scheme, _)| scheme) {
            Some("postgres" | "postgresql") => Ok(Self::Postgres { schema: ours, url }),
            Some("mysql" | "mariadb") => Ok(Self::MySql { database: ours, url }),
            _ => bail!("a server's address begins with postgres:// or mysql:// (SQLite is the default)"),
        }
    }

    /// As a replica is told it.
    pub(super) fn to_text(&self) -> String {
        match self {
            Self::Sqlite(path) => format!("sqlite - {}", path.display()),
            Self::Postgres { schema, url } => format!("postgres {schema} {url}"),
            Self::MySql { database, url } => format!("mysql {database} {url}"),
        }
    }
}

impl FromStr for Place {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let mut words = text.splitn(3, ' ');
        let mut word = || words.next().with_context(|| format!("{PLACE} is broken"));
        let (kind, name, place) = (word()?, word()?.to_owned(), word()?.to_owned());
        Ok(match kind {
            "sqlite" => Self::Sqlite(place.into()),
            "postgres" => Self::Postgres { schema: name, url: place },
            "mysql" => Self::MySql { database: name, url: place },
            other => bail!("{PLACE}: no database {other}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A replica understands what it is told, whatever is in a path or an address.
    #[test]
    fn place_survives_the_way_to_a_replica() {
        let places = [
            Place::Sqlite("/a folder/shop.db".into()),
            Place::on_server("postgres://me:a b@host/db".to_owned()).unwrap(),
            Place::on_server("mysql://me:a b@host/db".to_owned()).unwrap(),
        ];
        for place in places {
            assert_eq!(place.to_text().parse::<Place>().unwrap(), place);
        }
        for broken in ["", "sqlite", "sqlite x", "oracle x y"] {
            assert!(broken.parse::<Place>().is_err(), "{broken}");
        }
    }

    /// An address of something else is refused.
    #[test]
    fn an_address_of_another_database_is_refused() {
        for url in ["oracle://x", "postgres", "", "://"] {
            assert!(Place::on_server(url.to_owned()).is_err(), "{url}");
        }
    }
}
