//! Scenes of jobs on built-in machines. Runs a policy in a scene, and computes the metrics of the run.

use cosched_core::metric::{Outcomes, metric};
use cosched_core::*;
use cosched_sim::*;
use std::sync::Arc;

/// The seeds for which each claim holds. They vary the instances of the programs.
pub(crate) const SEEDS: std::ops::RangeInclusive<u64> = 1..=5;

/// Jobs on a machine.
#[derive(Clone)]
pub(crate) struct JobScene {
    machine: MachineSpec,
    jobs: Vec<SimJob>,
    /// Arrival time of each job; none: all are there from the start.
    arrivals: Vec<Nanos>,
    /// Whether the solo times of the jobs are known from earlier runs.
    is_known: bool,
    /// Whether their progress is visible.
    is_visible: bool,
    restart: Restart,
}

impl JobScene {
    pub(crate) fn on(machine: &'static str) -> JobScene {
        JobScene {
            machine: builtin_machine(machine).unwrap_or_else(|| panic!("{machine} is built in")),
            jobs: Vec::new(),
            arrivals: Vec::new(),
            is_known: false,
            is_visible: false,
            restart: Restart::Never,
        }
    }

    /// Changes the machine.
    #[allow(dead_code)] // For examples.
    pub(crate) fn change(mut self, edit: impl FnOnce(&mut MachineSpec)) -> JobScene {
        edit(&mut self.machine);
        self
    }

    /// Lets each job arrive at its time. `is_known`: the times that they need alone are known from earlier runs.
    #[allow(dead_code)] // For examples.
    pub(crate) fn open(mut self, arrivals: Vec<Nanos>, is_known: bool) -> JobScene {
        self.arrivals = arrivals;
        self.is_known = is_known;
        self
    }

    /// Makes the progress of the jobs visible.
    #[allow(dead_code)] // For examples.
    pub(crate) fn visible(mut self) -> JobScene {
        self.is_visible = true;
        self
    }

    /// Lets every second job take five times as long.
    #[allow(dead_code)] // For examples.
    pub(crate) fn uneven(mut self) -> JobScene {
        for job in self.jobs.iter_mut().step_by(2) {
            if let JobWork::SoloTime(time) = &mut job.work {
                time.0 *= 5;
            }
        }
        self
    }

    /// Adds copies of a program, each with the work that it does alone in this many milliseconds.
    pub(crate) fn copies(self, count: usize, program: &str, solo_ms: u64) -> JobScene {
        let program = builtin_program(program).unwrap_or_else(|| panic!("{program} is built in"));
        self.custom(count, program, solo_ms)
    }

    /// Adds copies of a program that is not built in.
    pub(crate) fn custom(mut self, count: usize, program: ProgramSpec, solo_ms: u64) -> JobScene {
        let work = JobWork::SoloTime(Nanos::from_ms(solo_ms));
        let job = SimJob {
            program: Arc::new(program),
            work,
            cpus: 1,
            nice: 0,
        };
        self.jobs.extend(std::iter::repeat_n(job, count));
        self
    }

    /// Adds one copy of each program.
    pub(crate) fn each(self, programs: &[&str], solo_ms: u64) -> JobScene {
        programs
            .iter()
            .fold(self, |scene, program| scene.copies(1, program, solo_ms))
    }

    /// Adds the programs of a mix file of the repository, and takes over whether they start again.
    pub(crate) fn mix(mut self, path: &str, solo_ms: u64) -> JobScene {
        let table = mix_file(path);
        if table.get("restart").is_some() {
            self.restart = Restart::UntilLast;
        }
        for job in table["job"].as_array().unwrap() {
            let copies = copies_of(job);
            self = self.copies(copies, job["program"].as_str().unwrap(), solo_ms);
            if let Some(work) = job.get("work_instructions") {
                let work = work
                    .as_float()
                    .unwrap_or_else(|| work.as_integer().unwrap() as f64);
                let from = self.jobs.len() - copies;
                self.jobs[from..]
                    .iter_mut()
                    .for_each(|job| job.work = JobWork::Instructions(work as u64));
            }
        }
        self
    }

    /// Adds these programs, each with its solo time in milliseconds.
    #[allow(dead_code)] // For examples.
    pub(crate) fn programs(self, programs: &[(String, u64)]) -> JobScene {
        programs.iter().fold(self, |scene, (program, solo_ms)| {
            scene.copies(1, program, *solo_ms)
        })
    }

    /// The simulation of the scene.
    pub(crate) fn config(&self, seed: u64) -> SimConfig {
        SimConfig {
            shows_progress: self.is_visible,
            ..SimConfig::new(Arc::new(self.machine.clone()), self.jobs.clone(), seed)
        }
    }

    /// Runs the scene, and shows the recorder every decision.
    pub(crate) fn watched(&self, policy: &str, seed: u64, watch: &mut dyn Recorder) -> ScenarioRun {
        self.run_with(policy, &[], seed, watch)
    }

