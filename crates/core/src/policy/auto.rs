//! The choice of a policy where the user names none.
//!
//! The first row that fits decides. The simulation chose the rows: the least mean turnaround over several worlds; within
//! 1 %, the least unfairness (results/auto-measured.md). Without counts it is `fifo` for a batch: `round-robin` is faster in
//! the simulation, but with real programs mostly slower.

use super::{PolicyEntry, even, fifo, linux, perf_fair};
use crate::capability::{Capabilities, Capability};
use crate::counter::Counter;
use crate::units::Absence;

/// What is known of the jobs before a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobKind {
    /// Nothing, or that they differ.
    Any,
    /// All run the same program.
    Alike,
    /// More must run at once than there are CPUs.
    Crowd,
    /// They arrive during the run.
    Arriving,
}

/// One row of the choice.
pub struct AutoRow {
    /// The capabilities that it needs.
    pub needs: &'static [Capability],
    /// The kind of jobs that it serves; `None` for all.
    pub only: Option<JobKind>,
    /// The policy.
    pub policy: &'static PolicyEntry,
    /// Its parameters that differ from the default.
    pub params: &'static [(&'static str, &'static str)],
    /// Turnaround against that of `fifo`, in percent, where only what it needs is counted: the mean over mixes. For
    /// arriving jobs it is their mean turnaround.
    pub turnaround_percent: f64,
    /// Greatest slowdown / least slowdown, likewise.
    pub unfairness: f64,
}

const L1: Capability = Capability::Counter(Counter::L1Accesses);
const LLC: Capability = Capability::Counter(Counter::LlcAccesses);
const READS: Capability = Capability::Counter(Counter::MmReads);
const IPC: Capability = Capability::Ipc;
const FREEZE: Capability = Capability::Freeze;
const BIND: Capability = Capability::Affinity;

const fn row(
    needs: &'static [Capability],
    policy: &'static PolicyEntry,
    turnaround_percent: f64,
    unfairness: f64,
) -> AutoRow {
    AutoRow {
        needs,
        only: None,
        policy,
        params: &[],
        turnaround_percent,
        unfairness,
    }
}

/// The best row, with which others are compared.
const BEST: usize = 2;

/// Every row. The last one needs nothing.
pub static AUTO: [AutoRow; 8] = [
    AutoRow {
        only: Some(JobKind::Alike),
        ..row(&[], &fifo::ENTRY, 0.0, 2.64)
    },
    AutoRow {
        only: Some(JobKind::Arriving),
        params: &[("objective", "mean")],
        ..row(&[FREEZE, BIND], &even::ENTRY, -3.1, 6.45)
    },
    row(
        &[FREEZE, BIND, IPC, READS, LLC, L1],
        &even::ENTRY,
        -5.7,
        1.05,
    ),
    row(&[FREEZE, BIND, IPC, READS, LLC], &even::ENTRY, -5.5, 1.05),
    row(&[FREEZE, BIND, IPC, LLC], &even::ENTRY, -5.2, 1.05),
    row(&[FREEZE, BIND, READS], &perf_fair::ENTRY, -4.4, 1.35),
    AutoRow {
        only: Some(JobKind::Crowd),
        ..row(&[], &linux::ENTRY, -1.2, 1.42)
    },
    row(&[], &fifo::ENTRY, 0.0, 2.64),
];

/// The row that decides on a machine for jobs of this kind.
pub fn auto_row(capabilities: &Capabilities, jobs: JobKind) -> &'static AutoRow {
    let fits = |row: &&AutoRow| {
        row.only.is_none_or(|only| only == jobs) && row.lacks(capabilities).is_empty()
    };
    AUTO.iter().find(fits).unwrap_or(&AUTO[AUTO.len() - 1])
}

/// Why the best row does not decide: the kind of jobs, or what a machine lacks, with the reasons and what that costs.
/// `None` if it decides.
pub fn auto_lacks(row: &AutoRow, capabilities: &Capabilities) -> Option<String> {
    match row.only {
        Some(JobKind::Alike) => {
            return Some(
                "all jobs run one program, so it matters little which run together".to_owned(),
            );
        }
        Some(JobKind::Arriving) => return Some(why_arriving(capabilities)),
        _ => {}
    }
    let mut reasons: Vec<(Absence, Vec<&str>)> = Vec::new();
    for (capability, why) in AUTO[BEST].lacks(capabilities) {
        match reasons.iter_mut().find(|(other, _)| *other == why) {
            Some((_, names)) => names.push(capability.text()),
            None => reasons.push((why, vec![capability.text()])),
        }
    }
    let reasons: Vec<String> = reasons.iter().map(lack).collect();
    let best = &AUTO[BEST];
    let [with, without] = [best, row].map(|row| 100.0 + row.turnaround_percent);
    let less = 100.0 * (1.0 - with / without);
    let mut cost = match less {
        ..0.5 => "with them simulated mixes take as long".to_owned(),
        _ => format!("with them simulated mixes take {less:.0} % less time"),
    };
    if row.unfairness > best.unfairness {
        let [with, without] = [best.unfairness, row.unfairness];
        cost.push_str(&format!(", unfairness {with:.2}, not {without:.2}"));
    }
    (!reasons.is_empty()).then(|| format!("{}; {cost}", reasons.join("; ")))
}

