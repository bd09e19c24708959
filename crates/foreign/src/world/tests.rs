//! Worlds that read their answers from a file, one for each question.

use super::*;
use crate::process::Command;
use cosched_core::{
    Absence, Backend, Capability, Change, Counter, CpuSet, Event, Exit, Kill, Nanos, Placement,
    Purpose, Rate, Reading, TaskId, Usage,
};
use serde_json::{Value, json};
use tempfile::{TempDir, tempdir};

/// A folder with the answers of a world, and with the questions that came.
struct Folder(TempDir);

impl Folder {
    fn new() -> Folder {
        Folder(tempdir().expect("a folder"))
    }

    /// A world with these answers, which ends after the last one.
    fn world(&self, answers: &[Value]) -> Result<ForeignWorld, WorldError> {
        let lines: Vec<String> = answers.iter().map(|answer| format!("{answer}\n")).collect();
        std::fs::write(self.0.path().join("answers"), lines.concat()).expect("a file");
        let script = "cd \"$1\"; exec 3<answers 4>questions; while read -r question; do \
                      printf \"%s\\n\" \"$question\" >&4; \
                      read -r answer <&3 || exit; printf \"%s\\n\" \"$answer\"; done";
        let word = format!("cmd:sh -c '{script}' sh {}", self.0.path().display());
        ForeignWorld::open(&Command::of(&word).expect("a command"), 7, || None)
    }

    /// The questions that came, but the first.
    fn questions(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.0.path().join("questions")).expect("questions");
        let lines = text.lines().skip(1);
        lines
            .map(|line| serde_json::from_str(line).expect("JSON"))
            .collect()
    }
}

/// A machine of two cores, each with two CPUs and a memory domain.
fn machine() -> Value {
    let cpu = |id: u32, core: u32| json!({"id": id, "core": core, "llc": 0, "memory_domain": core, "core_type": 0});
    json!({
        "name": "two", "cpus": [cpu(0, 0), cpu(1, 1), cpu(2, 0), cpu(3, 1)],
        "cores": ["0,2", "1,3"], "llcs": ["0-3"], "memory_domains": ["0,2", "1,3"],
        "core_types": [{"name": "core", "capacity": null, "max_khz": null}],
        "llc_bytes": {"value": 1048576}
    })
}

fn opened() -> Value {
    json!({"machine": machine(), "missing": {"energy": "no-energy-meter", "mm-writes": "no-such-event"}})
}

fn ok() -> Value {
    json!({"ok": true})
}

fn job(cpus: u32) -> WorldJob {
    let mut given = serde_json::Map::new();
    given.insert("work".to_owned(), json!(5e9));
    WorldJob {
        name: "mcf".to_owned(),
        cpus,
        given,
    }
}

fn place(task: u32, cpus: &str) -> Change {
    Change::Place {
        task: TaskId(task),
        placement: Placement::Exclusive {
            cpus: cpus.parse().expect("CPUs"),
            whole_core: false,
        },
        lease_end: None,
        purpose: Purpose::Run,
    }
}

/// A world with two jobs, the first of which runs; its further answers.
fn running(folder: &Folder, answers: &[Value]) -> ForeignWorld {
    let answers = [&[opened(), ok(), ok()], answers].concat();
    let mut world = folder.world(&answers).expect("a world");
    world.add(vec![job(1), job(1)]).expect("jobs");
    world.apply(&[place(0, "0")]).expect("a placement");
    world
}

fn wait(world: &mut ForeignWorld, until: Option<u64>) -> Result<Vec<Event>, String> {
    let mut events = Vec::new();
    let waited = world.wait(until.map(Nanos), &mut events);
    waited.map(|()| events).map_err(|error| error.to_string())
}

fn read(world: &mut ForeignWorld, tasks: &[u32]) -> Vec<Usage> {
    let tasks: Vec<TaskId> = tasks.iter().copied().map(TaskId).collect();
    let mut usages = Vec::new();
    world.read(&tasks, &mut usages);
    usages
}

fn ended(task: u32, exit: &Value) -> Value {
    json!({"ended": {"task": task, "exit": exit}})
}

