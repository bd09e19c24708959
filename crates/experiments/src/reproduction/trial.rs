//! One simulated run, and what is measured in it.

use crate::reproduction::error::ReproduceError;
use crate::reproduction::knowing::Knowing;
use cosched_core::metric::{Outcomes, metric};
use cosched_core::{
    Capability, Change, Counter, CpuSet, DecisionRecord, Earlier, Expected, ExpectedFrom,
    Importance, Nanos, POLICIES, Params, Placement, PolicyEntry, ProgressBasis, Purpose, Recorder,
    Restart, RunConfig, RunError, SoloProfile, SoloTrace, TaskId, TaskSpec, find_policy, run,
};
use cosched_sim::{
    FIT_LENGTH, MACHINES, MachineFit, MachineSpec, Sim, SimConfig, SimError, SimJob, SoloRun,
    builtin_machine, fit,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Interval between the points of solo traces: the quantum of all policies.
const TRACE_STEP: Nanos = Nanos::from_ms(200);

/// Changes a seed into that of another run.
const OTHER_RUN: u64 = 0x5eed_0000_0000_0000;

/// What jobs do alone, shared by trials of the same jobs on the same machine with the same seed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Alone {
    runs: Vec<SoloRun>,
    /// Empty if no trial needs them.
    traces: Vec<Option<Arc<SoloTrace>>>,
    /// Those of other runs of the same programs; empty if no trial needs them.
    others: Vec<Option<Arc<SoloTrace>>>,
}

/// A run that is to be simulated.
#[derive(Clone, Debug)]
pub(crate) struct Trial {
    pub(crate) machine: Arc<MachineSpec>,
    pub(crate) jobs: Vec<SimJob>,
    /// What becomes of a job that has ended while others have not.
    pub(crate) restart: Restart,
    pub(crate) policy: &'static str,
    /// Parameters of the policy, over those of the machine.
    pub(crate) params: Vec<(&'static str, String)>,
    pub(crate) seed: u64,
    /// When jobs arrive; those that it does not name arrive at the start.
    pub(crate) arrivals: Vec<Nanos>,
    /// The CPUs that may be used; `None` for all.
    pub(crate) usable: Option<CpuSet>,
    /// Jobs that may be live at once.
    pub(crate) at_once: usize,
    /// Whether estimates are compared with the truth, which costs all solo runs once more.
    pub(crate) truth: bool,
    /// Whether the policy is shown true progress in place of estimated progress.
    pub(crate) knows_progress: bool,
    /// Whether solo traces are of other runs, as a real scheduler's are, and so not exactly those of the jobs.
    pub(crate) others_traces: bool,
    /// Whether what another run of the same jobs took and learnt is known.
    pub(crate) remembers: bool,
    /// How long who runs where is noted from the start.
    pub(crate) noted: Nanos,
}

impl Trial {
    /// All jobs at once on all CPUs, by the policy as it is on this machine.
    pub(crate) fn new(
        machine: &Arc<MachineSpec>,
        jobs: &[SimJob],
        policy: &'static str,
        seed: u64,
    ) -> Trial {
        Trial {
            machine: machine.clone(),
            jobs: jobs.to_vec(),
            restart: Restart::Never,
            policy,
            params: Vec::new(),
            seed,
            arrivals: Vec::new(),
            usable: None,
            at_once: usize::MAX,
            truth: false,
            knows_progress: false,
            others_traces: false,
            remembers: false,
            noted: Nanos::ZERO,
        }
    }

    fn what(&self) -> String {
        format!(
            "{} under {} with seed {}",
            self.machine.name, self.policy, self.seed
        )
    }

    fn params(&self, entry: &PolicyEntry) -> Result<Params, ReproduceError> {
        let mut settings = self.machine.settings_for(entry);
        settings.extend(
            self.params
                .iter()
                .map(|(name, value)| ((*name).to_owned(), value.clone())),
        );
        Ok(Params::resolve(entry.name, entry.params, &settings)?)
    }

    fn config(&self) -> SimConfig {
        let usable = self.usable.clone();
        SimConfig {
            usable,
            ..SimConfig::new(self.machine.clone(), self.jobs.clone(), self.seed)
        }
    }

    fn failure(&self, error: SimError) -> ReproduceError {
        ReproduceError::Simulation {
            what: self.what(),
            error,
        }
    }

