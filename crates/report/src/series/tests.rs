use super::*;
use crate::RunWarning;
use crate::testing::{FullDisk, decision, info, result, samples, snapshot};
use cosched_core::{
    Absence, Basis, ByTask, Change, Counter, CpuId, DecisionRecord, Fact, JobEnd, PerCounter,
    Placement, Purpose, Rate, Reading, RngState, Snapshot, Switch, Switched, TaskId, TaskSpec,
    Trigger, WaitReason, Warning,
};
use proptest::prelude::*;
use std::io::Write;

fn note<W: Write>(series: &mut SeriesWriter<W>, at: Nanos, fact: Fact<'_>) {
    series.note(at, &fact, &ByTask::default());
}

fn start<W: Write>(series: &mut SeriesWriter<W>, at: Nanos, task: &TaskSpec) {
    let (run, again) = (1, false);
    note(series, at, Fact::Started { task, run, again });
}

fn header() -> SeriesHeader {
    let result = result();
    SeriesHeader::new(&info(&result), result.tasks.iter().map(|task| &task.spec))
}

/// A start, two decisions of which the second changes little, an end and a warning.
fn write_run<W: Write>(out: W) -> SeriesWriter<W> {
    let mut series = SeriesWriter::new(out, &header());
    for task in &result().tasks {
        // The header has them.
        note(
            &mut series,
            Nanos::ZERO,
            Fact::Came(std::slice::from_ref(&task.spec)),
        );
    }
    start(&mut series, Nanos::ZERO, &TaskSpec::new(0, "mcf-1"));
    let mut first = snapshot();
    let rng = RngState {
        seed: 7,
        position: 0,
    };
    let mut decision = decision();
    let record =
        |snapshot: &Snapshot, decision: &cosched_core::Decision, series: &mut SeriesWriter<W>| {
            let samples = samples(snapshot.now);
            let record = DecisionRecord {
                snapshot,
                samples: &samples,
                policy_state: None,
                rng,
                decision,
                stood_in: false,
            };
            note(series, record.snapshot.now, Fact::Decided(record));
        };
    record(&first, &decision, &mut series);
    first.now = Nanos::from_ms(600);
    first.triggers = vec![Trigger::Ended(TaskId(0)), Trigger::LoadFell];
    decision.changes.remove(0);
    decision.basis = Basis {
        target: Some(Rate(80_000)),
        predicted: Some(Rate(79_100)),
        measures: Some(TaskId(1)),
    };
    if let WaitReason::Order { ahead } = &mut decision.waits[0].reason {
        *ahead = 3;
    }
    record(&first, &decision, &mut series);
    decision.changes = vec![Change::Place {
        task: TaskId(1),
        placement: Placement::Shared {
            mask: "0-1".parse().unwrap(),
        },
        lease_end: None,
        purpose: Purpose::Run,
    }];
    decision.waits[0] = cosched_core::Wait {
        task: TaskId(2),
        reason: WaitReason::Gang { needs: 2, free: 1 },
    };
    first.now = Nanos::from_ms(800);
    record(&first, &decision, &mut series);
    let result = result();
    let to = |ms: u64, cpu: u32, task: Option<u32>| Switch {
        at: Nanos::from_ms(ms),
        what: Switched::To {
            cpu: CpuId(cpu),
            task: task.map(TaskId),
        },
    };
    let switches = [to(801, 1, Some(2)), to(890, 1, None)];
    note(&mut series, Nanos::from_ms(890), Fact::Switched(&switches));
    note(
        &mut series,
        Nanos::from_ms(900),
        Fact::Ended(&result.tasks[2]),
    );
    let more = [TaskSpec::new(4, "more")];
    note(&mut series, Nanos::from_ms(920), Fact::Came(&more));
    series.warned(
        Nanos::from_ms(950),
        None,
        &RunWarning::of_loop(
            &Warning::PolicyFault {
                why: "task #9 is unknown or has ended".to_owned(),
            },
            |_| String::new(),
        ),
    );
    series
}

fn text() -> String {
    String::from_utf8(write_run(Vec::new()).into_inner()).unwrap()
}

type Rows = Vec<Result<(Nanos, SeriesRow), SeriesError>>;

/// The lines of a series, and whether the last one was cut off.
fn read(text: &str) -> (Rows, bool) {
    let mut reader = SeriesReader::new(text.as_bytes(), "run.series").unwrap();
    let rows = reader.by_ref().collect();
    (rows, reader.cut_off())
}

