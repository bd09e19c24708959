//! Where `--metrics` serves: an address of TCP, or a name in the file system.

use crate::exit::usage;
use crate::input::told;
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Where metrics are served, as the user gives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MetricsAddress {
    /// A port of an address.
    Tcp(SocketAddr),
    /// A socket in the file system.
    Unix(PathBuf),
}

impl FromStr for MetricsAddress {
    type Err = String;

    /// Reads a port of this machine's own address, an address with a port, or `unix:` and a path.
    fn from_str(text: &str) -> Result<MetricsAddress, String> {
        let expected = || {
            format!(
                "`{text}` is no place to serve: expected a port (9500), an address (127.0.0.1:9500, [::1]:9500) or unix:PATH"
            )
        };
        if let Some(path) = text.strip_prefix("unix:") {
            return if path.is_empty() {
                Err(expected())
            } else {
                Ok(MetricsAddress::Unix(path.into()))
            };
        }
        if let Ok(port) = text.parse::<u16>() {
            return Ok(MetricsAddress::Tcp(SocketAddr::new(
                IpAddr::V4(Ipv4Addr::LOCALHOST),
                port,
            )));
        }
        let named = text
            .strip_prefix("localhost:")
            .map(|port| format!("127.0.0.1:{port}"));
        named
            .as_deref()
            .unwrap_or(text)
            .parse()
            .map(MetricsAddress::Tcp)
            .map_err(|_| expected())
    }
}

impl fmt::Display for MetricsAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MetricsAddress::Tcp(address) => address.fmt(f),
            MetricsAddress::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// A socket on which metrics are asked for. One in the file system is removed with it.
#[derive(Debug)]
pub(crate) enum MetricsSocket {
    Tcp(TcpListener),
    Unix(UnixListener, PathBuf),
}

fn is_socket(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|meta| meta.file_type().is_socket())
}

impl MetricsSocket {
    /// Takes an address.
    ///
    /// # Errors
    /// Somebody else has it, or it can't be had.
    pub(crate) fn bind(address: &MetricsAddress) -> anyhow::Result<MetricsSocket> {
        let fail = |error: io::Error| {
            let remedy = match (address, error.kind()) {
                (MetricsAddress::Unix(path), io::ErrorKind::AddrInUse) if !is_socket(path) => {
                    "; it is no socket: give another name".to_owned()
                }
                (MetricsAddress::Unix(path), io::ErrorKind::AddrInUse) => {
                    format!(
                        "; if nobody serves there any more, remove it: rm {}",
                        told(path)
                    )
                }
                (MetricsAddress::Tcp(_), io::ErrorKind::AddrInUse) => {
                    "; give another port, or 0 for any".to_owned()
                }
                _ => String::new(),
            };
            usage(format!(
                "--metrics {}: {error}; nothing was started{remedy}",
                told(address.to_string())
            ))
        };
        match address {
            MetricsAddress::Tcp(at) => {
                let listener = TcpListener::bind(at).map_err(fail)?;
                listener.set_nonblocking(true).map_err(fail)?;
                Ok(MetricsSocket::Tcp(listener))
            }
            MetricsAddress::Unix(path) => {
                let path = std::path::absolute(path).map_err(fail)?;
                let listener = UnixListener::bind(&path).map_err(fail)?;
                let socket = MetricsSocket::Unix(listener, path);
                if let MetricsSocket::Unix(listener, path) = &socket {
                    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))
                        .map_err(fail)?;
                    listener.set_nonblocking(true).map_err(fail)?;
                }
                Ok(socket)
            }
        }
    }

    /// Where it serves: with the port that the system has chosen.
    pub(crate) fn address(&self) -> Option<MetricsAddress> {
        match self {
            MetricsSocket::Tcp(listener) => listener.local_addr().ok().map(MetricsAddress::Tcp),
            MetricsSocket::Unix(_, path) => Some(MetricsAddress::Unix(path.clone())),
        }
    }

    /// Whether other machines can reach it.
    pub(crate) fn is_open(&self) -> bool {
        match self {
            MetricsSocket::Tcp(listener) => listener
                .local_addr()
                .is_ok_and(|address| !address.ip().is_loopback()),
            MetricsSocket::Unix(..) => false,
        }
    }
}

impl Drop for MetricsSocket {
    fn drop(&mut self) {
        if let MetricsSocket::Unix(_, path) = self {
            let _ = std::fs::remove_file(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        let read = |text: &str| {
            text.parse::<MetricsAddress>()
                .map(|address| address.to_string())
        };
        assert_eq!(read("9500").unwrap(), "127.0.0.1:9500");
        assert_eq!(read("localhost:9500").unwrap(), "127.0.0.1:9500");
        assert_eq!(read("0.0.0.0:80").unwrap(), "0.0.0.0:80");
        assert_eq!(read("[::1]:9500").unwrap(), "[::1]:9500");
        assert_eq!(read("unix:/tmp/a b").unwrap(), "unix:/tmp/a b");
        for wrong in [
            "",
            "99999",
            "unix:",
            "127.0.0.1",
            "host:1",
            ":1",
            "http://127.0.0.1:1",
        ] {
            assert!(read(wrong).unwrap_err().contains("unix:PATH"), "{wrong}");
        }
    }

    #[test]
    fn a_socket_in_the_file_system_is_the_users_and_goes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m");
        let address = MetricsAddress::Unix(path.clone());
        let socket = MetricsSocket::bind(&address).unwrap();
        assert_eq!(
            std::fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
        assert!(!socket.is_open());
        let taken = MetricsSocket::bind(&address).unwrap_err().to_string();
        assert!(
            taken.contains("nothing was started") && taken.contains("rm "),
            "{taken}"
        );
        assert!(path.exists());
        drop(socket);
        assert!(!path.exists());
        let one = MetricsSocket::bind(&"0".parse().unwrap()).unwrap();
        let address = one.address().unwrap();
        let taken = MetricsSocket::bind(&address).unwrap_err().to_string();
        assert!(taken.contains("another port"), "{taken}");
    }
}
