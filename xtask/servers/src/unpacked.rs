//! Programs of Debian packages that this system does not have: unpacked beside it, with the libraries that they
//! need, without installing anything.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::account;
use super::install::apt_get;

/// Where packages are unpacked; they stay there for later runs.
pub(super) const CACHE: &str = "/var/cache/outbox-xtask";

/// An unpacked package and all that it depends on.
#[derive(Debug, Clone)]
pub(super) struct Unpacked {
    root: PathBuf,
}

impl Unpacked {
    /// The package, if it has been unpacked.
    pub(super) fn find(package: &str) -> Option<Self> {
        let root = Path::new(CACHE).join(package).join("root");
        // Renamed to this when all of it was there.
        root.is_dir().then_some(Self { root })
    }

    /// Downloads a package of Debian's unstable suite, and what it depends on, with `apt-get` and a state of its
    /// own, and unpacks them.
    pub(super) fn fetch(package: &str) -> Result<Self> {
        let folder = Path::new(CACHE).join(package);
        let _ = fs::remove_dir_all(&folder);
        for place in ["lists/partial", "archives/partial", "unfinished"] {
            fs::create_dir_all(folder.join(place))
                .with_context(|| format!("cannot make a folder in {CACHE}"))?;
        }
        fs::write(folder.join("status"), "")?;
        let keys = "/usr/share/keyrings/debian-archive-keyring.gpg";
        let sources = format!("deb [signed-by={keys}] {} unstable main\n", mirror()?);
        fs::write(folder.join("sources.list"), sources)?;
        let place = folder.display();
        let configuration = folder.join("apt.conf");
        fs::write(
            &configuration,
            format!(
                "Dir::Etc::sourcelist \"{place}/sources.list\";\n\
                 Dir::Etc::sourceparts \"-\";\n\
                 Dir::State::lists \"{place}/lists\";\n\
                 Dir::State::status \"{place}/status\";\n\
                 Dir::Cache \"{place}\";\n\
                 APT::Install-Recommends \"false\";\n\
                 APT::Sandbox::User \"root\";\n\
                 Acquire::Check-Valid-Until \"false\";\n"
            ),
        )?;
        for arguments in [&["update"][..], &["install", "--download-only", package]] {
            let mut apt = Command::new("apt-get");
            apt.args(["--yes", "--quiet"]).args(arguments).env("APT_CONFIG", &configuration);
            run(&mut apt)?;
        }
        for entry in fs::read_dir(folder.join("archives"))? {
            let file = entry?.path();
            // A server needs no Perl; the scripts beside it do.
            let name = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            let is_package = file.extension() == Some("deb".as_ref());
            if is_package && !name.starts_with("perl") && !name.starts_with("libperl") {
                run(Command::new("dpkg-deb").arg("-x").arg(&file).arg(folder.join("unfinished")))?;
            }
        }
        for place in ["archives", "lists"] {
            let _ = fs::remove_dir_all(folder.join(place));
        }
        fs::rename(folder.join("unfinished"), folder.join("root"))?;
        Self::find(package).context("what was unpacked is gone")
    }

    /// A file in it.
    pub(super) fn path(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    /// How to start a program of it, with its own libraries.
    pub(super) fn command_line(&self, program: &str) -> Result<Vec<String>> {
        let libraries = fs::read_dir(self.path("usr/lib"))?
            .filter_map(|entry| Some(entry.ok()?.path()))
            .find(|path| path.to_string_lossy().ends_with("-linux-gnu"))
            .context("no folder of libraries")?;
        let loader = fs::read_dir(&libraries)?
            .filter_map(|entry| Some(entry.ok()?.path()))
            .find(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("ld-linux")))
            .context("no loader of programs")?;
        let paths = [loader, "--library-path".into(), libraries, self.path(program)];
        Ok(paths.iter().map(|path| path.display().to_string()).collect())
    }

    /// A command that runs a program of it as the servers' account.
    pub(super) fn command(&self, program: &str) -> Result<Command> {
        let line = self.command_line(program)?;
        let (loader, arguments) = line.split_first().context("no command")?;
        let mut command = account::command(loader)?;
        command.args(arguments);
        Ok(command)
    }
}

/// Where this system gets Debian's packages from.
fn mirror() -> Result<String> {
    let ask = || {
        let mut apt = Command::new("apt-get");
        apt.args(["indextargets", "--format", "$(REPO_URI)"]);
        apt.args(["Created-By: Packages", "Origin: Debian", "Label: Debian"]);
        let output = apt.output().context("cannot run apt-get")?;
        anyhow::Ok(String::from_utf8_lossy(&output.stdout).lines().next().map(str::to_owned))
    };
    if let Some(mirror) = ask()? {
        return Ok(mirror);
    }
    // It does not tell before it knows what is there.
    apt_get(&["update"])?;
    ask()?.context("apt's own sources have no mirror of Debian")
}

/// Runs a command, and shows what it says if it fails.
pub(super) fn run(command: &mut Command) -> Result<()> {
    let program = command.get_program().display().to_string();
    let output = command.output().with_context(|| format!("cannot run {program}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{program} ended with {}: {}", output.status, said.trim());
    Ok(())
}
