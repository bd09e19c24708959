//! The documentation of the command line is complete.

use std::process::Command;

fn help(args: &[&str]) -> String {
    let done = Command::new(env!("CARGO_BIN_EXE_cosched")).args(args).arg("--help").output().unwrap();
    assert!(done.status.success());
    String::from_utf8(done.stdout).unwrap()
}

/// The long options that a help text lists.
fn flags(help: &str) -> Vec<&str> {
    let words = help.lines().map(str::trim_start).filter(|line| line.starts_with('-')).flat_map(str::split_whitespace);
    words.filter(|word| word.starts_with("--") && word.len() > 2).map(|word| word.trim_end_matches(',')).collect()
}

#[test]
fn every_option_and_exit_code_is_documented() {
    let page = include_str!("../../../docs/command-line.md");
    for verb in ["run", "decide", "list", "doctor", "thaw", "completions", "man"] {
        let help = help(&[verb]);
        for flag in flags(&help).into_iter().filter(|flag| *flag != "--help") {
            assert!(page.contains(&format!("{flag}`")) || page.contains(&format!("{flag} ")), "{verb} {flag}");
        }
    }
    let run = help(&["run"]);
    let codes = run.split("Exit codes:").nth(1).unwrap().lines().filter_map(|line| line.split_whitespace().next());
    let codes: Vec<&str> = codes.collect();
    assert_eq!(codes.len(), 7, "{codes:?}");
    for code in codes {
        assert!(page.contains(&format!("| {code} |")), "{code}");
    }
}

#[test]
fn every_verb_is_documented() {
    let page = include_str!("../../../docs/command-line.md");
    let help = help(&[]);
    let verbs = help.split("Commands:").nth(1).unwrap().split("Options:").next().unwrap();
    // Deeper lines go on with a description.
    let verbs = verbs.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let verbs = verbs.filter_map(|line| line.split_whitespace().next());
    let verbs: Vec<&str> = verbs.filter(|verb| *verb != "help").collect();
    assert!(verbs.len() >= 9, "{verbs:?}");
    for verb in verbs {
        assert!(page.contains(&format!("| `{verb}")), "{verb}");
    }
}
