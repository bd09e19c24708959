//! Reads the kernel's files under a root, so that every reader can be tested on a small tree.

use cosched_core::{Absence, CpuSet};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The root of `/proc`, `/sys` and the cgroup file system: a prefix for all absolute paths.
///
/// ```
/// use cosched_linux::root::Root;
/// assert_eq!(Root::new("/tree").path("/proc/meminfo").to_str(), Some("/tree/proc/meminfo"));
/// assert_eq!(Root::default().path("/proc/meminfo").to_str(), Some("/proc/meminfo"));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Root {
    prefix: PathBuf,
    /// The folder in which runs find each other, instead of the usual ones.
    runs_dir: Option<PathBuf>,
}

/// The variable that names the folder in which runs find each other and divide the CPUs. Tests and containers set it to
/// be apart from the other runs on the machine. A name that is not absolute does not count.
pub const RUNS_DIR: &str = "COSCHED_RUNS_DIR";

/// A file of the kernel that is unusable.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file exists but cannot be read.
    #[error("{item}: {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The value in the file.
        item: &'static str,
        /// The kernel's error.
        source: io::Error,
    },
    /// The content is not as expected.
    #[error("{item}: {} says `{found}`; expected {expected}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The value in the file.
        item: &'static str,
        /// The expected value, in words.
        expected: &'static str,
        /// The content of the file.
        found: String,
    },
    /// The file does not exist, and nothing replaces it.
    #[error("{item}: {} does not exist; expected {expected}", path.display())]
    Missing {
        /// The file.
        path: PathBuf,
        /// The value in the file.
        item: &'static str,
        /// The expected value, in words.
        expected: &'static str,
    },
}

impl ReadError {
    /// Whether the kernel denied this user access to the file.
    pub fn is_permission(&self) -> bool {
        matches!(self, ReadError::Io { source, .. } if source.kind() == io::ErrorKind::PermissionDenied)
    }
}

/// Why a measurement is unavailable here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoMeter {
    /// The reason in reports.
    pub reason: Absence,
    /// The details in words.
    pub detail: String,
}

impl NoMeter {
    pub(crate) fn new(reason: Absence, detail: impl Into<String>) -> NoMeter {
        NoMeter {
            reason,
            detail: detail.into(),
        }
    }
}

impl fmt::Display for NoMeter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.reason, self.detail)
    }
}

impl From<ReadError> for NoMeter {
    fn from(error: ReadError) -> NoMeter {
        let reason = if error.is_permission() {
            Absence::NoPermission
        } else {
            Absence::NotTold
        };
        NoMeter::new(reason, error.to_string())
    }
}

impl Default for Root {
    /// The real file system, with the folder that [`RUNS_DIR`] names.
    fn default() -> Root {
        let named = std::env::var_os(RUNS_DIR).map(PathBuf::from);
        Root {
            prefix: PathBuf::from("/"),
            runs_dir: named.filter(|dir| dir.is_absolute()),
        }
    }
}

impl Root {
    /// A root at `prefix`.
    pub fn new(prefix: impl Into<PathBuf>) -> Root {
        Root {
            prefix: prefix.into(),
            runs_dir: None,
        }
    }

    /// The same root, whose runs find each other in this folder.
    pub fn with_runs_dir(self, dir: impl Into<PathBuf>) -> Root {
        Root {
            runs_dir: Some(dir.into()),
            ..self
        }
    }

    /// The folder in which runs find each other, if it is not the usual one.
    pub(crate) fn runs_dir(&self) -> Option<&Path> {
        self.runs_dir.as_deref()
    }

    /// The folder in which runs of all users find each other.
    pub(crate) fn common_folder(&self) -> PathBuf {
        match self.runs_dir() {
            Some(dir) => dir.to_owned(),
            None => self.path("/tmp"),
        }
    }

    /// The path of the absolute path `absolute` under this root.
    pub fn path(&self, absolute: &str) -> PathBuf {
        self.prefix.join(absolute.trim_start_matches('/'))
    }

    /// The file's text without surrounding white space; `None` when the file does not exist.
    ///
    /// # Errors
    /// [`ReadError::Io`] when it exists and can't be read, [`ReadError::Malformed`] when it is not UTF-8.
    pub fn text(&self, absolute: &str, item: &'static str) -> Result<Option<String>, ReadError> {
        let path = self.path(absolute);
        match std::fs::read(&path) {
            Ok(bytes) => match String::from_utf8(bytes) {
                Ok(text) => Ok(Some(text.trim().to_owned())),
                Err(bad) => {
                    let found = String::from_utf8_lossy(bad.as_bytes()).trim().to_owned();
                    Err(ReadError::Malformed {
                        path,
                        item,
                        expected: "text",
                        found,
                    })
                }
            },
            Err(error) if is_absent(&error) => Ok(None),
            Err(source) => Err(ReadError::Io { path, item, source }),
        }
    }