    /// Whether solo traces are needed.
    fn is_traced(&self) -> Result<bool, ReproduceError> {
        let entry = policy(self.policy)?;
        let needs = (entry.needs)(&self.params(entry)?);
        Ok(self.truth
            || self.knows_progress
            || needs
                .iter()
                .any(|need| need.capability == Capability::SoloTrace))
    }

    /// What the jobs of these trials do alone; the trials have the same jobs, machine and seed.
    fn alone(trials: &[Trial]) -> Result<Alone, ReproduceError> {
        let Some(first) = trials.first() else {
            return Ok(Alone::default());
        };
        let sim = Sim::new(first.config()).map_err(|error| first.failure(error))?;
        let trace = |sim: &Sim| -> Result<Vec<Option<Arc<SoloTrace>>>, ReproduceError> {
            let found = sim
                .solo_traces(TRACE_STEP, &mut |_| false)
                .map_err(|error| first.failure(error))?;
            Ok(found.into_iter().map(|trace| trace.map(Arc::new)).collect())
        };
        let mut alone = Alone {
            runs: sim.solo_runs().to_vec(),
            ..Alone::default()
        };
        for trial in trials {
            if !trial.is_traced()? {
                continue;
            }
            if trial.others_traces && alone.others.is_empty() {
                let config = SimConfig {
                    seed: first.seed ^ OTHER_RUN,
                    ..first.config()
                };
                alone.others = trace(&Sim::new(config).map_err(|error| first.failure(error))?)?;
            } else if !trial.others_traces && alone.traces.is_empty() {
                alone.traces = trace(&sim)?;
            }
        }
        Ok(alone)
    }

    /// Simulates trials of the same jobs on the same machine with the same seed, whose solo runs they share.
    ///
    /// # Errors
    /// As [`Trial::simulate`].
    pub(crate) fn simulate_all(trials: &[Trial]) -> Result<Vec<Measured>, ReproduceError> {
        let alone = Trial::alone(trials)?;
        trials.iter().map(|trial| trial.beside(&alone)).collect()
    }

    /// Simulates it.
    ///
    /// # Errors
    /// The policy can't run on the machine, a parameter is wrong, or a job did not do its work.
    pub(crate) fn simulate(&self) -> Result<Measured, ReproduceError> {
        self.beside(&Trial::alone(std::slice::from_ref(self))?)
    }

