//! What is known of commands from earlier runs: what runs keep and use, and what a wrong memory costs.

use crate::common::{self, cosched, err, json, out, until, write};
use serde_json::Value;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

/// A call of cosched with a history in the folder.
fn command(folder: &TempDir, words: &[&str]) -> Command {
    let mut command = common::command(folder.path(), words);
    command.env("COSCHED_HISTORY", folder.path().join("h/history.sqlite"));
    command
}

fn with_history(folder: &TempDir, words: &[&str]) -> Output {
    let output = command(folder, words).output().expect("the binary runs");
    assert!(output.status.code().is_some(), "{}", err(&output));
    output
}

/// All that is known, the last seen first.
fn known(folder: &TempDir) -> Vec<Value> {
    let all = json(&with_history(
        folder,
        &["history", "list", "--format", "json"],
    ));
    assert_eq!(all["schema"], "cosched.history/1");
    all["commands"].as_array().expect("a list").clone()
}

fn commands(folder: &TempDir) -> Vec<String> {
    known(folder)
        .iter()
        .map(|one| one["command"].as_str().unwrap_or("(any)").to_owned())
        .collect()
}

#[test]
fn runs_over_nodes_keep_what_the_nodes_measured() {
    let folder = tempfile::tempdir().unwrap();
    let words = ["run", "--nodes", "local:1", "-q", "--", "sleep", "0.2"];
    assert!(with_history(&folder, &words).status.success());
    let run = &known(&folder)[0]["runs"][0];
    assert!(run["cpu_s"].is_number(), "{run}");
}

#[test]
fn runs_keep_what_their_jobs_did() {
    let folder = tempfile::tempdir().unwrap();
    let jobs = "sleep 0.2\nsleep 0.2; exit 3\ntrue\nsleep 0.3 && true\n";
    write(&folder, "jobs", jobs);
    assert_eq!(
        with_history(&folder, &["run", "-f", "jobs", "-q"])
            .status
            .code(),
        Some(1)
    );
    let all = known(&folder);
    let find = |command: Option<&str>| {
        let is_it = |one: &&Value| one["command"].as_str() == command;
        all.iter()
            .find(is_it)
            .unwrap_or_else(|| panic!("{command:?} in {all:?}"))
    };
    let slept = find(Some("sleep 0.2"));
    assert!(
        (0.15..10.0).contains(&slept["time_s"].as_f64().unwrap()),
        "{slept}"
    );
    assert_eq!(
        (slept["ends"].as_u64(), slept["last_exit"].as_str()),
        (Some(1), Some("exit 0"))
    );
    assert!(
        slept["program"].as_str().unwrap().starts_with('/')
            && slept["machine"].as_str().unwrap().contains("CPUs")
    );
    let failed = find(Some("sleep 0.2; exit 3"));
    assert!(
        failed["time_s"].is_null() && failed["failures"] == 1 && failed["last_exit"] == "exit 3",
        "{failed}"
    );
    // It is too short to be kept by itself.
    assert!(
        find(None)["program"].as_str().unwrap().ends_with("true"),
        "{all:?}"
    );
    with_history(&folder, &["run", "-f", "jobs", "-q"]);
    let text = out(&with_history(&folder, &["history", "list", "0.3"]));
    assert!(
        text.lines().count() == 2 && text.contains("sleep 0.3 && true") && text.contains(" 2 "),
        "{text}"
    );
    let mode = |name: &str| {
        folder
            .path()
            .join(name)
            .metadata()
            .unwrap()
            .permissions()
            .mode()
            & 0o777
    };
    assert_eq!((mode("h"), mode("h/history.sqlite")), (0o700, 0o600));
}

