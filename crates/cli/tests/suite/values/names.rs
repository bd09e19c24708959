//! Names of jobs, from values and commands.

use super::support::run;
use crate::common::err;
use tempfile::tempdir;

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
