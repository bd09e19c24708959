//! One simulated run.

use super::error::{ReproduceError, Result};
use super::measured::TrialMeasurements;
use super::mixes::ExperimentMix;
use super::truth::KnowsProgress;
use super::watch::TrialRecorder;
use cosched_core::{
    Capability, CpuSet, Nanos, Params, Policy, PolicyEntry, RunConfig, SoloProfile, SoloTrace,
    TaskSpec, find_policy, run,
};
use cosched_sim::{MachineSpec, Sim, SimConfig, SoloRun};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Interval between the points of solo traces: the quantum of all policies.
const TRACE_STEP: Nanos = Nanos::from_ms(200);

/// Changes a seed into that of another run.
const OTHER_RUN: u64 = 0x5eed_0000_0000_0000;

/// A way to run a mix: a policy, what it knows, and which CPUs it has.
#[derive(Clone, Debug, Default, serde::Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct TrialCandidate {
    /// Its name in tables.
    pub(crate) label: String,
    pub(crate) policy: String,
    /// Parameters of the policy, over those of the machine.
    pub(crate) params: BTreeMap<String, String>,
    /// Whether estimates are compared with the truth, which costs all solo runs once more.
    pub(crate) truth: bool,
    /// Whether the policy is shown true progress in place of estimated progress.
    pub(crate) knows_progress: bool,
    /// Whether solo traces are of other runs, as those of a real scheduler are.
    pub(crate) others_traces: bool,
    /// The CPUs that may be used; `None` for all.
    #[serde(skip)]
    pub(crate) usable: Option<CpuSet>,
    /// Jobs that may be live at once; `None` for all.
    #[serde(skip)]
    pub(crate) at_once: Option<usize>,
    /// How long who runs where is noted from the start.
    #[serde(skip)]
    pub(crate) noted: Nanos,
}

impl TrialCandidate {
    /// A policy as it is, with all CPUs.
    pub(crate) fn new(policy: &str) -> TrialCandidate {
        TrialCandidate {
            label: policy.to_owned(),
            policy: policy.to_owned(),
            ..TrialCandidate::default()
        }
    }

    /// Another name in tables.
    pub(crate) fn named(mut self, label: &str) -> TrialCandidate {
        self.label = label.to_owned();
        self
    }

    /// It is shown true progress in place of estimated progress.
    pub(crate) fn knowing_progress(mut self) -> TrialCandidate {
        self.knows_progress = true;
        self
    }

    /// The policy with this value of a parameter.
    pub(crate) fn with(mut self, name: &str, value: impl ToString) -> TrialCandidate {
        self.params.insert(name.to_owned(), value.to_string());
        self
    }

    fn entry(&self) -> &'static PolicyEntry {
        find_policy(&self.policy).expect("experiments name policies of the table")
    }
}

/// What jobs do alone, shared by trials of the same jobs on the same machine with the same seed.
#[derive(Debug, Default)]
pub(crate) struct Alone {
    runs: Vec<SoloRun>,
    /// Empty if no trial needs them.
    traces: Vec<Option<Arc<SoloTrace>>>,
    /// Those of other runs of the same programs; empty if no trial needs them.
    others: Vec<Option<Arc<SoloTrace>>>,
}

/// A run that is to be simulated.
pub(crate) struct Trial<'a> {
    pub(crate) machine: &'a Arc<MachineSpec>,
    pub(crate) mix: &'a ExperimentMix,
    pub(crate) candidate: &'a TrialCandidate,
    pub(crate) seed: u64,
}

/// Simulates a mix under each candidate with the same seed.
///
/// # Errors
/// A parameter is wrong, or a job did not do its work.
pub(crate) fn simulate(
    machine: &Arc<MachineSpec>,
    mix: &ExperimentMix,
    candidates: &[TrialCandidate],
    seed: u64,
) -> Result<Vec<TrialMeasurements>> {
    let trials = candidates.iter().map(|candidate| Trial {
        machine,
        mix,
        candidate,
        seed,
    });
    let trials: Vec<Trial<'_>> = trials.collect();
    let alone = Trial::alone(&trials)?;
    trials.iter().map(|trial| trial.run(&alone)).collect()
}

