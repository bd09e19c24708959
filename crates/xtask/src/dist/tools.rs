//! The tools of a build, with pinned versions: Rust from rustup, and from the Python package index zig as C compiler and
//! linker, and hatchling for the wheel. Debian's tools are those of the machine.

use super::command::run;
use anyhow::{Context as _, Result};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Version of Rust that builds packages.
const RUST: &str = "1.95.0";

/// The installed tools.
pub struct Tools {
    /// `PATH` with the pinned tools in front.
    path: OsString,
}

/// Installs into a folder what is not there yet.
///
/// # Errors
/// A tool cannot be installed.
pub fn install(root: &Path) -> Result<Tools> {
    let folder = root.join("target/dist-tools");
    let toolchain = [
        "toolchain",
        "install",
        RUST,
        "--profile",
        "minimal",
        "--no-self-update",
    ];
    run(Command::new("rustup")
        .args(toolchain)
        .args(["--target", "x86_64-unknown-linux-musl"])
        .args(["--target", "aarch64-unknown-linux-musl"]))?;
    run(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
    let pip = folder.join("bin/pip");
    let requirements = root.join("packaging/requirements.txt");
    run(Command::new(pip)
        .args(["install", "--quiet", "--requirement"])
        .arg(requirements))?;
    Ok(Tools {
        path: in_front(folder.join("bin"))?,
    })
}

fn in_front(folder: PathBuf) -> Result<OsString> {
    let others = std::env::var_os("PATH").context("PATH is not set")?;
    let all = std::iter::once(folder).chain(std::env::split_paths(&others));
    Ok(std::env::join_paths(all)?)
}

impl Tools {
    /// A command that finds the pinned tools. No setting of the caller's cargo changes what it builds.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        for (name, _) in std::env::vars_os() {
            let name = name.to_string_lossy().into_owned();
            let changes_builds = name.starts_with("CARGO") && name != "CARGO_HOME";
            if changes_builds || name == "RUSTFLAGS" {
                command.env_remove(name);
            }
        }
        command
            .env("PATH", &self.path)
            .env("RUSTUP_TOOLCHAIN", RUST);
        command
    }
}