    fn beside(&self, alone: &Alone) -> Result<Measured, ReproduceError> {
        let earlier = if self.remembers {
            Trial {
                remembers: false,
                truth: false,
                seed: self.seed ^ OTHER_RUN,
                ..self.clone()
            }
            .beside(alone)?
            .kept
        } else {
            Vec::new()
        };
        let entry = policy(self.policy)?;
        let params = self.params(entry)?;
        self.check_needs(entry, &params)?;
        let failure = |error: SimError| self.failure(error);
        let mut sim = Sim::with_solo_runs(self.config(), &alone.runs).map_err(failure)?;
        let quantum = Nanos::from_s(params.number("quantum_s"));
        let traced = self.is_traced()?;
        let mut specs = Vec::with_capacity(self.jobs.len());
        for (id, solo) in alone.runs.iter().enumerate() {
            let mut spec = TaskSpec::new(id as u32, &self.jobs[id].program.name);
            spec.cpus = self.jobs[id].cpus;
            spec.arrives = self.arrivals.get(id).copied().unwrap_or_default();
            let traces = if self.others_traces {
                &alone.others
            } else {
                &alone.traces
            };
            let trace = traces.get(id).cloned().flatten().filter(|_| traced);
            spec.solo = SoloProfile {
                time: Some(solo.time),
                mm_reads: Some(solo.mm_reads),
                trace,
            };
            if let Some(kept) = earlier.get(id) {
                spec.earlier.clone_from(&kept.learnt);
                spec.expected = Some(Expected::of(kept.ran, ExpectedFrom::Same));
            }
            specs.push(spec);
        }
        let config = RunConfig {
            quantum,
            jobs: self.at_once,
            seed: self.seed,
            restart: self.restart,
            traffic: entry.needs_traffic(&params),
            ..RunConfig::default()
        };
        let mut watch = Watch::new(self.noted);
        let mut decides = (entry.build)(&params);
        if self.knows_progress {
            decides = Box::new(Knowing(decides));
        }
        let result = run(&mut sim, &mut *decides, &mut watch, specs, &config);
        let result = result.map_err(|error| match error {
            RunError::Backend(error) => failure(error),
            other => ReproduceError::Refused {
                what: self.what(),
                why: other.to_string(),
            },
        })?;
        let failed = result
            .tasks
            .iter()
            .filter(|task| !task.exit.as_ref().is_some_and(|exit| exit.ok()))
            .count();
        if failed > 0 {
            return Err(ReproduceError::Failed {
                what: self.what(),
                tasks: failed,
            });
        }
        let outcomes = Outcomes::of(&result);
        let value = |name: &str| metric(name).and_then(|metric| metric.of(&outcomes).value());
        let reads: u64 = result
            .tasks
            .iter()
            .filter_map(|task| task.counts[Counter::MmReads].value())
            .sum();
        let instructions = result
            .tasks
            .iter()
            .filter_map(|task| task.counts[Counter::Instructions].value())
            .sum();
        let slowdown = |outcome: &cosched_core::metric::Outcome| outcome.slowdown().value();
        let mut ends_s: Vec<f64> = result
            .tasks
            .iter()
            .filter_map(|task| task.finished)
            .map(Nanos::as_s)
            .collect();
        ends_s.sort_by(f64::total_cmp);
        let stay =
            |task: &cosched_core::TaskResult| Some((task.finished? - task.spec.arrives).as_s());
        let stays_s: Vec<f64> = result.tasks.iter().filter_map(stay).collect();
        watch.over(result.turnaround);
        let chip =
            |(name, _): &(&str, f64)| ["uncore", "active cores", "instructions"].contains(name);
        let busy_s = result
            .tasks
            .iter()
            .filter_map(|task| task.cpu_time.value())
            .map(Nanos::as_s)
            .sum();
        Ok(Measured {
            turnaround_s: result.turnaround.as_s(),
            unfairness: value("unfairness"),
            energy_j: value("energy_j"),
            chip_energy_j: sim
                .energy_parts()
                .iter()
                .filter(|part| chip(part))
                .map(|(_, joules)| joules)
                .sum(),
            busy_s,
            mean_ipc: value("mean_ipc"),
            reads_per_us: reads as f64 / result.turnaround.as_us(),
            instructions,
            slowdowns: outcomes.tasks.iter().filter_map(slowdown).collect(),
            progress_errors: watch
                .progress
                .values()
                .map(|(estimate, truth)| estimate / truth - 1.0)
                .collect(),
            ends_s,
            stays_s,
            kept: result
                .tasks
                .iter()
                .map(|task| Kept {
                    ran: task.ran,
                    learnt: task.learnt.clone(),
                })
                .collect(),
            watch,
        })
    }

    /// Refuses a policy that needs what the machine lacks: it would run without it, and its figures would mean something
    /// else.
    fn check_needs(&self, entry: &PolicyEntry, params: &Params) -> Result<(), ReproduceError> {
        let capabilities = self.machine.capabilities(&self.machine.machine());
        for need in (entry.needs)(params) {
            // What is known of solo runs is always given.
            let is_given = matches!(
                need.capability,
                Capability::SoloTrace | Capability::SoloBandwidth
            );
            if need.importance != Importance::Required || is_given {
                continue;
            }
            if let Some(why) = capabilities.why_missing(need.capability) {
                return Err(ReproduceError::Unsuited {
                    policy: entry.name.to_owned(),
                    machine: self.machine.name.clone(),
                    why: format!("it needs {}: {why}", need.capability.text()),
                });
            }
        }
        Ok(())
    }
}

/// The policy of this name.
pub(crate) fn policy(name: &str) -> Result<&'static PolicyEntry, ReproduceError> {
    find_policy(name).ok_or_else(|| ReproduceError::Unknown {
        kind: "policy",
        name: name.to_owned(),
        have: POLICIES
            .iter()
            .map(|entry| entry.name)
            .collect::<Vec<_>>()
            .join(", "),
    })
}

/// The built-in machine of this name.
pub(crate) fn machine(name: &str) -> Result<Arc<MachineSpec>, ReproduceError> {
    builtin_machine(name)
        .map(Arc::new)
        .ok_or_else(|| ReproduceError::Unknown {
            kind: "machine",
            name: name.to_owned(),
            have: MACHINES
                .iter()
                .map(|file| file.name)
                .collect::<Vec<_>>()
                .join(", "),
        })
}

