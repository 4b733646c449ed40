//! Telling a network file system, where locks of files are not to be relied on.

use std::path::{Path, PathBuf};

/// File systems on which another machine may hold the same file, or on which locks are emulated.
const NETWORK: &[&str] = &[
    "afs",
    "beegfs",
    "ceph",
    "cifs",
    "fuse.ceph",
    "fuse.davfs",
    "fuse.glusterfs",
    "fuse.rclone",
    "fuse.s3fs",
    "fuse.sshfs",
    "glusterfs",
    "lustre",
    "ncpfs",
    "nfs",
    "nfs4",
    "smb3",
    "smbfs",
];

/// The network file system that holds a file, if the operating system tells so.
///
/// Known on Linux, from the process's own mount table; elsewhere, and where that table cannot be read, `None`.
pub fn network_file_system(path: &Path) -> Option<String> {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").ok()?;
    let path = path.canonicalize().ok()?;
    file_system(&mounts, &path).filter(|name| NETWORK.contains(name)).map(str::to_owned)
}

/// The type of the file system that a path is on: that of the last mount at its longest mount point.
fn file_system<'a>(mounts: &'a str, path: &Path) -> Option<&'a str> {
    let mut best: Option<(usize, &str)> = None;
    for line in mounts.lines() {
        let Some((mount, options)) = line.split_once(" - ") else { continue };
        let (Some(point), Some(kind)) = (mount.split(' ').nth(4), options.split(' ').next()) else {
            continue;
        };
        let point = unescape(point);
        let depth = point.components().count();
        if path.starts_with(&point) && best.is_none_or(|(deepest, _)| depth >= deepest) {
            best = Some((depth, kind));
        }
    }
    best.map(|(_, kind)| kind)
}

/// Undoes the mount table's escapes: a space is `\040`.
fn unescape(point: &str) -> PathBuf {
    let mut parts = point.split('\\');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        if let Some(byte) = part.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            bytes.push(byte);
            bytes.extend_from_slice(part.get(3..).unwrap_or_default().as_bytes());
        } else {
            bytes.push(b'\\');
            bytes.extend_from_slice(part.as_bytes());
        }
    }
    PathBuf::from(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
22 1 0:21 / / rw,relatime shared:1 - ext4 /dev/vda1 rw
30 22 0:40 / /srv rw,relatime shared:9 - nfs4 files:/srv rw,vers=4.2
31 30 0:41 / /srv/local\\040disk rw - xfs /dev/vdb rw
32 22 0:42 / /mnt rw - ext4 /dev/vdc rw
33 22 0:43 / /mnt rw - fuse.sshfs me@there:/ rw
";

    #[test]
    fn the_deepest_and_latest_mount_says_which_file_system_it_is() {
        let on = |path| file_system(MOUNTS, Path::new(path));
        assert_eq!(on("/var/lib/app.db"), Some("ext4"));
        assert_eq!(on("/srv/app.db"), Some("nfs4"));
        assert_eq!(on("/srv/local disk/app.db"), Some("xfs"));
        assert_eq!(on("/srvother/app.db"), Some("ext4"));
        assert_eq!(on("/mnt/app.db"), Some("fuse.sshfs"));
        assert_eq!(file_system("garbage\n", Path::new("/x")), None);
    }

    #[test]
    fn a_local_directory_is_no_network_file_system() {
        assert_eq!(network_file_system(&std::env::temp_dir()), None);
    }
}
