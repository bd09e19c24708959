//! Stores on a real file system: what is kept, what goes, and what is wrong with files.

use cosched_core::model::contention::PhaseDemand;
use cosched_core::{EarlierPhase, EarlierPhases, ExpectedFrom, Nanos};
use cosched_memory::{
    CommandKey, Forget, HistoryProblem, HistoryStore, LockPatience, MOST_RUNS, RememberedEnd,
    RememberedRun,
};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

fn key(program: &str, command: &str, identity: &str) -> CommandKey {
    let text = |text: &str| -> Rc<str> { text.into() };
    CommandKey {
        machine: text("a machine"),
        program: text(program),
        command: command.to_owned(),
        folder: text("/work"),
        given: text(""),
        identity: text(identity),
    }
}

fn ended(key: &CommandKey, at: u64, time_s: f64) -> RememberedEnd {
    let run = RememberedRun {
        at,
        wall_s: time_s,
        placed_s: time_s,
        cpu_s: Some(time_s),
        width: Some(1),
        max_rss: Some(1 << 20),
        ..RememberedRun::default()
    };
    RememberedEnd {
        key: key.clone(),
        at,
        exit: "exit 0".to_owned(),
        run: Some(run),
        learnt: None,
    }
}

fn failed(key: &CommandKey, at: u64) -> RememberedEnd {
    RememberedEnd {
        key: key.clone(),
        at,
        exit: "exit 1".to_owned(),
        run: None,
        learnt: None,
    }
}

/// What a learner might tell of a command that spends so many cycles on an instruction.
fn learnt(own: f64) -> Arc<EarlierPhases> {
    let asks = PhaseDemand {
        own,
        penalty: 120.0,
        l1: 0.25,
        llc: 0.03,
        reads: 0.0125,
        steepness: 0.5,
        ghz: 2.5,
        ..Default::default()
    };
    let phase = |core_type| EarlierPhase {
        core_type,
        asks,
        solo_cpi: own + 1.5,
    };
    Arc::new(EarlierPhases {
        phases: vec![phase(0), phase(1)],
    })
}

fn recall_learnt(store: &HistoryStore, key: &CommandKey) -> Option<Arc<EarlierPhases>> {
    store.recall(&[Some(key.clone())]).unwrap()[0]
        .learnt
        .clone()
}

fn folder() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("share/cosched/history.sqlite");
    (dir, path)
}

fn open(path: &Path) -> HistoryStore {
    HistoryStore::open(path, LockPatience::Some).unwrap()
}

/// What is expected of one command: its time in seconds and whose runs it is from.
fn recall(store: &HistoryStore, key: &CommandKey) -> Option<(f64, ExpectedFrom)> {
    let found = store.recall(&[None, Some(key.clone())]).unwrap();
    assert_eq!((found.len(), found[0].expected), (2, None));
    found[1]
        .expected
        .map(|expected| (expected.time.as_s(), expected.from))
}

#[test]
fn the_nearest_runs_are_expected() {
    let (_dir, path) = folder();
    assert!(
        HistoryStore::open_existing(&path, LockPatience::Some)
            .unwrap()
            .is_none()
    );
    let mut store = open(&path);
    let solve = key("/bin/solve", "solve a", "v1");
    store
        .note(&[
            ended(&solve, 10, 4.0),
            ended(&key("/bin/solve", "solve b", "v1"), 11, 8.0),
        ])
        .unwrap();
    assert_eq!(recall(&store, &solve), Some((4.0, ExpectedFrom::Same)));
    assert_eq!(
        recall(&store, &key("/bin/solve", "solve a", "v2")),
        Some((4.0, ExpectedFrom::Changed))
    );
    let elsewhere = CommandKey {
        folder: "/other".into(),
        ..solve.clone()
    };
    assert_eq!(
        recall(&store, &elsewhere),
        Some((4.0, ExpectedFrom::Changed))
    );
    assert_eq!(
        recall(&store, &key("/bin/solve", "solve c", "v1")),
        Some((6.0, ExpectedFrom::Program))
    );
    assert_eq!(recall(&store, &key("/bin/other", "other", "v1")), None);
    assert_eq!(
        recall(
            &store,
            &CommandKey {
                machine: "another".into(),
                ..solve.clone()
            }
        ),
        None
    );
    // A new version that only failed hides nothing.
    store
        .note(&[failed(&key("/bin/solve", "solve a", "v0"), 11)])
        .unwrap();
    assert_eq!(
        recall(&store, &key("/bin/solve", "solve a", "v0")),
        Some((4.0, ExpectedFrom::Changed))
    );
    assert_eq!(
        recall(&store, &key("/bin/solve", "solve a", "v2")),
        Some((4.0, ExpectedFrom::Changed))
    );
    // The new version has its own memory from its first run on.
    store
        .note(&[ended(&key("/bin/solve", "solve a", "v2"), 12, 1.0)])
        .unwrap();
    assert_eq!(
        recall(&store, &key("/bin/solve", "solve a", "v2")),
        Some((1.0, ExpectedFrom::Same))
    );
    assert_eq!(
        recall(&store, &key("/bin/solve", "solve a", "v3")),
        Some((1.0, ExpectedFrom::Changed)),
        "the last seen"
    );
}