#[test]
fn a_machine_that_contradicts_itself_is_refused() {
    let check = |field: &str, value: Value, expected: &str| {
        let mut opened = opened();
        opened["machine"][field] = value;
        let error = Folder::new().world(&[opened]).err().expect("an error");
        let text = error.to_string();
        let expected = format!("line 1 of its output: {expected}");
        assert!(text.contains(&expected), "{text}");
    };
    check(
        "cpus",
        json!([]),
        "machine: the machine `two` has no usable CPU",
    );
    check("name", json!(""), "machine.name: it is empty");
    check(
        "cores",
        json!(["0,2"]),
        "machine: CPU 1 of the machine `two`: its core",
    );
    check(
        "cores",
        json!(["0,2", "1,3,7"]),
        "machine.cores[1]: CPU 7 is not in `cpus`",
    );
    check(
        "memory_domains",
        json!(["0,2", "0-3"]),
        "machine.memory_domains[1]: CPU 0 is in `memory_domains[0]`",
    );
    check("llcs", json!(["0-3", ""]), "machine.llcs[1]: it has no CPU");
    check(
        "llcs",
        json!(["0-x"]),
        "machine.llcs[0]: `0-x` is not a list of CPUs",
    );
    check(
        "core_types",
        json!([]),
        "machine: CPU 0 of the machine `two`: its core type",
    );
    check(
        "nodes",
        json!([{"name": "a", "cpus": "0-3"}]),
        "machine.nodes: a world is one computer",
    );
}

#[test]
fn what_is_missing_is_told_by_codes() {
    let mut other = opened();
    other["missing"] = json!({"energies": "no-energy-meter"});
    let error = Folder::new().world(&[other]).err().expect("an error");
    assert!(
        error
            .to_string()
            .contains("missing: there is no capability `energies`"),
        "{error}"
    );
    let mut other = opened();
    other["missing"] = json!({"energy": "none"});
    let error = Folder::new().world(&[other]).err().expect("an error");
    assert!(
        error
            .to_string()
            .contains("missing.energy: unknown variant `none`"),
        "{error}"
    );

    let world = Folder::new().world(&[opened()]).expect("a world");
    let missing = world.capabilities().missing;
    let codes: Vec<String> = missing.keys().map(|capability| capability.code()).collect();
    assert_eq!(
        codes,
        ["mm-writes", "energy", "disk", "net", "core-types", "plans"]
    );
    assert_eq!(missing[&Capability::Energy], Absence::NoEnergyMeter);
}

#[test]
fn the_lines_are_those_of_the_format() {
    let folder = Folder::new();
    let passed = json!({"now": 180, "events": [{"slept": 0}, {"woke": 0}]});
    let totals = json!({"usage": [{"task": 0, "cpu_time": 7}]});
    let mut world = running(&folder, &[passed, totals, ok(), ok()]);
    let expected = [Event::Slept(TaskId(0)), Event::Woke(TaskId(0))];
    assert_eq!(wait(&mut world, Some(200)), Ok(expected.to_vec()));
    assert_eq!(world.now(), Nanos(180));
    let usages = read(&mut world, &[1, 0]);
    assert_eq!(usages[0].cpu_time, Reading::Absent(Absence::NotStarted));
    assert_eq!(usages[1].cpu_time, Reading::Value(Nanos(7)));
    world
        .apply(&[Change::Stop { task: TaskId(0) }])
        .expect("a stop");
    world.kill(TaskId(0), Kill::Term);
    // It has not started.
    world.kill(TaskId(1), Kill::Kill);
    let given = json!({"work": 5e9});
    let placement = json!({"exclusive": {"cpus": "0", "whole_core": false}});
    let expected = [
        json!({"add": [
            {"task": 0, "name": "mcf", "cpus": 1, "given": given},
            {"task": 1, "name": "mcf", "cpus": 1, "given": given},
        ]}),
        json!({"apply": [{"place": {"task": 0, "placement": placement, "lease_end": null, "purpose": "run"}}]}),
        json!({"wait": {"until": 200}}),
        json!({"read": [0]}),
        json!({"apply": [{"stop": {"task": 0}}]}),
        json!({"kill": {"task": 0, "how": "term"}}),
    ];
    assert_eq!(folder.questions(), expected);
}

