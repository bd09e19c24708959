//! Runs side by side, and a comparison judged again.

use super::*;

#[test]
fn runs_are_shown_side_by_side() {
    let folder = tempfile::tempdir().unwrap();
    simulate(&folder, "fair", "all/one");
    simulate(&folder, "linux", "all/two");
    let text = out(&report(&folder, &["all"]));
    let lines: Vec<&str> = text.lines().collect();
    assert!(
        lines[0].starts_with("RUN  POLICY")
            && lines[1].starts_with("one  fair")
            && lines[2].starts_with("two  linux"),
        "{text}"
    );
    // However often it is named.
    assert_eq!(
        out(&report(&folder, &["all/one", "all", "all/two/run.json"])),
        text
    );
    let csv = out(&report(&folder, &["all", "--format", "csv"]));
    assert!(
        rows(&csv)
            .iter()
            .any(|row| (row["run"], row["metric"]) == ("two", "turnaround_s")),
        "{csv}"
    );
    assert!(
        json(&report(&folder, &["all", "--format", "json"]))
            .as_array()
            .is_some_and(|records| records.len() == 2)
    );
    assert!(
        report(&folder, &["all", "--html", "page.html", "-q"])
            .status
            .success()
    );
    assert!(read(&folder, "page.html").contains("2 runs"));
}

#[test]
fn a_comparison_is_judged_again() {
    let folder = tempfile::tempdir().unwrap();
    write(&folder, "mix.toml", SIMULATED);
    let first = compare(&folder, "linux,fair,even", "3");
    assert!(read(&folder, "c/comparison.html").contains("Verdicts"));
    let again = report(&folder, &["c", "--format", "json"]);
    assert_eq!(json(&again), json(&first));
    assert_eq!(
        out(&report(&folder, &["c", "--format", "csv"])),
        read(&folder, "c/comparison.csv")
    );
    let of_parent = report(&folder, &[".", "--format", "json"]);
    assert_eq!(json(&of_parent), json(&first));
    assert!(err(&of_parent).contains("the last comparison, ./c"));
    // With another baseline and other metrics.
    let other = json(&report(
        &folder,
        &[
            "c",
            "--format",
            "json",
            "--baseline",
            "fair",
            "--metric",
            "antt",
        ],
    ));
    let comparisons = other["comparisons"].as_array().unwrap();
    assert_eq!(
        (comparisons.len(), &other["compared"]["baseline"]),
        (2, &Value::from(1))
    );
    let jobs = out(&report(
        &folder,
        &["c", "--format", "csv", "--table", "jobs"],
    ));
    assert_eq!(rows(&jobs).len(), 3 * 3 * 6);
    assert!(
        error(&folder, &["c", "--baseline", "x"]).contains("the candidates are linux, fair, even")
    );
    assert!(error(&folder, &["c", "--metric", "x"]).contains("no such metric"));
    assert!(error(&folder, &["c", "c"]).contains("this is a comparison; report on it alone"));
    assert!(
        error(&folder, &["c/compare.json"]).contains("report on the folder of the comparison, c")
    );
    let made = report(
        &folder,
        &["c", "--html", "page.html", "--figures", "figures", "-q"],
    );
    assert!(made.status.success(), "{}", err(&made));
    assert!(folder.path().join("figures/fair-and-fast.svg").exists());
    // A record that is gone is a run that was not made.
    std::fs::remove_file(folder.path().join("c/runs/0001/mix/fair/run.json")).unwrap();
    assert_eq!(
        json(&report(&folder, &["c", "--format", "json"]))["blocks"],
        2
    );
}
