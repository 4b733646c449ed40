//! A user gets no driver that was not asked for, no TLS and no runtime choice.

use anyhow::{Result, ensure};

use crate::process;

/// What must not be in the tree of one choice of crate and feature, and what must.
struct Rule {
    package: &'static str,
    features: &'static str,
    has: &'static [&'static str],
    lacks: &'static [&'static str],
}

/// Client libraries written in C, and what builds them.
const C_CLIENTS: [&str; 4] = ["pq-sys", "mysqlclient-sys", "openssl-sys", "cmake"];

const RULES: [Rule; 15] = [
    Rule { package: "outbox-core", features: "", has: &["tokio"], lacks: &["sqlx", "sqlx-core"] },
    Rule { package: "outbox-sql", features: "", has: &["outbox-core"], lacks: &["sqlx", "sqlx-core"] },
    Rule {
        package: "outbox-sqlx",
        features: "postgres",
        has: &["sqlx-postgres"],
        lacks: &["sqlx-sqlite", "libsqlite3-sys", "sqlx-mysql", "rustls", "native-tls", "async-std", "smol"],
    },
    Rule {
        package: "outbox-sqlx",
        features: "mysql",
        has: &["sqlx-mysql"],
        lacks: &[
            "sqlx-postgres",
            "sqlx-sqlite",
            "libsqlite3-sys",
            "rustls",
            "native-tls",
            "async-std",
            "smol",
        ],
    },
    Rule {
        package: "outbox-sqlx",
        features: "sqlite",
        has: &["sqlx-sqlite", "libsqlite3-sys"],
        lacks: &["sqlx-postgres", "sqlx-mysql", "rustls", "native-tls", "async-std", "smol"],
    },
    // The application's connection decides on the driver: nothing of ours does.
    Rule {
        package: "outbox-diesel",
        features: "postgres",
        has: &["diesel"],
        lacks: &[
            "diesel-async",
            "tokio-postgres",
            "mysql_async",
            "libsqlite3-sys",
            "sqlx",
            "bb8",
            "deadpool",
        ],
    },
    Rule {
        package: "outbox-diesel",
        features: "postgres,deadpool",
        has: &["diesel-async", "tokio-postgres", "deadpool"],
        lacks: &["bb8", "mysql_async", "libsqlite3-sys", "sqlx", "rustls", "native-tls"],
    },
    Rule {
        package: "outbox-diesel",
        features: "postgres,bb8",
        has: &["diesel-async", "tokio-postgres", "bb8"],
        lacks: &["deadpool", "mysql_async", "libsqlite3-sys", "sqlx", "rustls", "native-tls"],
    },
    Rule {
        package: "outbox-diesel",
        features: "mysql",
        has: &["diesel"],
        lacks: &[
            "diesel-async",
            "tokio-postgres",
            "mysql_async",
            "libsqlite3-sys",
            "sqlx",
            "bb8",
            "deadpool",
        ],
    },
    Rule {
        package: "outbox-diesel",
        features: "mysql,deadpool",
        has: &["diesel-async", "mysql_async", "deadpool"],
        lacks: &["bb8", "tokio-postgres", "libsqlite3-sys", "sqlx", "rustls", "native-tls"],
    },
    Rule {
        package: "outbox-diesel",
        features: "mysql,bb8",
        has: &["diesel-async", "mysql_async", "bb8"],
        lacks: &["deadpool", "tokio-postgres", "libsqlite3-sys", "sqlx", "rustls", "native-tls"],
    },
    Rule {
        package: "outbox-diesel",
        features: "sqlite-bundled",
        has: &["diesel", "libsqlite3-sys"],
        lacks: &["diesel-async", "tokio-postgres", "mysql_async", "sqlx", "bb8", "deadpool"],
    },
    Rule {
        package: "outbox-diesel",
        features: "sqlite,bb8",
        has: &["diesel-async", "libsqlite3-sys", "bb8"],
        lacks: &["deadpool", "tokio-postgres", "mysql_async", "sqlx"],
    },
    Rule {
        package: "outbox-otel",
        features: "metrics,trace",
        has: &["opentelemetry"],
        lacks: &["opentelemetry_sdk", "prometheus", "tonic"],
    },
    Rule { package: "outbox-otel", features: "tracing", has: &["tracing"], lacks: &["opentelemetry"] },
];

/// Features of sqlx that are the user's to choose.
const NOT_OURS: [&str; 3] = ["sqlx feature \"runtime-", "sqlx feature \"tls-", "sqlx feature \"default\""];

pub(super) fn run() -> Result<()> {
    for rule in &RULES {
        let arguments = ["tree", "--no-default-features", "--edges=normal,features", "--prefix=none"];
        let mut command = process::cargo(&arguments);
        command.args(["-p", rule.package, "--features", rule.features]);
        check(rule, &process::output(&mut command)?)?;
    }
    Ok(())
}

fn check(rule: &Rule, tree: &str) -> Result<()> {
    let Rule { package, features, has, lacks } = rule;
    let is_there = |name: &str| tree.lines().any(|line| line.split(' ').next() == Some(name));
    for name in *has {
        ensure!(is_there(name), "{package} with {features:?} does not have {name}: is the rule still right?");
    }
    for name in lacks.iter().chain(&C_CLIENTS) {
        ensure!(!is_there(name), "{package} with {features:?} pulls in {name}");
    }
    for feature in NOT_OURS {
        ensure!(!tree.contains(feature), "{package} with {features:?} switches on {feature}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: Rule = Rule { package: "p", features: "f", has: &["good"], lacks: &["bad"] };

    /// A dependency that must be absent, one that must be there, and a forced choice are each found.
    #[test]
    fn finds_what_does_not_belong() {
        let error = |tree| check(&RULE, tree).unwrap_err().to_string();
        assert!(check(&RULE, "p v1\ngood v1\nbadly v1").is_ok());
        assert!(error("good v1\nbad v1").contains("pulls in bad"));
        assert!(error("good v1\npq-sys v1").contains("pulls in pq-sys"));
        assert!(error("p v1").contains("does not have good"));
        assert!(error("good v1\nsqlx feature \"runtime-tokio\"").contains("switches on"));
    }
}
