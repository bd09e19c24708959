//! Values, commands and names as users of GNU parallel know them, with the built binary.

mod common;

use common::{err, one_cpu, out, read};
use std::ffi::{OsStr, OsString};
use std::io::Write as _;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::process::{Command, Output, Stdio};
use tempfile::{TempDir, tempdir};

fn call(folder: &TempDir, words: &[&str]) -> Command {
    common::command(folder.path(), &[&["run"], words].concat())
}

fn run(folder: &TempDir, words: &[&str]) -> Output {
    call(folder, words).output().expect("the binary runs")
}

fn run_with_input(folder: &TempDir, words: &[&str], input: &[u8]) -> Output {
    let mut command = call(folder, words);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it runs");
    // A command that does not read its input closes it early.
    let _ = child.stdin.take().expect("a pipe").write_all(input);
    child.wait_with_output().expect("it ends")
}

/// What both programs print for these words with --dry-run: `~` divides words. The third text is what GNU parallel
/// 20221122 was seen to print.
const SAME_AS_PARALLEL: &[(&str, &str, &str)] = &[
    (
        "echo~{1}~{2}~:::~a~b~:::~1~2",
        "",
        "echo a 1\necho a 2\necho b 1\necho b 2\n",
    ),
    (
        "echo~{1}~{2}~:::~a~b~c~:::+~1~2",
        "",
        "echo a 1\necho b 2\n",
    ),
    (
        "echo~{1}~{3}~:::~a~b~:::+~1~2~:::~x~y",
        "",
        "echo a x\necho a y\necho b x\necho b y\n",
    ),
    (
        "echo~::::~A~B",
        "",
        "echo f1 g1\necho f1 g2\necho f2 g1\necho f2 g2\n",
    ),
    (
        "echo~-x~::::~A~::::+~B",
        "",
        "echo -x f1 g1\necho -x f2 g2\n",
    ),
    ("-a~A~echo~:::~q", "", "echo f1 q\necho f2 q\n"),
    ("-n~2~echo~{2}~{1}~:::~a~b~c~d", "", "echo b a\necho d c\n"),
    ("-n~2~echo~x{}y~:::~a~b~c", "", "echo xa by\necho xcy\n"),
    ("-N~2~echo~:::~a~b~c", "", "echo a b\necho c\n"),
    ("-N~2~echo~x{}y~:::~a~b~c", "", "echo xay xby\necho xcy\n"),
    (
        "-N2~rm~{.}.o~{/}z~:::~d/a.c~e/b.c",
        "",
        "rm d/a.o e/b.o a.cz b.cz\n",
    ),
    (
        "--max-replace-args~2~echo~x{}y{1}z~x{2}~{}{#}~:::~a~b",
        "",
        "echo xayaz xbyaz xb a1 b1\n",
    ),
    ("-N1~echo~x{}y~:::~a~b", "", "echo xay\necho xby\n"),
    (
        "-N2~sort {} > {}.out~:::~a~b",
        "",
        "sort a b > a.out b.out\n",
    ),
    (
        "-N2~rm {}.bak -- \"p q\"~:::~a~b",
        "",
        "rm a.bak b.bak -- \"p q\"\n",
    ),
    ("-n2~rm~{}.bak~:::~a~b~c", "", "rm a b.bak\nrm c.bak\n"),
    (
        "echo~{.}~{/}~{//}~{/.}~{#}~:::~d/a.b.c",
        "",
        "echo d/a.b a.b.c d a.b 1\n",
    ),
    ("echo~{-1}~{1/.}~:::~d/a.b~:::~z/q.x", "", "echo z/q.x a\n"),
    ("echo~{#}~:::~a~b", "", "echo 1\necho 2\n"),
    (
        "--colsep~,~echo~{2}~{1}",
        "a,b\nc,d\n",
        "echo b a\necho d c\n",
    ),
    (
        "--colsep~,~echo~{2}~{1}",
        "a, b\nc ,d\r\n",
        "echo b a\necho d c\n",
    ),
    ("--colsep~\\t~echo~{2}-{1}~{3}x", "a\tb\n", "echo b-a x\n"),
    ("echo~v=", "a\nb", "echo v= a\necho v= b\n"),
    ("-0~echo~{}", "a\0b\0", "echo a\necho b\n"),
    ("-r~echo~{}", "\na\n", "echo a\n"),
    ("-r~echo~{}", "", ""),
    ("sort {} > {.}.out~:::~a.txt", "", "sort a.txt > a.out\n"),
];

