pub(crate) mod decoded;

use super::*;
use crate::series::{CpuMode, SampleRow, SeriesHeader, SeriesRow, SeriesTask};
use crate::testing::{FullDisk, info, result};
use cosched_core::{
    Absence, Basis, Counter, CpuId, CpuSet, Exit, JobEnd, Machine, PerCounter, Purpose, Rate,
    RunResult, Switched, TaskId, Trigger, WaitReason,
};
use decoded::{Decoded, Kind, Track, decode};
use proptest::prelude::*;
use std::collections::BTreeMap;

fn header() -> SeriesHeader {
    let result = result();
    SeriesHeader::new(&info(&result), result.tasks.iter().map(|task| &task.spec))
}

/// A header with jobs `job-0` and so on, which arrive at once, on so many CPUs.
fn header_of(jobs: u32, cpus: u32) -> SeriesHeader {
    let mut header = header();
    header.machine = Machine::uniform("m", cpus, 1);
    let task = |task: u32| SeriesTask {
        task,
        name: format!("job-{task}"),
        arrival_ns: Nanos::ZERO,
        ..task_zero()
    };
    header.tasks = (0..jobs).map(task).collect();
    header
}

fn task_zero() -> SeriesTask {
    header().tasks.swap_remove(0)
}

fn series_of(header: &SeriesHeader, lines: &[u8]) -> Vec<u8> {
    let mut text = serde_json::to_vec(header).unwrap();
    text.push(b'\n');
    text.extend_from_slice(lines);
    text
}

fn try_trace(series: &[u8]) -> Result<(Decoded, TraceDone), TraceError> {
    let mut out = Vec::new();
    let mut reader = SeriesReader::new(series, "s.jsonl")?;
    let done = write_trace(&mut reader, &mut out)?;
    let decoded = decode(&out).unwrap_or_else(|problem| panic!("{problem}"));
    decoded
        .check()
        .unwrap_or_else(|problem| panic!("{problem}\n{}", decoded.text()));
    Ok((decoded, done))
}

fn trace_of_lines(lines: &str) -> (Decoded, TraceDone) {
    try_trace(&series_of(&header(), lines.as_bytes())).unwrap()
}

fn trace_of_rows(header: &SeriesHeader, rows: &[(Nanos, SeriesRow)]) -> Decoded {
    let mut lines = Vec::new();
    rows.iter().for_each(|(at, row)| row.write(*at, &mut lines));
    try_trace(&series_of(header, &lines)).unwrap().0
}

/// Two jobs that take turns on one CPU beside a third, which is measured alone for a while, fails and ends; then all that a
/// series can tell of.
const LINES: &str = r#"["d",0,["quantum-end",{"arrived":0},{"arrived":1}],200000000,0,null,null,null]
["p",0,0,"0","exclusive","run"]
["w",0,1,{"why":"order","ahead":0}]
["b",1000000,0]
["a",200000000,0,"mm_writes","no-such-event"]
["s",200000000,0,199000000,"0","run","w",199000000,600000000,300000000,1,1,1000000,null,333]
["d",200000000,["quantum-end"],400000000,0,80000,79100,2]
["x",200000000,0]
["p",200000000,1,"0","exclusive","low-contention"]
["p",200000000,2,"1","whole-core","measure-alone"]
["w",200000000,0,{"why":"heavy","llc":{"value":500},"mm":{"absent":"no-counters"},"llc_limit":400,"mm_limit":300}]
["b",200000000,1]
["b",200000000,2]
["e",350000000,2,{"exit":139,"exit_text":"SIGSEGV","timed_out":false,"user_s":0.1,"system_s":0.002,"max_rss_bytes":3014656,"read_bytes":0,"progress":0.512}]
["!",360000000,"halting","the halt rule is met: no more jobs are started"]
["s",350000000,2,150000000,"1","measure-alone","wc",102000000,1000,3000,1,1,500000,700,null]
["s",400000000,1,200000000,"0","low-contention","",100000000,null,null,null,null,null,null,50]
["d",400000000,["quantum-end",{"ended":2}],600000000,1,null,null,null]
["p",400000000,0,"0-1","shared","run"]
["p",400000000,1,"0-1","shared","run"]
["s",600000000,0,200000000,"0-1","run","",200000000,100,50,1,1,2000,null,400]
["s",600000000,1,200000000,"0-1","run","",100000000,100,200,1,1,0,null,90]
"#;

