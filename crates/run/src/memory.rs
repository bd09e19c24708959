//! The history of commands, for one run: what earlier runs measured, and what this one adds. An error here is one warning,
//! and the run continues without the history.

use cosched_core::{EarlierPhases, Exit, ExpectedFrom, JobEnd, RateAt, TaskResult, TaskSpec};
use cosched_linux::unix_time;
use cosched_memory::{
    CommandKey, HistoryError, HistoryProblem, HistoryStore, LockPatience, RecalledCommand,
    RememberedEnd, RememberedRun,
};
use cosched_report::RunWarning;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Shortest time between two writes: a killed run loses no more than this, where writing is fast.
const LEAST_PAUSE: Duration = Duration::from_secs(1);

/// The pause after a write is this many times as long as the write, so that a slow disk does not hold up the jobs.
const PAUSE_PER_WRITE: u32 = 100;

/// A shorter job is recorded for its program, not for its command, unless it was expected to be longer. Thousands of short
/// commands would push out useful ones.
const SHORT_S: f64 = 0.1;

/// A program that was beside a job for less than this share of its time is not recorded.
const LEAST_SHARE: f64 = 0.01;

/// What is known of commands, for one run.
#[derive(Debug)]
pub(crate) struct Memory {
    /// `None` where nothing is used or kept.
    path: Option<PathBuf>,
    noted: Vec<RememberedEnd>,
    /// The template of the jobs, and the rates of them at once that this run learnt.
    template: Option<CommandKey>,
    rates: Vec<RateAt>,
    /// When to write again.
    next_write: Instant,
}

impl Default for Memory {
    /// Keeps nothing.
    fn default() -> Memory {
        Memory {
            path: None,
            noted: Vec::new(),
            template: None,
            rates: Vec::new(),
            next_write: Instant::now() + LEAST_PAUSE,
        }
    }
}

/// A job as it is known.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    key: CommandKey,
    recalled: RecalledCommand,
    /// What the job's node has learnt of it.
    pub(crate) learnt: Option<Arc<EarlierPhases>>,
}

impl Known {
    /// What tells this job from all others: its folder, what it is given, and the files of its program.
    pub(crate) fn identity(&self) -> String {
        let CommandKey {
            folder,
            given,
            identity,
            ..
        } = &self.key;
        format!("{folder} {given} {identity}")
    }

    /// Lets a task begin with what is known of it.
    pub(crate) fn tell(&self, spec: &mut TaskSpec) {
        spec.expected = self.recalled.expected;
        spec.earlier.clone_from(&self.recalled.learnt);
        spec.interference = self.recalled.interference;
    }
}

impl Memory {
    /// What is in the file at this path, if there is one, and what the run adds.
    pub(crate) fn new(path: Option<PathBuf>) -> Memory {
        Memory {
            path,
            ..Memory::default()
        }
    }

    /// Looks up jobs by their keys.
    pub(crate) fn recall(
        &mut self,
        keys: Vec<Option<CommandKey>>,
        patience: LockPatience,
    ) -> (Vec<Option<Known>>, Option<RunWarning>) {
        let mut warning = None;
        let mut found = Vec::new();
        if let Some(path) = &self.path {
            match recalled(path, &keys, patience) {
                Ok(recalled) => found = recalled,
                Err(error) => warning = Some(self.problem(&error, false)),
            }
        }
        let mut recalled = found.into_iter();
        let mut known = Vec::new();
        for key in keys {
            let recalled = recalled.next().unwrap_or_default();
            known.push(key.map(|key| Known {
                key,
                recalled,
                learnt: None,
            }));
        }
        (known, warning)
    }

    /// The warning for an error. While another run writes, this one goes on to keep what it does; `lost`: not all of it.
    fn problem(&mut self, error: &HistoryError, lost: bool) -> RunWarning {
        let why = error.to_string();
        if matches!(error.problem, HistoryProblem::Busy) {
            return RunWarning::HistoryBusy { lost, why };
        }
        self.path = None;
        RunWarning::NoHistory { why }
    }