#[test]
fn commands_are_those_of_gnu_parallel() {
    let folder = tempdir().expect("a folder");
    std::fs::write(folder.path().join("A"), "f1\nf2\n").expect("a file");
    std::fs::write(folder.path().join("B"), "g1\ng2\n").expect("a file");
    // `echo v=` has no replacement string: what makes it read values is an option.
    let options = |words: &str| {
        if words == "echo~v=" {
            vec!["--dry-run", "-q", "-a", "-"]
        } else {
            vec!["--dry-run", "-q"]
        }
    };
    let has_parallel = Command::new("parallel")
        .arg("--version")
        .env("PARALLEL_HOME", folder.path())
        .output();
    let has_parallel = has_parallel.is_ok_and(|output| out(&output).starts_with("GNU parallel 2"));
    for (words, input, expected) in SAME_AS_PARALLEL {
        let split: Vec<&str> = words.split('~').collect();
        let output = run_with_input(
            &folder,
            &[options(words), split.clone()].concat(),
            input.as_bytes(),
        );
        assert_eq!(out(&output), *expected, "{words}: {}", err(&output));
        if has_parallel {
            let mut parallel = Command::new("parallel");
            parallel
                .args(["--will-cite", "--dry-run", "-k"])
                .args(&split)
                .current_dir(folder.path());
            parallel
                .env("PARALLEL_HOME", folder.path())
                .stdin(Stdio::piped())
                .stdout(Stdio::piped());
            let mut child = parallel.stderr(Stdio::null()).spawn().expect("it runs");
            let _ = child
                .stdin
                .take()
                .expect("a pipe")
                .write_all(input.as_bytes());
            let output = child.wait_with_output().expect("it ends");
            // It writes one more blank where the values go to the end.
            let lines = |text: &str| {
                text.lines()
                    .map(|line| line.trim_end().to_owned())
                    .collect::<Vec<_>>()
            };
            assert_eq!(
                lines(&out(&output)),
                lines(expected),
                "{words} by GNU parallel"
            );
        }
    }
    if !has_parallel {
        println!("GNU parallel itself was not compared, because it is not here");
    }
}

#[test]
fn standard_input_is_read_for_values_only_where_they_are_wanted() {
    let folder = tempdir().expect("a folder");
    let shown = |words: &[&str]| {
        let words = [&["-q", "--output", "group", "--jobs", "1"], words].concat();
        let output = run_with_input(&folder, &words, b"a\nb c\n");
        assert!(output.status.success(), "{words:?}: {}", err(&output));
        out(&output)
    };
    assert_eq!(shown(&["echo", "<{}>"]), "<a>\n<b c>\n");
    assert_eq!(shown(&["echo \"<\"{/}\">\"; true"]), "<a>\n<b c>\n");
    assert_eq!(shown(&["-n", "2", "echo"]), "a b c\n");
    // A single job reads nothing, and leaves the input to whoever comes next.
    assert_eq!(shown(&["--", "cat"]), "");
    assert_eq!(shown(&["cat"]), "");
    assert_eq!(shown(&["echo", "{}", ":::", "x"]), "x\n");
    let words = "\"$0\" run -q -- true; cat";
    let mut shell = Command::new("sh");
    shell
        .args(["-c", words, env!("CARGO_BIN_EXE_cosched")])
        .env("COSCHED_HISTORY", "off")
        .current_dir(folder.path());
    let mut child = shell
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it runs");
    child
        .stdin
        .take()
        .expect("a pipe")
        .write_all(b"left\n")
        .expect("it reads");
    assert_eq!(out(&child.wait_with_output().expect("it ends")), "left\n");
    let none = run_with_input(&folder, &["-r", "touch", "{}"], b"\n");
    assert!(
        none.status.success() && err(&none).contains("nothing to run"),
        "{}",
        err(&none)
    );
}