#[test]
fn what_was_learnt_is_of_this_command_alone() {
    let (_dir, path) = folder();
    let mut store = open(&path);
    let solve = key("/bin/solve", "solve a", "v1");
    store.note(&[ended(&solve, 10, 4.0)]).unwrap();
    assert_eq!(recall_learnt(&store, &solve), None);
    store
        .note(&[RememberedEnd {
            learnt: Some(learnt(0.5)),
            ..ended(&solve, 11, 4.0)
        }])
        .unwrap();
    assert_eq!(recall_learnt(&store, &solve), Some(learnt(0.5)));
    // Others are expected to take as long, and nothing more is known of them.
    for other in [
        CommandKey {
            folder: "/other".into(),
            ..solve.clone()
        },
        CommandKey {
            identity: "v2".into(),
            ..solve.clone()
        },
        CommandKey {
            given: "x".into(),
            ..solve.clone()
        },
        CommandKey {
            command: "solve b".to_owned(),
            ..solve.clone()
        },
    ] {
        assert!(
            recall(&store, &other).is_some() && recall_learnt(&store, &other).is_none(),
            "{other:?}"
        );
    }
    assert_eq!(
        recall_learnt(
            &store,
            &CommandKey {
                machine: "another".into(),
                ..solve.clone()
            }
        ),
        None
    );
    // A run that learnt nothing, or nothing that can be, leaves it as it was.
    let odd = Arc::new(EarlierPhases {
        phases: vec![EarlierPhase {
            solo_cpi: f64::NAN,
            ..learnt(0.5).phases[0]
        }],
    });
    store
        .note(&[
            ended(&solve, 12, 4.0),
            failed(&solve, 13),
            RememberedEnd {
                learnt: Some(odd),
                ..ended(&solve, 14, 4.0)
            },
        ])
        .unwrap();
    assert_eq!(recall_learnt(&store, &solve), Some(learnt(0.5)));
    store
        .note(&[
            RememberedEnd {
                learnt: Some(learnt(0.75)),
                ..ended(&solve, 15, 4.0)
            },
            ended(&solve, 16, 4.0),
        ])
        .unwrap();
    assert_eq!(recall_learnt(&store, &solve), Some(learnt(0.75)));
    let all = store.list(None).unwrap();
    assert_eq!(
        (all.len(), all[0].learnt.as_ref()),
        (1, Some(&*learnt(0.75)))
    );
}

#[test]
fn what_was_learnt_and_can_not_be_is_unknown() {
    let (_dir, path) = folder();
    let known = key("/bin/p", "p", "v1");
    open(&path)
        .note(&[RememberedEnd {
            learnt: Some(learnt(0.5)),
            ..ended(&known, 1, 1.0)
        }])
        .unwrap();
    let other = rusqlite::Connection::open(&path).unwrap();
    let put = |learnt: &str| {
        let change = "UPDATE command SET known = json_set(known, '$.learnt', json(?1))";
        other.execute(change, [learnt]).unwrap();
    };
    let good = serde_json::to_string(&*learnt(0.5)).unwrap();
    let phase = serde_json::to_string(&learnt(0.5).phases[0]).unwrap();
    let bad = [
        "{\"phases\":[]}".to_owned(),
        format!("{{\"phases\":[{}]}}", vec![phase; 9].join(",")),
        good.replace("0.0125", "-1.0"),
    ];
    for text in bad {
        put(&text);
        let store = open(&path);
        assert_eq!(recall_learnt(&store, &known), None, "{text:.80}");
        assert_eq!(recall(&store, &known), Some((1.0, ExpectedFrom::Same)));
        assert!(store.list(None).unwrap()[0].learnt.is_none());
    }
    put(&good);
    assert_eq!(recall_learnt(&open(&path), &known), Some(learnt(0.5)));
}