#[test]
fn a_run_as_a_trace() {
    let (decoded, done) = trace_of_lines(LINES);
    insta::assert_snapshot!(decoded.text());
    assert_eq!(
        done,
        TraceDone {
            until: Nanos::from_ms(600),
            cut_off: false
        }
    );
}

/// Other traces may be worth more than ours, and other files begin with a new line.
#[test]
fn a_trace_is_told_from_other_files() {
    let trace_of = |header: &SeriesHeader| {
        let mut out = Vec::new();
        let text = series_of(header, LINES.as_bytes());
        write_trace(
            &mut SeriesReader::new(&text[..], "s.jsonl").unwrap(),
            &mut out,
        )
        .unwrap();
        out
    };
    assert!(is_trace(&trace_of(&header())));
    let mut long = header();
    long.machine.name = "x".repeat(70_000);
    assert!(is_trace(&trace_of(&long)));
    for other in [
        &b""[..],
        b"\n",
        b"{",
        b"CPUs of a machine",
        b"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n",
    ] {
        assert!(!is_trace(other), "{other:?}");
    }
}

fn sample(task: u32, interval: Nanos, reads: Option<u64>) -> SeriesRow {
    SeriesRow::Sampled(SampleRow {
        task: TaskId(task),
        interval,
        cpus: CpuSet::new(),
        purpose: Purpose::Run,
        whole_core: false,
        disturbed: false,
        cut_short: false,
        multiplexed: false,
        cpu_time: Some(interval),
        counts: PerCounter::from_fn(|counter| {
            if counter == Counter::MmReads {
                reads
            } else {
                None
            }
        }),
        progress_milli: None,
    })
}

fn decided(triggers: Vec<Trigger>) -> SeriesRow {
    SeriesRow::Decided {
        triggers,
        next_wake: None,
        stood_in: false,
        basis: Basis::default(),
    }
}

fn placed(task: u32, cpus: &str, mode: CpuMode) -> SeriesRow {
    SeriesRow::Placed {
        task: TaskId(task),
        cpus: cpus.parse().unwrap(),
        mode,
        purpose: Purpose::Run,
    }
}

fn ended(task: u32) -> SeriesRow {
    SeriesRow::Ended {
        task: TaskId(task),
        end: Box::new(JobEnd::of_exit(&Exit::Code(0))),
    }
}

fn track<'a>(decoded: &'a Decoded, parent: &str, name: &str) -> &'a Track {
    decoded
        .track(parent, name)
        .unwrap_or_else(|| panic!("no {parent} / {name}:\n{}", decoded.text()))
}

fn slices<'a>(decoded: &'a Decoded, parent: &str, name: &str) -> Vec<(u64, u64, &'a str)> {
    decoded
        .slices(track(decoded, parent, name))
        .into_iter()
        .map(|(from, to, name, _)| (from, to, name))
        .collect()
}

/// The series has no line for the end of an attempt that is made again, and none for a place that is the same as before.
#[test]
fn attempts_are_told_apart() {
    let at = |ms: u64, row: SeriesRow| (Nanos::from_ms(ms), row);
    let again = vec![Trigger::Ended(TaskId(0)), Trigger::Arrived(TaskId(0))];
    let rows = [
        at(0, decided(vec![Trigger::Arrived(TaskId(0))])),
        at(0, placed(0, "0", CpuMode::Exclusive)),
        at(0, SeriesRow::Started(TaskId(0))),
        at(3, sample(0, Nanos::from_ms(3), None)),
        at(4, decided(again.clone())),
        at(5, SeriesRow::Started(TaskId(0))),
        at(8, decided(again)),
        at(
            8,
            SeriesRow::Waits {
                task: TaskId(0),
                reason: WaitReason::Affinity,
            },
        ),
        at(9, decided(vec![])),
        at(9, placed(0, "1", CpuMode::Exclusive)),
        at(9, SeriesRow::Started(TaskId(0))),
        at(12, ended(0)),
    ];
    let decoded = trace_of_rows(&header_of(1, 2), &rows);
    let ms = |n: u64| n * 1_000_000;
    assert_eq!(
        slices(&decoded, "CPUs", "CPU 0"),
        [(0, ms(4), "job-0"), (ms(5), ms(8), "job-0")]
    );
    assert_eq!(
        slices(&decoded, "CPUs", "CPU 1"),
        [(ms(9), ms(12), "job-0")]
    );
    let job = track(&decoded, "Jobs", "job-0");
    let told: Vec<&str> = decoded
        .on(job)
        .filter(|event| event.kind == Kind::Instant)
        .map(|event| event.name.as_str())
        .collect();
    let again = ["attempt ended", "started again"];
    assert_eq!(
        told,
        [&["started"][..], &again, &again, &["ended: exit 0"]].concat()
    );
    let does = slices(&decoded, "Jobs", "job-0");
    let does: Vec<&str> = does.into_iter().map(|(_, _, name)| name).collect();
    assert_eq!(
        does,
        [
            "on CPU 0",
            "queued",
            "on CPU 0",
            "waits: affinity",
            "on CPU 1"
        ]
    );
}