#[test]
fn values_commands_and_files_are_bytes() {
    let folder = tempdir().expect("a folder");
    let name = OsString::from_vec(b"a\xff\n.txt".to_vec());
    std::fs::write(folder.path().join(&name), "content").expect("a file");
    for template in [&["cat", "{}"][..], &["cat {} | cat"], &["cat < {}"]] {
        let mut command = call(&folder, &["-q", "--output", "group"]);
        let output = command
            .args(template)
            .arg(":::")
            .arg(&name)
            .output()
            .expect("it runs");
        assert_eq!(out(&output), "content", "{template:?}: {}", err(&output));
    }
    let mut list = b"cat 'a\xff\n".to_vec();
    list.pop();
    list.extend(b"'*; echo done > ok\n");
    std::fs::write(folder.path().join("list"), &list).expect("a file");
    let words = ["--joblog", "log", "--resume", "-f", "list"];
    let first = run(&folder, &words);
    assert!(first.status.success(), "{}", err(&first));
    assert!(
        read(&folder, "log").ends_with("\tsh -c $'cat \\'a\\377\\'*; echo done > ok'\n"),
        "{}",
        read(&folder, "log")
    );
    std::fs::remove_file(folder.path().join("ok")).expect("it was written");
    // The job is recognised, and not started again.
    let again = run(&folder, &words);
    assert!(
        again.status.success() && err(&again).contains("succeeded before"),
        "{}",
        err(&again)
    );
    assert!(!folder.path().join("ok").exists());
    let values = run_with_input(
        &folder,
        &["-0", "-q", "-k", "printf", "%s."],
        b"\xfe\0x\ny\0",
    );
    assert_eq!(values.stdout, b"\xfe.x\ny.");
    let env = call(&folder, &["-q", "--output", "group", "printf %s \"$V\""])
        .env("V", OsStr::from_bytes(b"\xfd"))
        .output();
    assert_eq!(env.expect("it runs").stdout, b"\xfd");
}

#[test]
fn no_value_is_executed() {
    let folder = tempdir().expect("a folder");
    let hostile = [
        "$(touch marker)",
        "`touch marker`",
        "'; touch marker; '",
        "\"; touch marker; \"",
        "a\ntouch marker",
    ];
    for line in [
        "echo {}",
        "x={}; echo \"$x\"",
        "f() { echo {}; }; f",
        "echo a | grep -c {} || true",
    ] {
        let words = [&["--joblog", "log", line, ":::"], &hostile[..]].concat();
        let output = run(&folder, &words);
        assert!(output.status.success(), "{line}: {}", err(&output));
        assert!(!folder.path().join("marker").exists(), "{line}");
        // The line in the job log is safe to paste as well.
        for row in read(&folder, "log").lines().skip(1) {
            let pasted = row
                .splitn(9, '\t')
                .nth(8)
                .expect("a command")
                .replace('\0', "\n");
            let shell = Command::new("sh")
                .args(["-c", &pasted])
                .current_dir(folder.path())
                .output()
                .expect("a shell");
            assert!(shell.status.success(), "{pasted}: {}", err(&shell));
            assert!(!folder.path().join("marker").exists(), "{pasted}");
        }
    }
}

