//! Where runs are from: runs of different machines, or of different versions of cosched, are not quite of one kind.

use crate::record::RunRecord;
use crate::source::BackendKind;
use crate::text::count;
use std::collections::BTreeMap;

/// Where a run is from.
#[derive(Debug)]
pub struct Origin {
    /// The machine, with what distinguishes it from others.
    pub machine: String,
    /// The version of cosched.
    pub version: String,
}

impl Origin {
    /// Where a run with this record is from.
    pub fn of(record: &RunRecord) -> Origin {
        let mut machine = record.machine.clone();
        if record.backend == BackendKind::Host {
            let cpus = count(record.machine_details.cpus as u64, "CPU");
            machine += &format!(" with {cpus}");
            if let Some(host) = &record.setting.host {
                machine += &format!(" ({host})");
            }
        }
        Origin {
            machine,
            version: record.cosched_version.clone(),
        }
    }
}

/// Return a sentence for each difference between runs that makes a comparison doubtful.
pub fn origin_doubts<'a>(origins: impl IntoIterator<Item = &'a Origin>) -> Vec<String> {
    let mut machines: BTreeMap<&str, u64> = BTreeMap::new();
    let mut versions: BTreeMap<&str, u64> = BTreeMap::new();
    for origin in origins {
        *machines.entry(&origin.machine).or_default() += 1;
        *versions.entry(&origin.version).or_default() += 1;
    }
    let mut doubts = Vec::new();
    for (what, runs_of) in [("machines", machines), ("versions of cosched", versions)] {
        if runs_of.len() > 1 {
            let mut each = Vec::new();
            for (name, runs) in runs_of {
                each.push(format!("{name}, {}", count(runs, "run")));
            }
            let each = each.join("; ");
            doubts.push(format!("these runs are of different {what}: {each}"));
        }
    }
    doubts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_differs_is_told() {
        let of = |machine: &str, version: &str| Origin {
            machine: machine.to_owned(),
            version: version.to_owned(),
        };
        assert_eq!(origin_doubts(&[of("a", "1"), of("a", "1")]), [""; 0]);
        assert_eq!(
            origin_doubts(&[of("a", "1"), of("b", "1"), of("b", "2")]),
            [
                "these runs are of different machines: a, 1 run; b, 2 runs",
                "these runs are of different versions of cosched: 1, 2 runs; 2, 1 run",
            ]
        );
    }
}
