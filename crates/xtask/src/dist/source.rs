//! The source archive: the last commit and all crates it needs, so that it builds offline.

use super::command::{output, run};
use super::tools::Tools;
use anyhow::Result;
use std::ffi::OsStr;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The unpacked source archive.
pub struct Source {
    /// A new folder for what is built.
    pub work: PathBuf,
    /// `cosched-VERSION`, the folder in `work`.
    pub name: String,
    /// Time of the commit, in seconds since 1970.
    pub epoch: String,
    tools: Tools,
}

impl Source {
    /// Clones the last commit, and puts the crates that it needs beside it.
    ///
    /// # Errors
    /// git or cargo fails.
    pub fn clone(root: &Path, work: &Path, tools: Tools) -> Result<Source> {
        let name = format!("cosched-{}", env!("CARGO_PKG_VERSION"));
        let tree = work.join(&name);
        run(Command::new("git")
            .args(["clone", "--quiet", "--depth=1"])
            .arg(format!("file://{}", root.display()))
            .arg(&tree))?;
        let shown =
            output(
                Command::new("git")
                    .current_dir(&tree)
                    .args(["log", "-1", "--format=%ct"]),
            )?;
        fs::remove_dir_all(tree.join(".git"))?;
        let source = Source {
            work: work.to_owned(),
            name,
            epoch: shown.trim().to_owned(),
            tools,
        };
        source.vendor()?;
        Ok(source)
    }

    fn vendor(&self) -> Result<()> {
        let config = output(self.command("cargo").args([
            "vendor",
            "--locked",
            "--versioned-dirs",
            "--quiet",
        ]))?;
        let mut file = fs::OpenOptions::new()
            .append(true)
            .open(self.tree().join(".cargo/config.toml"))?;
        write!(file, "\n{config}")?;
        Ok(())
    }

    /// The folder of the source.
    pub fn tree(&self) -> PathBuf {
        self.work.join(&self.name)
    }

    /// A command in the folder of the source, whose files are as old as the commit.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = self.tools.command(program);
        command
            .current_dir(self.tree())
            .env("SOURCE_DATE_EPOCH", &self.epoch);
        command
    }

    /// Packs the folder `name` of `work` into an archive in `out`.
    ///
    /// # Errors
    /// tar fails.
    pub fn pack(&self, name: &str, out: &Path) -> Result<()> {
        let archive = out.join(format!("{name}.tar.xz"));
        let mtime = format!("--mtime=@{}", self.epoch);
        let mut tar = self.command("tar");
        tar.args([
            "--sort=name",
            "--owner=0",
            "--group=0",
            "--numeric-owner",
            "--mode=u=rwX,go=rX",
        ]);
        tar.args([&mtime, "--use-compress-program=xz -6 -T1", "-C"])
            .arg(&self.work);
        run(tar.arg("-cf").arg(archive).arg(name))
    }
}
