//! The choice of a policy where the user names none.
//!
//! The first row that fits decides. The simulation chose the rows: the least turnaround; within 1 % the least
//! unfairness; and in no world more than 1 % later than `fifo` (results/auto-measured.md).

use super::{PolicyEntry, even, fifo, linux, round_robin};
use crate::capability::{Capabilities, Capability};
use crate::counter::Counter;
use crate::units::Absence;

/// One row of the choice.
pub struct AutoRow {
    /// The capabilities that it needs.
    pub needs: &'static [Capability],
    /// Whether it serves only more jobs at once than CPUs.
    pub for_crowds: bool,
    /// The policy.
    pub policy: &'static PolicyEntry,
    /// Its parameters that do not have their defaults.
    pub params: &'static [(&'static str, &'static str)],
    /// Turnaround against that of `fifo`, in percent, where only what it needs is counted: the mean over mixes.
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

/// For `even` without a count of a cache or of memory: longer quanta average its errors.
const HALF: &[(&str, &str)] = &[("quantum_s", "0.5")];

const fn row(
    needs: &'static [Capability],
    policy: &'static PolicyEntry,
    params: &'static [(&'static str, &'static str)],
    turnaround_percent: f64,
    unfairness: f64,
) -> AutoRow {
    AutoRow {
        needs,
        for_crowds: false,
        policy,
        params,
        turnaround_percent,
        unfairness,
    }
}

/// Every row. The last one needs nothing.
pub static AUTO: [AutoRow; 7] = [
    row(
        &[FREEZE, BIND, IPC, READS, LLC, L1],
        &even::ENTRY,
        &[],
        8.4,
        1.03,
    ),
    row(
        &[FREEZE, BIND, IPC, READS, LLC],
        &even::ENTRY,
        &[],
        7.4,
        1.04,
    ),
    row(&[FREEZE, BIND, IPC, LLC], &even::ENTRY, HALF, 5.2, 1.07),
    row(&[FREEZE, BIND, IPC, READS], &even::ENTRY, HALF, 5.0, 1.12),
    AutoRow {
        for_crowds: true,
        ..row(&[], &linux::ENTRY, &[], 2.4, 1.47)
    },
    row(
        &[FREEZE],
        &round_robin::ENTRY,
        &[("quantum_s", "1")],
        4.0,
        1.42,
    ),
    row(&[], &fifo::ENTRY, &[], 0.0, 2.73),
];

/// The row that decides on a machine. In a crowd, more jobs than CPUs must run at once.
pub fn auto_row(capabilities: &Capabilities, crowd: bool) -> &'static AutoRow {
    let fits = |row: &&AutoRow| (crowd || !row.for_crowds) && row.lacks(capabilities).is_empty();
    AUTO.iter().find(fits).unwrap_or(&AUTO[AUTO.len() - 1])
}

/// What a machine lacks for the first row, with the reasons, and what that costs; `None` if nothing.
pub fn auto_lacks(row: &AutoRow, capabilities: &Capabilities) -> Option<String> {
    let mut reasons: Vec<(Absence, Vec<&str>)> = Vec::new();
    for (capability, why) in AUTO[0].lacks(capabilities) {
        match reasons.iter_mut().find(|(other, _)| *other == why) {
            Some((_, names)) => names.push(capability.text()),
            None => reasons.push((why, vec![capability.text()])),
        }
    }
    let reasons: Vec<String> = reasons.iter().map(lack).collect();
    let [best, own] = [&AUTO[0], row].map(|row| 100.0 + row.turnaround_percent);
    let cost = format!(
        "in simulated mixes that costs {:.0} % more time, with unfairness {:.2} instead of {:.2}",
        100.0 * (own / best - 1.0),
        row.unfairness,
        AUTO[0].unfairness
    );
    (!reasons.is_empty()).then(|| format!("{}; {cost}", reasons.join("; ")))
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

    /// What it needs, in words.
    pub fn condition(&self) -> String {
        let names: Vec<&str> = self.needs.iter().map(|need| need.text()).collect();
        match names[..] {
            [] if self.for_crowds => "more jobs at once than CPUs".to_owned(),
            [] => "nothing".to_owned(),
            _ => names.join(", "),
        }
    }

    /// The policy and its parameters.
    pub fn form(&self) -> String {
        let params = self.params.iter();
        let params: String = params
            .map(|(name, value)| format!(" {name}={value}"))
            .collect();
        format!("{}{params}", self.policy.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Params;

    const EVENTS: [Capability; 4] = [IPC, READS, LLC, L1];

    fn lacking(missing: &[Capability], why: Absence) -> Capabilities {
        Capabilities {
            missing: missing.iter().map(|&missing| (missing, why)).collect(),
        }
    }

    #[test]
    fn each_set_of_events_gets_its_row() {
        let half = "even quantum_s=0.5";
        let turns = "round-robin quantum_s=1";
        let all = [FREEZE, BIND, IPC, READS, LLC, L1];
        for (missing, expected, in_a_crowd) in [
            (&[][..], "even", "even"),
            (&[L1], "even", "even"),
            (&[LLC], half, half),
            (&[READS], half, half),
            (&[LLC, L1], half, half),
            (&[READS, L1], half, half),
            (&[READS, LLC], turns, "linux"),
            (&[READS, LLC, L1], turns, "linux"),
            (&[IPC], turns, "linux"),
            (&EVENTS, turns, "linux"),
            (&[BIND], turns, "linux"),
            (&[FREEZE], "fifo", "linux"),
            (&all, "fifo", "linux"),
        ] {
            let capabilities = lacking(missing, Absence::NoSuchEvent);
            let form = |crowd| auto_row(&capabilities, crowd).form();
            assert_eq!(form(false), expected, "{missing:?}");
            assert_eq!(form(true), in_a_crowd, "{missing:?}");
        }
    }

    #[test]
    fn every_row_can_be_run_and_the_last_one_always_fits() {
        for row in &AUTO {
            let settings = row.params.iter();
            let settings: Vec<_> = settings
                .map(|&(name, value)| (name.into(), value.into()))
                .collect();
            let params = Params::resolve(row.policy.name, row.policy.params, &settings).unwrap();
            let missing = lacking(&EVENTS, Absence::NoCounters);
            let shortfalls = row.policy.shortfalls(&params, &missing);
            let required = |short: &crate::policy::Shortfall| {
                short.importance == crate::policy::Importance::Required
            };
            assert!(!shortfalls.iter().any(required), "{}", row.policy.name);
        }
        let last = &AUTO[AUTO.len() - 1];
        assert!(last.needs.is_empty() && !last.for_crowds);
    }

    #[test]
    fn it_says_what_is_missing_and_what_that_costs() {
        let lacks = |missing: &[Capability], why| {
            let capabilities = lacking(missing, why);
            auto_lacks(auto_row(&capabilities, false), &capabilities)
        };
        assert_eq!(lacks(&[], Absence::NoCounters), None);
        assert_eq!(lacks(&[READS], Absence::DoesNotFit).unwrap(), "");
        assert_eq!(lacks(&EVENTS, Absence::NoCounters).unwrap(), "");
        assert_eq!(lacks(&[FREEZE, BIND], Absence::OnlyClient).unwrap(), "");
    }
}
