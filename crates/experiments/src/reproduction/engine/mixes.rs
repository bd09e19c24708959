//! The mixes of the papers' experiments, from the folder `mixes`.

use cosched_core::Restart;
use cosched_sim::{JobWork, PROGRAMS, ProgramSpec, SimJob, builtin_program};
use std::sync::Arc;

/// Lists files of the folder `mixes`.
macro_rules! mixes {
    ($($path:literal)+) => {
        &[$(($path, include_str!(concat!("../../../mixes/", $path, ".toml"))),)+]
    };
}

/// Name and text of every mix.
static MIXES: &[(&str, &str)] = mixes! {
    "perf-fair/mix01"
    "perf-fair/mix02"
    "perf-fair/mix03"
    "perf-fair/mix04"
    "perf-fair/mix05"
    "perf-fair/mix06"
    "perf-fair/mix07"
    "perf-fair/mix08"
    "perf-fair/mix09"
    "perf-fair/mix10"
    "perf-fair/mix11"
    "perf-fair/mix12"
    "perf-fair/mix13"
    "bandwidth/mix01"
    "bandwidth/mix02"
    "bandwidth/mix03"
    "bandwidth/mix04"
    "bandwidth/mix05"
    "bandwidth/mix06"
    "bandwidth/mix07"
    "bandwidth/mix08"
    "bandwidth/mix09"
    "bandwidth/mix10"
    "efs/high-1"
    "efs/high-2"
    "efs/high-3"
    "efs/high-4"
    "efs/high-5"
    "efs/high-6"
    "efs/high-7"
    "efs/high-8"
    "lucky/1ci-3mi"
    "lucky/2ci-2mi"
    "lucky/3ci-1mi"
    "lucky/4ci"
    "lucky/4mi"
    "lucky/4p"
    "lucky/4r1"
    "lucky/4r2"
};

/// A mix: its jobs, and whether they start again.
#[derive(Clone, Debug)]
pub(crate) struct ExperimentMix {
    pub(crate) name: String,
    pub(crate) jobs: Vec<SimJob>,
    pub(crate) restart: Restart,
}

impl ExperimentMix {
    /// So many copies of a program, each with the same work.
    pub(crate) fn of_copies(
        program: &Arc<ProgramSpec>,
        number: usize,
        work: JobWork,
    ) -> ExperimentMix {
        ExperimentMix {
            name: program.name.clone(),
            jobs: copies(program, number, work),
            restart: Restart::Never,
        }
    }
}

#[derive(serde::Deserialize)]
struct MixFile {
    #[serde(default)]
    restart: Option<String>,
    job: Vec<JobEntry>,
}

#[derive(serde::Deserialize)]
struct JobEntry {
    program: String,
    #[serde(default = "one")]
    copies: usize,
    work_instructions: Option<f64>,
}

fn one() -> usize {
    1
}

/// Tests read every mix and find every program.
const SOUND: &str = "a mix that comes with the project is sound";

/// The mixes of a folder, in the order of their names. Jobs without work of their own have `work`.
pub(crate) fn of_folder(folder: &str, work: JobWork) -> Vec<ExperimentMix> {
    let mut mixes = Vec::new();
    for (path, text) in MIXES {
        let (of, name) = path.split_once('/').expect(SOUND);
        if of == folder {
            mixes.push(read(name, text, work));
        }
    }
    mixes
}

fn read(name: &str, text: &str, work: JobWork) -> ExperimentMix {
    let file: MixFile = toml::from_str(text).expect(SOUND);
    let mut jobs: Vec<SimJob> = Vec::new();
    for entry in &file.job {
        let work = entry.work_instructions.map_or(work, |instructions| {
            JobWork::Instructions(instructions as u64)
        });
        jobs.extend(copies(&program(&entry.program), entry.copies, work));
    }
    let restart = match file.restart {
        Some(_) => Restart::UntilLast,
        None => Restart::Never,
    };
    ExperimentMix {
        name: name.to_owned(),
        jobs,
        restart,
    }
}

/// The built-in program of this name.
pub(crate) fn program(name: &str) -> Arc<ProgramSpec> {
    Arc::new(builtin_program(name).expect(SOUND))
}

/// The programs of SPEC CPU2006, by name.
pub(crate) fn spec_programs() -> Vec<Arc<ProgramSpec>> {
    PROGRAMS
        .iter()
        .filter(|file| file.file.contains("/spec-cpu2006/"))
        .map(|file| program(file.name))
        .collect()
}

/// Copies of a program, each with the same work.
pub(crate) fn copies(program: &Arc<ProgramSpec>, copies: usize, work: JobWork) -> Vec<SimJob> {
    vec![
        SimJob {
            program: program.clone(),
            work,
            cpus: 1,
            nice: 0
        };
        copies
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use cosched_core::Nanos;

    #[test]
    fn every_mix_is_read_and_none_is_forgotten() {
        let work = JobWork::SoloTime(Nanos::from_ms(1_000));
        for (folder, mixes, jobs) in [
            ("perf-fair", 13, 24),
            ("bandwidth", 10, 24),
            ("lucky", 8, 4),
        ] {
            let read = of_folder(folder, work);
            assert_eq!(read.len(), mixes, "{folder}");
            assert!(read.iter().all(|mix| mix.jobs.len() == jobs), "{folder}");
        }
        assert!(
            of_folder("lucky", work)
                .iter()
                .all(|mix| mix.restart == Restart::UntilLast)
        );
        let high = of_folder("efs", work);
        assert!(high.iter().all(|mix| mix.jobs.len() >= 4));
        assert!(high[7].jobs.len() > 4, "more programs than cores");
        let here = concat!(env!("CARGO_MANIFEST_DIR"), "/../../mixes");
        for folder in ["perf-fair", "bandwidth", "lucky", "efs"] {
            #[allow(clippy::disallowed_methods)] // A test reads the repository.
            let files = std::fs::read_dir(format!("{here}/{folder}")).unwrap();
            // The files `efs/four-NAME` and `efs/figure-7` are copies of one program.
            let counted = files.filter(|file| {
                let name = file.as_ref().unwrap().file_name().into_string().unwrap();
                !name.starts_with("four-") && !name.starts_with("figure-")
            });
            assert_eq!(counted.count(), of_folder(folder, work).len(), "{folder}");
        }
    }
}
