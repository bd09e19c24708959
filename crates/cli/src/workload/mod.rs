//! Built-in test programs, each of which stresses one resource. With them no other program is needed to try the
//! scheduler, and others can repeat an experiment.
//!
//! A workload does a fixed amount of work, never a fixed time: only then is its time beside others divided by its time
//! alone a slowdown. What it computes depends on its options and seed alone, never on timing, and is printed as a
//! checksum. Memory is allocated and touched in a set-up that is timed apart.
//!
//! A new workload is one file and one line in [`WORKLOADS`]: the command line, the listing and the tests iterate over
//! the table.

pub mod arithmetic;
pub mod bus;
pub mod chase;
pub mod compute;
pub mod contract;
pub mod measure;
pub mod memory;
pub mod phases;
pub mod ring;
pub mod stream;

pub use contract::{Workload, WorkloadOutcome};

use clap::{ArgMatches, Command, FromArgMatches};

/// All workloads, in the order in which they are listed.
pub const WORKLOADS: &[WorkloadEntry] = &[
    entry::<chase::Chase>(
        "chase",
        "Dependent loads in random order over a working set",
        "the latency of whichever cache or memory the working set fits in, and the space it takes there",
        "loads",
    ),
    entry::<stream::Stream>(
        "stream",
        "Sequential passes over a working set",
        "memory bandwidth, with the prefetchers' help, and reads and writes apart",
        "passes",
    ),
    entry::<compute::Compute>(
        "compute",
        "Integer arithmetic in registers",
        "the core's execution units; no memory, so no slowdown but by a sibling on the same core",
        "iterations",
    ),
    entry::<bus::Bus>(
        "bus",
        "Cache misses and an idle loop, mixed to a wanted share of time in misses",
        "main memory, for a settable share of the time: the synthetic program of the EFS paper",
        "steps",
    ),
    entry::<phases::Phases>(
        "phases",
        "A chase and arithmetic in turns",
        "cache and memory in one half of each period, the core's execution units in the other",
        "units",
    ),
];

/// One row of the table of workloads.
pub struct WorkloadEntry {
    /// The name that the user types.
    pub name: &'static str,
    /// What it does, in one line.
    pub gist: &'static str,
    /// Which resource it stresses.
    pub stresses: &'static str,
    /// What `--work` counts, in the plural.
    pub unit: &'static str,
    add_options: fn(Command) -> Command,
    parse: fn(&ArgMatches) -> Result<Box<dyn Workload>, clap::Error>,
}

const fn entry<K: Workload + clap::Args + 'static>(
    name: &'static str,
    gist: &'static str,
    stresses: &'static str,
    unit: &'static str,
) -> WorkloadEntry {
    WorkloadEntry {
        name,
        gist,
        stresses,
        unit,
        add_options: K::augment_args,
        parse: parse::<K>,
    }
}

fn parse<K: Workload + FromArgMatches + 'static>(
    matches: &ArgMatches,
) -> Result<Box<dyn Workload>, clap::Error> {
    Ok(Box::new(K::from_arg_matches(matches)?))
}

impl WorkloadEntry {
    /// The command line of this workload.
    pub fn command(&self) -> Command {
        (self.add_options)(Command::new(self.name))
            .about(self.gist)
            .long_about(format!("{}.\n\nStresses {}.", self.gist, self.stresses))
    }

    /// The workload with the options that were given.
    pub fn workload(&self, matches: &ArgMatches) -> Result<Box<dyn Workload>, clap::Error> {
        (self.parse)(matches)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a workload with options small enough for an unoptimised build; options that it does not have are left out.
    fn run(entry: &WorkloadEntry, work: &str, seed: u64) -> WorkloadOutcome {
        let has = |option: &str| {
            entry
                .command()
                .get_arguments()
                .any(|arg| arg.get_long() == Some(option))
        };
        let mut words = vec![entry.name, "--work", work];
        for (option, value) in [("working-set", "64K"), ("period", "16")] {
            if has(option) {
                words.extend([
                    ["--working-set", "--period"][usize::from(option == "period")],
                    value,
                ]);
            }
        }
        let matches = entry
            .command()
            .try_get_matches_from(words)
            .expect("a valid command line");
        entry
            .workload(&matches)
            .expect("valid options")
            .run(seed)
            .expect("64K can be had")
    }

    #[test]
    fn every_workload_does_exactly_the_work_that_was_asked_for() {
        for entry in WORKLOADS {
            for work in [1, 2, 97, 300] {
                assert_eq!(
                    run(entry, &work.to_string(), 1).work,
                    work,
                    "{}",
                    entry.name
                );
            }
        }
    }

    #[test]
    fn a_checksum_depends_on_work_and_seed_and_on_nothing_else() {
        for entry in WORKLOADS {
            let sum = |work, seed| run(entry, work, seed).checksum;
            assert_eq!(
                sum("300", 1),
                sum("300", 1),
                "{}: same options, same result",
                entry.name
            );
            assert_ne!(
                sum("300", 1),
                sum("300", 2),
                "{}: the seed matters",
                entry.name
            );
            assert_ne!(
                sum("300", 1),
                sum("299", 1),
                "{}: the last unit of work matters",
                entry.name
            );
        }
    }

    #[test]
    fn every_default_is_a_valid_value() {
        for entry in WORKLOADS {
            let matches = entry
                .command()
                .try_get_matches_from([entry.name])
                .expect("defaults parse");
            entry.workload(&matches).expect("defaults are valid");
        }
    }

    #[test]
    fn names_are_unique_and_every_option_is_explained() {
        for (at, entry) in WORKLOADS.iter().enumerate() {
            assert!(
                WORKLOADS[..at].iter().all(|other| other.name != entry.name),
                "{} twice",
                entry.name
            );
            for argument in entry.command().get_arguments() {
                assert!(
                    argument.get_help().is_some(),
                    "{}: {} has no help",
                    entry.name,
                    argument.get_id()
                );
            }
        }
    }

    #[test]
    fn the_document_covers_every_workload_and_option() {
        let document = include_str!("../../docs/workloads.md");
        for entry in WORKLOADS {
            let heading = format!("\n## {}\n", entry.name);
            let section = document
                .split(heading.as_str())
                .nth(1)
                .unwrap_or_else(|| panic!("no{heading}"));
            let section = section.split("\n## ").next().unwrap_or_default();
            for argument in entry.command().get_arguments() {
                let Some(long) = argument.get_long() else {
                    continue;
                };
                assert!(
                    section.contains(&format!("`--{long}")),
                    "{}: --{long} is not documented",
                    entry.name
                );
                for default in argument.get_default_values() {
                    let default = default.to_string_lossy();
                    assert!(
                        section.contains(default.as_ref()),
                        "{}: --{long} {default}?",
                        entry.name
                    );
                }
            }
        }
    }
}