/// A period in which the kernel gives each of two threads on a CPU a slice as long as a quantum, in ms.
const LONG_PERIOD_MS: f64 = 400.0;

/// The machine with slices of 200 ms: the kernel model then keeps threads in the cache for as long as policies do.
pub(crate) fn with_long_slices(spec: &MachineSpec) -> Arc<MachineSpec> {
    let mut long = spec.clone();
    long.kernel.period_ms = LONG_PERIOD_MS;
    Arc::new(long)
}

/// What policies are to know of a machine, from runs on it.
pub(crate) fn fitted(spec: &Arc<MachineSpec>) -> Result<MachineFit, ReproduceError> {
    fit(spec, FIT_LENGTH).map_err(|error| ReproduceError::Fit {
        machine: spec.name.clone(),
        error,
    })
}

/// A changed machine, with its policies' parameters fitted to it as those of the built-in machines were.
pub(crate) fn refitted(mut spec: MachineSpec) -> Result<Arc<MachineSpec>, ReproduceError> {
    for (name, value) in fitted(&Arc::new(spec.clone()))?.params() {
        if let Some(param) = spec.params.iter_mut().find(|(known, _)| known == name) {
            param.1 = value.to_string();
        }
    }
    Ok(Arc::new(spec))
}

/// What is remembered of a job.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    /// How long it had CPUs.
    ran: Nanos,
    learnt: Option<Arc<Earlier>>,
}

/// What was measured in a trial.
#[derive(Clone, Debug)]
pub(crate) struct Measured {
    /// Launch to the end of the last job, in s.
    pub(crate) turnaround_s: f64,
    /// Greatest slowdown / least slowdown.
    pub(crate) unfairness: Option<f64>,
    /// Energy of the machine until the last job ended, in J.
    pub(crate) energy_j: Option<f64>,
    /// The part of it that the chip uses beyond the idle machine, in J: cores, instructions, and what cores share.
    pub(crate) chip_energy_j: f64,
    /// CPU time of all jobs, in s.
    pub(crate) busy_s: f64,
    /// Mean over the jobs of their instructions per cycle.
    pub(crate) mean_ipc: Option<f64>,
    /// Lines read from memory per us of the run.
    pub(crate) reads_per_us: f64,
    /// Instructions of all jobs.
    pub(crate) instructions: u64,
    /// Slowdown of each job.
    pub(crate) slowdowns: Vec<f64>,
    /// When jobs ended, in s, ascending.
    pub(crate) ends_s: Vec<f64>,
    /// Time from each job's arrival to its end, in s.
    pub(crate) stays_s: Vec<f64>,
    /// Estimated progress / true progress - 1 of each job before its end, where progress was estimated and truth is known.
    pub(crate) progress_errors: Vec<f64>,
    /// What a later run can know of each job.
    pub(crate) kept: Vec<Kept>,
    pub(crate) watch: Watch,
}

impl Measured {
    /// Unfairness in per cent above 1, as Perf&Fair quotes it. A run that is perfectly fair has a thousandth, so that
    /// geometric means exist.
    pub(crate) fn unfair_percent(&self) -> Option<f64> {
        self.unfairness
            .map(|unfairness| (100.0 * (unfairness - 1.0)).max(1e-3))
    }

    /// Power over the run in W.
    pub(crate) fn power_w(&self) -> Option<f64> {
        self.energy_j.map(|energy| energy / self.turnaround_s)
    }
}

/// A task that has had a CPU from one instant to another, in ns from the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stay {
    pub(crate) cpu: u32,
    pub(crate) task: u32,
    pub(crate) from: u64,
    pub(crate) to: u64,
}

/// What a trial shows while it goes on.
#[derive(Clone, Debug, Default)]
pub(crate) struct Watch {
    noted: Nanos,
    since: Nanos,
    /// What runs where since then.
    placed: BTreeMap<TaskId, Placement>,
    measures: bool,
    cpus: usize,
    big: CpuSet,
    /// Time in which a task was measured in low contention.
    pub(crate) measuring: Nanos,
    /// CPU time that nobody had during these measurements, in s.
    pub(crate) idle_measuring_s: f64,
    /// CPU time that nobody had in all, in s.
    pub(crate) idle_s: f64,
    /// For each task, the time for which it had a place on big cores alone, in s.
    pub(crate) on_big_s: BTreeMap<TaskId, f64>,
    /// The last estimate of each task's progress, and its true progress then, in quanta.
    pub(crate) progress: BTreeMap<TaskId, (f64, f64)>,
    /// The same of the learnt progress.
    pub(crate) learnt: BTreeMap<TaskId, (f64, f64)>,
    /// Estimated IPC alone / true IPC alone - 1 of each new estimate.
    pub(crate) solo_errors: Vec<f64>,
    /// Who had which CPU, as far as it is noted. Of tasks that the kernel time-shares, the first ones of those that may
    /// use a CPU.
    pub(crate) stays: Vec<Stay>,
    /// Sums of the counts of each task in the noted time: lines read and written, and time in ns.
    pub(crate) lines: BTreeMap<TaskId, (u64, u64)>,
}