#[test]
fn output_is_tagged_by_value_and_kept_in_order() {
    let folder = tempdir().expect("a folder");
    let words = [
        "-q",
        "--tag",
        "-k",
        "-j",
        "0",
        "sleep {}; echo a; printf b",
        ":::",
        "0.3",
        "0.1",
    ];
    assert_eq!(
        out(&run(&folder, &words)),
        "0.3\ta\n0.3\tb\n0.1\ta\n0.1\tb\n"
    );
    let words = ["-q", "--tag", "echo", ":::", "x y", ":::", "1"];
    assert_eq!(out(&run(&folder, &words)), "x y 1\tx y 1\n");
    let words = [
        "-q",
        "-k",
        "-j",
        "0",
        "--halt",
        "now,fail=1",
        "sleep {}; echo {}; test {} != 0.2",
        ":::",
        "9",
        "0.1",
        "0.2",
    ];
    // The first job is ended; what the others wrote is shown nevertheless.
    assert_eq!(out(&run(&folder, &words)), "0.1\n0.2\n");
    // The tag of a byte is not that of its name.
    let values = run_with_input(
        &folder,
        &["-q", "--tag", "-k", "-0", "echo {#}; : {}"],
        b"\xff\0\\xff\0",
    );
    assert_eq!(out(&values), "$'\\377'\t1\n\\xff\t2\n");
}

#[test]
fn failed_jobs_are_started_again() {
    let folder = tempdir().expect("a folder");
    for how in ["auto", "signals"] {
        let _ = std::fs::remove_file(folder.path().join("n"));
        let words = [
            "--freeze",
            how,
            "--retries",
            "3",
            "--joblog",
            "log",
            "--format",
            "json",
            "--logs",
            how,
        ];
        let output = run(
            &folder,
            &[
                &words[..],
                &["echo x >> n; echo out; test $(wc -l < n) -ge 3"],
            ]
            .concat(),
        );
        assert!(output.status.success(), "{}", err(&output));
        let record: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let job = &record["jobs"][0];
        assert_eq!(
            (job["runs"].as_u64(), job["exit"].as_i64()),
            (Some(3), Some(0)),
            "{record}"
        );
        let log = read(&folder, "log");
        let rows: Vec<Vec<&str>> = log
            .lines()
            .skip(1)
            .map(|line| line.split('\t').collect())
            .collect();
        assert_eq!(
            rows.iter().map(|row| [row[0], row[6]]).collect::<Vec<_>>(),
            [["1", "1"], ["1", "1"], ["1", "0"]]
        );
        assert_eq!(
            read(&folder, &format!("{how}/echo.out")).lines().count(),
            3,
            "each attempt appends"
        );
        assert_eq!(
            err(&output).matches("; retrying").count(),
            2,
            "{}",
            err(&output)
        );
    }
    // Where whole jobs are shown, what failed attempts wrote is not.
    let _ = std::fs::remove_file(folder.path().join("n"));
    let words = [
        "-q",
        "-k",
        "--retries",
        "3",
        "echo x >> n; n=$(wc -l < n); echo part $n; test $n -ge 3",
    ];
    assert_eq!(out(&run(&folder, &words)), "part 3\n");
    let output = run(
        &folder,
        &["--retries", "2", "--timeout", "0.2", "sleep", "600"],
    );
    assert_eq!(output.status.code(), Some(124), "{}", err(&output));
    assert!(
        out(&output).contains("1 job ran more than once, 2 times in all"),
        "{}",
        out(&output)
    );
}

#[test]
fn limits_in_the_forms_of_gnu_parallel() {
    let folder = tempdir().expect("a folder");
    let live = |jobs: &str| {
        let output = run(
            &folder,
            &[
                "--dry-run",
                "--format",
                "json",
                "--cpus",
                &one_cpu(),
                "-j",
                jobs,
                "--policy",
                "fifo",
                "true",
            ],
        );
        let plan: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        plan["live_jobs"].as_u64()
    };
    assert_eq!(
        ["+2", "-5", "300%", "7"].map(live),
        [Some(3), Some(1), Some(3), Some(7)]
    );
    // One job ends before the second is started, which would let the third be left out.
    let output = run(
        &folder,
        &[
            "-j",
            "1",
            "--halt",
            "soon,done=2",
            "echo {} >> done; exit {}",
            ":::",
            "0",
            "1",
            "0",
            "0",
        ],
    );
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(read(&folder, "done"), "0\n1\n");
    // A load that is always there stops no batch: one job at a time is started anyway.
    let output = run(
        &folder,
        &[
            "--load", "0.000001", "--delay", "0.01", "true", ":::", "a", "b",
        ],
    );
    assert!(output.status.success(), "{}", err(&output));
}