#[test]
fn counts_are_absent_for_the_reason_that_was_told() {
    let usage = json!({"task": 0, "cycles": 5, "instructions": null, "mm_writes": 9});
    let mut world = running(&Folder::new(), &[json!({"usage": [usage]})]);
    let counts = read(&mut world, &[0])[0].counts;
    assert_eq!(counts[Counter::Cycles], Reading::Value(5));
    for counter in [Counter::Instructions, Counter::MmReads] {
        assert_eq!(counts[counter], Reading::Absent(Absence::NotTold));
    }
    // It is missing, whatever is told.
    assert_eq!(
        counts[Counter::MmWrites],
        Reading::Absent(Absence::NoSuchEvent)
    );
}

#[test]
fn totals_of_the_machine_are_asked_for_once_an_instant() {
    let folder = Folder::new();
    let totals = |reads: u64| {
        let traffic = json!([{"reads": reads, "writes": 1}, {"reads": reads + 1}]);
        json!({"usage": [], "traffic": traffic})
    };
    let passed = json!({"now": 9, "events": []});
    let mut world = running(&folder, &[totals(3), passed, totals(5)]);
    let reads = |world: &mut ForeignWorld| {
        let mut traffic = Vec::new();
        world.traffic(&mut traffic);
        [traffic[0].reads, traffic[1].reads].map(Reading::value)
    };
    assert_eq!(reads(&mut world), [Some(3), Some(4)]);
    assert_eq!(reads(&mut world), [Some(3), Some(4)]);
    assert_eq!(wait(&mut world, Some(9)), Ok(Vec::new()));
    assert_eq!(reads(&mut world), [Some(5), Some(6)]);
    // There is no meter, so nobody is asked.
    assert_eq!(world.energy_j(), Reading::Absent(Absence::NoEnergyMeter));
    assert_eq!(folder.questions()[2..].len(), 3);
    // Of the second core alone there is one domain.
    world.use_cpus(&"1".parse::<CpuSet>().expect("a CPU"));
    let mut traffic = Vec::new();
    world.traffic(&mut traffic);
    assert_eq!(traffic.len(), 1);
    assert_eq!(traffic[0].reads, Reading::Value(6));
}

#[test]
fn wrong_answers_to_a_wait_name_line_and_field() {
    let check = |until: Option<u64>, passed: Value, expected: &str| {
        let first = json!({"now": 10, "events": []});
        let mut world = running(&Folder::new(), &[first, passed]);
        assert_eq!(wait(&mut world, Some(10)), Ok(Vec::new()));
        let error = wait(&mut world, until).expect_err("an error");
        let expected = format!("line 5 of its output: {expected}");
        assert!(error.contains(&expected), "{error}");
    };
    let end = ended(0, &json!({"code": 0}));
    check(
        Some(20),
        json!({"now": 9, "events": []}),
        "now: 9 is before 10",
    );
    check(
        Some(20),
        json!({"now": 21, "events": []}),
        "now: 21 is after `until`, 20",
    );
    check(
        Some(20),
        json!({"now": 19, "events": []}),
        "now: 19 is before `until`, 20",
    );
    check(
        None,
        json!({"now": 99, "events": []}),
        "events: there is none",
    );
    check(
        Some(20),
        json!({"now": 1.5, "events": []}),
        "now: invalid type: floating point",
    );
    check(Some(20), json!({"now": 11}), "missing field `events`");
    check(
        Some(20),
        json!({"now": 11, "events": [{"began": 0}]}),
        "events[0]: unknown variant `began`",
    );
    check(
        Some(20),
        json!({"now": 11, "events": [{"slept": 2}]}),
        "events[0]: there is no task 2",
    );
    check(
        Some(20),
        json!({"now": 11, "events": [ended(1, &json!({"code": 0}))]}),
        "events[0]: task 1 has not started",
    );
    check(
        Some(20),
        json!({"now": 11, "events": [end, end]}),
        "events[1]: task 0 has ended",
    );
}