#[test]
fn of_very_many_switches_the_first_are_written() {
    let result = result();
    let header = SeriesHeader::new(&info(&result), result.tasks.iter().map(|task| &task.spec));
    let mut series = SeriesWriter::new(Vec::new(), &header);
    let switch = |ms: u64| Switch {
        at: Nanos::from_ms(ms),
        what: Switched::To {
            cpu: CpuId(0),
            task: Some(TaskId(0)),
        },
    };
    let parts = [0..150_000, 150_000..250_000, 250_000..260_000];
    parts.into_iter().for_each(|part| {
        let switches: Vec<Switch> = part.map(switch).collect();
        note(&mut series, Nanos::ZERO, Fact::Switched(&switches));
    });
    let text = String::from_utf8(series.into_inner()).unwrap();
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("[\"o\""))
        .collect();
    assert_eq!(
        (lines.len(), *lines.last().unwrap()),
        (200_001, "[\"o\",200000000000,null,null]")
    );
    assert!(text.len() < 8_000_000, "{}", text.len());
}

#[test]
fn only_what_changed_is_written() {
    insta::assert_snapshot!(text().replace(env!("CARGO_PKG_VERSION"), "VERSION"));
}

#[test]
fn what_is_written_reads_back_and_writes_the_same() {
    let text = text();
    let reader = SeriesReader::new(text.as_bytes(), "run.series").unwrap();
    assert_eq!(reader.header(), &header());
    let mut again = Vec::new();
    for row in reader {
        let (at, row) = row.unwrap();
        row.write(at, &mut again);
    }
    let body = text.split_once('\n').unwrap().1;
    assert_eq!(String::from_utf8(again).unwrap(), body);
    for kind in KINDS {
        assert!(
            body.lines()
                .any(|line| line.starts_with(&format!("[\"{}\",", kind.code))),
            "no `{}`",
            kind.code
        );
    }
}

/// A reader of a file knows a task before the lines of it; one of a live run ends where the file ended.
#[test]
fn tasks_that_come_later_are_known_from_the_beginning() {
    let header = SeriesHeader {
        open: true,
        ..header()
    };
    let mut file = tempfile::NamedTempFile::new().unwrap();
    let mut series = SeriesWriter::new(&mut file, &header);
    let more = ["e", "f"].map(String::from);
    for (id, name) in (4..).zip(&more) {
        let task = TaskSpec::new(id, name);
        note(
            &mut series,
            Nanos(1),
            Fact::Came(std::slice::from_ref(&task)),
        );
        start(&mut series, Nanos(2), &task);
    }
    drop(series);
    let mut reader = SeriesFile::open(file.reopen().unwrap(), "run.series").unwrap();
    file.write_all(b"[\"b\",3,5]\n").unwrap();
    let names = reader.header().tasks.iter().skip(4).map(|task| &task.name);
    assert!(names.eq(&more));
    let rows: Vec<SeriesRow> = reader.by_ref().map(|row| row.unwrap().1).collect();
    assert_eq!((rows.len(), &rows[3]), (4, &SeriesRow::Started(TaskId(5))));
}

#[test]
fn lines_have_the_columns_that_the_header_names() {
    let text = text();
    let header = header();
    for line in text.lines().skip(1) {
        let values: Vec<serde_json::Value> = serde_json::from_str(line).unwrap();
        assert_eq!(
            values.len(),
            header.columns[values[0].as_str().unwrap()].len(),
            "{line}"
        );
    }
}

/// A series that is cut anywhere has its whole lines left.
#[test]
fn a_cut_off_line_is_left_out() {
    let text = text();
    let body = text.find('\n').unwrap() + 1;
    for end in body..=text.len() {
        let (rows, cut_off) = read(&text[..end]);
        assert_eq!(rows.len(), text[body..end].matches('\n').count());
        assert!(rows.iter().all(Result::is_ok));
        assert_eq!(cut_off, !text[..end].ends_with('\n'));
    }
}

