use super::*;
use crate::testing::{FullDisk, result};
use cosched_core::Nanos;
use proptest::prelude::*;

const START: Option<Duration> = Some(Duration::from_millis(1_700_000_000_250));

/// As GNU parallel 20221122 wrote it for these six commands, and one that ran out of time.
const OF_GNU_PARALLEL: &str = "Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand\n\
    1\t:\t1795232211.097\t     0.000\t0\t0\t0\t0\ttrue\n\
    2\t:\t1795232211.100\t     0.005\t0\t0\t3\t0\texit 3\n\
    3\t:\t1795232211.105\t     0.003\t0\t0\t0\t9\tkill -9 $$\n\
    5\t:\t1795232211.114\t     0.006\t0\t4\t0\t0\techo \"a\tb\"\n\
    1\t:\t1795232340.112\t     0.000\t0\t6\t0\t0\techo a\0echo '1\t2'\n\
    1\t:\t1795232340.184\t     0.819\t0\t0\t-1\t15\tsleep 3\n\
    1\t:\t1795232341.158\t     0.002\t0\t0\t127\t0\tnonexist 3\n";

fn read(text: &str) -> Result<JobLog, String> {
    read_joblog(text.as_bytes(), "jobs.log").map_err(|error| error.to_string())
}

#[test]
fn a_log_of_gnu_parallel_reads_and_writes_the_same() {
    let log = read(OF_GNU_PARALLEL).unwrap();
    let ok: Vec<&str> = log
        .entries
        .iter()
        .filter(|entry| entry.ok())
        .map(|entry| entry.command.as_str())
        .collect();
    assert_eq!(ok, ["true", "echo \"a\tb\"", "echo a\necho '1\t2'"]);
    let mut writer = JobLogWriter::new(Vec::new(), true);
    log.entries.iter().for_each(|entry| writer.ended(entry));
    // The bytes received are not kept.
    let expected = OF_GNU_PARALLEL
        .replace("\t0\t4\t0", "\t0\t0\t0")
        .replace("\t0\t6\t0", "\t0\t0\t0");
    assert_eq!(String::from_utf8(writer.into_inner()).unwrap(), expected);
}

#[test]
fn ends_are_told_as_gnu_parallel_tells_them() {
    let mut result = result().tasks.swap_remove(0);
    result.started = Some(Nanos::from_ms(1_500));
    let mut lines = String::new();
    let mut add =
        |result: &TaskResult| lines.push_str(&JobLogEntry::of(result, 4, "a b", START).to_line());
    add(&result);
    result.exit = Some(Exit::Code(3));
    add(&result);
    result.exit = Some(Exit::Signal {
        signal: 9,
        oom: true,
    });
    add(&result);
    result.timed_out = true;
    add(&result);
    result.timed_out = false;
    result.exit = Some(Exit::Unknown);
    add(&result);
    (result.exit, result.started) = (Some(Exit::NotStarted("no such file".to_owned())), None);
    result.finished = None;
    add(&result);
    insta::assert_snapshot!(lines);
    assert!(
        read(&lines).unwrap().entries[1..]
            .iter()
            .all(|entry| !entry.ok())
    );
}

#[test]
fn what_was_simulated_is_not_done() {
    let line = JobLogEntry::of(&result().tasks[0], 1, "a", None).to_line();
    assert_eq!(line, "1\tsimulated\t0.000\t    15.000\t0\t0\t0\t0\ta\n");
    assert_eq!(read(&line).unwrap().successes().count(), 0);
}

#[test]
fn only_what_ended_with_0_and_without_a_signal_succeeded() {
    let line = |exit: i32, signal: i32, command: &str| {
        format!("1\t:\t1.000\t     1.000\t0\t0\t{exit}\t{signal}\t{command}\n")
    };
    let text = [
        line(0, 0, "a"),
        line(1, 0, "a"),
        line(0, 0, "a"),
        line(0, 9, "b"),
        line(-1, 15, "c"),
    ]
    .concat();
    let log = read(&text).unwrap();
    assert_eq!(
        log.successes()
            .map(|entry| entry.command.as_str())
            .collect::<Vec<_>>(),
        ["a", "a"]
    );
}