impl Watch {
    fn new(noted: Nanos) -> Watch {
        Watch {
            noted,
            ..Watch::default()
        }
    }

    /// Adds up the time since the last decision.
    fn pass(&mut self, now: Nanos) {
        let s = now.since(self.since).as_s();
        let shared: Vec<TaskId> = (self.placed.iter())
            .filter(|(_, placement)| matches!(placement, Placement::Shared { .. }))
            .map(|(&task, _)| task)
            .collect();
        let mut owner: BTreeMap<u32, TaskId> = BTreeMap::new();
        for (&task, placement) in &self.placed {
            if let Placement::Exclusive { cpus, .. } = placement {
                owner.extend(cpus.iter().map(|cpu| (cpu.0, task)));
            }
        }
        for task in shared {
            let mask = self.placed[&task].cpus();
            if let Some(cpu) = mask.iter().find(|cpu| !owner.contains_key(&cpu.0)) {
                owner.insert(cpu.0, task);
            }
        }
        let idle = (self.cpus.saturating_sub(owner.len())) as f64 * s;
        self.idle_s += idle;
        if self.measures {
            self.measuring = Nanos(self.measuring.0 + now.since(self.since).0);
            self.idle_measuring_s += idle;
        }
        for (&task, placement) in &self.placed {
            if !self.big.is_empty() && placement.cpus().is_subset(&self.big) {
                *self.on_big_s.entry(task).or_default() += s;
            }
        }
        if self.since < self.noted && now > self.since {
            let to = now.0.min(self.noted.0);
            self.stays.extend(owner.iter().map(|(&cpu, &task)| Stay {
                cpu,
                task: task.0,
                from: self.since.0,
                to,
            }));
        }
        self.since = now;
    }

    fn over(&mut self, end: Nanos) {
        self.pass(end);
    }
}

