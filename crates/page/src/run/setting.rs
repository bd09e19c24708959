//! The setting of a run, and how to repeat it.

use crate::html::{element, list, table};
use cosched_report::{RunRecord, command_again, escaped_lines, setting_table};

/// Return the machine, the policy and the setting of a run.
pub(crate) fn machine(record: &RunRecord) -> String {
    let table = table("", &setting_table(record));
    let again = same_again(&escaped_lines(&command_again(record)));
    format!("{table}{again}{}", missing(record))
}

/// Return a heading and a command, which is HTML already.
pub(crate) fn same_again(command: &str) -> String {
    element("h3", "Command line") + &element("pre", command)
}

/// Return what the run lacked, and why.
fn missing(record: &RunRecord) -> String {
    let mut all = Vec::new();
    for missing in &record.missing {
        all.push(format!("{}: {}", missing.what, missing.why));
    }
    if all.is_empty() {
        return String::new();
    }
    element("h3", "What this run did not have") + &list(&all)
}

/// Return the warnings of the run.
pub(crate) fn warnings(record: &RunRecord) -> String {
    let warnings = record.warnings.iter();
    let texts: Vec<String> = warnings.map(|warning| warning.text.clone()).collect();
    list(&texts)
}