#[test]
fn wrong_totals_end_the_run_at_its_next_step() {
    let check = |totals: Value, expected: &str| {
        let first = json!({"usage": [{"task": 0, "cpu_time": 8}]});
        let mut world = running(&Folder::new(), &[first, totals]);
        read(&mut world, &[0]);
        let usages = read(&mut world, &[0]);
        assert_eq!(usages[0].cpu_time, Reading::Absent(Absence::NotTold));
        let error = wait(&mut world, None).expect_err("an error");
        let expected = format!("line 5 of its output: {expected}");
        assert!(error.contains(&expected), "{error}");
    };
    let usage = |usage: Value| json!({"usage": [usage]});
    check(json!({"usage": []}), "usage: it has 0 entries; expected 1");
    check(usage(json!({"task": 1})), "usage[0].task: expected 0");
    check(usage(json!({"cpu_time": 9})), "usage[0].task: expected 0");
    check(
        usage(json!({"task": 0, "cpu_time": 7})),
        "usage[0].cpu_time: 7 is less than before, 8",
    );
    check(
        usage(json!({"task": 0, "llc_misses": 7})),
        "usage[0].llc_misses: there is no such counter",
    );
    check(
        usage(json!({"task": 0, "cycles": 1.5})),
        "usage[0].cycles: invalid type: floating point",
    );
    check(
        json!({"usage": [{"task": 0}], "traffic": [{"reads": 1}]}),
        "traffic: it has 1 entries; expected 2",
    );
    check(
        json!({"usage": [{"task": 0}], "energy_j": -1.0}),
        "energy_j: -1 is below zero",
    );
}

#[test]
fn a_world_that_reports_an_error_or_ends_is_quoted() {
    let mut world = running(&Folder::new(), &[json!({"error": "no disk is left"})]);
    let error = wait(&mut world, None).expect_err("an error");
    assert!(
        error.ends_with("reports an error: no disk is left"),
        "{error}"
    );
    let mut world = running(&Folder::new(), &[]);
    let error = wait(&mut world, None).expect_err("an error");
    assert!(error.ends_with("has ended without an answer"), "{error}");
    let mut world = running(&Folder::new(), &[json!({"ok": false})]);
    let error = world.apply(&[place(1, "1")]).expect_err("an error");
    assert!(error.to_string().contains("ok: it is false"), "{error}");
}

#[test]
fn what_no_method_could_report_is_left_at_the_end() {
    let mut world = running(&Folder::new(), &[]);
    world.kill(TaskId(0), Kill::Kill);
    let failure = world.take_failure().expect("a failure");
    assert!(
        failure.to_string().ends_with("has ended without an answer"),
        "{failure}"
    );
    assert!(world.take_failure().is_none());
}

#[test]
fn a_task_that_starts_again_is_a_new_task_for_the_world() {
    let folder = Folder::new();
    let failed = json!({"now": 5, "events": [ended(0, &json!({"code": 1}))]});
    let late = json!({"now": 6, "events": [ended(0, &json!({"code": 1}))]});
    let totals = json!({"usage": [{"task": 2, "cpu_time": 1}]});
    let mut world = running(&folder, &[failed, ok(), ok(), totals, late]);
    let end = Event::Ended {
        task: TaskId(0),
        exit: Exit::Code(1),
    };
    assert_eq!(wait(&mut world, None), Ok(vec![end]));
    assert!(!world.restart(TaskId(1)), "it has not ended");
    assert!(world.restart(TaskId(0)));
    world.apply(&[place(0, "1")]).expect("a placement");
    assert_eq!(read(&mut world, &[0])[0].task, TaskId(0));
    let error = wait(&mut world, None).expect_err("an error");
    assert!(error.contains("events[0]: task 0 has ended"), "{error}");
    let questions = folder.questions();
    assert_eq!(questions[3]["add"][0]["task"], 2);
    assert_eq!(questions[4]["apply"][0]["place"]["task"], 2);
    assert_eq!(questions[5], json!({"read": [2]}));
}