#[test]
fn nothing_is_kept_where_that_is_not_wanted() {
    let folder = tempfile::tempdir().unwrap();
    let check = |words: &[&str], setting: Option<&str>| {
        let mut call = command(&folder, words);
        setting.map(|setting| call.env("COSCHED_HISTORY", setting));
        let output = call.output().unwrap();
        assert!(output.status.success(), "{}", err(&output));
        assert!(!folder.path().join("h").exists(), "{words:?}");
    };
    check(&["run", "-q", "--history", "off", "sleep", "0.2"], None);
    check(&["run", "-q", "sleep", "0.2"], Some("off"));
    check(&["run", "--dry-run", "sleep", "0.2"], None);
    write(
        &folder,
        "mix.toml",
        "[[job]]\nprogram = 'gcc'\nwork_instructions = 1000000\n",
    );
    check(&["run", "-q", "mix.toml", "--on", "epyc-2cpu"], None);
    let simulated = ["run", "-q", "mix.toml", "--on", "epyc-2cpu"];
    check(&[&simulated[..], &["--history", "h"]].concat(), None);
    let off = cosched(&folder, &["history", "list"]);
    assert!(
        off.status.code() == Some(2) && err(&off).contains("--history"),
        "{}",
        err(&off)
    );
    // What was stopped by the user, or ran out of its time, tells nothing of how long it takes.
    let timed_out = with_history(&folder, &["run", "-q", "--timeout", "0.3", "sleep", "60"]);
    assert_eq!(timed_out.status.code(), Some(124));
    assert!(known(&folder)[0]["time_s"].is_null());
}