#[test]
fn errors_name_file_line_and_column() {
    let head = text().lines().next().unwrap().to_owned();
    let check = |line: &str, expected: &str| {
        let (rows, _) = read(&format!("{head}\n[\"b\",1,2]\n{line}\n[\"b\",1,2]\n"));
        assert_eq!(rows.len(), 2, "nothing is read after an error");
        let error = rows[1].as_ref().unwrap_err().to_string();
        assert!(
            error.starts_with("run.series, line 3: ") && error.contains(expected),
            "{error}"
        );
    };
    check(
        "[\"b\",1]",
        "column `task` of a line of kind `b` is missing",
    );
    check(
        "[\"b\",1,-2]",
        "column `task` of a line of kind `b`: invalid value: integer `-2`, expected u32",
    );
    check(
        "[\"p\",1,2,\"x\",\"shared\",\"run\"]",
        "column `cpus` of a line of kind `p`: `x` is not a list of CPUs",
    );
    check("{}", "expected a JSON array");
    check("[1]", "column `kind`");

    let error = |text: &str| {
        SeriesReader::new(text.as_bytes(), "f")
            .map(|_| ())
            .unwrap_err()
            .to_string()
    };
    assert!(error("").starts_with("f: its run ended before a job of it began"));
    assert!(error("{}").starts_with(
        "f: expected a series, whose first line says `\"schema\":\"cosched.series/2\"`"
    ));
    assert!(error(&head.replace("series/2", "series/9")).contains("found `cosched.series/9`"));
}

#[test]
fn kinds_and_columns_of_a_later_version_are_left_out() {
    let head = text().lines().next().unwrap().to_owned();
    let (rows, _) = read(&format!(
        "{head}\n[\"zz\",1,{{}}]\n\n[\"b\",1,2,\"more\"]\n"
    ));
    assert_eq!(rows.len(), 1);
    assert_eq!(
        rows[0].as_ref().unwrap(),
        &(Nanos(1), SeriesRow::Started(TaskId(2)))
    );
}

#[test]
fn a_full_disk_stops_the_series_and_nothing_else() {
    let mut series = write_run(FullDisk::after(3_300));
    assert!(series.take_warning().is_some());
    assert_eq!(series.take_warning(), None);
    let written = String::from_utf8(series.into_inner().written).unwrap();
    assert!(text().starts_with(&written));
    assert!(read(&written).0.iter().all(Result::is_ok));
}

/// A task that goes on running or waiting adds no lines except samples and decisions.
#[test]
fn a_steady_state_is_short() {
    let mut series = SeriesWriter::new(Vec::new(), &header());
    let rng = RngState {
        seed: 7,
        position: 0,
    };
    let mut snapshot = snapshot();
    let decision = decision();
    for quantum in 1..10 {
        snapshot.now = Nanos::from_ms(200 * quantum);
        let samples = samples(snapshot.now);
        let mut decision = decision.clone();
        decision.changes.remove(0);
        let record = DecisionRecord {
            snapshot: &snapshot,
            samples: &samples,
            policy_state: None,
            rng,
            decision: &decision,
            stood_in: false,
        };
        note(&mut series, record.snapshot.now, Fact::Decided(record));
    }
    let text = String::from_utf8(series.into_inner()).unwrap();
    for quantum in 2..10 {
        let at = format!(",{},", 200_000_000 * quantum);
        let lines: Vec<&str> = text
            .lines()
            .filter(|line| line.get(4..4 + at.len()) == Some(at.as_str()))
            .collect();
        let kinds: Vec<&str> = lines.iter().map(|line| &line[2..3]).collect();
        assert_eq!(kinds, ["s", "s", "d"]);
        assert!(lines.iter().all(|line| line.len() < 130), "{lines:?}");
    }
}

fn job_end() -> impl Strategy<Value = JobEnd> {
    let numbers = prop::array::uniform3(prop::option::of(any::<u64>()));
    let times = prop::array::uniform3(prop::option::of(0.0..1e9));
    let exit = prop::option::of(any::<i32>());
    (exit, "\\PC*", any::<bool>(), times, numbers).prop_map(
        |(exit, exit_text, timed_out, times, numbers)| {
            let [cpu_s, user_s, system_s] = times;
            let [max_rss_bytes, read_bytes, written_bytes] = numbers;
            JobEnd {
                exit,
                exit_text,
                timed_out,
                cpu_s,
                user_s,
                system_s,
                max_rss_bytes,
                read_bytes,
                written_bytes,
                ..JobEnd::default()
            }
        },
    )
}

