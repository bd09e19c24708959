//! The programs of the machine that a build needs. All are looked for before anything is built.

use super::command::command;
use anyhow::{Context as _, Result, ensure};
use std::env::split_paths;
use std::ffi::OsStr;

/// A program, and the Debian package that has it.
type Needed = (&'static str, &'static str);

/// The programs that are not on every Debian.
const NEEDED: [Needed; 7] = [
    ("cc", "gcc"),
    ("dh", "debhelper"),
    ("dpkg-buildpackage", "dpkg-dev"),
    ("git", "git"),
    ("make", "make"),
    ("rustup", "rustup"),
    ("xz", "xz-utils"),
];

/// Python, which may be there without the module that makes environments.
const VENV: Needed = ("python3 -m venv", "python3-venv");

/// Checks that every program is there.
///
/// # Errors
/// Some are missing. The message names them all.
pub fn check() -> Result<()> {
    let path = std::env::var_os("PATH").context("PATH is not set")?;
    let mut missing = missing(&path);
    if !has_venv() {
        missing.push(VENV);
    }
    ensure!(missing.is_empty(), "{}", message(&missing));
    Ok(())
}

fn missing(path: &OsStr) -> Vec<Needed> {
    let needed = NEEDED.into_iter();
    needed
        .filter(|(program, _)| !is_in(path, program))
        .collect()
}

fn is_in(path: &OsStr, program: &str) -> bool {
    split_paths(path).any(|folder| folder.join(program).is_file())
}

fn has_venv() -> bool {
    let output = command("python3", "-c")
        .arg("import ensurepip, venv")
        .output();
    output.is_ok_and(|output| output.status.success())
}

fn message(missing: &[Needed]) -> String {
    let mut lines = String::from("programs are missing:\n");
    let mut packages = String::new();
    for (program, package) in missing {
        lines += &format!("    {program}, in the Debian package {package}\n");
        packages += &format!(" {package}");
    }
    format!("{lines}Install them: sudo apt install{packages}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_missing_program_is_named_with_its_package() {
        let folder = tempfile::tempdir().unwrap();
        for present in ["cc", "git", "make", "rustup", "dpkg-buildpackage"] {
            std::fs::write(folder.path().join(present), "").unwrap();
        }
        let missing = missing(folder.path().as_os_str());
        assert_eq!(missing, [("dh", "debhelper"), ("xz", "xz-utils")]);
        assert_eq!(
            message(&missing),
            "programs are missing:\n    dh, in the Debian package debhelper\n    xz, in the Debian package xz-utils\n\
             Install them: sudo apt install debhelper xz-utils"
        );
    }
}
