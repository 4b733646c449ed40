//! Which database and which ORM: the choice, and its way to a replica.

use std::path::PathBuf;
use std::str::FromStr;

use anyhow::{Context, Result, bail};

/// The environment variable that tells a replica its database.
pub(in crate::demo) const TARGET: &str = "OUTBOX_DEMO_TARGET";

/// Which of our crates the stores and the transactions are of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(in crate::demo) enum Orm {
    /// outbox-sqlx.
    Sqlx,
    /// outbox-diesel.
    Diesel,
}

/// Where the tables are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::demo) enum Place {
    Sqlite(PathBuf),
    Postgres {
        schema: String,
        url: String,
    },
    #[cfg(feature = "demo-mysql")]
    MySql {
        database: String,
        url: String,
    },
}

impl Place {
    /// A server, with a schema of our own on it.
    pub(in crate::demo) fn on_server(url: String) -> Result<Self> {
        let ours = format!("outbox_demo_{}", std::process::id());
        match url.split_once("://").map(|(scheme, _)| scheme) {
            Some("postgres" | "postgresql") => Ok(Self::Postgres { schema: ours, url }),
            #[cfg(feature = "demo-mysql")]
            Some("mysql" | "mariadb") => Ok(Self::MySql { database: ours, url }),
            _ => bail!("--database-url begins with postgres:// or mysql:// (SQLite is the default)"),
        }
    }
}

/// Which database to run on, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::demo) struct Target {
    pub(in crate::demo) orm: Orm,
    pub(in crate::demo) place: Place,
}

impl Target {
    /// As a replica is told it.
    pub(in crate::demo) fn to_text(&self) -> String {
        let orm = match self.orm {
            Orm::Sqlx => "sqlx",
            Orm::Diesel => "diesel",
        };
        match &self.place {
            Place::Sqlite(path) => format!("{orm} sqlite - {}", path.display()),
            Place::Postgres { schema, url } => format!("{orm} postgres {schema} {url}"),
            #[cfg(feature = "demo-mysql")]
            Place::MySql { database, url } => format!("{orm} mysql {database} {url}"),
        }
    }
}

impl FromStr for Target {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let mut words = text.splitn(4, ' ');
        let mut word = || words.next().with_context(|| format!("{TARGET} is broken"));
        let orm = match word()? {
            "sqlx" => Orm::Sqlx,
            "diesel" => Orm::Diesel,
            other => bail!("{TARGET}: no ORM {other}"),
        };
        let (kind, name, place) = (word()?, word()?.to_owned(), word()?.to_owned());
        let place = match kind {
            "sqlite" => Place::Sqlite(place.into()),
            "postgres" => Place::Postgres { schema: name, url: place },
            #[cfg(feature = "demo-mysql")]
            "mysql" => Place::MySql { database: name, url: place },
            other => bail!("{TARGET}: no database {other}"),
        };
        Ok(Self { orm, place })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A replica understands what it is told, whatever is in a path or an address.
    #[test]
    fn target_survives_the_way_to_a_replica() {
        let mut places = vec![
            Place::Sqlite("/a folder/shop.db".into()),
            Place::on_server("postgres://me:a b@host/db".to_owned()).unwrap(),
        ];
        if cfg!(feature = "demo-mysql") {
            places.push(Place::on_server("mysql://me:a b@host/db".to_owned()).unwrap());
        }
        for place in places {
            for orm in [Orm::Sqlx, Orm::Diesel] {
                let target = Target { orm, place: place.clone() };
                assert_eq!(target.to_text().parse::<Target>().unwrap(), target);
            }
        }
        for broken in ["", "sqlx", "sqlx sqlite x", "sqlx oracle x y", "pen postgres x y"] {
            assert!(broken.parse::<Target>().is_err(), "{broken}");
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