impl Trial<'_> {
    fn failure(&self, why: impl ToString) -> ReproduceError {
        let Trial { machine, seed, .. } = self;
        let what = format!(
            "{} under {} with seed {seed}",
            machine.name, self.candidate.policy
        );
        ReproduceError::trial(&what, why)
    }

    fn params(&self) -> Result<Params> {
        let entry = self.candidate.entry();
        let mut settings = self.machine.settings_for(entry);
        for (name, value) in &self.candidate.params {
            settings.push((name.clone(), value.clone()));
        }
        Params::resolve(entry.name, entry.params, &settings).map_err(|error| self.failure(error))
    }

    fn config(&self, seed: u64) -> SimConfig {
        SimConfig {
            usable: self.candidate.usable.clone(),
            ..SimConfig::new(self.machine.clone(), self.mix.jobs.clone(), seed)
        }
    }

    /// Whether solo traces are needed.
    fn is_traced(&self, params: &Params) -> bool {
        let needs = (self.candidate.entry().needs)(params);
        self.candidate.truth
            || self.candidate.knows_progress
            || needs
                .iter()
                .any(|need| need.capability == Capability::SoloTrace)
    }

    /// What the jobs of these trials do alone; the trials have the same jobs, machine and seed.
    fn alone(trials: &[Trial<'_>]) -> Result<Alone> {
        let Some(first) = trials.first() else {
            return Ok(Alone::default());
        };
        let sim = first.sim(first.seed)?;
        let mut alone = Alone {
            runs: sim.solo_runs().to_vec(),
            ..Alone::default()
        };
        for trial in trials {
            if !trial.is_traced(&trial.params()?) {
                continue;
            }
            if !trial.candidate.others_traces && alone.traces.is_empty() {
                alone.traces = first.traces(&sim)?;
            } else if trial.candidate.others_traces && alone.others.is_empty() {
                alone.others = first.traces(&first.sim(first.seed ^ OTHER_RUN)?)?;
            }
        }
        Ok(alone)
    }

    fn sim(&self, seed: u64) -> Result<Sim> {
        Sim::new(self.config(seed)).map_err(|error| self.failure(error))
    }

    fn traces(&self, sim: &Sim) -> Result<Vec<Option<Arc<SoloTrace>>>> {
        let traces = sim
            .solo_traces(TRACE_STEP, &mut |_| false)
            .map_err(|error| self.failure(error))?;
        Ok(traces
            .into_iter()
            .map(|trace| trace.map(Arc::new))
            .collect())
    }

    fn specs(&self, alone: &Alone, is_traced: bool) -> Vec<TaskSpec> {
        let traces = if self.candidate.others_traces {
            &alone.others
        } else {
            &alone.traces
        };
        let mut specs = Vec::with_capacity(self.mix.jobs.len());
        for (id, (job, solo)) in self.mix.jobs.iter().zip(&alone.runs).enumerate() {
            let trace = traces.get(id).cloned().flatten();
            let mut spec = TaskSpec::new(id as u32, &job.program.name);
            spec.cpus = job.cpus;
            spec.solo = SoloProfile {
                time: Some(solo.time),
                mm_reads: Some(solo.mm_reads),
                trace: trace.filter(|_| is_traced),
            };
            specs.push(spec);
        }
        specs
    }

    fn run(&self, alone: &Alone) -> Result<TrialMeasurements> {
        let entry = self.candidate.entry();
        let params = self.params()?;
        let mut sim = Sim::with_solo_runs(self.config(self.seed), &alone.runs)
            .map_err(|error| self.failure(error))?;
        let config = RunConfig {
            quantum: Nanos::from_s(params.number("quantum_s")),
            jobs: self.candidate.at_once.unwrap_or(usize::MAX),
            seed: self.seed,
            restart: self.mix.restart,
            traffic: entry.needs_traffic(&params),
            devices: entry.needs_devices(&params),
            ..RunConfig::default()
        };
        let mut policy: Box<dyn Policy> = (entry.build)(&params);
        if self.candidate.knows_progress {
            policy = Box::new(KnowsProgress(policy));
        }
        let specs = self.specs(alone, self.is_traced(&params));
        let mut watch = TrialRecorder::new(self.candidate.noted);
        let result = run(&mut sim, &mut *policy, &mut watch, specs, &config)
            .map_err(|error| self.failure(error))?;
        let mut exits = result.tasks.iter().map(|task| &task.exit);
        if !exits.all(|exit| exit.as_ref().is_some_and(|exit| exit.ok())) {
            return Err(self.failure("jobs failed"));
        }
        watch.pass(result.turnaround);
        Ok(TrialMeasurements::of(&result, &sim.energy_parts(), watch))
    }
}