/// A job that is being ended takes no part any more; its CPU goes to another, and no line tells that it has lost it.
#[test]
fn the_cpu_of_a_job_that_is_being_ended_goes_to_the_next() {
    let at = |ms: u64, row: SeriesRow| (Nanos::from_ms(ms), row);
    let rows = [
        at(0, placed(0, "0-1", CpuMode::Exclusive)),
        at(5, placed(1, "1", CpuMode::WholeCore)),
        at(9, ended(0)),
        at(12, ended(1)),
    ];
    let decoded = trace_of_rows(&header_of(2, 2), &rows);
    let ms = |n: u64| n * 1_000_000;
    assert_eq!(slices(&decoded, "CPUs", "CPU 0"), [(0, ms(5), "job-0")]);
    assert_eq!(
        slices(&decoded, "CPUs", "CPU 1"),
        [(0, ms(5), "job-0"), (ms(5), ms(12), "job-1")]
    );
    assert_eq!(
        slices(&decoded, "Jobs", "job-0"),
        [(0, ms(5), "on CPUs 0-1"), (ms(5), ms(9), "off CPU")]
    );
}

/// What is absent leaves a gap in the sum over all jobs; what nothing counts has no track.
#[test]
fn sums_have_gaps_where_a_part_is_absent() {
    let at = |ms: u64, row: SeriesRow| (Nanos::from_ms(ms), row);
    let interval =
        |task: u32, to: u64, reads: Option<u64>| at(to, sample(task, Nanos::from_ms(2), reads));
    let rows = [
        at(0, placed(0, "0", CpuMode::Exclusive)),
        interval(0, 2, Some(100)),
        interval(1, 2, Some(50)),
        interval(0, 4, Some(100)),
        interval(1, 4, None),
        interval(1, 6, Some(100)),
    ];
    let decoded = trace_of_rows(&header_of(2, 2), &rows);
    let values = |name: &str| -> Vec<(u64, f64)> {
        let track = track(&decoded, "Machine", name);
        decoded
            .on(track)
            .filter_map(|event| Some((event.at / 1_000_000, event.value?)))
            .collect()
    };
    let per_s = |lines: f64| lines * 64.0 / 0.002;
    assert_eq!(
        values("read bandwidth"),
        [(0, per_s(150.0)), (4, per_s(100.0)), (6, 0.0)]
    );
    assert_eq!(values("busy CPUs"), [(0, 2.0), (4, 1.0), (6, 0.0)]);
    assert!(decoded.track("Machine", "write bandwidth").is_none());
    assert!(decoded.track("Counters of jobs", "job-0 IPC").is_none());
}

#[test]
fn a_cut_off_line_ends_the_trace_before_it() {
    let (whole, done) = trace_of_lines("[\"b\",5,0]\n");
    let (cut, cut_done) = trace_of_lines("[\"b\",5,0]\n[\"p\",6,0,\"0\",\"exclusive\"");
    assert_eq!(whole.text(), cut.text());
    assert_eq!((done.cut_off, cut_done.cut_off), (false, true));
}

