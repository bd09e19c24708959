use super::*;
use crate::info::JobInfo;
use crate::progress::ProgressTracker;
use crate::testing::{finished, info, result, snapshot};
use cosched_core::{
    Absence, ByTask, CpuId, Doing, Expected, ExpectedFrom, Fact, Nanos, Placement, ProgressBasis,
    Reading, RunConfig, RunNow, Switch, Switched, TaskId, TaskSpec, Visible, VisibleFrom,
    WaitReason, WatchedTask,
};
use std::collections::VecDeque;

/// Two jobs that run, one that waits, one that is to come, and one that has ended.
pub(crate) fn status() -> RunStatus {
    status_of(Nanos::from_s(6.0), None, &[])
}

/// The same, with jobs that have had a place for so long.
fn status_after(ran: Nanos) -> RunStatus {
    status_of(ran, None, &[])
}

/// The same, with what earlier runs let expect of the job that waits, and with what a scheduler in the kernel told.
fn status_of(ran: Nanos, expected: Option<Expected>, switches: &[Switch]) -> RunStatus {
    let (result, mut snapshot) = (result(), snapshot());
    snapshot.tasks[2].expected = expected;
    let info = info(&result);
    let specs: Vec<TaskSpec> = (0..3)
        .map(|id| TaskSpec::new(id, &format!("job-{id}")))
        .collect();
    snapshot.now = Nanos::from_s(12.0);
    snapshot.tasks[2].waiting_since = Nanos::from_s(11.5);
    snapshot.tasks[1].running.as_mut().unwrap().placement = Placement::Shared {
        mask: "1".parse().unwrap(),
    };
    let tasks: Vec<WatchedTask<'_>> = specs
        .iter()
        .zip(&snapshot.tasks)
        .map(|(spec, view)| {
            let placed = view
                .running
                .as_ref()
                .map(|running| Doing::Runs(running.placement.cpus()));
            let waits = placed.is_none();
            WatchedTask {
                spec,
                doing: placed.unwrap_or(Doing::Paused),
                started: Some(Nanos::from_s(1.0)),
                cpu_time: Reading::Value(Nanos::from_s(5.5)),
                view: Some(view),
                reason: waits.then_some(WaitReason::Order { ahead: 2 }),
                latest: waits.then_some(Nanos::from_s(41.5)),
                ran,
                earned: Reading::Value(25.0),
                basis: if spec.id.0 == 1 {
                    ProgressBasis::CpuTime
                } else {
                    ProgressBasis::Ipc
                },
                learnt: Reading::Absent(Absence::NotYetMeasured),
                visible: None,
                runs: 1 + spec.id.0,
            }
        })
        .collect();
    let config = RunConfig::default();
    let pending: VecDeque<TaskId> = [TaskId(3)].into();
    let now = RunNow {
        at: snapshot.now,
        is_paused: false,
        most_live: 3,
        snapshot: &snapshot,
        config: &config,
        tasks: &tasks,
        pending: &pending,
        decisions: 60,
        energy_j: Reading::Value(312.5),
    };
    let names = ["sort a", "mcf", "gzip", "late", "check"];
    let mut jobs = ByTask::default();
    let mut tracker = ProgressTracker::new(false);
    for (id, name) in (0u32..).zip(names) {
        let spec = TaskSpec::new(id, name);
        tracker.taken(&spec, (id == 0).then_some(10.0));
        let job = JobInfo {
            command: Some(format!("./{name} x")),
            ..JobInfo::of(&spec)
        };
        jobs.insert(spec.id, job);
    }
    (0..4).for_each(|task| tracker.started(TaskId(task)));
    for s in [3, 4, 5, 6] {
        let share = f64::from(s - 2) / 8.0;
        let from = VisibleFrom::Input;
        let task = WatchedTask {
            ran: Nanos::from_s(s.into()),
            visible: Some(Reading::Value(Visible { share, from })),
            ..tasks[1].clone()
        };
        tracker.saw(Nanos::from_s(7.0), &task);
    }
    let mut live = Live::new(&info);
    live.facts = Some(RunFacts {
        run_id: "10-77-4026531836".to_owned(),
        pid: 10,
        policy: "perf-fair".to_owned(),
        phase: "together".to_owned(),
        machine: "two cores".to_owned(),
        cpus: "0-1".to_owned(),
        started_at: Some("2023-11-14T22:13:20.250Z".to_owned()),
        folder: Some("/home/u/cosched-logs/1".to_owned()),
        record: Some("/home/u/cosched-logs/1/run.json".to_owned()),
        series: Some("/home/u/cosched-logs/1/series.jsonl".to_owned()),
        absent: Absences::default(),
    });
    live.note(Nanos::ZERO, &Fact::Switched(switches), &jobs);
    let mut ended = finished(4, "check", 8.0, 5.0);
    ended.exit = Some(cosched_core::Exit::Signal {
        signal: 11,
        oom: false,
    });
    tracker.ended(Nanos::from_s(8.0), &ended);
    live.note(Nanos::from_s(8.0), &Fact::Ended(&ended), &jobs);
    tracker.tick(&snapshot);
    let mut status = live.status(&now, &jobs, &tracker);
    status.own.figures.push("cpu_s", Ok(0.05));
    status.own.figures.push("cpu_share", Ok(0.05 / 12.0));
    status.jobs[0].figures.push("resident_bytes", Ok(1.5e9));
    status
}