    /// The same with parameters.
    pub(crate) fn run_with(
        &self,
        policy: &str,
        params: &[(&str, &str)],
        seed: u64,
        watch: &mut dyn Recorder,
    ) -> ScenarioRun {
        let (mut decider, config) = policy_on(&self.machine, policy, params);
        let mut sim = Sim::new(self.config(seed)).unwrap();
        let mut specs: Vec<TaskSpec> = (0..self.jobs.len() as u32)
            .map(|id| TaskSpec::new(id, &format!("{}-{id}", self.jobs[id as usize].program.name)))
            .collect();
        // Solo traces cost all solo runs once more, and only this policy uses them.
        let traces = if policy == "oracle" {
            sim.solo_traces(Nanos::from_ms(200), &mut |_| false)
                .unwrap()
        } else {
            vec![None; specs.len()]
        };
        for ((spec, solo), trace) in specs.iter_mut().zip(sim.solo_runs()).zip(traces) {
            spec.solo = SoloProfile {
                time: Some(solo.time),
                mm_reads: Some(solo.mm_reads),
                trace: trace.map(Into::into),
            };
            if self.is_known {
                spec.expected = Some(Expected::of(solo.time, ExpectedFrom::Same));
            }
        }
        for (spec, &arrives) in specs.iter_mut().zip(&self.arrivals) {
            spec.arrives = arrives;
        }
        let config = RunConfig {
            seed,
            restart: self.restart,
            jobs_per_cpu: self.live_per_cpu(policy),
            ..config
        };
        let result = run(&mut sim, &mut *decider, watch, specs, &config).unwrap();
        assert_eq!(result.policy_faults, 0, "{policy}");
        assert!(
            result
                .tasks
                .iter()
                .all(|task| task.exit == Some(Exit::Code(0))),
            "{policy}"
        );
        ScenarioRun {
            outcomes: Outcomes::of(&result),
        }
    }

    /// Jobs that arrive are admitted as by `cosched run`; all at once under `linux`, with which others are compared.
    fn live_per_cpu(&self, policy: &str) -> Option<usize> {
        let entry = find_policy(policy).unwrap();
        let is_limited = !self.arrivals.is_empty() && policy != "linux";
        is_limited.then_some(if entry.time_shares { 2 } else { 1 })
    }

    pub(crate) fn run(&self, policy: &str, seed: u64) -> ScenarioRun {
        self.watched(policy, seed, &mut NullRecorder)
    }
}

fn mix_file(path: &str) -> toml::Table {
    let path = format!("{}/../../mixes/{path}.toml", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    text.parse().unwrap()
}

fn copies_of(job: &toml::Value) -> usize {
    let copies = job.get("copies");
    copies.map_or(1, |copies| copies.as_integer().unwrap() as usize)
}

/// The programs of a mix file of the repository.
#[allow(dead_code)] // For examples.
pub(crate) fn mix_programs(path: &str) -> Vec<String> {
    let mut programs = Vec::new();
    for job in mix_file(path)["job"].as_array().unwrap() {
        let program = job["program"].as_str().unwrap().to_owned();
        programs.extend(std::iter::repeat_n(program, copies_of(job)));
    }
    programs
}

/// A policy with a machine's parameters and these, and the run's settings that it needs.
pub(crate) fn policy_on(
    machine: &MachineSpec,
    policy: &str,
    params: &[(&str, &str)],
) -> (Box<dyn Policy>, RunConfig) {
    let entry = find_policy(policy).unwrap();
    let mut settings = machine.settings_for(entry);
    for (name, value) in params {
        settings.push(((*name).to_owned(), (*value).to_owned()));
    }
    let params = Params::resolve(entry.name, entry.params, &settings).unwrap();
    let config = RunConfig {
        quantum: Nanos::from_s(params.number("quantum_s")),
        traffic: entry.needs_traffic(&params),
        ..RunConfig::default()
    };
    ((entry.build)(&params), config)
}

/// The result of a run.
pub(crate) struct ScenarioRun {
    outcomes: Outcomes,
}

impl ScenarioRun {
    /// The value of a metric of the table.
    pub(crate) fn get(&self, name: &str) -> f64 {
        metric(name)
            .unwrap()
            .of(&self.outcomes)
            .value()
            .unwrap_or_else(|| panic!("{name} has a value"))
    }
}

impl ScenarioRun {
    /// Mean turnaround of the jobs in seconds.
    #[allow(dead_code)] // For examples.
    pub(crate) fn mean_turnaround_s(&self) -> f64 {
        let tasks = self.outcomes.tasks.iter();
        let times = tasks.map(|task| task.turnaround.value().expect("all jobs end").as_s());
        times.sum::<f64>() / self.outcomes.tasks.len() as f64
    }
}

/// Four walkers of 8 MB and four loops on two CPUs.
pub(crate) fn walkers() -> JobScene {
    JobScene::on("epyc-2cpu")
        .copies(4, "workload-chase", 2_000)
        .copies(4, "workload-compute", 2_000)
}

/// Four that only miss and four loops, on four cores with one channel of memory.
pub(crate) fn starving() -> JobScene {
    JobScene::on("i5-2500")
        .copies(4, "bus-100", 2_000)
        .copies(4, "workload-compute", 2_000)
}

/// A mix of the repository with many programs that ask for much bandwidth, on six cores of two CPUs and one channel.
pub(crate) fn heavy() -> JobScene {
    JobScene::on("xeon-e5645-1ch").mix("perf-fair/mix09", 12_000)
}