fn rows() -> impl Strategy<Value = SeriesRow> {
    let task = || any::<u32>().prop_map(TaskId);
    let ns = || any::<u64>().prop_map(Nanos);
    let cpus = || {
        prop::collection::btree_set(0u32..300, 0..9)
            .prop_map(|set| set.into_iter().map(cosched_core::CpuId).collect())
    };
    let purpose = || prop::sample::select(&Purpose::ALL[..]);
    let mode = prop_oneof![
        Just(CpuMode::Exclusive),
        Just(CpuMode::WholeCore),
        Just(CpuMode::Shared)
    ];
    let counts = || any::<[Option<u64>; Counter::COUNT]>();
    let rate = || prop::option::of(any::<u64>().prop_map(Rate));
    let trigger = prop::sample::select(Trigger::one_of_each());
    prop_oneof![
        (
            prop::collection::vec(trigger, 0..4),
            prop::option::of(ns()),
            any::<bool>(),
            rate(),
            rate()
        )
            .prop_map(|(triggers, next_wake, stood_in, target, predicted)| {
                SeriesRow::Decided {
                    triggers,
                    next_wake,
                    stood_in,
                    basis: Basis {
                        target,
                        predicted,
                        measures: None,
                    },
                }
            }),
        (task(), cpus(), mode, purpose()).prop_map(|(task, cpus, mode, purpose)| {
            SeriesRow::Placed {
                task,
                cpus,
                mode,
                purpose,
            }
        }),
        (task(), prop::sample::select(WaitReason::one_of_each()))
            .prop_map(|(task, reason)| SeriesRow::Waits { task, reason }),
        (
            task(),
            ns(),
            cpus(),
            purpose(),
            any::<[bool; 4]>(),
            counts(),
            any::<[Option<u64>; 2]>()
        )
            .prop_map(
                |(
                    task,
                    interval,
                    cpus,
                    purpose,
                    [whole_core, disturbed, cut_short, multiplexed],
                    counts,
                    [cpu_ns, progress_milli],
                )| {
                    SeriesRow::Sampled(SampleRow {
                        task,
                        interval,
                        cpus,
                        purpose,
                        whole_core,
                        disturbed,
                        cut_short,
                        multiplexed,
                        cpu_time: cpu_ns.map(Nanos),
                        counts: PerCounter::from_fn(|counter| counts[counter as usize]),
                        progress_milli,
                    })
                }
            ),
        (task(), job_end()).prop_map(|(task, end)| {
            let end = Box::new(end);
            SeriesRow::Ended { task, end }
        }),
        ("[a-z-]{1,9}", "(?s).*", prop::option::of(task()))
            .prop_map(|(code, text, task)| SeriesRow::Warned { code, text, task }),
        (0_u32..64, proptest::option::of(task())).prop_map(|(cpu, task)| SeriesRow::Switched(
            Switched::To {
                cpu: CpuId(cpu),
                task
            }
        )),
        Just(SeriesRow::Switched(Switched::Untold)),
        task().prop_map(|task| SeriesRow::Lacks {
            task,
            column: "cycles".to_owned(),
            why: Absence::WentBackwards
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn rows_round_trip(at in any::<u64>(), row in rows()) {
        let mut line = Vec::new();
        row.write(Nanos(at), &mut line);
        let line = String::from_utf8(line).unwrap();
        prop_assert_eq!(line.matches('\n').count(), 1);
        prop_assert_eq!(SeriesRow::read(&line).unwrap(), Some((Nanos(at), row)));
    }

    /// No text makes the reader panic.
    #[test]
    fn any_line_is_survived(line in "[\\[\\]\"dpxwsabe!,0-9{}a ]{0,40}") {
        let _ = SeriesRow::read(&line);
    }
}

/// An absent value of a sample is null, and its reason is written once.
#[test]
fn reasons_of_absence_are_told_when_they_change() {
    let text = text();
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("[\"a\"") && line.contains("mm_writes"))
        .collect();
    assert_eq!(
        lines,
        [
            r#"["a",400000000,0,"mm_writes","no-such-event"]"#,
            r#"["a",400000000,1,"mm_writes","no-such-event"]"#
        ]
    );
    assert_eq!(
        samples(Nanos::ZERO)[0].counts[Counter::MmWrites],
        Reading::Absent(Absence::NoSuchEvent)
    );
}

/// A line that can't be of this run is damaged, whoever reads it.
#[test]
fn lines_that_contradict_the_header_are_damaged() {
    for (row, problem) in [
        ("[\"x\",5,99]", "column `task`: 99, but the header has"),
        ("[\"b\",5,99]", "column `task`: 99, but the header has"),
        (
            "[\"x\",18446744073709551615,0]",
            "column `t_ns`: 18446744073709551615 ns are longer than any run",
        ),
    ] {
        let text = format!("{}\n{row}\n", serde_json::to_string(&header()).unwrap());
        let mut series = SeriesReader::new(text.as_bytes(), "s").unwrap();
        let error = series.next().unwrap().unwrap_err().to_string();
        assert!(
            error.starts_with("s, line 2: ") && error.contains(problem),
            "{error}"
        );
        assert!(series.next().is_none());
    }
}