    /// A job has ended.
    pub(crate) fn ended(&mut self, known: &Known, result: &TaskResult) {
        let Some(exit) = &result.exit else {
            return;
        };
        // What we ended ourselves, and what never began, tells nothing of the command.
        if self.path.is_none() || result.told_to_end || matches!(exit, Exit::NotStarted(_)) {
            return;
        }
        let at = unix_time().as_millis() as u64;
        let is_whole = exit.ok() && !result.timed_out;
        let is_short = result.ran.as_s() < SHORT_S;
        let expects_longer = known.recalled.expected.is_some_and(|expected| {
            expected.from != ExpectedFrom::Program && expected.time.as_s() >= SHORT_S
        });
        let is_own = expects_longer || !is_short;
        let key = if is_own {
            known.key.clone()
        } else {
            known.key.of_program()
        };
        let mut ended = RememberedEnd {
            key,
            at,
            exit: JobEnd::of(result).text(),
            run: None,
            learnt: None,
        };
        if is_whole {
            ended.run = run(result, &ended.key, at);
        }
        // What one command asks for tells nothing of the others with its program.
        if is_whole && is_own {
            ended.learnt = result.learnt.clone().or_else(|| known.learnt.clone());
        }
        self.noted.push(ended);
    }

    /// What earlier runs learnt of how many jobs of this template are best at once.
    pub(crate) fn recall_rates(&mut self, known: &[Option<Known>]) -> Vec<RateAt> {
        self.template = template(known);
        let (Some(template), Some(path)) = (&self.template, &self.path) else {
            return Vec::new();
        };
        let store = HistoryStore::open_existing(path, LockPatience::None)
            .ok()
            .flatten();
        store.map_or(Vec::new(), |store| store.rates(template))
    }

    /// Notes what this run learnt of how many jobs are best at once.
    pub(crate) fn learn_rates(&mut self, rates: &[RateAt]) {
        if self.template.is_some() {
            self.rates = rates.to_vec();
        }
    }

    /// Writes what was noted, if it is time. Jobs run meanwhile, so nobody is waited for.
    pub(crate) fn pass(&mut self) -> Option<RunWarning> {
        let begun = Instant::now();
        if self.noted.is_empty() || begun < self.next_write {
            return None;
        }
        let warning = self.write(LockPatience::None);
        let pause = begun.elapsed() * PAUSE_PER_WRITE;
        self.next_write = Instant::now() + pause.max(LEAST_PAUSE);
        warning
    }

    /// Writes what is left.
    pub(crate) fn finish(&mut self) -> Option<RunWarning> {
        if self.noted.is_empty() && self.rates.is_empty() {
            None
        } else {
            self.write(LockPatience::Some)
        }
    }

    fn write(&mut self, patience: LockPatience) -> Option<RunWarning> {
        let path = self.path.as_deref()?;
        let written = HistoryStore::open(path, patience).and_then(|mut store| {
            if let (Some(template), false) = (&self.template, self.rates.is_empty()) {
                let now = unix_time().as_millis() as u64;
                store.note_rates(template, &self.rates, now)?;
            }
            store.note(&self.noted)
        });
        let is_busy =
            matches!(&written, Err(error) if matches!(error.problem, HistoryProblem::Busy));
        if is_busy && patience == LockPatience::None {
            return None;
        }
        self.noted.clear();
        self.rates.clear();
        let error = written.err()?;
        Some(self.problem(&error, true))
    }
}

/// The words that the first and the last command have in common, with `{}` in place of others. `None` if there are more in one.
fn template(known: &[Option<Known>]) -> Option<CommandKey> {
    let (first, last) = (&known.first()?.as_ref()?.key, &known.last()?.as_ref()?.key);
    let words = first.command.split(' ').zip(last.command.split(' '));
    let is_alike = first.command.split(' ').count() == last.command.split(' ').count();
    let common = words.map(|(one, other)| if one == other { one } else { "{}" });
    is_alike.then(|| CommandKey {
        command: common.collect::<Vec<_>>().join(" "),
        ..first.of_program()
    })
}

/// What the file tells of each of these commands; nothing if there is no file.
fn recalled(
    path: &Path,
    keys: &[Option<CommandKey>],
    patience: LockPatience,
) -> Result<Vec<RecalledCommand>, HistoryError> {
    match HistoryStore::open_existing(path, patience)? {
        Some(store) => store.recall(keys),
        None => Ok(Vec::new()),
    }
}

