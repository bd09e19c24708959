//! Log folders: what runs write, whose it is, and what goes.

mod common;

use common::{command, cosched, err, json, out, read, write};
use std::path::Path;
use std::process::Command;
use tempfile::tempdir;

#[test]
fn a_log_folder_that_is_used_again_keeps_the_runs_apart() {
    let folder = tempdir().expect("a folder");
    for round in ["one", "two"] {
        write(&folder, "mix.toml", &format!("[[job]]\nname = \"say\"\ncommand = \"echo {round}\"\n"));
        let run = cosched(&folder, &["run", "mix.toml", "--logs", "L", "--output", "group"]);
        assert_eq!(out(&run), format!("{round}\n"), "{}", err(&run));
    }
    assert_eq!((read(&folder, "L/say.out"), read(&folder, "L/earlier-1/say.out")), ("two\n".into(), "one\n".into()));
    assert!(read(&folder, "L/earlier-1/run.json").contains("echo one"));
}

#[test]
fn files_that_are_not_ours_are_not_touched() {
    let folder = tempdir().expect("a folder");
    write(&folder, "mix.toml", "[[job]]\nname = \"say\"\ncommand = \"echo hi\"\n");
    std::fs::create_dir(folder.path().join("L")).expect("a folder");
    write(&folder, "L/say.out", "theirs");
    let run = cosched(&folder, &["run", "mix.toml", "--logs", "L"]);
    assert_eq!(run.status.code(), Some(2));
    assert!(
        err(&run).contains("there is say.out already") && err(&run).contains("nothing was started"),
        "{}",
        err(&run)
    );
    assert_eq!(read(&folder, "L/say.out"), "theirs");
    for option in ["--record", "--joblog", "--events"] {
        let before = read(&folder, "mix.toml");
        let run = cosched(&folder, &["run", "mix.toml", option, "./mix.toml"]);
        assert_eq!(run.status.code(), Some(2));
        assert!(err(&run).contains("this run reads this file, which would be overwritten"), "{}", err(&run));
        assert_eq!(read(&folder, "mix.toml"), before);
    }
}

#[test]
fn a_record_for_a_pipe_is_the_record_alone() {
    let folder = tempdir().expect("a folder");
    let run = cosched(&folder, &["run", "-q", "--no-logs", "--record", "/dev/stdout", "true"]);
    assert!(run.status.success(), "{}", err(&run));
    assert_eq!(json(&run)["totals"]["succeeded"], 1);
}

#[test]
fn no_logs_overrides_the_environment() {
    let folder = tempdir().expect("a folder");
    let run = command(folder.path(), &["run", "-q", "--no-logs", "echo", "a"]).env("COSCHED_LOGS", "L").output();
    let run = run.expect("it runs");
    assert_eq!((run.status.code(), out(&run).as_str()), (Some(0), "a\n"), "{}", err(&run));
    assert_eq!(std::fs::read_dir(folder.path()).expect("the folder").count(), 0);
    let run = cosched(&folder, &["run", "--no-logs", "--logs", "L", "echo", "a"]);
    assert!(run.status.code() == Some(2) && err(&run).contains("leave one of them out"), "{}", err(&run));
}

#[test]
fn a_run_without_logs_shows_its_output_and_leaves_nothing() {
    let folder = tempdir().expect("a folder");
    let temporary = folder.path().join("tmp");
    std::fs::create_dir(&temporary).expect("a folder");
    let words = ["run", "--no-logs", "echo {}; exit {}", ":::", "0", "3"];
    let output = command(folder.path(), &words).env("TMPDIR", &temporary).output().expect("the binary runs");
    assert_eq!((output.status.code(), out(&output).as_str()), (Some(1), "0\n3\n"), "{}", err(&output));
    let left = |folder: &Path| std::fs::read_dir(folder).expect("a folder").count();
    assert_eq!((left(folder.path()), left(&temporary)), (1, 0), "{}", err(&output));
    for _ in 0..3 {
        assert!(cosched(&folder, &["run", "-q", "--keep-logs", "2", "--", "true"]).status.success());
    }
    assert_eq!(left(&folder.path().join("cosched-logs")), 2);
}

#[test]
fn folders_that_others_may_change_hold_no_logs_unless_asked() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempdir().expect("a folder");
    let open = folder.path().join("open");
    std::fs::create_dir(&open).expect("a folder");
    let mode = |mode| std::fs::set_permissions(&open, std::fs::Permissions::from_mode(mode)).expect("the owner may");
    mode(0o777);
    let refused = command(&open, &["run", "-q", "--", "true"]).output().expect("the binary runs");
    let text = err(&refused);
    assert_eq!(refused.status.code(), Some(2), "{text}");
    assert!(text.contains("others may write to the folder") && text.contains("--shared-logs"), "{text}");
    assert!(!open.join("cosched-logs").exists());
    let allowed = command(&open, &["run", "-q", "--shared-logs", "--", "true"]).output().expect("the binary runs");
    assert!(allowed.status.success() && open.join("cosched-logs").exists(), "{}", err(&allowed));
    std::fs::remove_dir_all(open.join("cosched-logs")).expect("its own");
    // As /tmp is.
    mode(0o1777);
    let sticky = command(&open, &["run", "-q", "--", "true"]).output().expect("the binary runs");
    assert!(sticky.status.success(), "{}", err(&sticky));
    // What looks like a log folder, with a pipe that nobody writes to.
    let old = open.join("cosched-logs/20200101-000000-5");
    std::fs::create_dir(&old).expect("a folder");
    let made = Command::new("mkfifo").arg(old.join(".cosched-run")).status().expect("mkfifo");
    assert!(made.success());
    let next = command(&open, &["run", "-q", "--keep-logs", "1", "--", "true"]).output().expect("the binary runs");
    assert!(next.status.success() && old.exists(), "{}", err(&next));
}
