//! Which CPUs a run uses, and how many of them a job: `--cpus` and `--cpus-per-job`.

use crate::exit::incapable;
use crate::input::{Job, JobInput};
use cosched_core::{CpuSet, TaskSpec, Width};
use std::fmt;
use std::str::FromStr;

/// The CPUs that a run may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CpuChoice {
    /// All that the caller may use, whoever else uses them.
    All,
    /// These.
    List(CpuSet),
}

impl CpuChoice {
    /// The CPUs that were listed.
    pub(crate) fn list(&self) -> Option<&CpuSet> {
        match self {
            CpuChoice::All => None,
            CpuChoice::List(cpus) => Some(cpus),
        }
    }
}

impl FromStr for CpuChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<CpuChoice, String> {
        match text {
            "all" => Ok(CpuChoice::All),
            list => match list.parse() {
                Ok(cpus) => Ok(CpuChoice::List(cpus)),
                Err(error) => Err(format!("{error}; or `all`")),
            },
        }
    }
}

/// What to give to `--cpus`, where these can be used.
pub(crate) fn usable_text(cpus: &CpuSet) -> String {
    let first = cpus.first().map_or(0, |cpu| cpu.0);
    format!("{cpus} can be used, as in --cpus {first}")
}

/// How many CPUs a job without `cpus` in a mix file gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CpusPerJob {
    /// One of its own, and those that nobody has; how many it uses is measured. In a simulation, one: its programs have
    /// one thread.
    #[default]
    Auto,
    /// All that the run uses.
    All,
    /// So many, at least 1.
    Count(u32),
}

impl fmt::Display for CpusPerJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CpusPerJob::Auto => f.write_str("auto"),
            CpusPerJob::All => f.write_str("all"),
            CpusPerJob::Count(count) => count.fmt(f),
        }
    }
}

impl FromStr for CpusPerJob {
    type Err = String;

    fn from_str(text: &str) -> Result<CpusPerJob, String> {
        match text {
            "auto" => Ok(CpusPerJob::Auto),
            "all" => Ok(CpusPerJob::All),
            number => match number.parse() {
                Ok(n @ 1..=65_536) => Ok(CpusPerJob::Count(n)),
                _ => Err("expected 1 to 65536 CPUs, `auto` or `all`, as in 2".to_owned()),
            },
        }
    }
}

impl CpusPerJob {
    /// The CPUs of a job, and whether they are all that it gets. `cpus` are those of the run; with `can_measure` the
    /// width of jobs can be measured.
    ///
    /// # Errors
    /// The job needs more CPUs at once than there are.
    pub(crate) fn of(
        self,
        job: &Job,
        cpus: &CpuSet,
        can_measure: bool,
    ) -> anyhow::Result<(u32, Width)> {
        let input = &job.input;
        let wanted = match (input.cpus, self) {
            (Some(stated), _) | (None, CpusPerJob::Count(stated)) => stated,
            (None, CpusPerJob::All) => cpus.len() as u32,
            (None, CpusPerJob::Auto) if can_measure => return Ok((1, Width::Measured)),
            (None, CpusPerJob::Auto) => 1,
        };
        if wanted as usize <= cpus.len() {
            return Ok((wanted, Width::Stated));
        }
        let have = format!("{} can be used here ({cpus})", cpus.len());
        Err(incapable(match input.cpus {
            Some(_) => {
                let JobInput { place, .. } = input;
                let name = &job.name;
                format!("{place}: job `{name}` needs cpus = {wanted}, and {have}")
            }
            None => format!("--cpus-per-job {wanted}: {have}; as in --cpus-per-job all"),
        }))
    }

    /// The same as a task that is to be given its other values.
    pub(crate) fn spec(
        self,
        ix: usize,
        job: &Job,
        cpus: &CpuSet,
        can_measure: bool,
    ) -> anyhow::Result<TaskSpec> {
        let (cpus, width) = self.of(job, cpus, can_measure)?;
        Ok(TaskSpec {
            cpus,
            width,
            ..TaskSpec::new(ix as u32, &job.name)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input;

    fn job(cpus: Option<u32>) -> Job {
        let cpus = cpus.map_or_else(String::new, |cpus| format!("cpus = {cpus}\n"));
        let text = format!("\n\n[[job]]\nname = \"x\"\ncommand = \"x\"\n{cpus}");
        input::expand(input::mix::parse(&text, "mix.toml").unwrap().jobs)
            .unwrap()
            .remove(0)
    }

    #[test]
    fn what_the_mix_states_comes_first() {
        let cpus: CpuSet = "0-3".parse().unwrap();
        let of = |text: &str, stated, can_measure| {
            text.parse::<CpusPerJob>()
                .unwrap()
                .of(&job(stated), &cpus, can_measure)
                .map_err(|error| error.to_string())
        };
        assert_eq!(of("auto", None, true), Ok((1, Width::Measured)));
        assert_eq!(of("auto", None, false), Ok((1, Width::Stated)));
        assert_eq!(
            (of("all", None, true), of("3", None, true)),
            (Ok((4, Width::Stated)), Ok((3, Width::Stated)))
        );
        for text in ["auto", "all", "3"] {
            assert_eq!(of(text, Some(2), true), Ok((2, Width::Stated)));
        }
        assert!(
            of("5", None, true)
                .unwrap_err()
                .contains("--cpus-per-job 5: 4 can be used here (0-3)")
        );
        assert!(
            of("all", Some(5), true)
                .unwrap_err()
                .contains("mix.toml:3: job `x` needs cpus = 5")
        );
    }

    #[test]
    fn forms() {
        for text in ["", "0", "-1", "x", "65537", "1.5"] {
            assert!(text.parse::<CpusPerJob>().is_err(), "{text}");
        }
        assert_eq!("all".parse(), Ok(CpuChoice::All));
        assert_eq!("0-1".parse(), Ok(CpuChoice::List("0-1".parse().unwrap())));
        assert!(
            "x".parse::<CpuChoice>()
                .is_err_and(|why| why.contains("`all`"))
        );
    }
}
