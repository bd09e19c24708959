//! `--jobserver`: jobs get as many tokens as their CPUs allow.

use crate::common::{self, ended, err, out, read, until, write};
use crate::faults::seen::runtime_folder;
use crate::width;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use tempfile::{TempDir, tempdir};

/// A client of the jobserver: `take` prints the tokens that it gets, and `give` returns them. It ends with its folder.
const CLIENT: &str = r#"
pipe=${MAKEFLAGS##*fifo:}
take() { dd if="$pipe" iflag=nonblock bs=9 count=1 2>/dev/null; }
give() { printf %s "$1" > "$pipe"; }
nap() { sleep 0.01; [ -e client ] || exit 4; }
"#;

/// Has the only token of two CPUs until the other job has begun. Once it returns the token, it gets none until that ends.
const FIRST: &str = r#"
. ./client
until [ "$(take)" = + ]; do nap; done
[ -z "$(take)" ] || exit 3
touch holds
until [ -e other ]; do nap; done
got=+
while [ "$got" ]; do give "$got"; nap; got=$(take); done
touch returned
until [ "$(take)" = + ]; do nap; done
"#;

const OTHER: &str = r#"
. ./client
[ -z "$(take)" ] || exit 3
touch other
until [ -e returned ]; do nap; done
"#;

/// Puts a program into the folder that names itself as this version of make.
fn fake_make(folder: &TempDir, version: &str) {
    std::fs::create_dir_all(folder.path().join("bin")).expect("a folder");
    write(
        folder,
        "bin/make",
        &format!("#!/bin/sh\necho GNU Make {version}\n"),
    );
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(folder.path().join("bin/make"), mode).expect("it is ours");
}

/// `PATH` with the programs of the folder first.
fn path(folder: &TempDir) -> String {
    let others = std::env::var("PATH").unwrap_or_default();
    format!("{}:{others}", folder.path().join("bin").display())
}

/// A call of cosched with a folder for the files of live runs.
fn command(folder: &TempDir, words: &[&str]) -> Command {
    let mut command = common::command(folder.path(), &[&["run", "--quiet"], words].concat());
    command.env("COSCHED_RUNS_DIR", folder.path());
    command
}

/// The number of jobservers in the folder.
fn jobservers(folder: &Path) -> usize {
    let files = std::fs::read_dir(runtime_folder(folder));
    let files = files.expect("the folder of live runs").flatten();
    files
        .filter(|file| file.file_name().to_string_lossy().starts_with("jobserver-"))
        .count()
}

#[test]
fn tokens_follow_the_cpus_of_a_job() {
    let Some((_, [one, other])) = width::cpus() else {
        return;
    };
    let cpus = format!("{one},{other}");
    for policy in ["fifo", "linux"] {
        let folder = tempdir().expect("a folder");
        for (name, text) in [("client", CLIENT), ("first", FIRST), ("other.sh", OTHER)] {
            write(&folder, name, text);
        }
        let words = ["--jobserver", "--cpus", &cpus, "-p", policy, "-f", "-"];
        fake_make(&folder, "4.4");
        let mut run = command(&folder, &words)
            .env("PATH", path(&folder))
            .stdin(Stdio::piped())
            .spawn()
            .expect("cosched runs");
        let mut jobs = run.stdin.take().expect("its input");
        jobs.write_all(b"sh first\n").expect("the run reads");
        until("it has its token", || folder.path().join("holds").exists());
        assert_eq!(jobservers(folder.path()), 1);
        jobs.write_all(b"sh other.sh\n").expect("the run reads");
        drop(jobs);
        assert!(ended(&mut run).success(), "{policy}");
        assert_eq!(jobservers(folder.path()), 0, "{policy}");
    }
}

#[test]
fn only_with_the_option_another_jobserver_is_replaced() {
    let folder = tempdir().expect("a folder");
    let flags = |words: &[&str]| {
        let all = [words, &["--", "env"]].concat();
        let mut cosched = command(&folder, &all);
        cosched.env("MAKEFLAGS", "k").env("PATH", path(&folder));
        let output = cosched.output().expect("cosched runs");
        let lines = out(&output);
        let lines = lines.lines().filter(|line| line.starts_with("MAKEFLAGS="));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    fake_make(&folder, "4.3");
    assert_eq!(flags(&[]), ["MAKEFLAGS=k"]);
    let options = ["--jobserver", "--cpus", &common::one_cpu()];
    let own = flags(&options);
    let numbers = own[0].strip_prefix("MAKEFLAGS= -j1 --jobserver-auth=");
    let numbers = numbers.and_then(|numbers| numbers.split_once(','));
    let (read, write) = numbers.expect("an old make has descriptors");
    let is_free = |number: &str| number.parse::<u32>().is_ok_and(|number| number > 9);
    assert!(is_free(read) && is_free(write), "{own:?}");
    fake_make(&folder, "4.4.1");
    let own = flags(&options);
    let start = format!(
        "MAKEFLAGS= -j1 --jobserver-auth=fifo:{}/",
        folder.path().display()
    );
    assert!(own.len() == 1 && own[0].starts_with(&start), "{own:?}");
}

#[test]
fn make_runs_as_many_processes_as_there_are_cpus() {
    let Some((_, [one, other])) = width::cpus() else {
        return;
    };
    let version = Command::new("make").arg("--version").output();
    let version = version.map(|output| out(&output)).unwrap_or_default();
    let number = version.split_whitespace().nth(2);
    let mut parts = number.unwrap_or("0").split('.').map(str::parse::<u32>);
    let number = [parts.next(), parts.next()].map(|part| part.and_then(Result::ok));
    if !version.starts_with("GNU Make") || number < [Some(4), Some(2)] {
        return eprintln!("skipped, because there is no GNU make 4.2");
    }
    let folder = tempdir().expect("a folder");
    // Each waits for the other.
    let text = "all: a b\na b:\n\t@touch at.$@; until [ -e at.a ] && [ -e at.b ]; do sleep 0.01; done; echo $@ >> done\n";
    write(&folder, "Makefile", text);
    let cpus = format!("{one},{other}");
    let words = ["--jobserver", "--cpus", &cpus, "--timeout", "60", "--"];
    let output = command(&folder, &[&words[..], &["make"]].concat()).output();
    let output = output.expect("cosched runs");
    assert!(output.status.success(), "{}", err(&output));
    assert_eq!(read(&folder, "done").lines().count(), 2);
}
