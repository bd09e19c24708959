//! `cosched compare` for newcomers: lists of commands, command lines, and the conclusion in words.

use crate::common::{cosched, err, json, out, read, write};
use serde_json::Value;
use tempfile::TempDir;

/// A text with `N` for each number, `MACHINE` for the machine, and single blanks: figures differ from run to run.
fn shape(text: &str) -> String {
    let mut words: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let digits = word.trim_end_matches(',');
        words.push(match digits.parse::<f64>() {
            Ok(_) => word.replace(digits, "N"),
            Err(_) => word.to_owned(),
        });
    }
    let text = words.join(" ");
    let (before, rest) = text.split_once(" on ").expect("a machine");
    let (_, after) = rest.split_once(", N block").expect("blocks");
    format!("{before} on MACHINE, N block{after}")
}

fn compared(folder: &TempDir, words: &[&str], code: i32) -> (String, String) {
    let output = cosched(folder, &[&["compare"], words].concat());
    assert_eq!(output.status.code(), Some(code), "{}", err(&output));
    (out(&output), err(&output))
}

/// The last line of a comparison on standard error.
fn done(folder: &TempDir, runs: usize) -> String {
    let folder = folder.path().canonicalize().unwrap();
    let folder = folder.join("c");
    format!(
        "cosched: {runs} runs and the answer in five forms are in {}\n",
        folder.display()
    )
}

#[test]
fn a_list_of_commands_is_compared_under_policies() {
    let folder = tempfile::tempdir().unwrap();
    write(&folder, "commands.txt", "true # \u{e9}\n\ntrue\n");
    let words = [
        "-f",
        "commands.txt",
        "--policies",
        "linux,fifo",
        "-r",
        "1",
        "--solo-runs",
        "0",
        "--out",
        "c",
    ];
    let (text, errors) = compared(&folder, &words, 0);
    let change = if text.contains("% less") {
        "N % less"
    } else {
        "N % more"
    };
    assert_eq!(
        shape(&text.replace("times as much", "% more")),
        format!(
            "commands on MACHINE, N block, seed N turnaround_s: time from the launch to the end of the last job; less is \
             better candidate least median greatest against linux verdict linux N N N the baseline fifo N N N {change} can't \
             say: one block shows nothing; --reps makes more In brackets: the N % interval, over blocks that were compared \
             within themselves. Better and worse need a N % interval on one side of zero. Which is better is not known: one \
             block shows nothing; --reps makes more."
        )
    );
    assert_eq!(errors, done(&folder, 2));
    assert_eq!(
        read(&folder, "c/mixes/commands.txt"),
        read(&folder, "commands.txt")
    );
    let record: Value =
        serde_json::from_str(&read(&folder, "c/runs/0001/commands/fifo/run.json")).unwrap();
    assert_eq!(record["jobs"].as_array().unwrap().len(), 2);
}

#[test]
fn command_lines_are_compared_as_whole_programs() {
    let folder = tempfile::tempdir().unwrap();
    write(&folder, "x", "true\ntrue\n");
    let lines = ["sh -e < x", "xargs -I{} sh -c {} < x"];
    let words = [lines[0], lines[1], "-r", "1", "--out", "c"];
    let (text, errors) = compared(&folder, &words, 0);
    let begin = "N command lines on MACHINE, N block, seed N turnaround_s: ";
    assert!(shape(&text).starts_with(begin), "{text}");
    assert!(
        text.ends_with(
            "Which is better is not known: one block shows nothing; --reps makes more.\n"
        ),
        "{text}"
    );
    assert_eq!(errors, done(&folder, 2));
    // No policy joins uninvited, and nothing but the time is judged.
    let answer: Value = serde_json::from_str(&read(&folder, "c/comparison.json")).unwrap();
    let candidates = lines.map(|line| serde_json::json!({"name": line, "command": line}));
    assert_eq!(
        answer["compared"]["candidates"],
        Value::from(candidates.to_vec())
    );
    let comparisons = answer["comparisons"].as_array().unwrap();
    assert_eq!(
        (comparisons.len(), &comparisons[0]["metric"]),
        (1, &Value::from("turnaround_s"))
    );
    // A line that fails is not fast.
    let words = ["sleep 0.01", "false", "-r", "1", "--format", "json"];
    let (text, _) = compared(&folder, &words, 1);
    let answer: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        answer["conclusion"],
        "Which is better is not known: the command or jobs failed, so it is not known that both did the same."
    );
}

#[test]
fn what_is_no_comparison_is_told() {
    let folder = tempfile::tempdir().unwrap();
    write(&folder, "a.toml", "[[job]]\ncommand = 'true'\n");
    let cases: &[(&[&str], &str)] = &[
        (
            &["sleep 1"],
            "`sleep 1` is the only command line; give another, as in cosched compare 'make -j2' 'make -j4'",
        ),
        (
            &["sleep 1", "a.toml"],
            "`sleep 1` is a command line, and a.toml is a mix file; beside a mix file, give a command as --candidate \
             NAME='sleep 1'",
        ),
        (
            &["sleep 1", "sleep 2", "-p", "fifo"],
            "--policies means nothing for command lines; for policies give mix files or -f FILE",
        ),
        (
            &["sleep 1", "sleep 2", "--", "-j2"],
            "`-- OPTIONS` means nothing for command lines; for policies give mix files or -f FILE",
        ),
        (
            &["-f", "-"],
            "-f -: each run reads the list; write it to a file, as in -f commands.txt",
        ),
    ];
    for (words, told) in cases {
        let (text, errors) = compared(&folder, words, 2);
        assert_eq!((&*text, errors), ("", format!("cosched: {told}\n")));
    }
    assert!(!folder.path().join("cosched-compare").exists());
}

const MIX: &str = "[[job]]\nprogram = 'gcc'\ncopies = 3\nwork_instructions = 4e9\n\n[[job]]\nprogram = 'lbm'\ncopies = 3\n\
                   work_instructions = 4e9\n";

/// A text as HTML.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[test]
fn text_and_page_say_the_same_in_the_same_words() {
    let folder = tempfile::tempdir().unwrap();
    write(&folder, "a.toml", MIX);
    let words = [
        "a.toml",
        "--on",
        "epyc-2cpu",
        "-p",
        "linux,auto,fifo",
        "-r",
        "3",
        "--out",
        "c",
    ];
    let (text, errors) = compared(&folder, &words, 0);
    assert_eq!(errors, done(&folder, 9));
    assert!(
        text.starts_with("SIMULATED\na simulated on epyc-2cpu, 3 blocks, seed 1; auto was "),
        "{text}"
    );
    let one_line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let page = read(&folder, "c/comparison.html");
    let markdown = read(&folder, "c/comparison.md");
    let output = cosched(&folder, &["report", "c", "--format", "json"]);
    let answer = json(&output);
    let conclusion = answer["conclusion"].as_str().unwrap();
    assert!(
        one_line.ends_with(conclusion) && conclusion.starts_with("Use "),
        "{one_line}"
    );
    assert!(page.contains(&format!("<p>{}</p>", escaped(conclusion))));
    assert!(markdown.ends_with(&format!("\n## Conclusion\n\n{conclusion}\n")));
    // Each row of the tables: the change and the verdict.
    let rows = markdown.lines().filter(|line| line.contains(" % "));
    let mut cells = 0;
    for row in rows.filter(|row| row.starts_with('|')) {
        for cell in row.split(" | ").skip(4) {
            let cell = cell.trim_end_matches(" |");
            assert!(one_line.contains(cell) && page.contains(cell), "{cell}");
            cells += 1;
        }
    }
    assert!(cells >= 4, "{markdown}");
}