/// Why the row for arriving jobs decides, and what it lacks.
fn why_arriving(capabilities: &Capabilities) -> String {
    let mut why = "jobs arrive during the run, so their mean turnaround counts".to_owned();
    if let Some(missing) = capabilities.why_missing(IPC) {
        let lack = lack(&(missing, vec![IPC.text()]));
        why.push_str(&format!(
            "; {lack}, so progress is CPU time, or what is visible"
        ));
    }
    why
}

/// What is missing for one reason.
fn lack((why, names): &(Absence, Vec<&str>)) -> String {
    match why {
        // The reason says it all.
        Absence::NoCounters => why.to_string(),
        _ => format!("no {}: {why}", names.join(", no ")),
    }
}

impl AutoRow {
    /// The capabilities that it needs and a machine lacks, with the reasons.
    fn lacks(&self, capabilities: &Capabilities) -> Vec<(Capability, Absence)> {
        let missing = |&need| Some((need, capabilities.why_missing(need)?));
        self.needs.iter().filter_map(missing).collect()
    }

    /// What it needs, in words: the counts, or else the rest.
    pub fn condition(&self) -> String {
        if self.only == Some(JobKind::Arriving) {
            return "jobs that arrive during the run".to_owned();
        }
        let (counts, rest): (Vec<&Capability>, Vec<&Capability>) =
            self.needs.iter().partition(|need| need.is_counter());
        let needs = if counts.is_empty() { rest } else { counts };
        let names: Vec<&str> = needs.into_iter().map(|need| need.text()).collect();
        match names[..] {
            [] => match self.only {
                Some(JobKind::Crowd) => "`--jobs` above the number of CPUs".to_owned(),
                Some(JobKind::Alike) => "jobs of one program".to_owned(),
                _ => "nothing".to_owned(),
            },
            _ => names.join(", "),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVENTS: [Capability; 4] = [IPC, READS, LLC, L1];

    fn lacking(missing: &[Capability], why: Absence) -> Capabilities {
        Capabilities {
            missing: missing.iter().map(|&missing| (missing, why)).collect(),
        }
    }

    #[test]
    fn each_set_of_events_gets_its_row() {
        let all = [FREEZE, BIND, IPC, READS, LLC, L1];
        for (missing, expected, in_a_crowd) in [
            (&[][..], "even", "even"),
            (&[L1], "even", "even"),
            (&[READS], "even", "even"),
            (&[READS, L1], "even", "even"),
            (&[LLC], "perf-fair", "perf-fair"),
            (&[IPC], "perf-fair", "perf-fair"),
            (&[IPC, LLC, L1], "perf-fair", "perf-fair"),
            (&[READS, LLC], "fifo", "linux"),
            (&[IPC, READS], "fifo", "linux"),
            (&EVENTS, "fifo", "linux"),
            (&[BIND], "fifo", "linux"),
            (&[FREEZE], "fifo", "linux"),
            (&all, "fifo", "linux"),
        ] {
            let capabilities = lacking(missing, Absence::NoSuchEvent);
            let name = |jobs| auto_row(&capabilities, jobs).policy.name;
            let names = [JobKind::Any, JobKind::Crowd, JobKind::Alike].map(name);
            assert_eq!(names, [expected, in_a_crowd, "fifo"], "{missing:?}");
            let lacks = missing.contains(&FREEZE) || missing.contains(&BIND);
            let arriving = if lacks { expected } else { "even" };
            assert_eq!(name(JobKind::Arriving), arriving, "{missing:?}");
        }
    }

    #[test]
    fn it_says_what_is_missing_and_what_that_costs() {
        let lacks = |missing: &[Capability], why| {
            let capabilities = lacking(missing, why);
            auto_lacks(auto_row(&capabilities, JobKind::Any), &capabilities)
        };
        assert_eq!(lacks(&[], Absence::NoCounters), None);
        assert_eq!(
            lacks(&[L1], Absence::NoCounterFree).unwrap(),
            "no L1 cache accesses: no hardware counter was free for it; with them simulated mixes take as long"
        );
        let none = lacking(&EVENTS, Absence::NoCounters);
        assert_eq!(
            auto_lacks(auto_row(&none, JobKind::Arriving), &none).unwrap(),
            "jobs arrive during the run, so their mean turnaround counts; this machine has no hardware counters, so progress is CPU time, or what is visible"
        );
        assert_eq!(
            lacks(&[READS], Absence::NoCounterFree).unwrap(),
            "no reads from memory: no hardware counter was free for it; with them simulated mixes take 1 % less time"
        );
        assert_eq!(
            lacks(&EVENTS, Absence::NoCounters).unwrap(),
            "this machine has no hardware counters; with them simulated mixes take 6 % less time, unfairness 1.05, not 2.64"
        );
        assert_eq!(
            lacks(&[FREEZE], Absence::OnlyClient).unwrap(),
            "no freezing of jobs: freezing `srun` would stop the client alone, while its work on the nodes goes on; with them simulated mixes take 6 % less time, unfairness 1.05, not 2.64"
        );
    }
}
