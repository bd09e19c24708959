use super::*;
use crate::figures::Absences;
use crate::record::EarlierJob;
use crate::series::{SeriesHeader, SeriesWriter};
use crate::testing::{check_absences, info, result, samples};
use cosched_core::{ByTask, Counter, Fact, Nanos, ProgressBasis};

/// The record from a series with four tasks and these lines, of a run that resumed another.
fn rebuilt(lines: &str) -> RunRecord {
    let result = result();
    let info = RunInfo {
        earlier: vec![earlier()],
        ..info(&result)
    };
    let header = SeriesHeader::new(&info, result.tasks.iter().map(|task| &task.spec));
    let text = format!("{}\n{lines}", serde_json::to_string(&header).unwrap());
    let series = SeriesReader::new(text.as_bytes(), "s").unwrap();
    record_of_series(
        series,
        NoRecord::Killed,
        |name| (Some(format!("L/{name}.out")), None),
        |name| name == "late",
    )
    .unwrap()
}

fn earlier() -> EarlierJob {
    let mut absent = Absences::default();
    for name in ["started_at", "run_id"] {
        absent.lack(name, "no record of its run was found");
    }
    EarlierJob {
        seq: 7,
        name: "old".to_owned(),
        command: Some("old x".to_owned()),
        started_at: None,
        runtime_s: 2.5,
        exit: 0,
        run_id: None,
        record: Some("L/run.json".to_owned()),
        job: None,
        absent,
    }
    .without_record()
}

/// A sample of 100 ms that ends then, with 50 ms of CPU time and 10 cycles.
fn sample(at_ms: u64, task: u32) -> String {
    format!(
        r#"["s",{},{task},100000000,"0","run","",50000000,10,20,1,1,1,null,5]{}"#,
        at_ms * 1_000_000,
        '\n'
    )
}

#[test]
fn what_a_killed_run_knew_is_in_its_record() {
    let lines = [
        r#"["b",0,0]"#,
        r#"["b",0,1]"#,
        r#"["a",100000000,0,"mm_writes","no-such-event"]"#,
        &(sample(100, 0) + &sample(100, 1)),
        r#"["d",100000000,["quantum-end"],200000000,0,null,null,null]"#,
        r#"["x",100000000,1]"#,
        &sample(200, 0),
        r#"["e",300000000,0,{"exit":3,"exit_text":"exit 3","timed_out":false,"start_s":0,"end_s":0.3,"cpu_s":0.15,"user_s":0.07,"system_s":0.03,"max_rss_bytes":4096,"read_bytes":0,"written_bytes":512,"ran_s":0.3,"width":1,"progress":1.25,"progress_basis":"ipc","counts":{"cycles":30,"instructions":60}}]"#,
        &sample(300, 0),
        r#"["!",310000000,"halting","the halt rule is met"]"#,
        r#"["!",310000000,"solo-failed","a job failed alone"]"#,
        r#"["p",400000000,1,"1","exclusive","run"]"#,
        &sample(500, 1),
        r#"["b",600000000,2]"#,
    ];
    let record = rebuilt(&(lines.map(str::trim_end).join("\n") + "\n[\"e\",700000000,2,0,\"exi"));
    check_absences(&serde_json::from_str(&record.to_json()).unwrap());
    let whole = RunRecord::from_json(&record.to_json()).unwrap();
    assert_eq!(whole, record);
    assert_eq!(
        (record.finished_by.as_str(), record.run_id.as_deref()),
        ("killed", Some("10-77-4026531836"))
    );
    assert_eq!(record.setting, info(&result()).setting);
    let rebuilt = record.rebuilt.as_ref().unwrap();
    assert_eq!((rebuilt.until_s, rebuilt.cut_off), (0.6, true));
    assert_eq!((record.overhead.decisions, record.overhead.quanta), (1, 1));
    let codes = record.warnings.iter().map(|warning| &*warning.code);
    assert_eq!(
        codes.collect::<Vec<_>>(),
        ["solo-failed"],
        "a halt is no warning"
    );
    let [ended, ran, begun, never] = &record.jobs[..] else {
        panic!("four jobs")
    };
    assert_eq!(
        (ended.end.exit, &*ended.end.exit_text, ended.lost),
        (Some(3), "exit 3", false)
    );
    assert_eq!(
        (ended.end.end_s, ended.end.cpu_s, ended.end.ran_s),
        (Some(0.3), Some(0.15), Some(0.3))
    );
    assert_eq!(
        (
            ended.end.user_s,
            ended.end.max_rss_bytes,
            ended.end.written_bytes
        ),
        (Some(0.07), Some(4096), Some(512))
    );
    assert_eq!(
        (
            ended.end.counts.get(&Counter::Cycles),
            ended.end.counts.get(&Counter::Instructions)
        ),
        (Some(&30), Some(&60))
    );
    assert_eq!(
        ended.absent.why("mm_writes"),
        Some(Absence::NoSuchEvent.text())
    );
    assert_eq!(ended.log.as_deref(), Some("L/mcf-1.out"));
    assert!(ran.lost && !ran.has_ended() && ran.absent.why("exit").unwrap().starts_with("lost"));
    assert_eq!(
        (ran.end.cpu_s, ran.end.ran_s, ran.end.waited_max_s),
        (Some(0.1), Some(0.2), Some(0.3))
    );
    assert_eq!(
        (
            ended.end.progress,
            ended.end.progress_basis,
            ran.end.progress
        ),
        (Some(1.25), Some(ProgressBasis::Ipc), None)
    );
    let not_kept = Some(NoRecord::Killed.not_kept());
    assert_eq!(ran.absent.why("progress"), not_kept);
    assert_eq!(
        (
            record.metrics.get("turnaround_s"),
            record.metrics.why("turnaround_s")
        ),
        (None, not_kept)
    );
    assert!(
        begun.lost && begun.end.cpu_s.is_none(),
        "it was not measured yet"
    );
    assert!(
        never.lost && never.end.start_s.is_none(),
        "it was found running"
    );
    assert_eq!(
        (never.end.waited_max_s, never.absent.why("waited_max_s")),
        (None, not_kept)
    );
    assert_eq!(
        (&record.earlier_jobs[..], record.metrics_over.as_str()),
        (&[earlier()][..], "this-run")
    );
    assert_eq!(
        record.absent.why("signal"),
        Some(NoRecord::Killed.not_kept())
    );
    let totals = &record.totals;
    assert_eq!(totals.earlier, 1);
    assert_eq!(
        (totals.succeeded, totals.failed, totals.unfinished),
        (0, 1, 3)
    );
}