#[test]
fn what_was_learnt_is_shown_and_stays_where_nothing_new_is_learnt() {
    let folder = tempfile::tempdir().unwrap();
    let run = || with_history(&folder, &["run", "-q", "sleep {}", ":::", "0.11", "0.12"]);
    run();
    let phase = r#"{"core_type":0,"asks":{"own":0.5,"penalty":60.0,"l1":0.25,"llc":0.02,"reads":0.01,"steepness":0.5,
        "ghz":2.0,"time":{"sensitivity":1.0,"pressure":0.5},"accesses":{"sensitivity":1.0,"pressure":0.0}},"solo_cpi":1.25}"#;
    let database = rusqlite::Connection::open(folder.path().join("h/history.sqlite")).unwrap();
    let put = "UPDATE command SET known = json_set(known, '$.learnt', json(?1))
               WHERE known ->> 'command' = 'sleep 0.12'";
    assert_eq!(
        database
            .execute(put, [format!(r#"{{"phases":[{phase},{phase}]}}"#)])
            .unwrap(),
        1
    );
    run();
    let all = known(&folder);
    let find = |command: &str| all.iter().find(|one| one["command"] == command).unwrap();
    assert_eq!(find("sleep 0.12")["ends"], 2);
    assert_eq!(
        find("sleep 0.12")["learnt"]["phases"][1]["asks"]["reads"],
        0.01
    );
    // Jobs that sleep are not learnt, whatever can be counted.
    assert!(find("sleep 0.11").get("learnt").is_none(), "{all:?}");
    let text = out(&with_history(&folder, &["history", "list"]));
    let phases: Vec<bool> = text
        .lines()
        .map(|line| line.contains(" 2 phases "))
        .collect();
    assert_eq!(phases.iter().filter(|&&known| known).count(), 1, "{text}");
}

#[test]
fn a_file_without_a_name_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |words: &[&str], setting: &str| {
        let output = command(&folder, words)
            .env("COSCHED_HISTORY", setting)
            .output()
            .unwrap();
        assert!(
            output.status.code() == Some(2) && err(&output).contains("say off"),
            "{words:?} {}",
            err(&output)
        );
    };
    refused(&["run", "--history", "", "true"], "h");
    refused(&["run", "true"], "");
    refused(&["history", "list", "--history="], "h");
    refused(&["history", "list"], "");
}

#[test]
fn it_is_forgotten() {
    let folder = tempfile::tempdir().unwrap();
    with_history(
        &folder,
        &["run", "-q", "sleep {}", ":::", "0.15", "0.16", "0.17"],
    );
    assert_eq!(commands(&folder).len(), 3);
    let forget = |words: &[&str]| {
        out(&with_history(
            &folder,
            &[&["history", "forget"], words].concat(),
        ))
    };
    assert_eq!(forget(&["0.16"]), "forgot 1 command\n");
    assert_eq!(forget(&["--older-than", "1d"]), "forgot 0 commands\n");
    assert_eq!(commands(&folder).len(), 2);
    assert_eq!(forget(&["--all"]), "forgot 2 commands\n");
    assert!(commands(&folder).is_empty());
    for wrong in [
        &["forget"][..],
        &["forget", ""],
        &["forget", "x", "--all"],
        &["forget", "--older-than", "soon"],
        &[],
    ] {
        let refused = with_history(&folder, &[&["history"], wrong].concat());
        assert_eq!(refused.status.code(), Some(2), "{wrong:?}");
    }
}

/// Whatever is wrong with the file: the jobs run, and one warning says what to do.
#[test]
fn a_file_that_can_not_be_used_costs_the_memory_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("h/history.sqlite");
    let check = |what: &str, remedy: &str| {
        let output = with_history(
            &folder,
            &[
                "run",
                "--no-logs",
                "--",
                "sh",
                "-c",
                "sleep 0.11; echo done",
            ],
        );
        let text = err(&output);
        assert!(
            output.status.success() && out(&output).contains("done"),
            "{what}: {text}"
        );
        let told: Vec<&str> = text
            .lines()
            .filter(|line| line.starts_with("cosched: the history of this run"))
            .collect();
        assert!(
            told.len() == 1 && told[0].contains("history.sqlite") && told[0].contains(what),
            "{what}: {text}"
        );
        assert!(told[0].contains(remedy), "{text}");
    };
    let put = |content: &[u8]| {
        write(&folder, "h/history.sqlite", "");
        std::fs::write(&file, content).unwrap();
        std::fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
    };
    put(&b"what I wrote myself\n".repeat(100));
    check("not a history", "--history off");
    assert!(
        std::fs::read(&file)
            .unwrap()
            .starts_with(b"what I wrote myself")
    );
    let kept = with_history(&folder, &["history", "forget", "--all"]);
    assert!(
        kept.status.code() == Some(1) && file.exists(),
        "{}",
        err(&kept)
    );
    std::fs::remove_file(&file).unwrap();
    with_history(&folder, &["run", "-q", "sleep", "0.2"]);
    let whole = std::fs::read(&file).unwrap();
    let mut newer = whole.clone();
    newer[60..64].copy_from_slice(&9u32.to_be_bytes());
    put(&newer);
    check("another version", "--history FILE");
    put(&[&whole[..4_096], &vec![0x55; whole.len() - 4_096]].concat());
    check("damaged", "delete it");
    // A plan tells it too, and which policy is taken for what reason.
    let plan = out(&with_history(&folder, &["run", "--dry-run", "true"]));
    assert!(
        plan.contains("chosen by auto: ")
            && plan.contains("warning   ")
            && plan.contains("damaged"),
        "{plan}"
    );
    let plan = json(&with_history(
        &folder,
        &["run", "--dry-run", "--format", "json", "true"],
    ));
    assert!(
        plan["warnings"][0].as_str().unwrap().contains("damaged"),
        "{plan}"
    );
    assert_eq!(
        plan["policy"] == "even",
        plan["policy_lacks"].is_null(),
        "{plan}"
    );
    std::fs::remove_file(&file).unwrap();
    std::fs::create_dir(&file).unwrap();
    check("not a regular file", "--history off");
    std::fs::remove_dir(&file).unwrap();
    std::fs::remove_dir(folder.path().join("h")).unwrap();
    write(&folder, "h", "no folder");
    check("os error", "--history off");
}