#[test]
fn what_could_not_be_started_has_no_totals() {
    let failed = json!({"now": 0, "events": [ended(0, &json!({"not-started": "no room"}))]});
    let mut world = running(&Folder::new(), &[failed]);
    let end = Event::Ended {
        task: TaskId(0),
        exit: Exit::NotStarted("no room".to_owned()),
    };
    assert_eq!(wait(&mut world, None), Ok(vec![end]));
    let usage = &read(&mut world, &[0])[0];
    assert_eq!(usage.cpu_time, Reading::Absent(Absence::NotStarted));
    // What has ended can't be placed or killed.
    world.apply(&[place(0, "0")]).expect("nothing to do");
    world.kill(TaskId(0), Kill::Kill);
    assert!(world.take_failure().is_none());
}

#[test]
fn a_world_that_hangs_is_left_with_the_second_signal() {
    let word = Command::of("cmd:sleep 1000").expect("a command");
    let first = ForeignWorld::open(&word, 1, || Some(2));
    // Nothing has started that would have to be ended.
    assert!(matches!(first, Err(WorldError::Interrupted(2))));
    let folder = Folder::new();
    let word = format!(
        "cmd:sh -c 'read question; cat {}; exec sleep 1000'",
        folder.0.path().join("answers").display()
    );
    std::fs::write(folder.0.path().join("answers"), format!("{}\n", opened())).expect("a file");
    let word = Command::of(&word).expect("a command");
    let mut signals = [None, Some(2), Some(2)].into_iter().flatten();
    let mut is_open = false;
    let mut world = ForeignWorld::open(&word, 1, move || {
        if std::mem::replace(&mut is_open, true) {
            signals.next()
        } else {
            None
        }
    })
    .expect("a world");
    let added = world.add(vec![job(1)]);
    assert!(
        matches!(added, Err(WorldError::Interrupted(2))),
        "{added:?}"
    );
}

#[test]
fn a_job_alone_has_a_time_a_bandwidth_and_a_trace() {
    let folder = Folder::new();
    let usage = |instructions: u64, cycles: u64, reads: u64| {
        let usage =
            json!({"task": 0, "instructions": instructions, "cycles": cycles, "mm_reads": reads});
        json!({"usage": [usage]})
    };
    let passed = |now: u64, events: &[Value]| json!({"now": now, "events": events});
    let answers = [
        opened(),
        ok(),
        ok(),
        passed(1_000_000, &[]),
        usage(100, 50, 10),
        // It stands still.
        passed(1_500_000, &[json!({"slept": 0})]),
        passed(2_000_000, &[]),
        usage(100, 50, 10),
        passed(2_500_000, &[ended(0, &json!({"code": 0}))]),
        usage(300, 450, 25),
    ];
    let world = folder.world(&answers).expect("a world");
    let profile = run_alone(world, job(2), Some(Nanos::from_ms(1))).expect("a profile");
    assert_eq!(profile.time, Some(Nanos(2_500_000)));
    assert_eq!(profile.mm_reads, Some(Rate(10)));
    let trace = profile.trace.expect("a trace");
    let points: Vec<(u64, f64)> = trace.points().iter().map(|&point| point.into()).collect();
    assert_eq!(points, [(100, 2.0), (300, 0.5)]);
    // One CPU of each core.
    let place = &folder.questions()[1]["apply"][0]["place"];
    let expected = json!({"exclusive": {"cpus": "0-1", "whole_core": true}});
    assert_eq!(place["placement"], expected);
}

#[test]
fn a_job_that_fails_alone_has_no_profile() {
    let end = json!({"now": 5, "events": [ended(0, &json!({"code": 1}))]});
    let totals = json!({"usage": [{"task": 0, "mm_reads": 5}]});
    let world = Folder::new().world(&[opened(), ok(), ok(), end, totals]);
    let profile = run_alone(world.expect("a world"), job(1), None).expect("an end");
    assert_eq!((profile.time, profile.mm_reads), (None, None));
}