/// What the run knew of a job that ended does not depend on who writes the record.
#[test]
fn jobs_that_ended_are_as_in_the_own_record_of_the_run() {
    let result = result();
    let info = info(&result);
    let header = SeriesHeader::new(&info, result.tasks.iter().map(|task| &task.spec));
    let mut text = Vec::new();
    let mut series = SeriesWriter::new(&mut text, &header);
    for task in &result.tasks {
        let (spec, run, again) = (&task.spec, task.runs, false);
        let started = Fact::Started {
            task: spec,
            run,
            again,
        };
        let start = task.started.unwrap_or_default();
        series.note(start, &started, &ByTask::default());
    }
    for task in &result.tasks {
        let mut sample = samples(Nanos(1)).remove(0);
        sample.task = task.spec.id;
        sample.counts = task.counts;
        series.note(Nanos(1), &Fact::Sampled(&[sample]), &ByTask::default());
    }
    for task in result.tasks.iter().filter(|task| task.exit.is_some()) {
        let end = task.finished.unwrap_or_default();
        series.note(end, &Fact::Ended(task), &ByTask::default());
    }
    drop(series);
    let series = SeriesReader::new(&*text, "s").unwrap();
    let rebuilt = record_of_series(series, NoRecord::Killed, |_| (None, None), |_| false).unwrap();
    let own = record(&result, &info);
    let mut ended = 0;
    for (own, rebuilt) in own.jobs.iter().zip(&rebuilt.jobs) {
        if !own.has_ended() {
            continue;
        }
        ended += 1;
        let [own, rebuilt] = [own, rebuilt].map(|job| serde_json::to_value(job).unwrap());
        let differ = own.as_object().unwrap().iter();
        let differ = differ.filter(|(key, value)| rebuilt.get(*key) != Some(*value));
        let differ: Vec<&str> = differ.map(|(key, _)| &**key).collect();
        // The files are asked for, and solo times are not in the series.
        let is_apart = |key: &str| {
            let parts = ["log", "solo", "slowdown"];
            parts.iter().any(|part| key.starts_with(part))
        };
        let differ: Vec<&str> = differ.into_iter().filter(|key| !is_apart(key)).collect();
        assert!(differ.is_empty(), "{differ:?}: {own} {rebuilt}");
    }
    assert!(ended > 1);
}

#[test]
fn of_several_attempts_the_last_counts_and_of_several_runs_the_first() {
    let lacks = r#"["a",50000000,0,"mm_writes","no-such-event"]"#;
    let (first, rest) = (sample(100, 0), sample(150, 0) + &sample(300, 0));
    let lines = format!("[\"b\",0,0]\n{lacks}\n{first}[\"b\",200000000,0]\n{rest}");
    let job = &rebuilt(&lines).jobs[0];
    assert_eq!(
        job.absent.why("mm_writes"),
        Some(Absence::NoSuchEvent.text())
    );
    assert_eq!(
        (job.end.runs, job.end.start_s, job.end.cpu_s, job.end.ran_s),
        (Some(2), Some(0.2), Some(0.05), Some(0.1))
    );
    let end = r#"["e",100000000,0,{"exit":0,"exit_text":"exit 0","timed_out":false,"start_s":0,"end_s":0.1,"cpu_s":0.05}]"#;
    let lines = format!(
        "[\"b\",0,0]\n{end}\n{}[\"b\",100000000,0]\n{}",
        sample(100, 0),
        sample(300, 0)
    );
    let job = &rebuilt(&lines).jobs[0];
    assert_eq!(
        (job.end.runs, job.end.end_s, job.end.cpu_s, job.end.exit),
        (Some(2), Some(0.1), Some(0.05), Some(0))
    );
}