#[test]
fn commands_that_only_failed_hide_no_others_with_their_program() {
    let (_dir, path) = folder();
    let mut store = open(&path);
    store
        .note(&[ended(&key("/bin/p", "p good", "v1"), 1, 4.0)])
        .unwrap();
    let failures: Vec<RememberedEnd> = (0..100)
        .map(|n| failed(&key("/bin/p", &format!("p bad {n}"), "v1"), 2))
        .collect();
    store.note(&failures).unwrap();
    assert_eq!(
        recall(&store, &key("/bin/p", "p new", "v1")),
        Some((4.0, ExpectedFrom::Program))
    );
}

#[test]
fn a_clock_that_was_ahead_is_forgotten() {
    let (_dir, path) = folder();
    let mut store = open(&path);
    let known = key("/bin/p", "p", "v1");
    for at in [u64::MAX, 1 << 50, 7] {
        store.note(&[ended(&known, at, 1.0)]).unwrap();
    }
    assert_eq!(store.list(None).unwrap()[0].seen, 7);
}

#[test]
fn failures_count_and_tell_no_time() {
    let (_dir, path) = folder();
    let mut store = open(&path);
    let flaky = key("/bin/flaky", "flaky", "v1");
    store.note(&[failed(&flaky, 5)]).unwrap();
    assert_eq!(recall(&store, &flaky), None);
    store
        .note(&[ended(&flaky, 6, 2.0), failed(&flaky, 7)])
        .unwrap();
    assert_eq!(recall(&store, &flaky), Some((2.0, ExpectedFrom::Same)));
    for at in 8..20 {
        store.note(&[ended(&flaky, at, 3.0)]).unwrap();
    }
    let all = store.list(None).unwrap();
    assert_eq!(
        (all.len(), all[0].ends, all[0].failures, all[0].seen),
        (1, 15, 2, 19)
    );
    assert_eq!(
        (all[0].runs.len(), all[0].last_exit.as_str()),
        (MOST_RUNS, "exit 0")
    );
}

#[test]
fn it_is_its_owners_alone() {
    let (dir, path) = folder();
    drop(open(&path));
    let mode = |path: &Path| path.metadata().unwrap().mode() & 0o777;
    assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
    assert_eq!(mode(&dir.path().join("share")), 0o700);
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o620)).unwrap();
    let error = HistoryStore::open(&path, LockPatience::Some).unwrap_err();
    assert!(
        matches!(error.problem, HistoryProblem::Unsafe(_)),
        "{error}"
    );
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
    let link = dir.path().join("link");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    assert!(matches!(
        HistoryStore::open(&link, LockPatience::Some)
            .unwrap_err()
            .problem,
        HistoryProblem::Unsafe(_)
    ));
}

#[test]
fn twenty_thousand_commands_fit_into_a_few_megabytes() {
    let (_dir, path) = folder();
    let mut store = open(&path);
    let commands = |from: u64| {
        (from..from + 10_000).map(|n| key("/usr/bin/gzip", &format!("gzip -k file-{n}.txt"), "v1"))
    };
    for at in 0..6 {
        let ends: Vec<RememberedEnd> = commands(if at == 5 { 20_000 } else { 10_000 * (at % 2) })
            .map(|key| ended(&key, at, 1.0))
            .collect();
        store.note(&ends).unwrap();
    }
    let left = store.list(None).unwrap();
    assert!((18_000..=20_000).contains(&left.len()));
    let is_last = |at: u64| left.iter().filter(move |one| one.seen == at).count();
    assert_eq!(is_last(5), 10_000, "the oldest go");
    let bytes = path.metadata().unwrap().len();
    assert!(bytes < 24 << 20, "{bytes}");
}

#[test]
fn what_is_forgotten_is_not_in_the_file() {
    let (_dir, path) = folder();
    let mut store = open(&path);
    let holds = |text: &str| {
        std::fs::read(&path)
            .unwrap()
            .windows(text.len())
            .any(|part| part == text.as_bytes())
    };
    let ends = |store: &mut HistoryStore| {
        let all = ["login --token hunter2", "login --token other", "solve"];
        let ends: Vec<RememberedEnd> = all
            .iter()
            .zip([10, 20, 30])
            .map(|(line, at)| ended(&key("/bin/x", line, "v1"), at, 1.0))
            .collect();
        store.note(&ends).unwrap();
    };
    ends(&mut store);
    assert!(holds("hunter2"));
    assert_eq!(
        store
            .forget(&Forget::Matching("hunter2".to_owned()))
            .unwrap(),
        1
    );
    assert!(!holds("hunter2") && holds("other"));
    assert_eq!(store.forget(&Forget::OlderThan(30)).unwrap(), 1);
    assert_eq!(
        store.list(None).unwrap()[0].command.as_deref(),
        Some("solve")
    );
    assert_eq!(store.list(Some("/bin/x")).unwrap().len(), 1);
    assert_eq!(store.list(Some("%")).unwrap().len(), 0, "a pattern is text");
    assert_eq!(store.forget(&Forget::All).unwrap(), 1);
    assert_eq!(recall(&store, &key("/bin/x", "solve", "v1")), None);
}