/// What a run of a job was like.
fn run(result: &TaskResult, key: &CommandKey, at: u64) -> Option<RememberedRun> {
    // Microseconds are enough, and shorter.
    let seconds = |s: f64| (s * 1e6).round() / 1e6;
    let (started, finished) = (result.started?, result.finished?);
    Some(RememberedRun {
        at,
        wall_s: seconds((finished - started).as_s()),
        placed_s: seconds(result.ran.as_s()),
        cpu_s: result.cpu_time.value().map(|time| seconds(time.as_s())),
        width: result.width.value(),
        max_rss: result.resources.max_rss.value(),
        shared: result.shared,
        beside: beside(result, key),
    })
}

/// The programs beside a job, with their shares of its time to a thousandth; less than a hundredth does not count.
fn beside(result: &TaskResult, key: &CommandKey) -> Option<BTreeMap<i64, f64>> {
    let mut shares = BTreeMap::new();
    for (program, time) in result.beside.as_ref()? {
        let share = time.share_of(result.ran);
        if share >= LEAST_SHARE {
            shares.insert(key.number_of(program), (share * 1e3).round() / 1e3);
        }
    }
    Some(shares)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use cosched_core::model::contention::PhaseDemand;
    use cosched_core::{
        Absence, Counts, EarlierPhase, EarlierPhases, Nanos, ProgressBasis, Reading, Resources,
    };
    use rusqlite::Connection;
    use std::sync::Arc;

    fn recall(
        path: &Path,
        keys: Vec<Option<CommandKey>>,
    ) -> (Memory, Vec<Option<Known>>, Option<RunWarning>) {
        let mut memory = Memory::new(Some(path.to_owned()));
        let (known, warning) = memory.recall(keys, LockPatience::Some);
        (memory, known, warning)
    }

    fn key(folder: &str) -> CommandKey {
        CommandKey {
            machine: "m".into(),
            program: "/bin/solve".into(),
            command: "solve a".to_owned(),
            folder: folder.into(),
            given: "".into(),
            identity: "v1".into(),
        }
    }

    fn learnt(own: f64) -> Arc<EarlierPhases> {
        let asks = PhaseDemand {
            own,
            penalty: 60.0,
            l1: 0.25,
            llc: 0.02,
            reads: 0.01,
            steepness: 0.5,
            ghz: 2.0,
            ..Default::default()
        };
        Arc::new(EarlierPhases {
            phases: vec![EarlierPhase {
                core_type: 0,
                asks,
                solo_cpi: 2.0 * own,
            }],
        })
    }

    /// A job that ran for so long.
    pub(crate) fn result(ms: u64, exit: Exit, learnt: Option<Arc<EarlierPhases>>) -> TaskResult {
        let absent = Absence::NotTold;
        TaskResult {
            spec: TaskSpec::new(0, "solve"),
            started: Some(Nanos::ZERO),
            finished: Some(Nanos::from_ms(ms)),
            exit: Some(exit),
            timed_out: false,
            told_to_end: false,
            ended_by_user: false,
            cpu_time: Reading::Absent(absent),
            waited_max: Nanos::ZERO,
            ran: Nanos::from_ms(ms),
            shared: false,
            counts: Counts::absent(absent),
            multiplexed: false,
            resources: Resources::absent(absent),
            progress: Reading::Absent(absent),
            progress_basis: ProgressBasis::Provisional,
            progress_learnt: Reading::Absent(absent),
            runs: 1,
            width: Reading::Value(1),
            learnt,
            beside: None,
        }
    }

    /// What the tasks of two jobs are told: one that ran before in this folder, and the same elsewhere.
    fn told(path: &Path) -> [TaskSpec; 2] {
        let (_, known, warning) = recall(path, vec![Some(key("/here")), Some(key("/there"))]);
        assert_eq!(warning, None);
        let mut specs = [TaskSpec::new(0, "here"), TaskSpec::new(1, "there")];
        specs
            .iter_mut()
            .zip(&known)
            .for_each(|(spec, known)| known.as_ref().unwrap().tell(spec));
        specs
    }

    #[test]
    fn what_was_learnt_of_a_job_is_told_to_the_next_run_of_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("history.sqlite");
        let run = |result: TaskResult| {
            let (mut memory, known, warning) = recall(&path, vec![Some(key("/here"))]);
            memory.ended(known[0].as_ref().unwrap(), &result);
            assert_eq!((warning, memory.finish()), (None, None));
            told(&path)
        };
        // What failed tells nothing, nor what is kept for all commands with its program.
        assert_eq!(
            run(result(900, Exit::Code(1), Some(learnt(0.5)))).map(|spec| spec.earlier),
            [None, None]
        );
        assert_eq!(
            run(result(9, Exit::Code(0), Some(learnt(0.5)))).map(|spec| spec.earlier),
            [None, None]
        );
        let [here, there] = run(result(900, Exit::Code(0), Some(learnt(0.5))));
        assert_eq!((here.earlier, there.earlier), (Some(learnt(0.5)), None));
        assert!(here.expected.is_some() && there.expected.is_some());
        // It is short now, and known by itself.
        assert_eq!(
            run(result(9, Exit::Code(0), None))[0].earlier,
            Some(learnt(0.5))
        );
        assert_eq!(
            run(result(900, Exit::Code(0), Some(learnt(0.75))))[0].earlier,
            Some(learnt(0.75))
        );
        let (mut memory, known, _) = recall(&path, vec![Some(key("/here"))]);
        let mut known = known[0].clone().unwrap();
        known.learnt = Some(learnt(0.25));
        memory.ended(&known, &result(900, Exit::Code(0), None));
        assert_eq!(memory.finish(), None);
        assert_eq!(told(&path)[0].earlier, Some(learnt(0.25)), "by its node");
    }

    #[test]
    fn neighbours_are_kept_with_their_shares() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("history.sqlite");
        let (mut memory, known, _) = recall(&path, vec![Some(key("/here"))]);
        let mut ended = result(900, Exit::Code(0), None);
        ended.beside = Some(
            [
                ("/bin/sort".into(), Nanos::from_ms(300)),
                ("/bin/true".into(), Nanos::from_ms(3)),
            ]
            .into(),
        );
        memory.ended(known[0].as_ref().unwrap(), &ended);
        assert_eq!(memory.finish(), None);
        let store = HistoryStore::open(&path, LockPatience::Some).unwrap();
        let kept = &store.list(None).unwrap()[0].runs[0].beside;
        assert_eq!(
            *kept,
            Some([(key("/here").number_of("/bin/sort"), 0.333)].into())
        );
    }

    #[test]
    fn rates_are_recalled_for_the_same_template() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("history.sqlite");
        let recalled = |lines: [&str; 2]| {
            let key = |line: &str| CommandKey {
                command: line.to_owned(),
                ..key("/here")
            };
            let (mut memory, known, _) = recall(&path, lines.map(key).map(Some).into());
            let rates = memory.recall_rates(&known);
            (memory, rates)
        };
        let rates = vec![RateAt {
            jobs: 2,
            rate: 1.25,
            cpu: None,
            ends: 9,
        }];
        let (mut memory, none) = recalled(["solve -k a", "solve -k b"]);
        assert_eq!(none, []);
        memory.learn_rates(&rates);
        assert_eq!(memory.finish(), None);
        assert_eq!(recalled(["solve -k c", "solve -k d"]).1, rates);
        assert_eq!(recalled(["solve -x c", "solve -x d"]).1, []);
        assert_eq!(recalled(["solve -k c", "solve -k d e"]).1, []);
    }

    /// Nobody's run fails for it, and the next time is as good.
    #[test]
    fn while_others_use_the_file_nothing_is_known_and_what_comes_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("history.sqlite");
        let all = || recall(&path, vec![Some(key("/here"))]);
        let (mut memory, known, _) = all();
        memory.ended(
            known[0].as_ref().unwrap(),
            &result(900, Exit::Code(0), None),
        );
        assert_eq!(memory.finish(), None);
        let other = Connection::open(&path).unwrap();
        other.execute_batch("BEGIN EXCLUSIVE").unwrap();
        let (mut memory, known, warning) = all();
        assert!(
            matches!(&warning, Some(RunWarning::HistoryBusy { lost: false, .. })),
            "{warning:?}"
        );
        let known = known[0].as_ref().unwrap();
        assert_eq!(known.recalled, RecalledCommand::default());
        memory.ended(known, &result(900, Exit::Code(0), None));
        let lost = memory.finish();
        assert!(
            matches!(&lost, Some(RunWarning::HistoryBusy { lost: true, .. })),
            "{lost:?}"
        );
        other.execute_batch("ROLLBACK").unwrap();
        memory.ended(known, &result(900, Exit::Code(0), None));
        assert_eq!(memory.finish(), None);
        let ends: i64 = other
            .query_row("SELECT known ->> 'ends' FROM command", [], |row| row.get(0))
            .unwrap();
        assert_eq!(ends, 2);
    }
}
