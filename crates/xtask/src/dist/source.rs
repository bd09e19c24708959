//! The source archive: the last commit and all crates that it needs, so that it builds offline.

use super::command::{command, output, run};
use super::tools::Tools;
use anyhow::Result;
use std::ffi::OsStr;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Makes cargo take crates from the folder `vendor`.
const VENDORED: &str = r#"
[source.crates-io]
replace-with = "vendored"

[source.vendored]
directory = "vendor"
"#;

/// The unpacked source archive, and the folder around it.
pub struct SourceArchive {
    /// A new folder for what is built.
    pub work: PathBuf,
    /// `cosched-VERSION`, the folder of the source in `work`.
    pub name: String,
    /// Time of the commit, in seconds since 1970.
    epoch: String,
    tools: Tools,
}

impl SourceArchive {
    /// Clones the last commit into the folder `work`, and puts the crates that it needs beside it.
    ///
    /// # Errors
    /// git or cargo fails.
    pub fn clone(root: &Path, work: &Path, tools: Tools) -> Result<SourceArchive> {
        let name = format!("cosched-{}", env!("CARGO_PKG_VERSION"));
        let tree = work.join(&name);
        run(command("git", "clone --quiet").arg(root).arg(&tree))?;
        let time = output(command("git", "log -1 --format=%ct").current_dir(&tree))?;
        fs::remove_dir_all(tree.join(".git"))?;
        let epoch = time.trim().to_owned();
        let source = SourceArchive {
            work: work.to_owned(),
            name,
            epoch,
            tools,
        };
        source.vendor()?;
        Ok(source)
    }

    fn vendor(&self) -> Result<()> {
        run(&mut self.command("cargo", "vendor --quiet --locked --versioned-dirs"))?;
        let path = self.tree().join(".cargo/config.toml");
        let mut file = fs::OpenOptions::new().append(true).open(path)?;
        file.write_all(VENDORED.as_bytes())?;
        Ok(())
    }

    /// The folder of the source.
    pub fn tree(&self) -> PathBuf {
        self.work.join(&self.name)
    }

    /// A command in the folder of the source. Files that it makes are as old as the commit.
    pub fn command(&self, program: impl AsRef<OsStr>, words: &str) -> Command {
        let mut command = self.tools.command(program, words);
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
        let options = "--sort=name --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX";
        let mut tar = self.command("tar", options);
        tar.current_dir(&self.work)
            .arg(format!("--mtime=@{}", self.epoch));
        tar.arg("--use-compress-program=xz -4 -T1").arg("-cf");
        run(tar.arg(out.join(format!("{name}.tar.xz"))).arg(name))
    }
}