#[test]
fn a_state_is_read_as_it_was_written() {
    let status = status();
    let text = serde_json::to_string_pretty(&status).unwrap();
    insta::assert_snapshot!(text);
    let read = RunStatus::from_json(text.as_bytes()).unwrap();
    assert_eq!(
        serde_json::to_value(read).unwrap(),
        serde_json::to_value(status).unwrap()
    );
    let other = text.replace("cosched.status/2", "cosched.status/9");
    assert_eq!(
        RunStatus::from_json(other.as_bytes()).unwrap_err(),
        "expected `cosched.status/2`, found `cosched.status/9`"
    );
}

#[test]
fn of_cpu_time_alone_no_slowdown_is_known() {
    let placed = status_after(Nanos::from_s(12.0));
    assert!(placed.jobs[0].figures.get("slowdown").is_some());
    assert_eq!(placed.jobs[1].progress_from.as_deref(), Some("cpu-time"));
    let why = Some("nothing shows how fast it would be alone");
    assert_eq!(placed.jobs[1].figures.why("slowdown"), why);
}

#[test]
fn of_a_suspended_run_frozen_jobs_do_not_run() {
    let mut status = status();
    let (running, waiting) = (status.totals.running, status.totals.waiting);
    let first = status.jobs[0].job;
    (status.totals.left_s, status.totals.left_from) = (None, None);
    status.suspend(|job| job == first);
    assert_eq!(status.jobs[0].state, JobState::Waiting);
    assert_eq!(status.jobs[0].cpus, None);
    let totals = &status.totals;
    assert_eq!((totals.running, totals.waiting), (running - 1, waiting + 1));
    let head = "12 elapsed, time left not known yet (suspended; `fg` in its terminal, or `kill -CONT 10`, continues it)";
    assert!(
        jobs_text(&status, 120).contains(head),
        "{}",
        jobs_text(&status, 120)
    );
}

/// What was seen last does not stand beside how the run ended.
#[test]
fn after_the_end_all_jobs_have_ended() {
    let mut status = status();
    let (mut result, names) = (result(), ["sort a", "mcf", "gzip", "late", "check"]);
    result.tasks = (0u32..)
        .zip(names)
        .map(|(id, name)| finished(id, name, 20.0 + f64::from(id), 5.0))
        .collect();
    result.tasks[3].exit = None;
    (result.tasks[3].started, result.tasks[3].finished) = (None, None);
    result.tasks[1].exit = Some(cosched_core::Exit::Code(3));
    result.tasks[2].exit = Some(cosched_core::Exit::ToldToEnd);
    result.tasks[2].ended_by_user = true;
    let jobs = result
        .tasks
        .iter()
        .map(|task| JobInfo::of(&task.spec))
        .collect();
    let info = crate::info::RunInfo {
        jobs,
        ..info(&result)
    };
    status.over(&crate::record(&result, &info));
    let LiveTotals {
        jobs,
        done,
        failed,
        cancelled,
        running,
        waiting,
        sleeping,
        ending,
        queued,
        dropped,
        left_s,
        ..
    } = status.totals;
    let ended = (done, failed, cancelled);
    assert_eq!((jobs, ended, dropped, left_s), (5, (4, 1, 1), 1, None));
    assert_eq!([running, waiting, sleeping, ending, queued], [0; 5]);
    assert!(
        status
            .cpus
            .iter()
            .all(|cpu| cpu.job.is_none() && cpu.jobs == 0 && !cpu.shared)
    );
    assert!(
        status
            .jobs
            .iter()
            .all(|job| job.state == JobState::Ended && job.reason.is_none() && job.cpus.is_none())
    );
    let exit = |name: &str| {
        status
            .jobs
            .iter()
            .find(|job| job.name == name)
            .map(|job| job.end.exit_text.clone())
    };
    assert_eq!(
        (exit("mcf").as_deref(), exit("late").as_deref()),
        (Some("exit 3"), Some("did not start"))
    );
    assert_eq!(status.elapsed_s, 24.0);
}