#[test]
fn files_that_are_no_store_are_told_and_stay() {
    let (_dir, path) = folder();
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let check = |content: &[u8], expected: &str| {
        std::fs::write(&path, content).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
        let error = HistoryStore::open(&path, LockPatience::Some)
            .unwrap_err()
            .to_string();
        assert!(
            error.contains(expected) && error.contains(path.to_str().unwrap()),
            "{error}"
        );
        assert_eq!(
            std::fs::read(&path).unwrap(),
            content,
            "it is left as it was"
        );
    };
    check("my thesis\n".repeat(500).as_bytes(), "not a history");
    std::fs::remove_file(&path).unwrap();
    drop(open(&path));
    let whole = std::fs::read(&path).unwrap();
    let mut newer = whole.clone();
    newer[60..64].copy_from_slice(&7u32.to_be_bytes());
    check(&newer, "format 7; this one reads 2");
    let mut foreign = whole.clone();
    foreign[68..72].fill(0);
    check(&foreign, "not a history");
    // A page in the middle is lost.
    std::fs::remove_file(&path).unwrap();
    let mut store = open(&path);
    let ends: Vec<RememberedEnd> = (0..2_000)
        .map(|n| ended(&key("/bin/p", &format!("p {n}"), "v1"), n, 1.0))
        .collect();
    store.note(&ends).unwrap();
    drop(store);
    let mut damaged = std::fs::read(&path).unwrap();
    damaged[4_096..40_960].fill(0xAA);
    std::fs::write(&path, &damaged).unwrap();
    let error = open(&path).note(&ends).unwrap_err();
    assert!(
        matches!(error.problem, HistoryProblem::Damaged(_))
            && error.to_string().contains("delete it"),
        "{error}"
    );
}

#[test]
fn folders_that_can_not_be_written_to_only_lose_what_is_new() {
    let (_dir, path) = folder();
    let known = key("/bin/p", "p", "v1");
    open(&path).note(&[ended(&known, 1, 1.0)]).unwrap();
    let folder = path.parent().unwrap();
    std::fs::set_permissions(folder, PermissionsExt::from_mode(0o500)).unwrap();
    if std::fs::File::create(folder.join("x")).is_ok() {
        println!("skipped, because the superuser may write everywhere");
        return;
    }
    let mut store = HistoryStore::open_existing(&path, LockPatience::Some)
        .unwrap()
        .unwrap();
    assert_eq!(recall(&store, &known), Some((1.0, ExpectedFrom::Same)));
    let error = store.note(&[ended(&known, 2, 1.0)]).unwrap_err();
    assert!(error.problem.is_permission(), "{error}");
    std::fs::set_permissions(folder, PermissionsExt::from_mode(0o700)).unwrap();
}

#[test]
fn two_stores_on_one_file_lose_nothing() {
    let (_dir, path) = folder();
    let threads: Vec<_> = (0..4)
        .map(|writer| {
            let path = path.clone();
            std::thread::spawn(move || {
                for round in 0..25 {
                    let mut store = open(&path);
                    let own = key("/bin/p", &format!("p {writer}"), "v1");
                    let common = key("/bin/p", "p", "v1");
                    let ends = [ended(&own, round, 1.0), ended(&common, round, 1.0)];
                    // On a loaded machine the others may have the file for longer than it waits.
                    while let Err(error) = store.note(&ends) {
                        assert!(matches!(error.problem, HistoryProblem::Busy), "{error}");
                    }
                }
            })
        })
        .collect();
    threads
        .into_iter()
        .for_each(|thread| thread.join().unwrap());
    let all = open(&path).list(None).unwrap();
    let ends: Vec<(Option<&str>, u64)> = all
        .iter()
        .map(|one| (one.command.as_deref(), one.ends))
        .collect();
    assert_eq!(ends.len(), 5);
    assert!(
        ends.contains(&(Some("p"), 100)) && ends.contains(&(Some("p 3"), 25)),
        "{ends:?}"
    );
}