    /// The file's text as a value of type `T`, called `expected` in errors; `None` when the file does not exist.
    ///
    /// # Errors
    /// As [`Root::text`], and [`ReadError::Malformed`] when the text is not such a value.
    pub fn parse<T: FromStr>(
        &self,
        absolute: &str,
        item: &'static str,
        expected: &'static str,
    ) -> Result<Option<T>, ReadError> {
        let Some(text) = self.text(absolute, item)? else {
            return Ok(None);
        };
        match text.parse() {
            Ok(value) => Ok(Some(value)),
            Err(_) => Err(self.malformed(absolute, item, expected, &text)),
        }
    }

    /// The file's text as a non-negative whole number; `None` when the file does not exist.
    ///
    /// # Errors
    /// As [`Root::parse`].
    pub fn number(&self, absolute: &str, item: &'static str) -> Result<Option<u64>, ReadError> {
        self.parse(absolute, item, "a whole number")
    }

    /// The file's text as a list of CPUs; `None` when the file does not exist.
    ///
    /// # Errors
    /// As [`Root::parse`].
    pub fn cpus(&self, absolute: &str, item: &'static str) -> Result<Option<CpuSet>, ReadError> {
        self.parse(absolute, item, "a list of CPUs, as in `0-3,8`")
    }

    /// The names in a directory, sorted; empty if the directory does not exist.
    ///
    /// # Errors
    /// [`ReadError::Io`] when it exists and can't be listed.
    pub fn names(&self, absolute: &str, item: &'static str) -> Result<Vec<String>, ReadError> {
        let path = self.path(absolute);
        let io_error = |source| ReadError::Io {
            path: path.clone(),
            item,
            source,
        };
        let entries = match std::fs::read_dir(&path) {
            Ok(entries) => entries,
            Err(error) if is_absent(&error) => return Ok(Vec::new()),
            Err(source) => return Err(io_error(source)),
        };
        let mut names = Vec::new();
        for entry in entries {
            // The kernel's own names are ASCII, so no reader needs any other name.
            names.extend(entry.map_err(io_error)?.file_name().into_string().ok());
        }
        names.sort();
        Ok(names)
    }

    /// Whether the path exists.
    pub fn exists(&self, absolute: &str) -> bool {
        self.path(absolute).exists()
    }

    /// An error about the content of a file.
    pub fn malformed(
        &self,
        absolute: &str,
        item: &'static str,
        expected: &'static str,
        found: impl Into<String>,
    ) -> ReadError {
        ReadError::Malformed {
            path: self.path(absolute),
            item,
            expected,
            found: found.into(),
        }
    }

    /// An error about a missing file.
    pub fn missing(&self, absolute: &str, item: &'static str, expected: &'static str) -> ReadError {
        ReadError::Missing {
            path: self.path(absolute),
            item,
            expected,
        }
    }
}

/// For a missing value the kernel has no file, or reading it fails with "no such device".
fn is_absent(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
        || matches!(
            error.raw_os_error(),
            Some(libc::ENODEV | libc::ENXIO | libc::ENOTDIR | libc::EOPNOTSUPP)
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> (tempfile::TempDir, Root) {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("sys/x")).unwrap();
        std::fs::write(dir.path().join("sys/x/number"), "42\n").unwrap();
        std::fs::write(dir.path().join("sys/x/list"), "0-2,5\n").unwrap();
        std::fs::write(dir.path().join("sys/x/bytes"), [0xff, b'a']).unwrap();
        let root = Root::new(dir.path());
        (dir, root)
    }

    #[test]
    fn values_are_read_and_missing_files_are_none() {
        let (_dir, root) = tree();
        assert_eq!(root.number("/sys/x/number", "n").unwrap(), Some(42));
        assert_eq!(
            root.cpus("/sys/x/list", "l").unwrap().unwrap().to_string(),
            "0-2,5"
        );
        assert_eq!(root.number("/sys/x/none", "n").unwrap(), None);
        assert_eq!(root.number("/sys/x/number/below", "n").unwrap(), None);
        assert_eq!(
            root.names("/sys/x", "files").unwrap(),
            ["bytes", "list", "number"]
        );
        assert_eq!(root.names("/sys/y", "files").unwrap(), Vec::<String>::new());
    }

    #[test]
    fn errors_name_path_item_and_type() {
        let (dir, root) = tree();
        let text = root
            .number("/sys/x/list", "highest frequency")
            .unwrap_err()
            .to_string();
        let path = dir.path().join("sys/x/list");
        assert_eq!(
            text,
            format!(
                "highest frequency: {} says `0-2,5`; expected a whole number",
                path.display()
            )
        );
        assert!(
            root.text("/sys/x/bytes", "t")
                .unwrap_err()
                .to_string()
                .contains("expected text")
        );
        assert!(matches!(
            root.text("/sys/x", "t"),
            Err(ReadError::Io { .. })
        ));
        assert!(
            root.missing("/sys/q", "CPUs", "a list")
                .to_string()
                .contains("sys/q does not exist; expected a list")
        );
    }
}