#[test]
fn names_come_from_values_and_first_words() {
    let folder = tempdir().expect("a folder");
    let names = |words: &[&str]| {
        let output = run(
            &folder,
            &[&["--dry-run", "--format", "json"], words].concat(),
        );
        let plan: serde_json::Value =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", err(&output)));
        let jobs = plan["jobs"].as_array().expect("jobs").clone();
        jobs.iter()
            .map(|job| job["name"].as_str().expect("a name").to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        names(&["gzip", "-k", "{}", ":::", "d/a.txt", "b c"]),
        ["d-a.txt", "b-c"]
    );
    assert_eq!(
        names(&["for i in 1 2; do echo $i {}; done", ":::", "x", "x"]),
        ["x-1", "x-2"]
    );
    std::fs::write(
        folder.path().join("list"),
        "sort a\nsort b\nfor i in 1; do wc $i; done\n",
    )
    .expect("a file");
    assert_eq!(names(&["-f", "list"]), ["sort-a", "sort-b", "wc"]);
}

#[test]
fn failures_name_the_command_and_the_value() {
    let folder = tempdir().expect("a folder");
    let output = run(&folder, &["-v", "ls {} > /dev/null", ":::", "no such file"]);
    assert!(
        err(&output).contains("started no-such-file (ls 'no such file' > /dev/null)"),
        "{}",
        err(&output)
    );
    assert!(
        err(&output).contains("no-such-file (ls 'no such file' > /dev/null): exit "),
        "{}",
        err(&output)
    );
}

#[test]
fn a_command_of_which_nothing_is_left_is_an_error() {
    let folder = tempdir().expect("a folder");
    let output = run(&folder, &["-n", "2", "{2}", ":::", "a", "true", "c"]);
    assert_eq!(output.status.code(), Some(2), "{}", err(&output));
    assert!(
        err(&output).contains("with the values `c` nothing is left of the command"),
        "{}",
        err(&output)
    );
}

#[test]
fn files_of_values_are_not_overwritten() {
    let folder = tempdir().expect("a folder");
    std::fs::write(folder.path().join("names"), "a\nb\n").expect("a file");
    for words in [
        &["-a", "names", "--joblog", "names", "true", "{}"][..],
        &["--events", "names", "true", "{}", "::::", "names"],
        &[
            "--record", "names", "true", "{}", ":::", "x", "::::+", "names",
        ],
    ] {
        let output = run(&folder, words);
        assert!(
            output.status.code() == Some(2) && err(&output).contains("would be overwritten"),
            "{words:?}"
        );
        assert_eq!(read(&folder, "names"), "a\nb\n");
    }
}

#[test]
fn the_null_device_is_an_empty_list() {
    let folder = tempdir().expect("a folder");
    for words in [
        &["-r", "-q", "echo", "x", "::::", "/dev/null"][..],
        &["-r", "-q", "-a", "/dev/null", "echo", "x"],
    ] {
        let output = run(&folder, words);
        assert_eq!(
            (output.status.code(), out(&output).as_str()),
            (Some(0), ""),
            "{}",
            err(&output)
        );
    }
    assert_eq!(
        run(&folder, &["-r", "-q", "echo", "x", "::::", "/dev/zero"])
            .status
            .code(),
        Some(2)
    );
}

/// As with GNU parallel, an empty line is an empty value.
#[test]
fn an_empty_line_is_a_value() {
    let folder = tempdir().expect("a folder");
    for (input, expected) in [("\n", "[]\n"), ("\n\n", "[]\n[]\n"), ("a\n\n", "[a]\n[]\n")] {
        let output = run_with_input(
            &folder,
            &["-q", "-k", "--no-logs", "printf", "[%s]\\n", "{}"],
            input.as_bytes(),
        );
        assert_eq!(out(&output), expected, "{}", err(&output));
    }
}

/// A shell reads back what --dry-run --quiet prints, also characters that a terminal would hide.
#[test]
fn commands_that_are_printed_are_those_that_run() {
    let folder = tempdir().expect("a folder");
    let values: [&[u8]; 6] = [
        "\u{1f468}\u{200d}\u{1f469}".as_bytes(),
        "\u{202e}a b".as_bytes(),
        b"\x1b[1m",
        b"it's",
        b"it's \xff\n",
        b"caf\xe9 $HOME",
    ];
    for value in values {
        for words in [&["printf", "%s"][..], &["printf %s {}"]] {
            let mut command = call(&folder, &[&["--dry-run", "-q"], words, &[":::"]].concat());
            let lines = command
                .arg(OsStr::from_bytes(value))
                .output()
                .expect("it runs")
                .stdout;
            // No other shell than that of POSIX is asked for.
            let again = Command::new("sh")
                .arg("-c")
                .arg(OsStr::from_bytes(&lines))
                .output()
                .expect("it runs");
            assert_eq!(again.stdout, value, "{}", String::from_utf8_lossy(&lines));
        }
    }
}

#[test]
fn any_number_of_jobs_at_once_is_their_number() {
    let folder = tempdir().expect("a folder");
    let output = run(
        &folder,
        &[
            "--dry-run",
            "--format",
            "json",
            "-j",
            "0",
            "true",
            ":::",
            "a",
            "b",
            "c",
        ],
    );
    let plan: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(plan["live_jobs"], 3);
}

/// Lines on the command line, in lists and in mix files go to the shell that is named, and no others do.
#[test]
fn lines_go_to_the_shell_that_is_named() {
    let folder = tempdir().expect("a folder");
    let file =
        |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("a file");
    // A shell of our own, which says that it was called.
    file("mysh", "#!/bin/sh\necho mine\nexec /bin/sh \"$@\"\n");
    use std::os::unix::fs::PermissionsExt as _;
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(folder.path().join("mysh"), mode).expect("a mode");
    file("list", "echo a b\n");
    file(
        "mix.toml",
        "[[job]]\ncommand = \"echo a b\"\n[[job]]\ncommand = [\"echo\", \"c\"]\n",
    );
    let shown = |words: &[&str]| {
        let output = run(
            &folder,
            &[
                &["-q", "-k", "--record", "r.json", "--shell", "./mysh"],
                words,
            ]
            .concat(),
        );
        assert!(output.status.success(), "{words:?}: {}", err(&output));
        out(&output)
    };
    assert_eq!(shown(&["echo '<'{}'>'", ":::", "a b"]), "mine\n<a b>\n");
    assert_eq!(shown(&["-f", "list"]), "mine\na b\n");
    assert_eq!(shown(&["mix.toml"]), "mine\na b\nc\n");
    let record: serde_json::Value = serde_json::from_str(&read(&folder, "r.json")).expect("JSON");
    assert_eq!(record["setting"]["options"]["shell"], "./mysh");
    assert_eq!(shown(&["echo", "a b"]), "a b\n");
    // It is found in PATH, and the environment names it as well.
    let mut command = call(&folder, &["-q", "-k", "echo a b"]);
    command
        .env("PATH", format!("{}:/usr/bin:/bin", folder.path().display()))
        .env("COSCHED_SHELL", "mysh");
    assert_eq!(out(&command.output().expect("it runs")), "mine\na b\n");
    let refused = run(&folder, &["--shell", "fish", "touch m; true"]);
    assert_eq!(refused.status.code(), Some(2), "{}", err(&refused));
    assert!(
        err(&refused).contains("fish is no POSIX shell") && err(&refused).contains("--shell bash")
    );
    assert!(!folder.path().join("m").exists());
}

#[test]
fn events_that_stand_in_for_counters_are_told() {
    let pmus = std::path::Path::new("/sys/bus/event_source/devices");
    if ["cpu", "cpu_core", "cpum_cf"]
        .iter()
        .any(|pmu| pmus.join(pmu).exists())
        || !pmus.join("software").exists()
    {
        return println!(
            "skipped, because this machine has counters of its own, or no events of the kernel"
        );
    }
    let folder = tempdir().expect("a folder");
    let told = |events: &[&str]| {
        let words: Vec<&str> = events.iter().flat_map(|event| ["--event", event]).collect();
        let done = run(
            &folder,
            &[&words[..], &["--no-logs", "-p", "fifo", "true", ":::", "a"]].concat(),
        );
        assert!(done.status.success(), "{}", err(&done));
        err(&done)
    };
    let both = told(&["mm=software/event=2/", "llc=software/event=99/"]);
    assert!(
        both.contains("stand in for counters of the hardware"),
        "{both}"
    );
    assert!(
        both.contains("(mm_reads: software/config=0x0002/)")
            && both.contains("--event: llc_accesses (software/"),
        "{both}"
    );
    let none = told(&["mm=0x4844"]);
    assert!(
        !none.contains("stand in") && none.contains("--event: mm_reads: "),
        "{none}"
    );
}

#[test]
fn names_keep_the_letters_of_all_languages() {
    let folder = tempdir().expect("a folder");
    let long = "ü".repeat(60);
    run(
        &folder,
        &[
            "-q",
            "--logs",
            "L",
            "echo {}",
            ":::",
            "Übung.txt",
            "日本",
            "a b",
            &long,
        ],
    );
    let long = "ü".repeat(48);
    for name in ["Übung.txt", "日本", "a-b", &long] {
        assert!(
            folder.path().join(format!("L/{name}.out")).exists(),
            "{name}"
        );
    }
}

/// `-j 8` of eight sleepers means eight at once, as with GNU parallel.
#[test]
fn auto_lets_as_many_jobs_run_at_once_as_the_user_says() {
    let folder = tempdir().expect("a folder");
    let cpus = one_cpu();
    let policy = |words: &[&str]| {
        let words = [
            &["--dry-run", "--format", "json", "--cpus", &cpus],
            words,
            &["true", ":::", "a", "b"],
        ]
        .concat();
        let plan: serde_json::Value =
            serde_json::from_slice(&run(&folder, &words).stdout).expect("JSON");
        plan["policy"].as_str().expect("a policy").to_owned()
    };
    let usual = policy(&[]);
    assert_eq!(
        policy(&["-j", "2"]),
        if usual == "fifo" { "linux" } else { &usual }
    );
    assert_eq!(
        (
            policy(&["-j", "1"]),
            policy(&["-j", "2", "--policy", "fifo"])
        ),
        (usual, "fifo".to_owned())
    );
}

#[test]
fn input_that_nobody_reads_is_told() {
    let folder = tempdir().expect("a folder");
    let told = |words: &[&str], input: &str| err(&run_with_input(&folder, words, input.as_bytes()));
    assert!(
        told(&["sleep", "0.2"], "a\nb\n")
            .contains("standard input was not read, since the command has no {}")
    );
    assert!(!told(&["sleep", "0.2"], "").contains("standard input"));
    assert!(!told(&["echo", "{}"], "a\n").contains("standard input"));
}

#[test]
fn a_job_that_could_not_be_started_is_told_even_with_quiet() {
    let folder = tempdir().expect("a folder");
    std::fs::write(folder.path().join("bad"), "#!/no/such/interpreter\n").expect("a file");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(folder.path().join("bad"), mode).expect("a mode");
    let output = run(&folder, &["-q", "./bad"]);
    assert!(err(&output).contains("not started"), "{}", err(&output));
}
