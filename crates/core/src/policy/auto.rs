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
    /// Turnaround in percent less than that of `fifo`, over the mixes of Perf&Fair.
    pub saves_percent: f64,
    /// Greatest slowdown / least slowdown, over the same mixes.
    pub unfairness: f64,
}

const L1: Capability = Capability::Counter(Counter::L1Accesses);
const LLC: Capability = Capability::Counter(Counter::LlcAccesses);
const READS: Capability = Capability::Counter(Counter::MmReads);
const IPC: Capability = Capability::Ipc;
const FREEZE: Capability = Capability::Freeze;
const BIND: Capability = Capability::Affinity;

const fn even_row(needs: &'static [Capability], saves_percent: f64, unfairness: f64) -> AutoRow {
    AutoRow {
        needs,
        for_crowds: false,
        policy: &even::ENTRY,
        params: &[],
        saves_percent,
        unfairness,
    }
}

/// Every row. The last one needs nothing.
pub static AUTO: [AutoRow; 7] = [
    even_row(&[FREEZE, BIND, IPC, READS, LLC, L1], 8.4, 1.03),
    even_row(&[FREEZE, BIND, IPC, READS, LLC], 7.4, 1.04),
    even_row(&[FREEZE, BIND, IPC, LLC], 6.0, 1.07),
    even_row(&[FREEZE, BIND, IPC, READS], 5.0, 1.10),
    AutoRow {
        needs: &[],
        for_crowds: true,
        policy: &linux::ENTRY,
        params: &[],
        saves_percent: 2.4,
        unfairness: 1.47,
    },
    AutoRow {
        needs: &[FREEZE],
        for_crowds: false,
        policy: &round_robin::ENTRY,
        params: &[("quantum_s", "1")],
        saves_percent: 4.0,
        unfairness: 1.42,
    },
    AutoRow {
        needs: &[],
        for_crowds: false,
        policy: &fifo::ENTRY,
        params: &[],
        saves_percent: 0.0,
        unfairness: 2.7,
    },
];

/// The row that decides on a machine. In a crowd, more jobs than CPUs must run at once.
pub fn auto_row(capabilities: &Capabilities, crowd: bool) -> &'static AutoRow {
    let fits = |row: &&AutoRow| (crowd || !row.for_crowds) && row.lacks(capabilities).is_empty();
    AUTO.iter().find(fits).unwrap_or(&AUTO[AUTO.len() - 1])
}

/// What a machine lacks for the best row, with the reasons; `None` if nothing.
pub fn auto_lacks(capabilities: &Capabilities) -> Option<String> {
    let lacks = AUTO[0].lacks(capabilities);
    let mut reasons: Vec<(Absence, Vec<&str>)> = Vec::new();
    for (capability, why) in lacks {
        match reasons.iter_mut().find(|(other, _)| *other == why) {
            Some((_, names)) => names.push(capability.text()),
            None => reasons.push((why, vec![capability.text()])),
        }
    }
    let text = |(why, names): &(Absence, Vec<&str>)| match why {
        // The reason says it all.
        Absence::NoCounters => why.to_string(),
        _ => format!("{}: {why}", names.join(", ")),
    };
    let texts: Vec<String> = reasons.iter().map(text).collect();
    (!texts.is_empty()).then(|| texts.join("; "))
}

impl AutoRow {
    /// The capabilities that it needs and a machine lacks, with the reasons.
    pub fn lacks(&self, capabilities: &Capabilities) -> Vec<(Capability, Absence)> {
        let missing = |&need| Some((need, capabilities.why_missing(need)?));
        self.needs.iter().filter_map(missing).collect()
    }

    /// What it needs, in words.
    pub fn condition(&self) -> String {
        if self.for_crowds {
            return "more jobs at once than CPUs".to_owned();
        }
        let names: Vec<&str> = self.needs.iter().map(|need| need.text()).collect();
        match names[..] {
            [] => "nothing".to_owned(),
            _ => names.join(", "),
        }
    }

    /// Why it decides on a machine, and what the best row would gain there.
    pub fn reason(&self, capabilities: &Capabilities) -> String {
        let condition = self.condition();
        let Some(lacks) = auto_lacks(capabilities) else {
            return format!("it needs {condition}");
        };
        let [best, own] = [&AUTO[0], self].map(|row| 100.0 - row.saves_percent);
        format!(
            "it needs {condition}; missing: {lacks}; with all that {} would take {:.0} % less time, with unfairness {:.2} instead of {:.2}",
            AUTO[0].policy.name,
            100.0 * (1.0 - best / own),
            AUTO[0].unfairness,
            self.unfairness
        )
    }
}