#[cfg(test)]
mod tests {
    use super::super::machines::machine;
    use super::super::mixes::of_folder;
    use super::*;
    use cosched_sim::JobWork;

    /// Perf&Fair's mix 9 with jobs of so many ms.
    fn ninth(solo_ms: u64) -> ExperimentMix {
        let mut mixes = of_folder("perf-fair", JobWork::SoloTime(Nanos::from_ms(solo_ms)));
        mixes.swap_remove(8)
    }

    fn run<const N: usize>(
        machine_name: &str,
        mix: &ExperimentMix,
        all: [TrialCandidate; N],
    ) -> [TrialMeasurements; N] {
        all.map(|candidate| {
            let spec = machine(machine_name);
            simulate(&spec, mix, &[candidate], 1)
                .unwrap()
                .swap_remove(0)
        })
    }

    #[test]
    fn knowing_the_truth_changes_no_decision() {
        for policy in ["fair", "perf-fair"] {
            let seeing = TrialCandidate {
                truth: true,
                ..TrialCandidate::new(policy)
            };
            let both = [TrialCandidate::new(policy), seeing];
            let [blind, seen] = run("xeon-e5645-1ch", &ninth(4_000), both);
            assert_eq!(
                (blind.turnaround_s, &blind.slowdowns),
                (seen.turnaround_s, &seen.slowdowns),
                "{policy}"
            );
            assert!(blind.watch.solo_errors.is_empty() && blind.progress_errors().is_empty());
            // There are estimates, they are off, and not by everything.
            let errors = seen.progress_errors();
            assert!(errors.len() > 12, "{policy}");
            let most = errors.iter().map(|error| error.abs()).fold(0.0, f64::max);
            assert!(0.5 < most && most < 50.0, "{policy}: {most}");
            assert!(seen.watch.solo_errors.len() > 12);
            assert!(seen.watch.measuring > Nanos::ZERO && seen.watch.idle_measuring_s > 0.0);
        }
    }

    #[test]
    fn perf_fair_that_knows_and_does_not_measure_is_the_oracle_but_for_its_target() {
        let perf_fair = TrialCandidate::new("perf-fair");
        let knows = perf_fair
            .clone()
            .knowing_progress()
            .with("estimation_share_max", 0);
        let all = [knows, perf_fair, TrialCandidate::new("oracle")];
        let [knows, blind, oracle] = run("xeon-e5645", &ninth(20_000), all);
        assert!(knows.watch.measuring == Nanos::ZERO && blind.watch.measuring > Nanos::ZERO);
        let unfair = |run: &TrialMeasurements| run.unfair_percent().unwrap();
        assert!(
            unfair(&knows) < 0.5 * unfair(&blind),
            "{} {}",
            unfair(&knows),
            unfair(&blind)
        );
        assert!(
            (unfair(&knows) - unfair(&oracle)).abs() < 5.0,
            "{} {}",
            unfair(&knows),
            unfair(&oracle)
        );
    }

    #[test]
    fn all_cpu_time_is_somebody_s_as_long_as_there_are_more_jobs() {
        let watched = TrialCandidate {
            noted: Nanos::from_ms(3_000),
            ..TrialCandidate::new("round-robin")
        };
        let [run] = run("xeon-e5645-1ch", &ninth(4_000), [watched]);
        let stays = run.watch.stays.iter();
        assert_eq!(
            stays.map(|stay| stay.to - stay.from).sum::<u64>(),
            12 * 3_000_000_000
        );
        assert_eq!(run.ends_s.len(), 24);
        assert_eq!(run.ends_s.last(), Some(&run.turnaround_s));
        assert!(run.busy_s > 36.0 && run.busy_s < 12.0 * run.turnaround_s);
    }

    #[test]
    fn what_can_t_be_done_is_told() {
        let wrong = TrialCandidate::new("fair").with("quantum_s", -1);
        let none = TrialCandidate {
            usable: Some(CpuSet::from_iter([])),
            ..TrialCandidate::new("linux")
        };
        for candidate in [wrong, none] {
            let policy = candidate.policy.clone();
            let error =
                simulate(&machine("xeon-e5645"), &ninth(4_000), &[candidate], 1).unwrap_err();
            let start = format!("xeon-e5645 under {policy} with seed 1: ");
            assert!(error.to_string().starts_with(&start), "{error}");
        }
    }
}
