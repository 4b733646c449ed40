//! What the README and `docs/` say is so: the options' defaults, the links, and the tests that they name.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use outbox_core::{Accepted, Delivery, PublishError, Publisher, Relay, RelayConfig, async_trait};
use outbox_memory::MemoryStore;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Files of a folder with this extension, at any depth.
fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path, extension));
        } else if path.extension().is_some_and(|found| found == extension) {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn pages() -> Vec<PathBuf> {
    let mut pages = files(&root().join("docs"), "md");
    pages.push(root().join("README.md"));
    pages
}

struct Nobody;

#[async_trait]
impl Publisher for Nobody {
    async fn publish(&self, _delivery: &Delivery<'_>) -> Result<Accepted, PublishError> {
        Ok(Accepted)
    }
}

/// The README's table has each option of `RelayConfig`, in its order, with its default.
#[test]
fn the_options_table_is_the_configuration() {
    let config = RelayConfig::builder().tenants(["acme"]).build().unwrap();
    let relay = Relay::builder(MemoryStore::new(), Nobody, config.clone()).build().unwrap();
    let time = |time: Duration| match time.as_millis() {
        millis if millis % 1_000 == 0 => format!("{} s", millis / 1_000),
        millis => format!("{millis} ms"),
    };
    let number = |number: u32| match number {
        1_000.. => format!("{},{:03}", number / 1_000, number % 1_000),
        _ => number.to_string(),
    };
    let expected = [
        ("tenants", "none: required".to_owned()),
        ("poll_interval", time(config.poll_interval)),
        ("max_lag", time(config.max_lag)),
        ("concurrency", relay.concurrency().to_string()),
        ("initial_batch", number(config.initial_batch.get())),
        ("max_batch", number(config.max_batch.get())),
        ("max_batch_bytes", format!("{} MiB", config.max_batch_bytes / 1_048_576)),
        ("max_batch_time", time(config.max_batch_time)),
        ("publish_timeout", time(config.publish_timeout)),
        ("store_timeout", time(config.store_timeout)),
        ("stop_timeout", time(config.stop_timeout)),
        ("max_back_off", time(config.max_back_off)),
        ("health_timeout", time(config.health_timeout)),
    ];
    let readme = read(&root().join("README.md"));
    let (_, options) = readme.split_once("\n## Options\n").unwrap();
    let (options, _) = options.split_once("\n## ").unwrap();
    let rows: Vec<(String, String)> = options
        .lines()
        .filter_map(|line| line.strip_prefix("| `"))
        .map(|row| {
            let mut cells = row.split('|').map(str::trim);
            (cells.next().unwrap().trim_end_matches('`').to_owned(), cells.next().unwrap().to_owned())
        })
        .collect();
    assert_eq!(rows, expected.map(|(name, default)| (name.to_owned(), default)));

    // The list above does not know of a new field: the configuration itself does.
    let printed = format!("{config:#?}");
    let fields = printed.lines().filter_map(|line| line.strip_prefix("    ")?.split_once(": "));
    let fields: Vec<&str> = fields.map(|(name, _)| name).filter(|name| !name.starts_with(' ')).collect();
    assert_eq!(fields, rows.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>());

    for variable in [outbox_core::TENANTS_VARIABLE, outbox_core::POLL_VARIABLE, outbox_core::MAX_LAG_VARIABLE]
    {
        assert!(options.contains(&format!("`{variable}`")), "{variable} is not in the table");
    }
}

/// A heading as GitHub makes an anchor of it.
fn anchor(heading: &str) -> String {
    let kept = heading.to_lowercase().replace(' ', "-");
    kept.chars().filter(|letter| letter.is_alphanumeric() || matches!(letter, '-' | '_')).collect()
}

/// The text of a page without its code blocks.
fn prose(page: &str) -> String {
    page.split("```").step_by(2).collect()
}

/// Every link within the repository leads to a file, and to a heading where it names one.
#[test]
fn links_lead_somewhere() {
    let mut broken = Vec::new();
    let mut seen = 0;
    for page in pages() {
        let text = prose(&read(&page));
        for link in text.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(link, _)| link) {
            if link.contains("://") {
                continue;
            }
            seen += 1;
            let (file, heading) = link.split_once('#').map_or((link, None), |(file, to)| (file, Some(to)));
            let target = if file.is_empty() { page.clone() } else { page.with_file_name("").join(file) };
            let found = target.exists()
                && heading.is_none_or(|heading| {
                    prose(&read(&target))
                        .lines()
                        .filter(|line| line.starts_with('#'))
                        .any(|line| anchor(line.trim_start_matches('#').trim()) == heading)
                });
            if !found {
                broken.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
    assert!(seen > 40, "only {seen} links were seen");
}

/// The README's table has each crate that is published, with the oldest Rust that its manifest asks for.
#[test]
fn the_crates_table_is_that_of_the_manifests() {
    let readme = read(&root().join("README.md"));
    let mut crates = 0;
    for entry in fs::read_dir(root().join("crates")).unwrap() {
        let path = entry.unwrap().path();
        let manifest = read(&path.join("Cargo.toml"));
        if manifest.contains("\npublish = false\n") {
            continue;
        }
        let (_, version) = manifest.split_once("\nrust-version = \"").unwrap();
        let (version, _) = version.split_once('"').unwrap();
        let start = format!("| `{}` |", path.file_name().unwrap().to_string_lossy());
        let row = readme.lines().find(|line| line.starts_with(&start));
        let row = row.unwrap_or_else(|| panic!("README.md has no row that begins with {start}"));
        assert!(row.ends_with(&format!("| {version} |")), "{row} is not for Rust {version}");
        crates += 1;
    }
    assert_eq!(readme.lines().filter(|line| line.starts_with("| `outbox-")).count(), crates);
}

/// The table of stores has a row for each database of each ORM, and says what is there: an append, a relay.
#[test]
fn the_stores_table_is_what_is_there() {
    let page = read(&root().join("docs/databases.md"));
    let rows: Vec<Vec<&str>> = page
        .lines()
        .filter(|line| line.starts_with("| `outbox-"))
        .map(|row| row.trim_matches('|').split('|').map(str::trim).collect())
        .collect();
    let mut expected = Vec::new();
    for package in ["outbox-sqlx", "outbox-diesel"] {
        let folder = root().join("crates").join(package);
        let manifest = read(&folder.join("Cargo.toml"));
        for database in ["postgres", "sqlite", "mysql"] {
            let has = |file: &str| folder.join("src").join(database).join(file).exists();
            let (appends, relays) = (has("append.rs"), has("store.rs"));
            let is_feature = manifest.lines().any(|line| line.starts_with(&format!("{database} = [")));
            assert_eq!(is_feature, appends || relays, "{package}'s feature {database}");
            let say = |is_there| if is_there { "yes" } else { "no" };
            expected.push([format!("`{package}`, `{database}`"), say(appends).into(), say(relays).into()]);
        }
    }
    let found: Vec<&[&str]> = rows.iter().map(|row| &row[..3]).collect();
    assert_eq!(found, expected.iter().map(|row| row.each_ref().map(String::as_str)).collect::<Vec<_>>());
}

/// What is packaged with a crate is the README that is tested here.
#[test]
fn the_crates_readme_is_the_repositorys() {
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join(env!("CARGO_PKG_README"));
    assert_eq!(readme.canonicalize().unwrap(), root().join("README.md").canonicalize().unwrap());
}

/// Each decision is in the list, and each page of `docs/` can be reached from the README.
#[test]
fn every_page_is_linked() {
    let decisions = root().join("docs/decisions");
    let list = read(&decisions.join("README.md"));
    for page in files(&decisions, "md") {
        let name = page.file_name().unwrap().to_string_lossy().into_owned();
        assert!(name == "README.md" || list.contains(&format!("]({name})")), "{name} is not in the list");
    }
    let readme = read(&root().join("README.md"));
    for entry in fs::read_dir(root().join("docs")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension != "md") {
            continue;
        }
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        assert!(readme.contains(&format!("](docs/{name}")), "README.md does not link docs/{name}");
    }
}

/// Every test that the page on other relays' faults names exists.
#[test]
fn the_tests_that_the_faults_name_exist() {
    let mut functions = BTreeSet::new();
    for folder in ["crates", "xtask"] {
        for file in files(&root().join(folder), "rs") {
            for rest in read(&file).split("fn ").skip(1) {
                let name = rest.split(|letter: char| !letter.is_alphanumeric() && letter != '_').next();
                functions.insert(name.unwrap_or_default().to_owned());
            }
        }
    }
    let page = read(&root().join("docs/scenarios.md"));
    let rows: Vec<&str> = page.lines().filter(|line| line.starts_with("| S")).collect();
    assert!(rows.len() > 30, "only {} faults are on the page", rows.len());
    for row in rows {
        let answer = row.split('|').nth(3).unwrap();
        for name in answer.split('`').skip(1).step_by(2).filter(|name| name.contains('_')) {
            assert!(functions.contains(name), "{name} is no test, in: {row}");
        }
    }
}