/// "echo 1" may be the beginning of "echo 12": a line without its end is not believed.
#[test]
fn a_cut_off_last_line_is_left_out() {
    for end in 0..OF_GNU_PARALLEL.len() {
        let text = &OF_GNU_PARALLEL[..end];
        let log = read(text).unwrap();
        assert_eq!(
            log.entries.len(),
            text.matches('\n').count().saturating_sub(1)
        );
        assert_eq!(log.cut_off, !text.is_empty() && !text.ends_with('\n'));
    }
}

#[test]
fn errors_name_file_and_line() {
    let check = |line: &str, expected: &str| {
        let error = read(&format!(
            "{HEADER}\n{line}\n1\t:\t1.0\t1.0\t0\t0\t0\t0\ta\n"
        ))
        .unwrap_err();
        assert_eq!(
            error,
            format!("jobs.log:2: {expected}; expected a job log of cosched or GNU parallel")
        );
    };
    check("1\t:\t1.0", "expected 9 columns divided by tabs; found 3");
    check("", "expected 9 columns divided by tabs; found 1");
    check(
        "1\t:\t1.0\tx\t0\t0\t0\t0\ta",
        "column `JobRuntime`: expected a number; found `x`",
    );
    let when = "expected seconds, below the year 10000; found";
    check(
        "1\t:\t1700000000250\t1\t0\t0\t0\t0\ta",
        &format!("column `Starttime`: {when} `1700000000250`"),
    );
    check(
        "1\t:\tinf\t1\t0\t0\t0\t0\ta",
        &format!("column `Starttime`: {when} `inf`"),
    );
    check(
        "1\t:\t1\t-1\t0\t0\t0\t0\ta",
        &format!("column `JobRuntime`: {when} `-1`"),
    );
    check(
        "1\t:\t1.0\t1.0\t0\t0\tzero\t0\ta",
        "column `Exitval`: expected a number; found `zero`",
    );
}

#[test]
fn going_on_takes_a_cut_off_line_away() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("jobs.log");
    let mut options = std::fs::File::options();
    options.read(true).write(true).create(true).truncate(false);
    let open = || options.open(&path).unwrap();
    let entry = |seq| JobLogEntry::of(&result().tasks[0], seq, &format!("job {seq}"), START);
    append_joblog(open()).unwrap().ended(&entry(1));
    let whole = std::fs::read_to_string(&path).unwrap();
    assert!(whole.starts_with(HEADER));
    std::fs::write(&path, format!("{whole}2\t:\t17000")).unwrap();
    append_joblog(open()).unwrap().ended(&entry(3));
    let log = read(&std::fs::read_to_string(&path).unwrap()).unwrap();
    assert_eq!(
        log.entries
            .iter()
            .map(|entry| entry.seq)
            .collect::<Vec<_>>(),
        [1, 3]
    );
    // Not even the header was whole.
    std::fs::write(&path, "Seq\tHo").unwrap();
    append_joblog(open()).unwrap().ended(&entry(1));
    assert_eq!(
        read(&std::fs::read_to_string(&path).unwrap())
            .unwrap()
            .entries
            .len(),
        1
    );
}

#[test]
fn a_full_disk_stops_the_log_and_nothing_else() {
    let mut writer = JobLogWriter::new(FullDisk::after(100), true);
    let entry = JobLogEntry::of(&result().tasks[0], 1, "a", START);
    writer.ended(&entry);
    assert!(
        writer
            .take_warning()
            .unwrap()
            .text()
            .starts_with("the job log can't be written now")
    );
    writer.ended(&entry);
    writer.finish();
    assert!(
        writer
            .take_warning()
            .unwrap()
            .text()
            .starts_with("the job log is written no further")
    );
    assert!(
        read(&String::from_utf8(writer.into_inner().written).unwrap())
            .unwrap()
            .cut_off
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    /// Any command without a zero byte, which no command can hold, reads back as it was, and its times to a thousandth.
    #[test]
    fn round_trip(
        seq in any::<u64>(), start_ms in 0u64..4_000_000_000_000, ms in 0u64..1 << 40, exit in any::<i32>(),
        signal in any::<i32>(), command in "(?s)[^\0]{0,30}"
    ) {
        let entry = JobLogEntry {
            seq, host: ":".to_owned(), start_s: start_ms as f64 / 1e3, runtime_s: ms as f64 / 1e3,
            exit, signal, command,
        };
        let line = entry.to_line();
        prop_assert_eq!(line.matches('\n').count(), 1);
        prop_assert_eq!(read(&line).unwrap().entries, vec![entry]);
    }
}