/// What was known stays known.
#[test]
fn a_full_disk_costs_the_memory_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("h");
    std::fs::create_dir(&at).unwrap();
    let mount = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "mode=0700,size=64k", "tmpfs"])
        .arg(&at)
        .output();
    if !mount.is_ok_and(|output| output.status.success()) {
        let skipped = "skipped, because no small file system can be mounted\n";
        return drop(std::io::Write::write_all(
            &mut std::io::stderr(),
            skipped.as_bytes(),
        ));
    }
    let first = with_history(&folder, &["run", "-q", "sleep", "0.11"]);
    let _ = std::fs::write(at.join("filler"), vec![0; 1 << 20]);
    let second = with_history(
        &folder,
        &[
            "run",
            "--no-logs",
            "sleep {}; echo {}",
            ":::",
            "0.12",
            "0.13",
            "0.14",
        ],
    );
    let left = commands(&folder);
    let unmounted = Command::new("umount").arg("-l").arg(&at).status();
    assert!(unmounted.is_ok_and(|status| status.success()) && first.status.success());
    assert!(
        second.status.success() && out(&second).contains("0.14"),
        "{}",
        err(&second)
    );
    let text = err(&second);
    let told = text
        .lines()
        .find(|line| line.starts_with("cosched: the history of this run"))
        .unwrap_or_default();
    assert!(
        told.contains("history.sqlite") && told.contains("make room"),
        "{text}"
    );
    assert_eq!(left, ["sleep 0.11"]);
}

#[test]
fn runs_side_by_side_lose_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let run = |ix: usize| {
        let own = format!("sleep 0.1{ix}");
        let words = [
            "run",
            "-q",
            "--no-logs",
            "-j",
            "4",
            "sh",
            "-c",
            "sleep $1",
            "sh",
            ":::",
            "0.2",
        ];
        let mut call = command(&folder, &words[..words.len() - 2]);
        call.args([":::", "0.2", &own[6..]])
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        call.spawn().unwrap()
    };
    let mut runs: Vec<_> = (1..7).map(run).collect();
    assert!(runs.iter_mut().all(|run| run.wait().unwrap().success()));
    let all = known(&folder);
    let ends: Vec<u64> = all
        .iter()
        .map(|one| one["ends"].as_u64().unwrap())
        .collect();
    assert_eq!(
        (ends.len(), ends.iter().sum::<u64>(), ends.iter().max()),
        (7, 12, Some(&6)),
        "{all:?}"
    );
}

/// A run that is killed loses what it had not written, and harms nothing that was there.
#[test]
fn killed_runs_leave_a_whole_file() {
    let folder = tempfile::tempdir().unwrap();
    with_history(&folder, &["run", "-q", "sleep", "0.11"]);
    for ms in [0u64, 60, 130, 160, 170, 180, 200] {
        let mut run = command(
            &folder,
            &["run", "-q", "--no-logs", "sleep {}", ":::", "0.12", "0.13"],
        );
        // What a killed run leaves in the temporary directory goes with the test.
        let run = run.env("TMPDIR", folder.path());
        let mut run = run
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(std::time::Duration::from_millis(ms));
        run.kill().unwrap();
        run.wait().unwrap();
        assert!(
            commands(&folder).contains(&"sleep 0.11".to_owned()),
            "killed after {ms} ms"
        );
    }
    until("the jobs of the killed runs have ended", || {
        with_history(&folder, &["run", "-q", "sleep", "0.11"])
            .status
            .success()
    });
    let all = known(&folder);
    let own = all
        .iter()
        .find(|one| one["command"] == "sleep 0.11")
        .unwrap();
    assert_eq!(
        (own["ends"].as_u64(), own["failures"].as_u64()),
        (Some(2), Some(0)),
        "{all:?}"
    );
    let database = rusqlite::Connection::open(folder.path().join("h/history.sqlite")).unwrap();
    let whole: String = database
        .query_row("PRAGMA integrity_check", [], |row| row.get(0))
        .unwrap();
    assert_eq!(whole, "ok");
}