impl Recorder for Watch {
    fn decided(&mut self, record: DecisionRecord<'_>) {
        let now = record.snapshot.now;
        self.pass(now);
        if self.cpus == 0 {
            let machine = &record.snapshot.machine;
            self.cpus = machine.cpus.len();
            if machine.core_types.len() > 1 {
                self.big = machine
                    .cpus
                    .iter()
                    .filter(|cpu| cpu.core_type == 0)
                    .map(|cpu| cpu.id)
                    .collect();
            }
        }
        for sample in record.samples {
            let Some(view) = record.snapshot.task(sample.task) else {
                continue;
            };
            let known = &view.estimates;
            // What others leave of a quantum, or a job that is alone at the end, is no estimate that was asked for.
            if sample.purpose == Purpose::MeasureAlone
                && known.solo_age == 0
                && let (Some(estimate), Some(truth)) =
                    (known.solo_ipc.value(), known.trace_ipc.value())
                && truth > 0.0
            {
                self.solo_errors.push(estimate / truth - 1.0);
            }
            if let (Some(learnt), Some(truth)) =
                (known.learnt.as_ref().value(), known.trace_progress.value())
                && truth > 0.0
            {
                self.learnt.insert(sample.task, (learnt.progress, truth));
            }
            if known.progress_basis == ProgressBasis::Ipc
                && let (Some(estimate), Some(truth)) =
                    (known.progress.value(), known.trace_progress.value())
                && truth > 0.0
            {
                self.progress.insert(sample.task, (estimate, truth));
            }
            if now <= self.noted {
                let (lines, ns) = self.lines.entry(sample.task).or_default();
                let count = |counter: Counter| sample.counts[counter].value().unwrap_or(0);
                *lines += count(Counter::MmReads) + count(Counter::MmWrites);
                *ns += sample.interval.0;
            }
        }
        self.placed.clear();
        for task in &record.snapshot.tasks {
            if let Some(running) = &task.running {
                self.placed.insert(task.id, running.placement.clone());
            }
        }
        for change in &record.decision.changes {
            match change {
                Change::Stop { task } => _ = self.placed.remove(task),
                Change::Place {
                    task, placement, ..
                } => _ = self.placed.insert(*task, placement.clone()),
            }
        }
        self.measures = record.decision.basis.measures.is_some();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reproduction::mixes::of_folder;
    use cosched_sim::Work;

    fn trial(policy: &'static str) -> Trial {
        trial_of(policy, 4_000)
    }

    fn trial_of(policy: &'static str, solo_ms: u64) -> Trial {
        let mixes = of_folder("perf-fair", Work::SoloTime(Nanos::from_ms(solo_ms)));
        Trial::new(
            &machine("xeon-e5645-1ch").unwrap(),
            &mixes[8].jobs,
            policy,
            1,
        )
    }

    #[test]
    fn knowing_the_truth_changes_no_decision() {
        for policy in ["fair", "perf-fair"] {
            let blind = trial(policy).simulate().unwrap();
            let seen = Trial {
                truth: true,
                ..trial(policy)
            }
            .simulate()
            .unwrap();
            assert_eq!(
                (blind.turnaround_s, &blind.slowdowns),
                (seen.turnaround_s, &seen.slowdowns),
                "{policy}"
            );
            assert!(blind.watch.solo_errors.is_empty() && blind.progress_errors.is_empty());
            // There are estimates, they are off, and not by everything.
            assert!(seen.progress_errors.len() > 12, "{policy}");
            let most = seen
                .progress_errors
                .iter()
                .map(|error| error.abs())
                .fold(0.0, f64::max);
            assert!(0.005 < most && most < 0.5, "{policy}: {most}");
            assert!(seen.watch.solo_errors.len() > 12);
            assert!(seen.watch.measuring > Nanos::ZERO && seen.watch.idle_measuring_s > 0.0);
        }
    }

    #[test]
    fn perf_fair_that_knows_and_does_not_measure_is_the_oracle_but_for_its_target() {
        let with = |name: &'static str, value: &str| vec![(name, value.to_owned())];
        let three_channels = machine("xeon-e5645").unwrap();
        let of = |policy: &'static str| Trial {
            machine: three_channels.clone(),
            ..trial_of(policy, 20_000)
        };
        let knows = Trial {
            knows_progress: true,
            params: with("estimation_share_max", "0"),
            ..of("perf-fair")
        };
        let [knows, blind, oracle] =
            [knows, of("perf-fair"), of("oracle")].map(|trial| trial.simulate().unwrap());
        assert!(knows.watch.measuring == Nanos::ZERO && blind.watch.measuring > Nanos::ZERO);
        let unfair = |run: &Measured| run.unfair_percent().unwrap();
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
    fn all_cpu_time_is_somebody_s_or_idle() {
        let run = Trial {
            noted: Nanos::from_ms(3_000),
            ..trial("round-robin")
        }
        .simulate()
        .unwrap();
        // As long as there are more jobs than CPUs no CPU is idle.
        assert_eq!(
            run.watch
                .stays
                .iter()
                .map(|stay| stay.to - stay.from)
                .sum::<u64>(),
            12 * 3_000_000_000
        );
        assert!(run.watch.idle_s > 0.0 && run.watch.idle_s < 12.0 * run.turnaround_s);
        assert_eq!(run.ends_s.len(), 24);
        assert_eq!(run.ends_s.last(), Some(&run.turnaround_s));
        assert!(
            (run.busy_s + run.watch.idle_s - 12.0 * run.turnaround_s).abs() < 1e-3 * run.busy_s
        );
    }

    #[test]
    fn what_can_t_be_done_is_told() {
        let error = trial("lucky").simulate().unwrap_err().to_string();
        assert!(
            error.starts_with("`lucky` can't run on xeon-e5645-1ch: it needs"),
            "{error}"
        );
        let wrong = Trial {
            params: vec![("quantum_s", "-1".to_owned())],
            ..trial("fair")
        };
        assert!(matches!(
            wrong.simulate().unwrap_err(),
            ReproduceError::Param(_)
        ));
        let none = Trial {
            usable: Some(CpuSet::from_iter([])),
            ..trial("linux")
        };
        assert!(matches!(
            none.simulate().unwrap_err(),
            ReproduceError::Simulation { .. }
        ));
    }
}
