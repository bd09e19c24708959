//! Bad input: one clear error that says where and what was expected, exit 2 or 3, and nothing is started.

use crate::common::{self, one_cpu};
use std::path::Path;
use std::process::Output;

fn cosched(folder: &Path, words: &[&str]) -> Output {
    common::command(folder, words)
        .output()
        .expect("the binary runs")
}

/// Asserts that the command fails with this code, says all of `parts` in one error, and leaves the folder as it was.
fn check(files: &[(&str, &str)], words: &[&str], code: i32, parts: &[&str]) {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).expect("a file");
    }
    let output = cosched(folder.path(), words);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{words:?}: {stderr}");
    assert!(
        output.stdout.is_empty(),
        "{words:?} prints on standard output"
    );
    let errors = stderr
        .lines()
        .filter(|line| line.starts_with("cosched: ") || line.starts_with("error: "));
    assert_eq!(errors.count(), 1, "{words:?}: {stderr}");
    for part in parts {
        assert!(stderr.contains(part), "{words:?}: no {part:?} in: {stderr}");
    }
    let mut before: Vec<String> = files.iter().map(|(name, _)| (*name).to_owned()).collect();
    let entries = std::fs::read_dir(folder.path()).expect("the folder");
    let mut after: Vec<String> = entries
        .map(|entry| {
            entry
                .expect("an entry")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    before.sort();
    after.sort();
    assert_eq!(
        after, before,
        "{words:?} started something or left something behind"
    );
}

#[test]
fn mix_files() {
    let cases: &[(&str, i32, &[&str])] = &[
        (
            "[[job]]\ncomand = \"touch m\"\n",
            2,
            &["mix.toml:2", "`comand`", "`command`", "[[job]]"],
        ),
        (
            "[[job]]\nname = \"a\"\ncommand = \"touch m\"\n[[job]]\nname = \"a\"\ncommand = \"touch m\"\n",
            2,
            &["mix.toml:4", "mix.toml:1", "`a`", "copies = 2"],
        ),
        (
            "[[job]]\ncommand = \"touch m\"\n[[job]]\ncommand = [\"no-such-program\"]\n",
            2,
            &["mix.toml:3", "no-such-program", "PATH", "as in"],
        ),
        (
            "[[job]]\ncommand = \"touch m\"\ncpus = 60000\n",
            3,
            &["mix.toml:1", "cpus = 60000", "can be used here"],
        ),
        (
            "[[job]]\ncommand = \"touch m\"\ncwd = \"nowhere\"\n",
            2,
            &["mix.toml:1", "cwd", "nowhere"],
        ),
        (
            "[[job]]\ncommand = \"touch m\"\nstdin = \"nowhere\"\n",
            2,
            &["mix.toml:1", "stdin", "nowhere"],
        ),
        ("", 2, &["mix.toml", "[[job]]", "command"]),
    ];
    for (text, code, parts) in cases {
        check(&[("mix.toml", text)], &["run", "mix.toml"], *code, parts);
    }
}

#[test]
fn options_of_run() {
    let cases: &[(&[&str], &[&str])] = &[
        (
            &["--policy", "nope"],
            &["--policy", "`nope`", "fifo", "perf-fair", "as in `fair`"],
        ),
        (
            &["--policy", "fair", "--param", "quantm_s=1"],
            &["--param", "`quantm_s`", "quantum_s=0.2"],
        ),
        (
            &["--policy", "fair", "--param", "quantum_s=0"],
            &["--param", "`0`", "from 0.001", "as in"],
        ),
        (
            &["--param", "quantum_s"],
            &["--param", "NAME=VALUE", "quantum_s=0.1"],
        ),
        (
            &["--policy", "efs", "--param", "objective=foo"],
            &[
                "--param",
                "`objective`",
                "`foo`",
                "energy or edp",
                ", as in --param objective=energy\n",
            ],
        ),
        (
            &[
                "--policy",
                "fair",
                "--param",
                "quantum_s=0.1",
                "--param",
                "quantum_s=0.3",
            ],
            &[
                "--param",
                "`quantum_s` is given twice, as 0.1 and as 0.3",
                "leave one of them out",
            ],
        ),
        (
            &["--seed", "-1"],
            &[
                "--seed",
                "'-1'",
                "expected a whole number from 0 to 18446744073709551615, as in 42",
            ],
        ),
        (
            &["--seed", "1.5"],
            &["--seed", "'1.5'", "expected a whole number"],
        ),
        (
            &["--halt", "later"],
            &["--halt", "`later`", "as in `soon,fail=1`"],
        ),
        (
            &["--timeout", "soon"],
            &["--timeout", "'soon'", "as in 90s"],
        ),
        (&["--timeout", "0"], &["--timeout", "above zero"]),
        (
            &["--cpus", "60000"],
            &["--cpus", "60000", "not exist", "can be used, as in --cpus "],
        ),
        (&["--cpus", ""], &["--cpus", "empty", "as in `0-3,8`"]),
        (&["--cpus", "3-1"], &["--cpus", "`3-1`", "as in `0-3,8`"]),
        (
            &["--event", "nonsense"],
            &["--event nonsense", "`mm=0x4844`"],
        ),
        (
            &["--event", "foo=0x12"],
            &["--event foo=0x12", "`instructions`", "as in"],
        ),
        (&["--jobs", "x"], &["--jobs", "0 for all", "+N", "50%"]),
        (&["--load", "0"], &["--load", "as in 4 or 80%"]),
        (&["--timeout", "0%"], &["--timeout", "as in 200%"]),
        (&["--retries", "0"], &["--retries", "1.."]),
        (&["--delay", "x"], &["--delay", "as in 90s"]),
        (
            &["--colsep", "[,;"],
            &["--colsep", "expected a text or a pattern"],
        ),
        (&["-n", "0"], &["--max-args", "1.."]),
        (
            &["--keep-order", "--output", "live"],
            &["--keep-order", "--output group"],
        ),
        (&["--pipe"], &["--pipe", "unexpected argument"]),
        (&["--mem-keep", "lots"], &["--mem-keep", "'lots'", "64K"]),
        (
            &["--joblog", "+log"],
            &["--joblog log --resume", "--joblog ./+log"],
        ),
        (&["-N", "0"], &["--max-replace-args", "1.."]),
        (
            &["-N", "1", "-n", "1"],
            &["--max-args", "--max-replace-args"],
        ),
        (&["--polcy", "fair"], &["--polcy", "--policy"]),
        (&["--resume"], &["--joblog"]),
        (
            &["--profile", "nowhere.toml"],
            &["nowhere.toml", "can't be read"],
        ),
        (
            &["--solo", "nowhere.json"],
            &["nowhere.json", "can't be read"],
        ),
    ];
    for (options, parts) in cases {
        check(
            &[],
            &[&["run"], *options, &["touch", "m"]].concat(),
            2,
            parts,
        );
    }
}

#[test]
fn weights_of_submit() {
    for weight in ["nan", "inf", "0", "x"] {
        let option = format!("--weight={weight}");
        let expected = "expected a number from 0.001 to 1000";
        check(&[], &["submit", &option, "true"], 2, &[expected]);
    }
}

/// What users of GNU parallel, xargs and Slurm type first.
#[test]
fn guesses_are_answered() {
    let cases: &[(&[&str], &str)] = &[
        (&["-j", "4", "touch", "m"], "options follow a verb"),
        (&["ps"], "`cosched status` shows"),
        (&["kill", "1"], "`cosched cancel JOB`"),
        (&["queue"], "`cosched help queue`"),
        (
            &["policies"],
            "'policies'\n\n  tip: `cosched help policies`",
        ),
        (&["run", "--ntasks", "4", "touch", "m"], "`-j N` limits"),
        (&["run", "--mem", "4G", "touch", "m"], "--sbatch --mem=8G"),
        (
            &["slurm", "--nodes=2", "touch", "m"],
            "`cosched slurm -N 2`",
        ),
        (&["compare", "linux", "fifo"], "-p linux,fifo"),
        (&["report", "run1"], "name a log folder"),
        (
            &["simulate", "x.toml"],
            "'simulate'\n\n  tip: `cosched run MIX.toml --on MACHINE` simulates",
        ),
        // Another word that only looks alike is no tip.
        (&["run", "--colour", "x"], "'--colour' found\n\nUsage: "),
        (&["run", "--limit", "2", "x"], "'--limit' found\n\nUsage: "),
        (&["submitt", "x"], "exists: 'submit'"),
        (&["run", "--polcy", "x"], "exists: '--policy'"),
    ];
    for (words, advice) in cases {
        check(&[], words, 2, &[advice]);
    }
}

#[test]
fn files_that_options_name() {
    let cases: &[(&[&str], &str, &[&str])] = &[
        (
            &["--logs", "f"],
            "",
            &["--logs", "/f", "nothing was started", "as in"],
        ),
        (
            &["--logs", "f/x"],
            "",
            &["--logs", "/f/x", "nothing was started"],
        ),
        (
            &["--record", "f/x"],
            "",
            &["--record f/x", "nothing was started"],
        ),
        (
            &["--events", "f/x", "--logs", "new/er"],
            "",
            &["--events f/x", "nothing was started"],
        ),
        (
            &["--joblog", "f/x"],
            "",
            &["--joblog f/x", "nothing was started"],
        ),
        (
            &["--profile", "f"],
            "[params]\nquantum_s = 0\n",
            &["f:2", "`quantum_s`", "from 0.001"],
        ),
        (
            &["--profile", "f"],
            "[params]\np0_w = 1e308\n",
            &["f:2", "parameter `p0_w` of policy `even` is `1e308`;"],
        ),
        (
            &["--profile", "f"],
            "[params]\nquantm_s = 1\n",
            &["f:2", "`quantm_s`", "[params]"],
        ),
        (
            &["--joblog", "f", "--resume"],
            "Seq\tHost\n",
            &["f:1", "9 columns", "GNU parallel"],
        ),
        (
            &["--solo", "f"],
            "{\"a\": 1}\n",
            &[
                "--solo f",
                "cosched.run/2",
                "cosched.solo/1",
                "found no `schema`",
            ],
        ),
        (
            &["--solo", "f"],
            "{\"schema\": \"cosched.series/9\"}\n[\"b\",0,0]\n",
            &[
                "--solo f",
                "cosched.run/2",
                "cosched.solo/1",
                "found `cosched.series/9`",
            ],
        ),
        (
            &["--solo", "f"],
            "nonsense\n",
            &["--solo f", "line 1", "cosched.run/2", "cosched.solo/1"],
        ),
        (
            &["--solo", "f"],
            "{\"schema\": \"cosched.solo/1\", \"cosched_version\": \"0\", \"machine\": \"m\", \"disturbed\": false, \"jobs\": [{\"name\": \"j\", \
             \"command\": null, \"time_s\": 0.0, \"mm_reads_per_us\": null, \"trace\": null}]}\n",
            &["--solo f", "`jobs[0].time_s`", "found 0", "expected 1e-9"],
        ),
        (
            &["--solo", "f"],
            "{\"schema\": \"cosched.solo/1\"}\n",
            &["--solo f", "`cosched_version`"],
        ),
    ];
    for (options, text, parts) in cases {
        check(
            &[("f", text)],
            &[&["run"], *options, &["touch", "m"]].concat(),
            2,
            parts,
        );
    }
}

#[test]
fn sources_of_jobs() {
    check(&[], &["run"], 2, &["no job", "-f FILE", "cosched run gzip"]);
    check(
        &[],
        &["run", "nowhere.toml"],
        2,
        &[
            "nowhere.toml",
            "can't be read",
            "as in `cosched run jobs.toml`",
        ],
    );
    check(
        &[],
        &["run", "-f", "nowhere.txt"],
        2,
        &[
            "nowhere.txt",
            "can't be read",
            "as in `cosched run -f commands.txt`",
        ],
    );
    check(
        &[("l", "# no job\n\n")],
        &["run", "-f", "l"],
        2,
        &["no job"],
    );
    check(
        &[("l", "touch m\n")],
        &["run", "-f", "l", "touch", "m"],
        2,
        &["only one of them"],
    );
    check(
        &[],
        &["run", "touch", ":::"],
        2,
        &["`cosched run gzip ::: a.txt`"],
    );
    check(
        &[],
        &["run", ":::", "m"],
        2,
        &["before `:::`", "-f commands.txt"],
    );
    check(
        &[],
        &["run", "touch", "::::", "nowhere"],
        2,
        &["nowhere", "can't be read"],
    );
    check(
        &[],
        &["run", "touch", ":::+", "m"],
        2,
        &["`:::+` links a list to the one before it"],
    );
    check(
        &[],
        &["run", "-a", "/dev/null", "touch", "m"],
        2,
        &["the lists hold no value", ":::", "-r"],
    );
    check(
        &[],
        &["run", "touch", "m{2}", ":::", "a"],
        2,
        &["{2} is the value of list 2", "one list"],
    );
    check(
        &[],
        &["run", "echo `touch {}`", ":::", "m"],
        2,
        &["column 13", "in backquotes", "write it outside"],
    );
    check(
        &[("l", "touch m\n")],
        &["run", "-n", "2", "-f", "l"],
        2,
        &["takes no values", "as in `cosched run -a"],
    );
}

#[test]
fn what_users_type_does_not_control_the_terminal() {
    let folder = tempfile::tempdir().expect("a folder");
    for words in [
        &["run", "--x\u{1b}[2J"][..],
        &["run", "no\u{1b}[2Jsuch", "x"],
        &["run", "a\u{1b}[2J.toml"],
        &["run", "-f", "a\u{1b}[2J"],
        &[
            "run",
            "--output",
            "none",
            "sh",
            "-c",
            "{}",
            ":::",
            "\u{1b}[2J",
        ],
        &["decide", "a\u{1b}[2J"],
        &["run", "--policy", "\u{1b}[2J", "true"],
    ] {
        let output = cosched(folder.path(), words);
        // A program that is not there has a shell's code.
        assert!(matches!(output.status.code(), Some(2 | 127)), "{words:?}");
        assert!(
            !output.stderr.contains(&0x1b),
            "{words:?}: {:?}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    let dry = cosched(folder.path(), &["run", "--dry-run", "echo", "\u{1b}[2J"]);
    assert!(
        dry.status.success() && !dry.stdout.contains(&0x1b),
        "{:?}",
        String::from_utf8_lossy(&dry.stdout)
    );
}

#[test]
fn names_in_a_snapshot_do_not_control_the_terminal() {
    let question = question();
    let folder = tempfile::tempdir().expect("a folder");
    // In JSON the escape character is written so.
    let hostile = question.replace("\"name\": \"", "\"name\": \"\\u001b[2J");
    assert!(hostile.len() > question.len());
    std::fs::write(folder.path().join("s"), hostile).expect("a file");
    let output = cosched(folder.path(), &["decide", "s", "--policy", "fair"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && text.contains("\\x1b[2J") && !text.contains('\u{1b}'),
        "{text}"
    );
}

#[test]
fn a_mix_of_nothing_but_brackets_is_refused() {
    let text = "[".repeat(1 << 22);
    check(
        &[("mix.toml", &text)],
        &["run", "mix.toml"],
        2,
        &["mix.toml:1", "[[job]]"],
    );
}

#[test]
fn snapshots() {
    check(&[], &["decide", "nowhere"], 2, &["nowhere"]);
    check(
        &[("s", "\n")],
        &["decide", "s"],
        2,
        &["s:", "cosched.event/1"],
    );
    check(
        &[("s", "{\"a\": 1}\n")],
        &["decide", "s"],
        2,
        &["s, line 1", "`schema`"],
    );
    let text = "{\"schema\": \"cosched.event/1\", \"snapshot\": {\"machine\": 5}}\n";
    check(
        &[("s", text)],
        &["decide", "s"],
        2,
        &["line 1", "`snapshot.machine`"],
    );
}

/// The example of a question in docs/schema/.
fn question() -> String {
    let example = common::schema::folder().join("examples/question.json");
    std::fs::read_to_string(example).expect("the example")
}

#[test]
fn a_decision_that_is_not_in_the_file() {
    let numbered =
        |seq: u64| question().replacen("\"schema\"", &format!("\"seq\": {seq}, \"schema\""), 1);
    let text: String = (5..8).map(numbered).collect();
    let told = [
        "s: there is no decision with number 99999",
        "the last one has 7",
    ];
    check(
        &[("s", &text)],
        &["decide", "s", "--seq", "99999"],
        2,
        &told,
    );
}

#[test]
fn snapshots_that_contradict_themselves() {
    let question = question();
    let cases: &[(&str, &str, &[&str])] = &[
        (
            "\"id\": 1, \"name\"",
            "\"id\": 0, \"name\"",
            &[
                "`snapshot.tasks[1].id`",
                "found 0 after 0",
                "ascending order",
            ],
        ),
        (
            "\"core\": 0",
            "\"core\": 5",
            &["`snapshot.machine`", "CPU 0"],
        ),
        (
            "\"cpus\": 1,",
            "\"cpus\": 0,",
            &["`snapshot.tasks[0].cpus`", "at least 1"],
        ),
    ];
    for (from, to, parts) in cases {
        assert!(question.contains(from), "{from}");
        let parts = [&["s, key"], *parts].concat();
        check(
            &[("s", &question.replacen(from, to, 1))],
            &["decide", "s", "--policy", "fair"],
            2,
            &parts,
        );
    }
}

#[test]
fn variables_that_can_not_be_set() {
    for (env, part) in [
        ("\"A=B\" = \"y\"", "`A=B` can't be the name of a variable"),
        ("COSCHED_JOB = \"x\"", "set by cosched"),
    ] {
        let mix = format!("[[job]]\ncommand = [\"touch\", \"m\"]\nenv = {{ {env} }}\n");
        check(
            &[("mix.toml", &mix)],
            &["run", "mix.toml"],
            2,
            &["mix.toml:1", part],
        );
    }
}

#[test]
fn policies_that_the_machine_cannot_feed() {
    check(
        &[],
        &["run", "--policy", "oracle", "touch", "m"],
        3,
        &["policy oracle", "solo trace of each job", "--solo"],
    );
    let one = ["--cpus", &one_cpu()];
    for policy in ["lucky", "bias", "big-fair"] {
        // A single CPU has a single type, on any machine.
        let words = [&["run", "--policy", policy], &one[..], &["touch", "m"]].concat();
        check(
            &[],
            &words,
            3,
            &[
                "policy",
                policy,
                "cores of two types",
                "all cores are of one type",
            ],
        );
    }
}