/// A job that is placed may have no CPU, one that waits may fill in, and what an ended one left behind has none. One that was never
/// seen is where it was placed: the scheduler may not have it.
#[test]
fn who_has_a_cpu_in_the_kernel_has_it() {
    let to = |s: f64, cpu: u32, task: Option<u32>| Switch {
        at: Nanos::from_s(s),
        what: Switched::To {
            cpu: CpuId(cpu),
            task: task.map(TaskId),
        },
    };
    let mut switches = vec![
        to(10.0, 0, Some(0)),
        to(10.5, 1, Some(4)),
        to(11.0, 0, Some(2)),
    ];
    let told = status_of(Nanos::from_s(6.0), None, &switches);
    let cpus: Vec<_> = told
        .cpus
        .iter()
        .map(|cpu| (cpu.cpu, cpu.job, cpu.since_s, cpu.shared, cpu.jobs))
        .collect();
    assert_eq!(
        cpus,
        [
            (0, Some(2), Some(11.0), false, 1),
            (1, None, None, false, 0)
        ]
    );
    let jobs: Vec<_> = told.jobs[..3]
        .iter()
        .map(|job| (job.state, job.cpus.as_deref()))
        .collect();
    assert_eq!(
        jobs,
        [
            (JobState::Running, None),
            (JobState::Running, Some("1")),
            (JobState::Waiting, Some("0"))
        ]
    );
    let text = jobs_text(&told, 100);
    assert!(text.contains("CPUs: 0 gzip, 1 idle"), "{text}");
    switches.push(Switch {
        at: Nanos::from_s(11.5),
        what: Switched::Untold,
    });
    assert_eq!(status_of(Nanos::from_s(6.0), None, &switches), status());
}

/// A job that has not ended is never wholly done, and what is known of other commands is no firm time.
#[test]
fn what_rests_on_other_commands_is_marked() {
    let share = |share: Result<f64, &str>, left_s: Result<f64, &str>, from: Option<&str>| {
        let mut job = status().jobs.swap_remove(0);
        job.figures = Figures::default();
        job.figures.push("share", share);
        job.figures.push("left_s", left_s);
        job.share_from = from.map(str::to_owned);
        (job.share_text(), job.left_text())
    };
    let some = |share: &str, left: &str| (Some(share.to_owned()), Some(left.to_owned()));
    let after = |ran_s: f64| {
        let status = status_of(
            Nanos::from_s(ran_s),
            Some(Expected {
                runs: 3,
                ..Expected::of(Nanos::from_s(8.0), ExpectedFrom::Program)
            }),
            &[],
        );
        let job = &status.jobs[2];
        (
            job.share_text(),
            job.figures.why("share").map(str::to_owned),
            job.share_from.clone(),
        )
    };
    assert_eq!(
        after(6.0),
        (Some("~75 %".to_owned()), None, Some("program".to_owned()))
    );
    let longer = "it has run for longer than other commands with its program";
    for outlived in [8.0, 80.0] {
        assert_eq!(after(outlived), (None, Some(longer.to_owned()), None));
    }
    assert_eq!(
        share(Ok(0.999), Ok(61.0), Some("same")),
        some("99 %", "1:01")
    );
    assert_eq!(
        share(Ok(0.5), Ok(61.0), Some("program")),
        some("~50 %", "~1:01")
    );
    let overdue = share(
        Err("longer than expected"),
        Err("longer than expected"),
        None,
    );
    assert_eq!(overdue, (None, Some("late".to_owned())));
    let mut late = status();
    (late.totals.left_s, late.totals.left_from) = (None, None);
    late.totals.absent.lack("left_s", "longer than expected");
    assert!(jobs_text(&late, 120).contains("0:12 elapsed, longer than expected\n"));
}

