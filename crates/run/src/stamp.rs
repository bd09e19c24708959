//! Names of new folders.

use cosched_linux::Allocation;
use cosched_linux::identity::host_name;
use cosched_linux::root::Root;
use std::time::SystemTime;

/// A name for a new folder that no other process uses: the time (UTC) and the number of the process. Processes of other
/// hosts and namespaces may have the same number, so the host's name is in it where they may share the folder.
pub fn stamp() -> String {
    let now = humantime::format_rfc3339_seconds(SystemTime::now());
    let digits = now.to_string().replace(['-', ':', 'Z'], "");
    let time = digits.replace('T', "-");
    let process = std::process::id();
    let shares = process == 1 || Allocation::here().is_some();
    match host_name(&Root::default()).filter(|_| shares) {
        Some(host) => format!("{time}-{}-{process}", plain(&host)),
        None => format!("{time}-{process}"),
    }
}

/// A name without characters that mean something in a path or to a terminal.
pub(crate) fn plain(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '.' || c == '_';
    name.replace(|c| !is_plain(c), "-")
}
