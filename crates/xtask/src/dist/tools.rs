//! The tools of a build, with pinned versions: Rust, and from `packaging/requirements.txt` zig as C compiler and linker, and
//! hatchling for the wheel. The others are those of the machine: [`needed`](super::needed).

use super::ARCHS;
use super::command::{command, run};
use anyhow::{Context as _, Result};
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::Command;

/// Version of Rust that builds packages.
const RUST: &str = "1.95.0";

/// Beginnings of the variables that change what cargo builds.
const SETTINGS: [&str; 4] = [
    "CARGO_BUILD_",
    "CARGO_PROFILE_",
    "CARGO_TARGET_",
    "RUSTFLAGS",
];

/// Rust's name of a processor with musl, which is linked statically.
pub fn triple(arch: &str) -> String {
    format!("{arch}-unknown-linux-musl")
}

/// The installed tools.
pub struct Tools {
    /// `PATH` with the pinned tools in front.
    path: OsString,
}

impl Tools {
    /// Installs those that are not there yet.
    ///
    /// # Errors
    /// A tool cannot be installed.
    pub fn install(root: &Path) -> Result<Tools> {
        let mut rustup = command(
            "rustup",
            "toolchain install --profile minimal --no-self-update",
        );
        for arch in ARCHS {
            rustup.args(["--target", &triple(arch)]);
        }
        run(rustup.arg(RUST))?;
        let folder = root.join("target/dist-tools");
        run(command("python3", "-m venv").arg(&folder))?;
        let bin = folder.join("bin");
        let mut pip = command(bin.join("pip"), "install --quiet --requirement");
        run(pip.arg(root.join("packaging/requirements.txt")))?;
        let others = std::env::var_os("PATH").context("PATH is not set")?;
        let all = std::iter::once(bin).chain(std::env::split_paths(&others));
        Ok(Tools {
            path: std::env::join_paths(all)?,
        })
    }

    /// A command that finds the tools, and none of the caller's settings for cargo.
    pub fn command(&self, program: impl AsRef<OsStr>, words: &str) -> Command {
        let mut command = command(program, words);
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy();
            if SETTINGS.iter().any(|beginning| text.starts_with(beginning)) {
                command.env_remove(&name);
            }
        }
        command
            .env("PATH", &self.path)
            .env("RUSTUP_TOOLCHAIN", RUST);
        command
    }
}