/// A steady visible pace takes precedence over earlier runs, and an uneven one over nothing.
#[test]
fn the_best_known_progress_is_shown() {
    let paced = |shares: &[f64], expected: Option<f64>| {
        let mut tracker = ProgressTracker::new(false);
        let mut snapshot = snapshot();
        let spec = TaskSpec::new(2, "gzip");
        snapshot.tasks[2].expected =
            expected.map(|s| Expected::of(Nanos::from_s(s), ExpectedFrom::Same));
        let mut outlook = None;
        for (s, &share) in (1u32..).map(f64::from).zip(shares) {
            let from = VisibleFrom::Input;
            let task = WatchedTask {
                spec: &spec,
                doing: Doing::Paused,
                started: Some(Nanos::ZERO),
                cpu_time: Reading::Value(Nanos::from_s(s)),
                view: Some(&snapshot.tasks[2]),
                reason: None,
                latest: None,
                ran: Nanos::from_s(s),
                earned: Reading::Value(5.0 * s),
                basis: ProgressBasis::CpuTime,
                learnt: Reading::Absent(Absence::NotYetMeasured),
                visible: Some(Reading::Value(Visible { share, from })),
                runs: 1,
            };
            let at = Nanos::from_s(s);
            tracker.saw(at, &task);
            let view = &snapshot.tasks[2];
            outlook = Some(build::forecast(view, &task, None, at, &tracker));
        }
        let (share, left_s, from) = outlook.unwrap();
        let left_s = left_s.ok().map(f64::round);
        (from, share, left_s)
    };
    let (steady, uneven) = ([0.1, 0.2, 0.3, 0.4], [0.0, 0.1, 0.1, 0.4]);
    let by_input = (Some("input"), Ok(0.4), Some(6.0));
    assert_eq!(paced(&steady, None), by_input);
    assert_eq!(paced(&steady, Some(5.0)), by_input);
    let by_history = (Some("same"), Ok(0.8), Some(1.0));
    assert_eq!(paced(&uneven, Some(5.0)), by_history);
    let by_share = (Some("input"), Ok(0.4), None);
    assert_eq!(paced(&uneven, None), by_share);
    assert_eq!(paced(&uneven, Some(3.0)), by_share);
}

/// The owner of a run can put anything into its state; it must not control the terminal of root, who looks at it.
#[test]
fn no_text_of_a_state_controls_the_terminal() {
    const EVIL: &str = "x\u{1b}[31m\u{1b}]0;owned\u{7}\u{9b}2J\u{202e}\r\n";
    /// Puts that into each text of the state, one after the other, as long as it is still a state.
    fn places(value: &serde_json::Value, path: &str, into: &mut Vec<String>) {
        match value {
            serde_json::Value::String(_) => into.push(path.to_owned()),
            serde_json::Value::Array(all) => {
                all.iter()
                    .enumerate()
                    .for_each(|(ix, one)| places(one, &format!("{path}/{ix}"), into));
            }
            serde_json::Value::Object(all) => {
                all.iter()
                    .for_each(|(key, one)| places(one, &format!("{path}/{key}"), into));
            }
            _ => {}
        }
    }
    let mut state = serde_json::to_value(status()).unwrap();
    let mut paths = Vec::new();
    places(&state, "", &mut paths);
    let mut taken = 0;
    for path in paths {
        let before = state.pointer(&path).unwrap().clone();
        *state.pointer_mut(&path).unwrap() = EVIL.into();
        match RunStatus::from_json(state.to_string().as_bytes()) {
            Ok(_) => taken += 1,
            Err(_) => *state.pointer_mut(&path).unwrap() = before,
        }
    }
    assert!(taken > 30, "{taken}");
    let evil = RunStatus::from_json(state.to_string().as_bytes()).unwrap();
    let lines = [RunLine {
        pid: 10,
        status: Ok(&evil),
    }];
    for text in [jobs_text(&evil, 200), runs_text(&lines, 200)] {
        assert!(
            !text.contains('\r') && !text.chars().any(crate::is_hidden),
            "{text:?}"
        );
        assert!(text.contains("\\x1b[31m"), "{text}");
    }
}

