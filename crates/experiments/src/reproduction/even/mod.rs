//! Our own policy `even` beside the papers' policies. It is of no paper, so it is held against goals of its own.
//!
//! `measured` has the tables and pictures of the usual worlds, `energy` those with energy as the objective, `worlds` those of
//! worlds that its equations do not fit, and `lengths` jobs of unequal lengths.

mod core_types;
mod energy;
mod lengths;
mod measured;
mod worlds;

use crate::reproduction::error::ReproduceError;
use crate::reproduction::findings::{Cell, Chapter, OWN, Part, Table};
use crate::reproduction::lab::{Lab, in_words};
use crate::reproduction::mixes::{Mix, copies, of_folder, program, spec_names};
use cosched_core::{Nanos, Restart};
use cosched_sim::Work;

/// Mixes that an experiment runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mixes {
    /// Those of Perf&Fair.
    PerfFair,
    /// Four walkers of 8 MB and four loops.
    Walkers,
    /// More programs than the four cores of EFS's machine: those of EFS's mixes of high demand, each twice, and four that do
    /// nothing but miss beside four loops.
    Crowded,
    /// EFS's mixes of high demand.
    Efs,
    /// Four copies of each program of SPEC CPU2006.
    FourCopies,
    /// Those of lucky: four programs.
    Lucky,
}

/// A machine and the mixes that run on it.
struct Scene {
    machine: &'static str,
    mixes: Mixes,
}

const SCENES: [Scene; 5] = [
    Scene {
        machine: "xeon-e5645",
        mixes: Mixes::PerfFair,
    },
    Scene {
        machine: "xeon-e5645-2ch",
        mixes: Mixes::PerfFair,
    },
    Scene {
        machine: "xeon-e5645-1ch",
        mixes: Mixes::PerfFair,
    },
    Scene {
        machine: "epyc-2cpu",
        mixes: Mixes::Walkers,
    },
    Scene {
        machine: "i5-2500",
        mixes: Mixes::Crowded,
    },
];

/// The machines of the experiments that change something else: the first and the last of Perf&Fair's.
const ENDS: [&str; 2] = ["xeon-e5645", "xeon-e5645-1ch"];

/// What jobs take alone, in s: much longer than it takes to know them, and hardly longer.
const LONG_S: u64 = 100;
const SHORT_S: u64 = 4;

fn work(seconds: u64) -> Work {
    Work::SoloTime(Nanos::from_ms(1_000 * seconds))
}

/// The lengths of jobs, in s: the long one first.
fn lengths_s(lab: &Lab<'_>) -> &'static [u64] {
    if lab.quick {
        &[SHORT_S]
    } else {
        &[LONG_S, SHORT_S]
    }
}

impl Mixes {
    /// With jobs of so many seconds.
    pub(crate) fn of(self, seconds: u64) -> Vec<Mix> {
        let four_and_loops = |name: &'static str, of: &str| {
            let mut jobs = copies(&program(of), 4, work(seconds));
            jobs.extend(copies(&program("workload-compute"), 4, work(seconds)));
            Mix {
                name,
                jobs,
                restart: Restart::Never,
            }
        };
        match self {
            Mixes::PerfFair => of_folder("perf-fair", work(seconds)),
            Mixes::Walkers => vec![four_and_loops("walkers", "workload-chase")],
            Mixes::Efs => of_folder("efs", work(seconds)),
            Mixes::FourCopies => {
                let of = |name: &'static str| Mix {
                    name,
                    jobs: copies(&program(name), 4, work(seconds)),
                    restart: Restart::Never,
                };
                spec_names().map(of).collect()
            }
            Mixes::Lucky => {
                let mut all = of_folder("lucky", work(seconds));
                for mix in &mut all {
                    mix.restart = Restart::Never;
                    mix.jobs.iter_mut().for_each(|job| job.work = work(seconds));
                }
                all
            }
            Mixes::Crowded => {
                let mut all = of_folder("efs", work(seconds));
                all.iter_mut()
                    .for_each(|mix| mix.jobs.extend(mix.jobs.clone()));
                all.push(four_and_loops("starving", "bus-100"));
                all
            }
        }
    }
}

/// The chapter.
pub(crate) fn chapter(lab: &Lab<'_>) -> Result<Chapter, ReproduceError> {
    let lengths: Vec<String> = lengths_s(lab)
        .iter()
        .map(|seconds| format!("{seconds} s"))
        .collect();
    let mut parts = vec![Part::Text(format!(
        "The policy `even` lets all jobs progress alike, at the greatest speed that it predicts. It is of no paper, so it is held \
         against goals that were set for it. Jobs of {} alone, with {}, the same for every policy. The mixes are Perf&Fair's 13 on \
         the three forms of `xeon-e5645`, EFS's eight of high demand on `i5-2500`, each program twice, with one of four \
         programs that only miss beside four loops, and on `epyc-2cpu` four walkers of 8 MB with four loops. Unfairness is the greatest slowdown over the least, in per cent above 1; means over mixes are geometric. The \
         constants of `even` were chosen on Perf&Fair's mixes 3, 7 and 13 alone, so the other ten have a table of their own.",
        lengths.join(" and of "),
        in_words(lab.few_seeds()),
    ))];
    parts.extend(measured::parts(lab)?);
    parts.extend(energy::parts(lab)?);
    parts.extend(core_types::parts(lab)?);
    parts.extend(worlds::parts(lab)?);
    parts.extend(lengths::parts(lab)?);
    let title = "Our own policy `even` beside the others".to_owned();
    Ok(Chapter {
        id: OWN,
        title,
        parts,
        verdicts: Vec::new(),
        causes: Vec::new(),
    })
}

fn table(id: String, caption: String, columns: &[&str], rows: Vec<Vec<Cell>>) -> Part {
    let columns = columns.iter().map(|&column| column.to_owned()).collect();
    Part::Table(Table {
        id,
        caption,
        columns,
        rows,
    })
}

/// How a goal came out.
fn met(is_met: bool) -> &'static str {
    if is_met { "met" } else { "not met" }
}
