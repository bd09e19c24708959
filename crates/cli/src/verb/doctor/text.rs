//! The answer of `cosched doctor` as text.

use super::feature::Feature;
use cosched_linux::counters::CounterSupport;
use cosched_linux::topology::Topology;
use cosched_report::{count, wrap};
use std::fmt::Write as _;

/// The machine's name, CPUs, cores, caches and memory domains.
pub(super) fn machine(topology: &Topology) -> String {
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
    for (cpus, why) in &topology.left_out {
        let _ = writeln!(out, "left out: CPUs {cpus}, {why}");
    }
    out
}

/// Jobs that outlived their runs.
pub(super) fn left_jobs(orphans: &[String]) -> String {
    if orphans.is_empty() {
        return String::new();
    }
    format!(
        "\njobs of killed runs are still there (`cosched thaw` frees those that are frozen, `thaw --kill` ends all):\n    {}\n",
        orphans.join("\n    ")
    )
}

/// What does not work, each reason and remedy once; then what works.
pub(super) fn brief(features: &[Feature], width: usize) -> String {
    let mut out = String::new();
    let mut causes: Vec<Vec<&Feature>> = Vec::new();
    for feature in features.iter().filter(|feature| !feature.works) {
        match causes
            .iter_mut()
            .find(|same| same[0].cause() == feature.cause())
        {
            Some(same) => same.push(feature),
            None => causes.push(vec![feature]),
        }
    }
    for same in causes {
        let (reason, without, remedy) = same[0].cause();
        let first = format!("{}: {reason}", names(&same));
        paragraph(&mut out, "  ", &first, width);
        let remedy = remedy.map_or(String::new(), |remedy| format!("; remedy: {remedy}"));
        let second = format!("without: {without}{remedy}");
        paragraph(&mut out, "      ", &second, width);
    }
    if !out.is_empty() {
        out.insert_str(0, "off:\n");
    }
    let works: Vec<String> = features
        .iter()
        .filter(|feature| feature.works)
        .map(Feature::brief)
        .collect();
    let works = format!("works: {}", works.join(", "));
    out + &wrap(&works, width.saturating_sub(4)).join("\n    ") + "\n"
}

/// The names of features that count, with that word only once.
fn names(features: &[&Feature]) -> String {
    let names: Vec<&str> = features
        .iter()
        .enumerate()
        .map(
            |(ix, feature)| match feature.feature.strip_prefix("count ") {
                Some(rest) if ix > 0 => rest,
                _ => &feature.feature,
            },
        )
        .collect();
    names.join(", ")
}

/// Writes wrapped text; all lines but the first are indented by six.
fn paragraph(out: &mut String, first: &str, text: &str, width: usize) {
    let lines = wrap(text, width.saturating_sub(6));
    *out += &format!("{first}{}\n", lines.join("\n      "));
}

/// Every feature with its state, needs and remedy.
pub(super) fn full(counters: &CounterSupport, features: &[Feature]) -> String {
    let mut out = String::new();
    if let Some(paranoid) = counters.paranoid {
        let _ = writeln!(out, "perf_event_paranoid {paranoid}");
    }
    for (pmu, table) in &counters.pmus {
        let _ = writeln!(out, "counters of {pmu}: table {table}");
    }
    out.push('\n');
    let widths = features.iter().map(|feature| feature.feature.len());
    let width = widths.max().unwrap_or_default();
    let indent = " ".repeat(width + "off ".len() + 1);
    for feature in features {
        let mark = if feature.works { "ok " } else { "off" };
        let _ = writeln!(out, "{mark} {:<width$} {}", feature.feature, feature.found);
        if feature.works {
            continue;
        }
        let _ = writeln!(out, "{indent}needs: {}", feature.needs);
        let _ = writeln!(out, "{indent}without: {}", feature.without);
        if let Some(remedy) = &feature.mend {
            let _ = writeln!(out, "{indent}remedy: {remedy}");
        }
    }
    out
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
