//! The list of runs beside a job log counts for its owner's processes and folders only.

use crate::common::{command, cosched, err, read, runs_dir, until, write};
use tempfile::tempdir;

/// Anybody could have written it, and root can end anybody's processes.
#[test]
fn a_list_of_runs_counts_for_processes_of_its_owner() {
    use cosched_linux::root::Root;
    use std::os::unix::{fs::chown, process::CommandExt as _};
    let folder = tempdir().expect("a folder");
    let root = Root::default();
    let own = cosched_linux::own_run(&root).expect("this process");
    let parts: Vec<u64> = own
        .split('-')
        .map(|part| part.parse().expect("a number"))
        .collect();
    let dead = format!("{}-{}-{}", parts[0], parts[1] + 1, parts[2]);
    let line = serde_json::json!({
        "schema": "cosched.runs/1", "run_id": dead, "host": cosched_linux::identity::host_name(&root),
        "boot": cosched_linux::identity::boot(&root), "started_at": "2026-01-01T00:00:00Z", "logs": null,
    });
    write(&folder, "J", "");
    write(&folder, "J.runs", &format!("{line}\n"));
    let (one, two) = (2_000_001, 2_000_002);
    let mut sleep = std::process::Command::new("sleep");
    sleep.arg("1000").uid(one);
    sleep
        .env("COSCHED_RUN", &dead)
        .env("COSCHED_RUNS_DIR", runs_dir());
    let (given, sleeper) = (
        chown(folder.path().join("J.runs"), Some(two), None),
        sleep.spawn(),
    );
    let (Ok(()), Ok(mut sleeper)) = (given, sleeper) else {
        return eprintln!("skipped, because only root may give files away");
    };
    let words = [
        "run",
        "-q",
        "--joblog",
        "J",
        "--resume",
        "--orphans",
        "kill",
        "--grace",
        "1",
        "--",
        "true",
    ];
    let run = cosched(&folder, &words);
    assert!(
        run.status.success() && err(&run).is_empty(),
        "{}",
        err(&run)
    );
    assert_eq!(
        sleeper.try_wait().expect("a child"),
        None,
        "it is not the list's to name"
    );
    chown(folder.path().join("J.runs"), Some(one), None).expect("root may");
    // It has ended, but for its parent to notice.
    let mut again = command(folder.path(), &words).spawn().expect("it runs");
    until("the sleeper ends", || {
        sleeper.try_wait().expect("a child").is_some()
    });
    again.wait().expect("it ends");
}

/// The list of runs says where the record goes, and it can be somebody else's.
#[test]
fn the_record_of_a_killed_run_goes_into_its_own_folder_alone() {
    use std::os::unix::fs::{chown, symlink};
    let folder = tempdir().expect("a folder");
    let words = ["run", "-q", "--logs", "L", "--joblog", "J", "--", "true"];
    let record = folder.path().join("L/run.json");
    let lose = |with: &str| {
        let _ = std::fs::remove_file(&record);
        write(&folder, "precious", "kept");
        symlink(folder.path().join(with), &record).expect("a link");
    };
    let resume = || {
        let run = cosched(
            &folder,
            &["run", "-q", "--joblog", "J", "--resume", "--", "true"],
        );
        assert!(run.status.success(), "{}", err(&run));
        assert_eq!(read(&folder, "precious"), "kept");
        record.symlink_metadata().expect("it is there").is_file()
    };
    assert!(cosched(&folder, &words).status.success());
    lose("precious");
    assert!(
        resume() && read(&folder, "L/run.json").contains("\"rebuilt\""),
        "the link is replaced"
    );
    let logs = folder.path().join("L");
    lose("precious");
    if chown(&logs, Some(2_000_001), None).is_err() {
        return eprintln!("skipped in part, because only root may give folders away");
    }
    assert!(!resume(), "the folder is somebody else's");
    chown(&logs, Some(0), None).expect("root may");
    // What a later run has put aside, in a folder that is a link.
    std::fs::create_dir(folder.path().join("else")).expect("a folder");
    std::fs::rename(
        logs.join("series.jsonl"),
        folder.path().join("else/series.jsonl"),
    )
    .expect("a file");
    symlink(folder.path().join("else"), logs.join("earlier-1")).expect("a link");
    assert!(!resume());
    assert!(!folder.path().join("else/run.json").exists());
}
