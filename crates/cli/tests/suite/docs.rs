//! Compares the documentation of the command line and of mix files with the built binary.

use crate::common;
use cosched_core::{AUTO, POLICIES, ParamKind};
use std::path::Path;
use std::process::Output;

/// Verbs that the help names in one line.
const FOR_RESEARCH: [&str; 4] = ["conform", "decide", "reproduce", "workload"];

fn cosched(words: &[&str]) -> Output {
    common::command(Path::new("."), words)
        .output()
        .expect("the binary runs")
}

fn help(words: &[&str]) -> String {
    let output = cosched(&[words, &["--help"]].concat());
    assert!(output.status.success(), "{words:?}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// All options of a verb.
fn full(words: &[&str]) -> String {
    let output = cosched(&[&["help"], words].concat());
    assert!(output.status.success(), "{words:?}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

fn page(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs")
        .join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The names in a section of a help text, such as those of its verbs.
fn names_below(help: &str, heading: &str) -> Vec<String> {
    let lines = help
        .lines()
        .skip_while(|line| *line != heading)
        .skip(1)
        .take_while(|line| !line.is_empty());
    let entries = lines.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    entries
        .filter_map(|line| line.split_whitespace().next())
        .map(str::to_owned)
        .collect()
}

/// The long options that a help text defines, and their other names.
fn long_options(help: &str) -> Vec<String> {
    let is_option = |line: &&str| line.trim_start().starts_with('-');
    let is_name = |c: char| c.is_ascii_lowercase() || c == '-';
    let name = |line: &str| {
        let start = line.find("--")?;
        let text = &line[start..];
        let end = text.find(|c: char| !is_name(c)).unwrap_or(text.len());
        (end > 2).then(|| text[..end].to_owned())
    };
    let defined = help.lines().filter(is_option).filter_map(name);
    let aliases = help
        .lines()
        .filter_map(|line| line.trim().strip_prefix("[alias: "))
        .filter_map(name);
    defined.chain(aliases).collect()
}

/// Whether the page has the word, not only as the beginning of a longer one.
fn has_word(page: &str, word: &str) -> bool {
    let goes_on = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    page.match_indices(word)
        .any(|(at, _)| !page[at + word.len()..].starts_with(goes_on))
}

#[test]
fn every_option_of_every_verb_is_documented() {
    let page = page("command-line.md");
    let mut verbs = names_below(&help(&[]), "Commands:");
    assert!(verbs.len() >= 9, "{verbs:?}");
    verbs.extend(FOR_RESEARCH.map(str::to_owned));
    let mut found = 0;
    for verb in &verbs {
        assert!(
            page.contains(&format!("`{verb}`")) || page.contains(&format!("[`{verb}`]")),
            "no verb {verb}"
        );
        let text = full(&[verb]);
        let mut texts = vec![(verb.clone(), text.clone())];
        for heading in ["Commands:", "Workloads:"] {
            for name in names_below(&text, heading) {
                assert!(page.contains(&format!("`{name}`")), "no {verb} {name}");
                texts.push((format!("{verb} {name}"), full(&[verb, &name])));
            }
        }
        for (words, text) in texts {
            let options = long_options(&text);
            assert!(
                options.contains(&"--help".to_owned()),
                "{words}: {options:?}"
            );
            for option in &options {
                assert!(
                    has_word(&page, option),
                    "docs/command-line.md lacks {option} of cosched {words}"
                );
            }
            found += options.len();
        }
    }
    assert!(
        found > 60,
        "only {found} options were found in the help texts"
    );
    assert!(
        !has_word(&page, "--polic"),
        "the beginning of an option is not the option"
    );
}

/// What a person needs first fits a terminal of 80 columns and 24 lines, below the prompt.
#[test]
fn the_first_screens_fit_a_terminal() {
    for words in [
        &["doctor"][..],
        &["list", "policies"],
        &["list", "machines"],
    ] {
        let output = cosched(words);
        let text = String::from_utf8(output.stdout).expect("UTF-8");
        // Other tests kill runs, whose jobs are listed for a moment.
        let text = text
            .split("\njobs of killed runs")
            .next()
            .unwrap_or_default();
        assert!(
            output.status.success() && text.lines().count() > 5,
            "{words:?}: {text}"
        );
        let widest = text
            .lines()
            .map(|line| line.chars().count())
            .max()
            .unwrap_or(0);
        assert!(
            text.lines().count() < 24 && widest <= 80,
            "{words:?}: {} x {widest}: {text}",
            text.lines().count()
        );
    }
}

#[test]
fn every_help_fits_a_screen() {
    let mut verbs = names_below(&help(&[]), "Commands:");
    verbs.extend(FOR_RESEARCH.map(str::to_owned));
    let mut screens = vec![vec![]];
    screens.extend(verbs.iter().map(|verb| vec![verb.as_str()]));
    for words in screens {
        let mut call = common::command(Path::new("."), &[&words[..], &["--help"]].concat());
        let wide = call.env("COLUMNS", "100").output().expect("it runs").stdout;
        let wide = String::from_utf8(wide).expect("UTF-8");
        assert!(wide.lines().count() <= 45, "{words:?}: {wide}");
        let short = cosched(&[&words[..], &["-h"]].concat()).stdout;
        assert_eq!(help(&words).as_bytes(), short, "{words:?}");
    }
    let run = help(&["run"]);
    assert!(run.lines().all(|line| line.chars().count() <= 80), "{run}");
    assert!(run.ends_with("\nAll options: cosched help run\n"), "{run}");
}

/// The first steps are tried in their order, but `top`, which needs a terminal.
#[test]
fn the_first_steps_work_as_they_stand() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("commands.txt"), "true\nsleep 0.01\n").expect("a file");
    let text = help(&[]);
    let steps = names_of_steps(&text);
    assert_eq!(steps.len(), 6, "{text}");
    for step in steps {
        let logs = std::fs::read_dir(folder.path().join("cosched-logs"));
        let run = logs
            .ok()
            .and_then(|mut logs| Some(logs.next()?.ok()?.path()));
        let run = run.unwrap_or_default().display().to_string();
        let step = step.replace("JOB", "sleep").replace("RUN", &run);
        let words: Vec<&str> = step.split(' ').skip(1).collect();
        let output = common::cosched(&folder, &words);
        let error = String::from_utf8_lossy(&output.stderr);
        let needs_terminal = words == ["top"] && error.contains("needs a terminal");
        assert!(output.status.success() || needs_terminal, "{step}: {error}");
    }
}

/// The command lines at the top of the list of verbs.
fn names_of_steps(help: &str) -> Vec<&str> {
    let lines = help.lines().skip_while(|line| *line != "First steps:");
    let steps = lines.skip(1).take_while(|line| !line.is_empty());
    steps
        .filter_map(|line| line.trim().split("  ").next())
        .collect()
}

#[test]
fn a_report_for_a_bug_begins_with_versions() {
    let text = String::from_utf8(cosched(&["doctor", "--report"]).stdout).expect("UTF-8");
    let versions = concat!("cosched ", env!("CARGO_PKG_VERSION"), ", Linux ");
    assert!(text.starts_with(versions), "{text}");
    assert!(
        text.contains("\nworks: ") && !text.contains("killed runs"),
        "{text}"
    );
}

/// A newcomer meets the verbs and options of daily work first.
#[test]
fn research_comes_last() {
    let all = help(&[]);
    let told: Vec<&str> = all.lines().filter(|line| line.contains("decide")).collect();
    let line = "For research: conform, decide, reproduce, workload.";
    assert_eq!(told, [line]);
    let text = full(&["run"]);
    let headings = text
        .lines()
        .filter(|line| line.ends_with(':') && !line.starts_with(' '));
    let headings: Vec<&str> = headings.collect();
    assert_eq!(headings[headings.len() - 2..], ["Research:", "Exit codes:"]);
    assert!(text.lines().count() <= 150, "{text}");
    let policies = cosched(&["list", "policies"]).stdout;
    let policies = String::from_utf8(policies).expect("UTF-8");
    let (work, research) = policies
        .split_once("\nFor research:\n")
        .expect("two tables");
    for name in ["oracle", "bias", "big-fair", "lucky"] {
        assert!(!has_word(work, name) && has_word(research, name), "{name}");
    }
}

#[test]
fn pages_of_the_documentation_are_built_in() {
    assert_eq!(full(&["mix-file"]), page("mix-file.md"));
    let list = full(&[]);
    let (_, names) = list.split_once("of the documentation:\n").expect("names");
    let names: Vec<&str> = names.split(',').map(str::trim).collect();
    assert!(names.len() > 9, "{names:?}");
    for name in names {
        assert!(full(&[name]).starts_with("# "), "{name}");
    }
    let unknown = cosched(&["help", "polices"]);
    let error = String::from_utf8(unknown.stderr).expect("UTF-8");
    assert_eq!(unknown.status.code(), Some(2), "{error}");
    assert!(error.contains("is it `policies`?"), "{error}");
}

#[test]
fn every_exit_code_and_variable_is_documented() {
    let page = page("command-line.md");
    let text = full(&["run"]);
    let codes = names_below(&text, "Exit codes:");
    assert!(codes.len() >= 7, "{codes:?}");
    for code in codes {
        assert!(
            page.contains(&format!("| `{code}` |")),
            "docs/command-line.md lacks exit code {code}"
        );
    }
    // Lines are wrapped.
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let variables: Vec<&str> = text
        .split("[env: ")
        .skip(1)
        .filter_map(|rest| rest.split(['=', ']']).next())
        .collect();
    assert!(variables.len() >= 10, "{variables:?}");
    for variable in variables {
        assert!(
            page.contains(&format!("| `{variable}` |")),
            "docs/command-line.md lacks {variable}"
        );
    }
}

#[test]
fn every_policy_has_its_section() {
    let page = page("policies.md");
    let sections: Vec<(&str, &str)> = page
        .split("\n## `")
        .skip(1)
        .filter_map(|part| part.split_once('`'))
        .collect();
    let mut names: Vec<&str> = sections.iter().map(|(name, _)| *name).collect();
    let mut expected: Vec<&str> = POLICIES
        .iter()
        .map(|entry| entry.name)
        .chain(["auto"])
        .collect();
    names.sort_unstable();
    expected.sort_unstable();
    assert_eq!(
        names, expected,
        "docs/policies.md has a section for each policy and for nothing else"
    );
    for entry in POLICIES {
        let (_, section) = sections
            .iter()
            .find(|(name, _)| *name == entry.name)
            .expect("it has a section");
        for part in ["Idea", "Source", "Needs", "Waiting", "When", "When not"] {
            assert!(
                section.contains(&format!("**{part}.**")),
                "{}: {part}",
                entry.name
            );
        }
    }
}

#[test]
fn every_row_of_auto_is_documented_and_listed() {
    let page = page("policies.md");
    let output = cosched(&["list", "policies", "auto"]);
    let listed = String::from_utf8(output.stdout).expect("UTF-8");
    for row in &AUTO {
        let condition = row.condition();
        let line = format!(
            "| {condition} | `{}` | {:.2} | {:+.1} |",
            row.policy.name, row.unfairness, row.turnaround_percent
        );
        assert!(page.contains(&line), "docs/policies.md lacks {line}");
        assert!(
            listed.contains(&format!("with {condition}:")),
            "{condition} is not in {listed}"
        );
    }
}

/// The page on policies leaves the parameters to this verb.
#[test]
fn every_parameter_of_a_policy_is_listed_with_default_and_meaning() {
    for entry in POLICIES {
        let output = cosched(&["list", "policies", entry.name]);
        let text = String::from_utf8(output.stdout).expect("UTF-8");
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        for spec in entry.params {
            let default = match spec.kind {
                ParamKind::Number { default, .. } => default.to_string(),
                ParamKind::Choice(words) => words[0].to_owned(),
            };
            let option = format!("--param {}={default}", spec.name);
            assert!(
                lines
                    .windows(2)
                    .any(|pair| pair == [option.as_str(), spec.about]),
                "{}: {option} is not in {text}",
                entry.name
            );
        }
    }
}

#[test]
fn every_key_of_the_mix_file_is_documented() {
    let page = page("mix-file.md");
    let folder = tempfile::tempdir().expect("a folder");
    let mix = folder.path().join("mix.toml");
    let mut keys = Vec::new();
    for text in ["no_such_key = 1\n", "[[job]]\nno_such_key = 1\n"] {
        std::fs::write(&mix, text).expect("a file");
        let output = cosched(&["run", &mix.display().to_string()]);
        let error = String::from_utf8(output.stderr).expect("UTF-8");
        let (_, expected) = error
            .split_once("expected ")
            .unwrap_or_else(|| panic!("no expected keys in: {error}"));
        let expected = expected.split(';').next().unwrap_or_default();
        keys.extend(expected.split('`').skip(1).step_by(2).map(str::to_owned));
    }
    assert!(
        keys.len() >= 11 && keys.contains(&"command".to_owned()),
        "{keys:?}"
    );
    for key in keys.iter().filter(|key| *key != "job") {
        assert!(
            page.contains(&format!("| `{key}` |")),
            "docs/mix-file.md lacks {key}"
        );
    }
    assert!(page.contains("[[job]]"));
}

/// What stands between backticks.
fn quoted(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

/// The text of a file that the page on the papers names: from the root, or below `crates/` without `src/`.
fn file_of_papers(name: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut places = Vec::new();
    if let Some(from_root) = name.strip_prefix('/') {
        places.push(root.join(from_root));
    } else if let Some((of, rest)) = name.split_once('/') {
        let folder = root.join("crates").join(of);
        places.push(folder.join("src").join(rest));
        places.push(folder.join(rest));
    }
    let texts = places.iter().map(std::fs::read_to_string);
    let found = texts.flatten().next();
    found.unwrap_or_else(|| panic!("docs/papers.md names {name}, which is not there"))
}

/// Asserts that each file and each test of a row exists. Whether it has a file.
fn check_row_of_papers(row: &str) -> bool {
    let cells: Vec<&str> = row.split(" | ").collect();
    let [_, _, files, tests, _] = cells[..] else {
        panic!("docs/papers.md: not five cells: {row}")
    };
    let has_no_file = ["—", "(soon)"].contains(&files);
    let files = quoted(files);
    assert_eq!(files.is_empty(), has_no_file, "docs/papers.md: {row}");
    for file in &files {
        file_of_papers(file);
    }
    let is_plain = ["—", "reproduced"].contains(&tests);
    let tests = quoted(tests);
    assert_eq!(tests.is_empty(), is_plain, "docs/papers.md: {row}");
    for test in tests {
        let (file, name) = test.split_once(':').unwrap_or_else(|| (files[0], test));
        assert!(
            has_word(&file_of_papers(file), &format!("fn {name}")),
            "docs/papers.md: {file} has no test {name}"
        );
    }
    !has_no_file
}

#[test]
fn what_the_page_on_the_papers_names_exists() {
    let page = page("papers.md");
    let is_head = |row: &&str| row.starts_with("| section") || row.starts_with("| ---");
    let rows = page.lines().filter(|line| line.starts_with("| "));
    let rows = rows.filter(|row| !is_head(row));
    let with_file = rows.filter(|row| check_row_of_papers(row)).count();
    assert!(with_file >= 100, "{with_file} rows have a file");
    let (_, text) = page
        .split_once("which `")
        .expect("the test of what is reproduced");
    let test = text.split('`').next().unwrap_or_default();
    let quick = file_of_papers("experiments/tests/quick.rs");
    assert!(has_word(&quick, &format!("fn {test}")), "{test}");
}
