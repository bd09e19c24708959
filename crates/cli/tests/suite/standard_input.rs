//! Standard input of `cosched run`: values, the input of the single job, or nothing.

use crate::common::{command, cosched, err, out, write};
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Output, Stdio};
use std::time::Duration;
use tempfile::{TempDir, tempdir};

/// A run with this text in a pipe.
fn piped(folder: &TempDir, words: &[&str], input: &str) -> Output {
    let run = ["run", "--no-logs", "--output", "group", "-j", "1"];
    fed(folder, &[&run[..], words].concat(), input)
}

/// A call with this text in a pipe.
fn fed(folder: &TempDir, words: &[&str], input: &str) -> Output {
    let mut child = command(folder.path(), words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it runs");
    let mut pipe = child.stdin.take().expect("a pipe");
    // A run that refuses its command line does not read.
    let _ = pipe.write_all(input.as_bytes());
    drop(pipe);
    child.wait_with_output().expect("it ends")
}

#[test]
fn input_is_values_or_that_of_the_single_job() {
    let folder = tempdir().expect("a folder");
    let nothing = "cosched: there are no values, so nothing to run\n";
    for (words, input, stdout, stderr) in [
        (&["-q", "echo", "hi"][..], "a\nb c\n", "hi a\nhi b c\n", ""),
        (&["-q", "echo", "hi"], "", "hi\n", ""),
        (&["-q", "echo 1; echo 2"], "", "1\n2\n", ""),
        (&["-q", "--", "cat"], "a\nb\n", "a\nb\n", ""),
        (&["-q", "--", "cat | wc -l"], "a\nb\n", "2\n", ""),
        (&["-q", "--", "echo", "{}"], "a\n", "a\n", ""),
        (&["-q", "--", "cat", ":::", "/dev/null"], "a\n", "", ""),
        (&["echo", "{}"], "", "", nothing),
        (&["-n2", "echo"], "", "", nothing),
        (&["-q", "echo", "{}"], "", "", ""),
    ] {
        let output = piped(&folder, words, input);
        assert_eq!(
            (out(&output).as_str(), err(&output).as_str()),
            (stdout, stderr),
            "{words:?} {input:?}"
        );
        assert_eq!(output.status.code(), Some(0), "{words:?}");
    }
}

#[test]
fn lines_that_take_no_value_and_jobs_that_run_twice_are_refused() {
    let folder = tempdir().expect("a folder");
    let job = "[[job]]\ncommand = \"touch m\"\nstdin = \"/dev/stdin\"\n";
    write(&folder, "two.toml", &format!("{job}copies = 2\n"));
    write(
        &folder,
        "again.toml",
        &format!("restart = \"until-last\"\n{job}"),
    );
    for (words, stderr) in [
        (
            &["-q", "touch m; ls"][..],
            "cosched: the shell line has no {}: touch m; ls; write {} where the value belongs, as in `sort {} > {}.out`; \
             or write `--` before a line that takes no value\n",
        ),
        (
            &["-q", "--solo", "measure", "--", "touch", "m"],
            "cosched: standard input can be read once, and --solo measure runs a job twice; give the job a file, or add \
             `< /dev/null` if it reads none\n",
        ),
        (
            &["-q", "--retries", "2", "--", "touch", "m"],
            "cosched: standard input can be read once, and --retries runs a job again if it fails; give the job a file, or \
             add `< /dev/null` if it reads none\n",
        ),
        (
            &["-q", "two.toml"],
            "cosched: standard input can be read once, and 2 jobs would read it; give the job a file, or add \
             `< /dev/null` if it reads none\n",
        ),
        (
            &["-q", "again.toml"],
            "cosched: standard input can be read once, and restart runs a job again; give the job a file, or add \
             `< /dev/null` if it reads none\n",
        ),
    ] {
        let output = piped(&folder, words, "a\n");
        assert_eq!(
            (out(&output).as_str(), err(&output).as_str()),
            ("", stderr),
            "{words:?}"
        );
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        assert!(!folder.path().join("m").exists(), "{words:?}");
    }
}

/// With an input that nobody misses, a job may run twice.
#[test]
fn jobs_that_run_twice_may_have_the_null_device() {
    let folder = tempdir().expect("a folder");
    let job = "[[job]]\ncommand = \"cat\"\nstdin = \"/dev/stdin\"\ncopies = 2\n";
    write(&folder, "two.toml", job);
    for words in [&["two.toml"][..], &["--retries", "2", "--", "cat"]] {
        let output = cosched(&folder, &[&["run", "-q", "--no-logs"], words].concat());
        assert_eq!(
            (err(&output).as_str(), output.status.code()),
            ("", Some(0)),
            "{words:?}"
        );
    }
}

#[test]
fn who_continues_an_interrupted_run_is_told_that_it_has_read_its_input() {
    for (words, input, is_read) in [
        (&["-f", "-"][..], "sleep 1000\n", true),
        (&["-a", "-", "sleep"], "1000\n", true),
        (&["sleep", "::::", "/dev/stdin"], "1000\n", true),
        (&["sleep"], "1000\n", true),
        (&["--", "sleep", "1000"], "text\n", true),
        (&["sleep", ":::", "1000", "2000"], "", false),
    ] {
        let folder = tempdir().expect("a folder");
        let words = [&["run", "--logs", ".", "--deadline", "100ms"], words].concat();
        let output = fed(&folder, &words, input);
        let told = err(&output);
        let last = told.lines().last().unwrap_or_default();
        let with = if is_read {
            ", with the same standard input"
        } else {
            ""
        };
        assert!(
            last.starts_with(&format!("to continue{with}: ")),
            "{words:?}: {told}"
        );
        assert!(last.ends_with(" run --resume=."), "{words:?}: {told}");
        assert_eq!(
            (out(&output).as_str(), output.status.code()),
            ("", Some(124)),
            "{told}"
        );
    }
}

fn feed(pipe: &mut Option<ChildStdin>, value: &[u8]) {
    let mut pipe = pipe.take().expect("a pipe");
    pipe.write_all(value).expect("it reads");
}

#[test]
fn a_silent_pipe_is_told_unless_quiet() {
    let folder = tempdir().expect("a folder");
    let start = |words: &[&str]| {
        let run = ["run", "--no-logs", "--format", "json"];
        command(folder.path(), &[&run[..], words].concat())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it runs")
    };
    let mut quiet = start(&["--quiet", "touch"]);
    let mut silent = start(&["touch"]);
    let mut wanting = start(&["touch", "{}"]);
    let first_line = |run: &mut Child| {
        let mut line = String::new();
        let told = run.stderr.take().expect("a pipe");
        BufReader::new(told).read_line(&mut line).expect("a line");
        line
    };
    assert_eq!(
        first_line(&mut silent),
        "cosched: waiting for values on standard input; for a command that takes none write `cosched run -- COMMAND`\n"
    );
    assert_eq!(
        first_line(&mut wanting),
        "cosched: waiting for values on standard input; values can also follow the command, as in `cosched run gzip ::: a.txt`\n"
    );
    feed(&mut wanting.stdin, b"three\n");
    assert!(
        wanting
            .wait_with_output()
            .expect("it ends")
            .status
            .success()
    );
    feed(&mut silent.stdin, b"one\n");
    // The quiet one had its time as well, and said nothing.
    std::thread::sleep(Duration::from_millis(500));
    feed(&mut quiet.stdin, b"two\n");
    let quiet = quiet.wait_with_output().expect("it ends");
    assert_eq!((err(&quiet).as_str(), quiet.status.code()), ("", Some(0)));
    assert!(silent.wait_with_output().expect("it ends").status.success());
    assert!(folder.path().join("one").exists() && folder.path().join("two").exists());
}
