//! Options of GNU parallel, as hands know them.

use crate::common::{cosched, err, out, write};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Output, Stdio};
use tempfile::{TempDir, tempdir};

/// Runs words divided by `~`; all output is checked to the byte.
fn check(words: &str, stdout: &str, stderr: &str, code: i32) {
    let folder = tempdir().expect("a folder");
    std::fs::create_dir(folder.path().join("sub")).expect("a folder");
    let split: Vec<&str> = words.split('~').collect();
    let fixed = ["run", "--no-logs", "-q", "-j1"];
    let output = cosched(&folder, &[&fixed[..], &split].concat());
    assert_eq!(
        (out(&output).as_str(), err(&output).as_str()),
        (stdout, stderr),
        "{words}"
    );
    assert_eq!(output.status.code(), Some(code), "{words}");
}

#[test]
fn harmless_words_are_taken() {
    for word in [
        "--bar",
        "--will-cite",
        "--bar~--eta~--progress",
        "-u",
        "--ungroup",
        "--lb",
        "--line-buffer",
        "--group",
        "--memfree~1k",
    ] {
        check(&format!("{word}~echo~:::~a~b"), "a\nb\n", "", 0);
    }
    check("--dryrun~echo~:::~a~b", "echo a\necho b\n", "", 0);
}

#[test]
fn jobs_have_a_folder_a_niceness_and_a_slot() {
    check("--wd~sub~basename $PWD", "sub\n", "", 0);
    check("--workdir~sub~--~sh~-c~basename $PWD", "sub\n", "", 0);
    check("--nice~7~nice", "7\n", "", 0);
    check("echo~{%}~{}~:::~a~b", "1 a\n1 b\n", "", 0);
    check("echo~x{%}0~:::~a", "x10\n", "", 0);
    check("echo $PARALLEL_JOBSLOT {}~:::~a", "1 a\n", "", 0);
    check(
        "--tagstring~{%}~echo~:::~a",
        "",
        "cosched: --tagstring: {%} is known only when a job starts; {#} is its number\n",
        2,
    );
}

/// Two jobs that run at once have different slots.
#[test]
fn slots_of_live_jobs_differ() {
    let folder = tempdir().expect("a folder");
    let line = "touch {}-{%}; until [ -e a-1 ] && [ -e b-2 ]; do sleep 0.01; done";
    let words = [
        "run",
        "--no-logs",
        "-q",
        "-j2",
        "-p",
        "linux",
        line,
        ":::",
        "a",
        "b",
    ];
    let output = cosched(&folder, &words);
    assert_eq!(
        (out(&output), err(&output), output.status.code()),
        (String::new(), String::new(), Some(0))
    );
}

#[test]
fn tags_and_order_are_chosen() {
    check(
        "-k~--tagstring~T{#}-{/.}~echo~:::~d/a.c~b",
        "T1-a\td/a.c\nT2-b\tb\n",
        "",
        0,
    );
    let order = |options: &str| {
        let folder = tempdir().expect("a folder");
        let words = ["run", "--no-logs", "-q", "-j1", "--output", "live"];
        let options: Vec<&str> = options.split(' ').collect();
        let values = ["echo", ":::", "a", "b", "c", "d", "e", "f", "g", "h"];
        out(&cosched(&folder, &[&words[..], &options, &values].concat()))
    };
    let shuffled = order("--shuf");
    assert_eq!(order("--order random"), shuffled);
    assert_ne!(order("--order given"), shuffled);
    assert_ne!(order("--shuf --seed 2"), shuffled);
    let mut lines: Vec<&str> = shuffled.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines.concat(), "abcdefgh");
}

#[test]
fn tags_stay_where_lines_come_at_once() {
    for words in ["--tag~--lb", "-u~--tag", "--line-buffer~--tagstring~{}"] {
        check(&format!("{words}~echo~:::~a~b"), "a\ta\nb\tb\n", "", 0);
    }
}

