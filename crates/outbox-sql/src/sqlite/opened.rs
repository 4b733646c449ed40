//! How connections open a database, which tells a database in memory from another.

use std::path::PathBuf;

use super::place::MemoryDatabase;

/// The name that SQLite is given, and what it says about a database in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenedAs {
    name: String,
    shared: bool,
    /// Whether connections share their cache, in memory or on a file.
    cache: bool,
    memdb: bool,
}

impl OpenedAs {
    /// A file's name or a URI (`file:…`), with what the driver's options add to it in the form of a query
    /// (`cache=shared&vfs=memdb`). The parameters of a URI overrule them.
    pub fn new(filename: &str, options: &str) -> Self {
        let uri = filename.strip_prefix("file:").map(Uri::of);
        let (name, inner) = match &uri {
            Some(uri) => (uri.name.clone(), uri.query),
            None => (filename.to_owned(), ""),
        };
        let value = |key: &str| parameter(inner, key).or_else(|| parameter(options, key)).unwrap_or_default();
        // SQLite shares a database in memory if its name is a URI, which drivers make of it for these options.
        let is_uri = uri.is_some() || ["vfs", "immutable"].iter().any(|key| !value(key).is_empty());
        let cache = value("cache") == "shared";
        Self { shared: is_uri && cache, cache, memdb: value("vfs") == "memdb", name }
    }

    /// A name that a pool keeps to itself: its connections may share their cache.
    pub fn unknown() -> Self {
        Self { name: String::new(), shared: false, cache: true, memdb: false }
    }

    /// Whether connections may share their cache, and so may read what others have not committed.
    pub fn may_share_cache(&self) -> bool {
        self.cache
    }

    /// Whether the database is one of the `memdb` file system, which SQLite names as if it were a file.
    pub fn is_memdb(&self) -> bool {
        self.memdb
    }

    /// The name as that of a file, if there is one.
    pub fn file(&self) -> Option<PathBuf> {
        (!self.name.is_empty()).then(|| PathBuf::from(&self.name))
    }

    /// The database that connections share by its name. One without a name is temporary and private, and so
    /// is one of `memdb` whose name does not begin with a slash.
    pub fn shared_memory(&self) -> Option<MemoryDatabase> {
        let (vfs, shared) =
            if self.memdb { ("memdb", self.name.starts_with('/')) } else { ("", self.shared) };
        (shared && !self.name.is_empty()).then(|| MemoryDatabase::Shared { vfs, name: self.name.clone() })
    }
}

/// What follows `file:`.
struct Uri<'a> {
    name: String,
    query: &'a str,
}

impl<'a> Uri<'a> {
    fn of(rest: &'a str) -> Self {
        let rest = rest.split_once('#').map_or(rest, |(before, _)| before);
        let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
        // `file:///name`, `file://localhost/name`: the authority is none of the name.
        let path = path
            .strip_prefix("//")
            .map_or(path, |after| after.find('/').and_then(|slash| after.get(slash..)).unwrap_or_default());
        Self { name: decode(path), query }
    }
}

/// Undoes the escapes of a URI, as SQLite does: `%41` is `A`.
fn decode(path: &str) -> String {
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path;
    while let Some((before, after)) = rest.split_once('%') {
        bytes.extend_from_slice(before.as_bytes());
        let digits = after.get(..2).filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
        if let Some(digits) = digits {
            bytes.extend(u8::from_str_radix(digits, 16));
            rest = after.get(2..).unwrap_or_default();
        } else {
            bytes.push(b'%');
            rest = after;
        }
    }
    bytes.extend_from_slice(rest.as_bytes());
    String::from_utf8_lossy(&bytes).into_owned()
}

fn parameter<'a>(query: &'a str, key: &str) -> Option<&'a str> {
    query
        .split('&')
        .find_map(|pair| pair.split_once('=').filter(|(name, _)| *name == key))
        .map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shared(vfs: &'static str, name: &str) -> MemoryDatabase {
        MemoryDatabase::Shared { vfs, name: name.to_owned() }
    }

    #[test]
    fn every_way_to_write_a_name_is_the_same_database() {
        for (filename, options) in [
            ("file:a b?mode=memory&cache=shared", ""),
            ("file:a%20b?cache=shared&mode=memory#x", ""),
            ("file:a b", "mode=memory&cache=shared"),
        ] {
            let database = OpenedAs::new(filename, options).shared_memory();
            assert_eq!(database, Some(shared("", "a b")), "{filename}");
        }
        for (filename, options) in [
            ("file:/one?vfs=memdb", ""),
            ("file:///one?vfs=memdb", ""),
            ("file://localhost/one?vfs=memdb", ""),
            ("/one", "vfs=memdb"),
        ] {
            let database = OpenedAs::new(filename, options).shared_memory();
            assert_eq!(database, Some(shared("memdb", "/one")), "{filename}");
        }
    }

    #[test]
    fn a_name_that_is_not_shared_is_none() {
        for (filename, options) in [
            (":memory:", ""),
            ("", ""),
            ("file:?mode=memory&cache=shared", ""),
            ("file:name?mode=memory", ""),
            ("name", "mode=memory&cache=shared"),
            ("file:one?vfs=memdb", ""),
        ] {
            assert_eq!(OpenedAs::new(filename, options).shared_memory(), None, "{filename}");
        }
    }

    #[test]
    fn a_percent_sign_that_escapes_nothing_stays() {
        assert_eq!(decode("100%"), "100%");
        assert_eq!(decode("%zz%41é%4"), "%zzAé%4");
    }
}