#[test]
fn errors_name_file_and_line_and_what_is_wrong() {
    let error = |line: &str| {
        let series = series_of(
            &header(),
            format!("[\"b\",1,0]\n{line}\n[\"b\",2,1]\n").as_bytes(),
        );
        try_trace(&series).unwrap_err().to_string()
    };
    let cases = [
        ("[\"b\",1,4]", "column `task`: 4, but the header has 4"),
        ("[\"a\",1,9,\"cycles\",\"no-counters\"]", "column `task`: 9"),
        (
            "[\"p\",1,0,\"1-2\",\"exclusive\",\"run\"]",
            "column `cpus`: `1-2`, but the header's machine has 0-1",
        ),
        (
            "[\"p\",1,0,\"\",\"exclusive\",\"run\"]",
            "column `cpus`: ``",
        ),
        (
            "[\"o\",1,2,0]",
            "column `cpu`: `2`, but the header's machine has 0-1",
        ),
        ("[\"o\",1,1,4]", "column `task`: 4, but the header has 4"),
        (
            "[\"b\",9223372036854775808,0]",
            "column `t_ns`: 9223372036854775808 ns are longer than",
        ),
        ("[\"b\",1", "expected a JSON array"),
        // These are looked at with the next decision only, and still known by their own line.
        ("[\"e\",1,9,{\"timed_out\":false}]", "column `task`: 9"),
    ];
    for (line, expected) in cases {
        let told = error(line);
        assert!(
            told.starts_with("s.jsonl, line 3: ") && told.contains(expected),
            "{told}"
        );
    }
    let mut odd = header();
    odd.tasks.swap(0, 1);
    let told = try_trace(&series_of(&odd, b"")).unwrap_err().to_string();
    assert_eq!(
        told,
        "s.jsonl, line 1: key `tasks`: found task 1 in place of 0"
    );
    let mut odd = header();
    odd.machine.cpus.clear();
    let told = try_trace(&series_of(&odd, b"")).unwrap_err().to_string();
    assert!(
        told.starts_with("s.jsonl, line 1: key `machine`: "),
        "{told}"
    );
}

#[test]
fn a_full_disk_is_an_error() {
    let series = series_of(&header(), LINES.as_bytes());
    let mut reader = SeriesReader::new(series.as_slice(), "s.jsonl").unwrap();
    let error = write_trace(&mut reader, FullDisk::after(2_000)).unwrap_err();
    assert!(matches!(error, TraceError::Write(_)), "{error}");
}

/// A run without a job is a trace without a slice.
#[test]
fn a_run_of_nothing_is_a_trace() {
    let RunResult { tasks, .. } = result();
    assert!(!tasks.is_empty());
    let (decoded, done) = try_trace(&series_of(&header_of(0, 1), b"")).unwrap();
    assert_eq!((decoded.events.len(), done.until), (1, Nanos::ZERO));
}

/// Rows of any order and time: what they tell may be nonsense, and the trace is still whole.
fn any_row() -> impl Strategy<Value = (u64, SeriesRow)> {
    let task = || (0u32..4).prop_map(TaskId);
    let cpus = prop::sample::select(vec!["0", "1", "2", "0-1", "0-2"]);
    let mode = prop::sample::select(vec![
        CpuMode::Exclusive,
        CpuMode::WholeCore,
        CpuMode::Shared,
    ]);
    let purpose = prop::sample::select(&Purpose::ALL[..]);
    let rate = || prop::option::of(any::<u64>().prop_map(Rate));
    let trigger = prop::sample::select(Trigger::one_of_each());
    let row = prop_oneof![
        4 => (task(), cpus, mode, purpose).prop_map(|(task, cpus, mode, purpose)| {
            SeriesRow::Placed { task, cpus: cpus.parse().unwrap(), mode, purpose }
        }),
        2 => task().prop_map(SeriesRow::Stopped),
        2 => (task(), prop::sample::select(WaitReason::one_of_each()))
            .prop_map(|(task, reason)| SeriesRow::Waits { task, reason }),
        2 => task().prop_map(SeriesRow::Started),
        1 => task().prop_map(|task| ended(task.0)),
        1 => (prop::collection::vec(trigger, 0..3), rate(), rate()).prop_map(|(triggers, target, predicted)| {
            SeriesRow::Decided { triggers, next_wake: None, stood_in: false, basis: Basis { target, predicted, measures: None } }
        }),
        4 => (task(), prop::option::of(any::<u64>()), any::<u64>(), 0u64..200).prop_map(|(task, reads, cpu, ns)| {
            let SeriesRow::Sampled(row) = sample(task.0, Nanos(ns), reads) else { unreachable!() };
            SeriesRow::Sampled(SampleRow { cpu_time: Some(Nanos(cpu)), progress_milli: Some(cpu), ..row })
        }),
        4 => (0u32..3, prop::option::of(task()))
            .prop_map(|(cpu, task)| SeriesRow::Switched(Switched::To { cpu: CpuId(cpu), task })),
        1 => Just(SeriesRow::Switched(Switched::Untold)),
        1 => task().prop_map(|task| SeriesRow::Lacks { task, column: "cycles".to_owned(), why: Absence::CountersLost }),
        1 => "\\PC{1,9}".prop_map(|text| SeriesRow::Warned { code: "odd".to_owned(), text, task: None }),
    ];
    (0u64..40, row)
}