#[test]
fn jobs_as_text() {
    let text = [120, 80, 40]
        .map(|width| jobs_text(&status(), width))
        .join("\n----\n");
    insta::assert_snapshot!(text);
}

/// A row of the queue's job with this name in the run.
fn row(id: u64, name_in_run: &str, state: &str) -> QueueRow {
    QueueRow {
        id,
        name: name_in_run.to_owned(),
        name_in_run: name_in_run.to_owned(),
        state: state.to_owned(),
        is_live: state == "running",
        is_over: state.starts_with("exit"),
        since_s: 3.0 * id as f64,
        command: format!("{name_in_run} x"),
    }
}

/// The run does not know yet that `mcf` has ended and that `late` has started.
#[test]
fn jobs_of_the_queue_as_text() {
    let rows = [
        row(1, "sort a", "running"),
        row(2, "mcf", "exit 0"),
        row(3, "gzip", "running"),
        row(4, "late", "running"),
        row(5, "new", "queued"),
    ];
    let status = status();
    let text = [
        queue_run_text(&status, "queue: 3 running, 1 queued", &rows, 120),
        queue_run_text(&status, "queue: no job", &[], 120),
        queue_text(&rows, None, 80),
    ];
    insta::assert_snapshot!(text.join("----\n"));
}

#[test]
fn an_idle_run_is_not_old() {
    let mut status = status();
    status.set_age(13.2);
    assert_eq!((status.old_s(), status.elapsed_s), (Some(13.2), 12.0));
    status.totals = LiveTotals::default();
    status.set_age(13.2);
    assert_eq!((status.old_s(), status.elapsed_s), (None, 25.2));
}

#[test]
fn runs_as_text() {
    let (new, mut old) = (status(), status());
    (old.run.pid, old.totals.left_s, old.age_s) = (11, Some(754.0), Some(7.0));
    let runs = [
        RunLine {
            pid: 10,
            status: Ok(&new),
        },
        RunLine {
            pid: 11,
            status: Ok(&old),
        },
        RunLine {
            pid: 12,
            status: Err("it can't be seen from here"),
        },
    ];
    insta::assert_snapshot!(
        [100, 60]
            .map(|width| runs_text(&runs, width))
            .join("----\n")
    );
}

#[test]
fn very_many_jobs_are_left_out_and_counted() {
    let mut live = Live::new(&info(&result()));
    let mut tracker = ProgressTracker::new(false);
    for id in 0..5_000 {
        tracker.taken(&TaskSpec::new(id, "x"), None);
    }
    for id in 0..3_000 {
        let ended = finished(id, "x", 1.0, 1.0);
        tracker.ended(Nanos::from_s(1.0), &ended);
        live.note(Nanos::from_s(1.0), &Fact::Ended(&ended), &ByTask::default());
    }
    let (snapshot, config) = (snapshot(), RunConfig::default());
    let pending: VecDeque<TaskId> = (3_000..5_000).map(TaskId).collect();
    let now = RunNow {
        at: snapshot.now,
        is_paused: false,
        most_live: 3,
        snapshot: &snapshot,
        config: &config,
        tasks: &[],
        pending: &pending,
        decisions: 1,
        energy_j: Reading::Absent(Absence::NoEnergyMeter),
    };
    let status = live.status(&now, &ByTask::default(), &tracker);
    let shown = status.jobs.len();
    let LeftOut {
        live: 0,
        queued,
        ended,
    } = status.left_out
    else {
        panic!("{:?}", status.left_out)
    };
    assert_eq!(shown + queued + ended, 5_000);
    assert!(
        shown <= 1_500
            && status.jobs[0].job == 3_000
            && status.jobs[shown - 1].state == JobState::Ended
    );
    assert_eq!(
        status.jobs[1_000].job, 2_999,
        "the last that ended comes first"
    );
    assert_eq!(status.energy.absent.why("joules"), Some("no energy meter"));
}