#[test]
fn a_run_does_not_wait_for_another_in_the_middle() {
    let (_dir, path) = folder();
    drop(open(&path));
    let other = rusqlite::Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let begin = std::time::Instant::now();
    let mut hasty = HistoryStore::open(&path, LockPatience::None).unwrap();
    let error = hasty
        .note(&[ended(&key("/bin/p", "p", "v1"), 1, 1.0)])
        .unwrap_err();
    assert!(matches!(error.problem, HistoryProblem::Busy), "{error}");
    assert!(begin.elapsed().as_secs_f64() < 1.0);
    other.execute_batch("ROLLBACK").unwrap();
    hasty
        .note(&[ended(&key("/bin/p", "p", "v1"), 1, 1.0)])
        .unwrap();
}

#[test]
fn rows_that_nobody_can_read_are_unknown_and_leave_the_others() {
    let (_dir, path) = folder();
    let (odd, good) = (key("/bin/p", "p odd", "v1"), key("/bin/q", "q", "v1"));
    open(&path)
        .note(&[ended(&odd, 2, 3.0), ended(&good, 1, 4.0)])
        .unwrap();
    let other = rusqlite::Connection::open(&path).unwrap();
    let change = "UPDATE command SET known = ?1 WHERE known NOT LIKE '%/bin/q%'";
    for known in ["", "{}", "[{\"at\":1}]", &"[".repeat(100_000)] {
        assert_eq!(other.execute(change, [known]).unwrap(), 1);
        let store = open(&path);
        assert_eq!(recall(&store, &odd), None, "{known:.80}");
        assert_eq!(recall(&store, &good), Some((4.0, ExpectedFrom::Same)));
        assert_eq!(store.list(None).unwrap().len(), 1);
    }
    open(&path).note(&[ended(&odd, 3, 5.0)]).unwrap();
    assert_eq!(recall(&open(&path), &odd), Some((5.0, ExpectedFrom::Same)));
    let put = |run: &str| {
        let change = "UPDATE command SET known = json_set(known, '$.runs', json(?1))";
        other.execute(change, [run]).unwrap();
    };
    put("[{\"at\":1,\"wall_s\":-3.0,\"placed_s\":-3.0}]");
    assert_eq!(recall(&open(&path), &odd), None);
    put("[{\"at\":1,\"wall_s\":1e300,\"placed_s\":1e300}]");
    let expected = open(&path).recall(&[Some(odd)]).unwrap()[0]
        .expected
        .unwrap();
    assert_eq!(expected.time, Nanos::MAX);
}

#[test]
fn who_disturbs_whom_is_told_to_commands_of_several_programs() {
    let (_dir, path) = folder();
    let mut store = HistoryStore::open(&path, LockPatience::Some).unwrap();
    let [heavy, light] = ["heavy", "light"].map(|program| key(program, program, "v1"));
    let beside = |command: &CommandKey, other: &CommandKey, time_s: f64| {
        let mut ended = ended(command, 1, time_s);
        let number = command.number_of(&other.program);
        ended.run.as_mut().unwrap().beside = Some([(number, 1.0)].into());
        ended
    };
    for _ in 0..2 {
        store
            .note(&[beside(&light, &heavy, 2.0), beside(&light, &light, 1.0)])
            .unwrap();
        store
            .note(&[beside(&heavy, &heavy, 3.0), beside(&heavy, &light, 1.5)])
            .unwrap();
    }
    let pressures = |store: &HistoryStore, keys: &[&CommandKey]| -> Vec<Option<f64>> {
        let keys: Vec<Option<CommandKey>> = keys.iter().map(|key| Some((*key).clone())).collect();
        let found = store.recall(&keys).unwrap();
        found
            .iter()
            .map(|one| one.interference.map(|one| one.pressure))
            .collect()
    };
    let both = pressures(&store, &[&light, &heavy]);
    assert!(both[1].unwrap() > 2.0 * both[0].unwrap(), "{both:?}");
    assert_eq!(
        pressures(&store, &[&heavy]),
        [None],
        "there is nothing to choose"
    );
    let unknown = key("new", "new", "v1");
    assert_eq!(pressures(&store, &[&heavy, &unknown, &light])[1], None);
    // Runs whose neighbours were not noted tell nothing.
    let [one, other] = ["one", "other"].map(|program| key(program, program, "v1"));
    store
        .note(&[
            ended(&one, 1, 1.0),
            ended(&one, 1, 9.0),
            ended(&other, 1, 1.0),
        ])
        .unwrap();
    let recalled = store.recall(&[Some(one), Some(other)]).unwrap();
    assert!(recalled.iter().all(|one| one.interference.is_none()));
}
