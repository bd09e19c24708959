//! `--retries`: failed jobs are started again.

use super::support::run;
use crate::common::{err, out, read};
use tempfile::tempdir;

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