/// Changes what is known: `runs` is the list of runs, as JSON, of the commands that hold a text.
fn tamper(folder: &TempDir, text: &str, runs: &str) {
    let database = rusqlite::Connection::open(folder.path().join("h/history.sqlite")).unwrap();
    let changed = database
        .execute(
            "UPDATE command SET known = json_set(known, '$.runs', json(?1)) WHERE instr(known ->> 'command', ?2) > 0",
            [runs, text],
        )
        .unwrap();
    assert!(changed > 0, "{text}");
}

/// A run of so many seconds that held so many bytes.
fn one_run(s: f64, bytes: u64) -> String {
    format!(
        "[{{\"at\":1,\"wall_s\":{s},\"placed_s\":{s},\"cpu_s\":{s},\"width\":1,\"max_rss\":{bytes}}}]"
    )
}

fn starts(output: &Output) -> Vec<String> {
    let record = json(output);
    let mut jobs: Vec<(f64, String)> = record["jobs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|job| {
            (
                job["start_s"].as_f64().unwrap(),
                job["name"].as_str().unwrap().to_owned(),
            )
        })
        .collect();
    jobs.sort_by(|a, b| a.0.total_cmp(&b.0));
    jobs.into_iter().map(|(_, name)| name).collect()
}

/// The codes of the warnings that are about memory. Other tests kill runs, which is told as well.
fn of_memory(output: &Output) -> Vec<String> {
    let record = json(output);
    let codes = record["warnings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|warning| warning["code"].as_str().unwrap().to_owned());
    codes.filter(|code| code.ends_with("-memory")).collect()
}

const RECORD: [&str; 8] = [
    "run",
    "-q",
    "--no-logs",
    "--format",
    "json",
    "--policy",
    "fifo",
    "-j",
];

#[test]
fn what_is_known_decides_which_job_begins_first() {
    let folder = tempfile::tempdir().unwrap();
    let run = |more: &[&str]| {
        let words = [
            &RECORD[..],
            more,
            &["sh", "-c", "sleep $1", "sh", ":::", "0.15", "0.5", "0.3"],
        ]
        .concat();
        with_history(&folder, &words)
    };
    // Two are live at once, on one CPU.
    let two = ["2", "--cpus", "0"];
    assert_eq!(starts(&run(&two)), ["sleep#1", "sleep#2", "sleep#3"]);
    let second = run(&two);
    assert_eq!(starts(&second), ["sleep#2", "sleep#3", "sleep#1"]);
    let (given, off) = (["--order", "given"], ["--history", "off"]);
    let as_given = [
        [&two[..], &given].concat(),
        [&two[..], &off].concat(),
        // One at a time the batch takes as long in any order.
        vec!["1"],
    ];
    std::thread::scope(|scope| {
        for more in &as_given {
            scope.spawn(move || {
                assert_eq!(
                    starts(&run(more)),
                    ["sleep#1", "sleep#2", "sleep#3"],
                    "{more:?}"
                );
            });
        }
    });
    let record = json(&second);
    let expected = &record["jobs"][1]["expected"];
    assert_eq!(
        (expected["from"].as_str(), expected["runs"].as_u64()),
        (Some("same"), Some(1)),
        "{expected}"
    );
    assert!((0.4..3.0).contains(&expected["time_s"].as_f64().unwrap()));
    assert_eq!(record["setting"]["options"]["order"], "auto");
    // A batch of others with this program goes by what is known of those.
    let plan = out(&with_history(
        &folder,
        &["run", "--dry-run", "sh", "-c", "sleep $1", "sh", "7"],
    ));
    assert!(
        plan.contains("expected: ") && plan.contains("of other commands with this program"),
        "{plan}"
    );
    let plan = out(&with_history(
        &folder,
        &["run", "--dry-run", "sh", "-c", "sleep $1", "sh", "0.5"],
    ));
    assert!(
        plan.contains("runs of this command") && plan.contains("the longest begin early enough"),
        "{plan}"
    );
    let plan = with_history(
        &folder,
        &[
            "run",
            "--dry-run",
            "--format",
            "json",
            "sh",
            "-c",
            "sleep $1",
            "sh",
            "0.5",
        ],
    );
    assert_eq!(json(&plan)["jobs"][0]["expected"]["from"], "same");
}

/// The jobs run, in whichever order; nothing waits long, and what is wrong is put right.
#[test]
fn a_wrong_memory_costs_little() {
    let folder = tempfile::tempdir().unwrap();
    let words = [
        &RECORD[..],
        &[
            "2", "sh", "-c", "sleep $1", "sh", ":::", "0.11", "0.12", "0.13", "0.14",
        ],
    ]
    .concat();
    let turnaround = |output: &Output| json(output)["metrics"]["turnaround_s"].as_f64().unwrap();
    let plain = turnaround(&with_history(&folder, &words));
    let total = cosched_linux::meminfo::read(&cosched_linux::root::Root::default())
        .unwrap()
        .total;
    let bytes = |bytes: u64| one_run(0.1, bytes);
    // 10 TB: no process can have held that here, so nobody waits for it.
    tamper(&folder, "sleep", &bytes(10 << 40));
    let absurd = with_history(&folder, &words);
    assert!(
        turnaround(&absurd) < 3.0 * plain + 1.0,
        "{} {plain}",
        turnaround(&absurd)
    );
    assert!(of_memory(&absurd).is_empty(), "{:?}", of_memory(&absurd));
    // All memory that there is: the job runs alone, when the others have ended.
    tamper(&folder, "sleep", &bytes(1 << 20));
    tamper(&folder, "0.11", &bytes(total));
    let large = with_history(&folder, &words);
    assert_eq!(starts(&large).last().unwrap(), "sleep#1");
    assert_eq!(of_memory(&large), ["waits-for-memory", "short-of-memory"]);
    assert!(
        turnaround(&large) < 3.0 * plain + 3.0,
        "{} {plain}",
        turnaround(&large)
    );
    // Times that are wrong by a thousand, some this way and some that way, are right again after three runs.
    tamper(&folder, "sleep", &one_run(200.0, 1 << 20));
    tamper(&folder, "0.11", &one_run(0.0002, 1 << 20));
    for _ in 0..3 {
        assert!(turnaround(&with_history(&folder, &words)) < 3.0 * plain + 1.0);
    }
    let known = known(&folder);
    assert!(
        known
            .iter()
            .all(|one| (0.1..5.0).contains(&one["time_s"].as_f64().unwrap())),
        "{known:?}"
    );
}

#[test]
fn a_changed_program_is_known_by_its_old_runs_until_it_has_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let script = |text: &str| {
        write(&folder, "job.sh", text);
        let path = folder.path().join("job.sh");
        std::fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
    };
    let from = || {
        let plan = with_history(
            &folder,
            &["run", "--dry-run", "--format", "json", "./job.sh"],
        );
        json(&plan)["jobs"][0]["expected"]["from"]
            .as_str()
            .map(str::to_owned)
    };
    script("#!/bin/sh\nsleep 0.2\n");
    assert_eq!(from(), None);
    with_history(&folder, &["run", "-q", "./job.sh"]);
    assert_eq!(from().as_deref(), Some("same"));
    script("#!/bin/sh\nsleep 0.3 \n");
    assert_eq!(from().as_deref(), Some("changed"));
    with_history(&folder, &["run", "-q", "./job.sh"]);
    assert_eq!(from().as_deref(), Some("same"));
    // Without the second version's own run it would be the time of the first.
    let known = known(&folder);
    assert!(
        known.len() == 2 && known[0]["time_s"].as_f64() >= Some(0.29),
        "{known:?}"
    );
}