/// GNU parallel gives all words to a shell.
#[test]
fn operators_of_a_shell_are_no_words() {
    for operator in [">", "|", "&&"] {
        let told = format!(
            "cosched: `{operator}` as a word goes to the program, not to a shell; write the command as one word, as in \
             'sort {{}} > {{}}.out', or `--` before it if the program wants this word\n"
        );
        check(&format!("echo~{{}}~{operator}~x~:::~a"), "", &told, 2);
        check(
            &format!("--~echo~{{}}~{operator}~x~:::~a"),
            &format!("a {operator} x\n"),
            "",
            0,
        );
    }
}

#[test]
fn words_that_are_not_there_name_what_to_do() {
    let folder = tempdir().expect("a folder");
    for (words, advice) in [
        (
            &["--pipe", "wc"][..],
            "divide the input first: `split -n l/8 FILE part.`, then `cosched run 'CMD < {}' ::: part.*`",
        ),
        (&["--pipepart", "-a", "f", "wc"], "divide the input first"),
        (
            &["-S", "host", "ls"],
            "`--nodes ssh:HOST,HOST` runs the jobs on other machines",
        ),
        (&["--sshlogin=host", "ls"], "`--nodes ssh:HOST,HOST`"),
        (&["-X", "ls"], "`-n N` puts N values into each job"),
        (
            &["--resume-failed", "ls"],
            "--resume runs failed jobs again",
        ),
        (&["-L1", "ls"], "`-n N` puts N values into each job"),
        (&["--quote", "ls"], "found\n\n  tip: leave it out"),
        (&["--env", "A", "ls"], "jobs have all exported variables"),
        (&["--link", "ls"], "`:::+` links a list"),
        (&["--files", "ls"], "found\n\n  tip: `--logs DIR` names"),
        (&["--tmpdir", "d", "ls"], "`--logs DIR` names"),
    ] {
        let output = cosched(&folder, &[&["run"], words].concat());
        assert_eq!((out(&output).as_str(), output.status.code()), ("", Some(2)));
        let told = err(&output);
        assert!(
            told.contains(advice) && !told.contains("as a value"),
            "{told}"
        );
    }
}

/// A run that a script of bash with an exported function calls.
fn from_bash(folder: &TempDir, shell: &str, words: &[&str]) -> std::io::Result<Output> {
    let script = "my() { echo \"<$1>\"; }; export -f my; exec \"$0\" \"$@\"";
    let fixed = ["run", "--no-logs", "-q", "-k"];
    let mut bash = Command::new("bash");
    crate::common::without_settings(&mut bash)
        .args(["-c", script, env!("CARGO_BIN_EXE_cosched")])
        .args(fixed)
        .args(words)
        .env("SHELL", shell)
        .stdin(Stdio::null())
        .current_dir(folder.path())
        .output()
}

/// A function that bash exported is called as a program is, whatever the shell for lines.
#[test]
fn exported_functions_and_the_shell_of_the_caller() {
    let folder = tempdir().expect("a folder");
    let Ok(output) = from_bash(&folder, "/bin/sh", &["my", ":::", "a", "b  c"]) else {
        println!("skipped, because there is no bash");
        return;
    };
    assert_eq!(
        (
            out(&output).as_str(),
            err(&output).as_str(),
            output.status.code()
        ),
        ("<a>\n<b  c>\n", "", Some(0))
    );
    let output = from_bash(
        &folder,
        "/bin/bash",
        &["--record", "r.json", "my {} | cat", ":::", "a"],
    );
    let output = output.expect("bash runs");
    assert_eq!(
        (out(&output).as_str(), err(&output).as_str()),
        ("<a>\n", "")
    );
    let output = from_bash(&folder, "/bin/sh", &["my {} | cat", ":::", "a"]);
    assert_eq!(out(&output.expect("bash runs")), "<a>\n");
    assert!(crate::common::read(&folder, "r.json").contains("\"shell\": \"/bin/bash\""));
    // A shell that is no POSIX shell, or not there, is not the default.
    write(&folder, "fish", "#!/bin/sh\necho wrong\n");
    let fish = folder.path().join("fish");
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(&fish, mode).expect("a mode");
    for shell in [fish.to_str().expect("UTF-8"), "/no/bash"] {
        let output = from_bash(&folder, shell, &["echo right; true"]).expect("bash runs");
        assert_eq!(
            (out(&output).as_str(), err(&output).as_str()),
            ("right\n", "")
        );
    }
}
