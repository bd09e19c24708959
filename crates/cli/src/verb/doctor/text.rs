//! The answer of `cosched doctor` as text.

use super::feature::Feature;
use cosched_linux::identity::{distribution, kernel_release};
use cosched_linux::root::Root;
use cosched_linux::topology::Topology;
use cosched_report::{count, wrap};
use std::fmt::Write as _;

/// The versions of cosched, the kernel and the distribution.
pub fn versions(root: &Root) -> String {
    format!(
        "cosched {}, Linux {}, {}\n",
        env!("CARGO_PKG_VERSION"),
        kernel_release(root).unwrap_or_else(|| "of unknown version".to_owned()),
        distribution(root).unwrap_or_else(|| "unknown distribution".to_owned()),
    )
}

/// The machine's name, CPUs, cores, caches and memory domains, with notes on which part was given.
pub fn machine(topology: &Topology, notes: &[String]) -> String {
    let machine = &topology.machine;
    let smt = if machine.has_smt() { " with SMT" } else { "" };
    let mut out = format!(
        "{}\n{} ({}), {}{smt}, {}, {}\n",
        machine.name,
        count(machine.cpus.len() as u64, "CPU"),
        machine.all_cpus(),
        count(machine.cores.len() as u64, "core"),
        count(machine.llcs.len() as u64, "last-level cache"),
        count(machine.memory_domains.len() as u64, "memory domain"),
    );
    for note in notes {
        let _ = writeln!(out, "{note}");
    }
    for (cpus, why) in &topology.left_out {
        let _ = writeln!(out, "left out: CPUs {cpus}, {why}");
    }
    out
}

/// The choice of `auto` for a batch.
pub fn choice(policy: &str, lacks: Option<&str>, width: usize) -> String {
    let why = lacks.map_or(String::new(), |lacks| format!("; {lacks}"));
    let text = format!("policy of a batch: {policy}{why}");
    let mut out = String::new();
    paragraph(&mut out, "", &text, width);
    out
}

/// Jobs that outlived their runs.
pub fn left_jobs(orphans: &[String]) -> String {
    if orphans.is_empty() {
        return String::new();
    }
    let orphans = orphans.join("\n    ");
    format!(
        "\njobs of killed runs (`cosched thaw` frees frozen ones, `cosched thaw --kill` asks and ends all):\n    {orphans}\n"
    )
}

/// What does not work, each reason and remedy once; then what works.
pub fn brief(features: &[Feature], width: usize) -> String {
    let mut out = String::new();
    let mut works = Vec::new();
    let mut causes: Vec<Vec<&Feature>> = Vec::new();
    for feature in features {
        let cause = feature.cause();
        if feature.works {
            works.push(feature.brief());
        } else if let Some(same) = causes.iter_mut().find(|same| same[0].cause() == cause) {
            same.push(feature);
        } else {
            causes.push(vec![feature]);
        }
    }
    if !causes.is_empty() {
        out.push_str("off:\n");
    }
    for same in causes {
        add_cause(&mut out, &same, width);
    }
    let works = format!("works: {}", works.join(", "));
    let lines = wrap(&works, width.saturating_sub(4));
    out + &lines.join("\n    ") + "\n"
}

/// Adds features that do not work for the same reason.
fn add_cause(out: &mut String, same: &[&Feature], width: usize) {
    let (reason, without, remedy) = same[0].cause();
    let names = names(same);
    paragraph(out, "  ", &format!("{names}: {reason}"), width);
    let mut effect = format!("without: {without}");
    if let Some(remedy) = remedy {
        effect.push_str("; remedy: ");
        effect.push_str(remedy);
    }
    paragraph(out, "      ", &effect, width);
}

/// The names of features that count, with that word only once.
fn names(features: &[&Feature]) -> String {
    let mut names = features[0].feature.clone();
    for feature in &features[1..] {
        let name = &feature.feature;
        names.push_str(", ");
        names.push_str(name.strip_prefix("count ").unwrap_or(name));
    }
    names
}

/// Writes wrapped text; all lines but the first are indented by six.
fn paragraph(out: &mut String, first: &str, text: &str, width: usize) {
    let lines = wrap(text, width.saturating_sub(6));
    *out += &format!("{first}{}\n", lines.join("\n      "));
}

impl Feature {
    fn brief(&self) -> String {
        if self.found == "yes" {
            self.feature.clone()
        } else {
            format!("{} ({})", self.feature, self.found)
        }
    }

    /// Reason, effect and remedy, which features may share.
    fn cause(&self) -> (&str, &str, Option<&str>) {
        (&self.reason, self.without, self.mend.as_deref())
    }
}
