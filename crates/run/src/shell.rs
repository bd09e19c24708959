//! The shell for lines: `--shell`, or the caller's own.

use crate::exit::usage;
use crate::input::{Command, Shell, ShellLine, told};
use cosched_linux::find_program;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::Path;
use std::rc::Rc;

/// Shells that read quotes or variables in their own way, so that a value would not stay in one piece.
const OTHERS: &str = "csh elvish es fish nu pwsh rc tcsh xonsh";

/// The shell that is named, by a path or a name in `PATH`.
///
/// # Errors
/// It is not there, or it is no POSIX shell.
fn find(name: &OsStr) -> anyhow::Result<Shell> {
    check(name, Path::new(name))?;
    let search = std::env::var_os("PATH");
    let Some(path) = find_program(name, None, search.as_deref()) else {
        let is_path = name.as_bytes().contains(&b'/');
        let within = if is_path { "" } else { " in PATH" };
        let name = told(name);
        return Err(usage(format!(
            "--shell {name}: there is no such program{within}; give a shell that is there, as in --shell bash"
        )));
    };
    // `mysh` can be a link to fish.
    check(name, &std::fs::canonicalize(&path).unwrap_or_default())?;
    Ok(Shell {
        name: name.to_owned(),
        path,
    })
}

/// POSIX shells. All keep a quoted value in one piece, although zsh does not divide the values of variables at blanks.
const POSIX: &str = "sh dash bash ksh zsh";

/// The caller's shell, if it is there and a POSIX shell: that of `SHELL`, or bash if it exported functions.
pub fn of_caller() -> Option<OsString> {
    let shell = std::env::var_os("SHELL").filter(|shell| is_posix(shell));
    let is_bash = shell
        .as_ref()
        .is_some_and(|shell| Path::new(shell).ends_with("bash"));
    if !is_bash && has_functions() && find(OsStr::new("bash")).is_ok() {
        return Some("bash".into());
    }
    shell
}

fn is_posix(shell: &OsStr) -> bool {
    let name = Path::new(shell).file_name();
    let name = name.and_then(OsStr::to_str).unwrap_or_default();
    POSIX.split(' ').any(|known| known == name) && find(shell).is_ok()
}

/// The shells of a run.
pub(crate) struct Shells {
    /// That of lines; `/bin/sh` by default.
    lines: Option<Rc<Shell>>,
    /// That of functions, once one is called.
    bash: Option<Rc<Shell>>,
}

impl Shells {
    /// The shells, where the user named this one for lines.
    ///
    /// # Errors
    /// It is not there, or it is no POSIX shell.
    pub(crate) fn new(name: Option<&OsStr>) -> anyhow::Result<Shells> {
        let lines = name.map(find).transpose()?.map(Rc::new);
        let bash = lines.clone().filter(|shell| shell.path.ends_with("bash"));
        Ok(Shells { lines, bash })
    }

    /// Gives a line its shell. A call of a function that bash exported becomes a line for bash.
    ///
    /// # Errors
    /// There is no bash for it.
    pub(crate) fn choose(&mut self, command: &mut Command) -> anyhow::Result<()> {
        match command {
            Command::Shell(line) => line.shell.clone_from(&self.lines),
            Command::Argv(words) if is_function(&words[0]) => {
                if self.bash.is_none() {
                    self.bash = Some(Rc::new(find(OsStr::new("bash"))?));
                }
                *command = Command::Shell(ShellLine {
                    script: OsString::from_vec(command.line_for_sh()),
                    shell: self.bash.clone(),
                });
            }
            Command::Argv(_) => {}
        }
        Ok(())
    }
}

/// Whether bash exported a function.
fn has_functions() -> bool {
    let mut variables = std::env::vars_os();
    variables.any(|(name, _)| name.as_bytes().starts_with(b"BASH_FUNC_"))
}

/// Whether bash exported a function of this name.
fn is_function(name: &OsStr) -> bool {
    let variable = [b"BASH_FUNC_", name.as_bytes(), b"%%"].concat();
    !name.is_empty() && std::env::var_os(OsStr::from_bytes(&variable)).is_some()
}

/// Refuses a program that is no POSIX shell by its name; `given` is how the user named it.
fn check(given: &OsStr, path: &Path) -> anyhow::Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit() || ".-".contains(c));
    if !OTHERS.split(' ').any(|known| known == stem) {
        return Ok(());
    }
    let given = told(given);
    Err(usage(format!(
        "--shell {given}: {stem} is no POSIX shell, so values would not stay in one piece; give one, as in --shell bash"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    #[test]
    fn shells_are_found_and_judged_by_what_they_are() {
        let found = find(OsStr::new("sh")).unwrap();
        assert!(
            found.name == "sh" && found.path.is_absolute() && found.path.ends_with("sh"),
            "{found:?}"
        );
        let folder = tempfile::tempdir().unwrap();
        let fish = folder.path().join("fish-3.6");
        std::fs::write(&fish, "").unwrap();
        let error = |path: &Path| find(path.as_os_str()).unwrap_err().to_string();
        assert!(
            error(Path::new("tcsh")).contains("tcsh is no POSIX shell"),
            "also where there is none"
        );
        let plain = folder.path().join("plain");
        std::fs::write(&plain, "").unwrap();
        assert!(
            error(&plain).contains("there is no such program; give a shell"),
            "it is not executable"
        );
        std::fs::set_permissions(&fish, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert!(error(&fish).contains("fish is no POSIX shell"));
        let link = folder.path().join("mine");
        symlink(&fish, &link).unwrap();
        assert!(error(&link).contains("fish is no POSIX shell"));
        assert!(error(Path::new("no-such-shell")).contains("no such program in PATH"));
        assert!(error(Path::new("")).contains("--shell bash"));
    }
}