/// Who has which CPU in a quantum, by CPU; and whether that job ends at its middle.
type Quantum = Vec<Option<(u32, bool)>>;

/// Runs of up to 6 jobs on 3 CPUs, a decision every 10 ns.
fn quanta() -> impl Strategy<Value = Vec<Quantum>> {
    let cpu = prop::option::weighted(0.7, (0u32..6, prop::bool::weighted(0.1)));
    prop::collection::vec(prop::collection::vec(cpu, 3), 0..25)
}

/// Which job has which of the CPUs, for each nanosecond.
type Occupation = Vec<[Option<u32>; 3]>;

/// The rows that such a run writes, who has which CPU when, and the bytes a second that are read from each nanosecond on.
fn play(quanta: &[Quantum]) -> (Vec<(Nanos, SeriesRow)>, Occupation, BTreeMap<u64, u64>) {
    let (mut rows, mut truth) = (Vec::new(), Vec::new());
    let mut reads: BTreeMap<u64, u64> = BTreeMap::new();
    let (mut gone, mut last, mut left) = ([false; 6], BTreeMap::new(), Vec::new());
    for (nth, quantum) in quanta.iter().enumerate() {
        let start = 10 * nth as u64;
        let now = |row| (Nanos(start), row);
        let mut places: BTreeMap<u32, (usize, bool)> = BTreeMap::new();
        for (cpu, given) in quantum.iter().enumerate() {
            if let Some((job, ends)) = given.filter(|(job, _)| !gone[*job as usize]) {
                places.entry(job).or_insert((cpu, ends));
            }
        }
        rows.append(&mut left);
        rows.push(now(decided(vec![Trigger::QuantumEnd])));
        rows.extend(
            last.keys()
                .filter(|job| !places.contains_key(job))
                .map(|job| now(SeriesRow::Stopped(TaskId(*job)))),
        );
        for (job, (cpu, _)) in places
            .iter()
            .filter(|(job, (cpu, _))| last.get(*job) != Some(cpu))
        {
            rows.push(now(placed(*job, &cpu.to_string(), CpuMode::Exclusive)));
        }
        let mut cpus = [[None; 3]; 10];
        for (&job, &(cpu, ends)) in &places {
            let length = if ends { 5 } else { 10 };
            cpus[..length].iter_mut().for_each(|at| at[cpu] = Some(job));
            let to = start + length as u64;
            // A line in a nanosecond for each job's number, so that sums tell who was there.
            let lines = (u64::from(job) + 1) * length as u64;
            left.push((Nanos(to), sample(job, Nanos(length as u64), Some(lines))));
            (start..to).for_each(|at| {
                *reads.entry(at).or_default() += (u64::from(job) + 1) * 64_000_000_000
            });
            if ends {
                gone[job as usize] = true;
                rows.push((Nanos(to), ended(job)));
            }
        }
        truth.extend(cpus);
        last = places
            .iter()
            .filter(|(_, (_, ends))| !ends)
            .map(|(job, (cpu, _))| (*job, *cpu))
            .collect();
    }
    rows.append(&mut left);
    (rows, truth, reads)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_trace_is_whole_whatever_the_rows_tell(
        rows in prop::collection::vec(any_row(), 0..60),
        sorted in any::<bool>(),
    ) {
        let mut at = 0;
        let rows: Vec<(Nanos, SeriesRow)> = rows.into_iter().map(|(time, row)| {
            at = if sorted { at + time } else { time };
            (Nanos(at), row)
        }).collect();
        // Decoding and checking is what is tested.
        trace_of_rows(&header_of(4, 3), &rows);
    }

    /// Against a table of every nanosecond.
    #[test]
    fn slices_and_sums_are_what_happened(quanta in quanta()) {
        let (rows, truth, reads) = play(&quanta);
        let decoded = trace_of_rows(&header_of(6, 3), &rows);
        for cpu in 0..3 {
            let slices = decoded.slices(track(&decoded, "CPUs", &format!("CPU {cpu}")));
            for (at, cpus) in truth.iter().enumerate() {
                let at = at as u64;
                let shown = slices.iter().filter(|(from, to, _, _)| (*from..*to).contains(&at));
                let names: Vec<String> = shown.map(|(_, _, name, _)| (*name).to_owned()).collect();
                let expected: Vec<String> = cpus[cpu].iter().map(|job| format!("job-{job}")).collect();
                prop_assert_eq!(names, expected, "CPU {} at {}", cpu, at);
            }
            // What goes on is one slice.
            let changes = truth.windows(2).filter(|pair| pair[0][cpu] != pair[1][cpu] && pair[1][cpu].is_some());
            let first = truth.first().is_some_and(|first| first[cpu].is_some());
            prop_assert_eq!(slices.len(), changes.count() + usize::from(first));
        }
        if let Some(sum) = decoded.track("Machine", "read bandwidth") {
            let values: BTreeMap<u64, f64> = decoded.on(sum).map(|event| (event.at, event.value.unwrap())).collect();
            for at in 0..truth.len() as u64 {
                let shown = values.range(..=at).next_back().map_or(0.0, |(_, value)| *value);
                prop_assert_eq!(shown, reads.get(&at).copied().unwrap_or_default() as f64, "at {}", at);
            }
        } else {
            prop_assert!(reads.is_empty());
        }
    }
}

#[test]
fn where_it_is_seen_who_has_a_cpu_that_is_shown() {
    let shared = |job: u32| placed(job, "0-1", CpuMode::Shared);
    let to = |cpu: u32, task: Option<u32>| {
        SeriesRow::Switched(Switched::To {
            cpu: CpuId(cpu),
            task: task.map(TaskId),
        })
    };
    let rows = [
        (0, shared(0)),
        (0, shared(1)),
        (1, to(0, Some(0))),
        (3, to(0, Some(1))),
        (4, to(1, Some(0))),
        (6, to(1, None)),
        // A plan lets one that waits fill in.
        (
            6,
            SeriesRow::Waits {
                task: TaskId(0),
                reason: WaitReason::Affinity,
            },
        ),
        (7, to(1, Some(0))),
        (8, ended(0)),
        (9, SeriesRow::Switched(Switched::Untold)),
        (10, ended(1)),
    ];
    let rows: Vec<(Nanos, SeriesRow)> =
        rows.into_iter().map(|(at, row)| (Nanos(at), row)).collect();
    let decoded = trace_of_rows(&header_of(2, 2), &rows);
    assert_eq!(
        slices(&decoded, "CPUs", "CPU 0"),
        [(1, 3, "job-0"), (3, 9, "job-1")]
    );
    assert_eq!(
        slices(&decoded, "CPUs", "CPU 1"),
        [(4, 6, "job-0"), (7, 8, "job-0")]
    );
}

#[test]
fn cpus_of_a_set_are_all_shown() {
    let cpus: CpuSet = [CpuId(0), CpuId(2)].into_iter().collect();
    let row = SeriesRow::Placed {
        task: TaskId(0),
        cpus,
        mode: CpuMode::WholeCore,
        purpose: Purpose::LowContention,
    };
    let decoded = trace_of_rows(
        &header_of(1, 3),
        &[(Nanos(1), row), (Nanos(4), SeriesRow::Stopped(TaskId(0)))],
    );
    for (cpu, expected) in [("CPU 0", 1), ("CPU 1", 0), ("CPU 2", 1)] {
        let slices = slices(&decoded, "CPUs", cpu);
        assert_eq!(
            slices,
            vec![(1, 4, "job-0 (low contention)"); expected],
            "{cpu}"
        );
    }
}
