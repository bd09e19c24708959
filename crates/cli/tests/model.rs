//! `cosched model` as a user sees it: the built binary.

use serde_json::Value;
use std::process::{Command, Output};

fn cosched(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_cosched"))
        .arg("model")
        .args(args)
        .output()
        .expect("the binary runs")
}

fn json(args: &[&str]) -> Value {
    let output = cosched(&[args, &["--format", "json"]].concat());
    assert!(
        output.status.success(),
        "{args:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).expect("one JSON object")
}

fn text(args: &[&str]) -> String {
    let output = cosched(args);
    assert!(
        output.status.success(),
        "{args:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).expect("text")
}

#[track_caller]
fn close(value: &Value, expected: f64) {
    let value = value.as_f64().expect("a number");
    assert!(
        (value - expected).abs() < 1e-4,
        "{value}, expected {expected}"
    );
}

fn keys(value: &Value) -> Vec<&str> {
    let mut keys: Vec<&str> = value
        .as_object()
        .expect("an object")
        .keys()
        .map(String::as_str)
        .collect();
    keys.sort_unstable();
    keys
}

const I5: &str = "26.6,22.6,12,12.3,12.3";

#[test]
fn bus() {
    let answer = json(&["bus", "--solo", "0.57,0.3,0.8"]);
    assert_eq!(
        keys(&answer),
        ["solo", "speed", "throughput", "total", "utilisation"]
    );
    // Figures from halving the interval for D in Eq. 10.
    close(&answer["throughput"], 1.598_74);
    close(&answer["total"], 1.0 - 0.073_16);
    for (task, (u, s)) in [
        (0.276_98, 0.485_93),
        (0.144_23, 0.480_77),
        (0.505_63, 0.632_03),
    ]
    .into_iter()
    .enumerate()
    {
        close(&answer["utilisation"][task], u);
        close(&answer["speed"][task], s);
    }
    assert_eq!(answer["solo"], serde_json::json!([0.57, 0.3, 0.8]));

    let table = text(&["bus", "--solo", "0.57,0.3,0.8"]);
    assert!(
        table.contains("utilisation")
            && table.contains("0.4859")
            && table.contains("throughput 1.5987"),
        "{table}"
    );
    // Limits.
    assert_eq!(
        json(&["bus", "--solo", "1,1"])["speed"],
        serde_json::json!([0.5, 0.5])
    );
    assert_eq!(
        json(&["bus", "--solo", "0.57"])["utilisation"],
        serde_json::json!([0.57])
    );
}

#[test]
fn solo_undoes_bus() {
    let answer = json(&["solo", "--measured", "0.2,0.1,0.3"]);
    assert_eq!(keys(&answer), ["measured", "solo", "total"]);
    close(&answer["total"], 0.6);
    close(&answer["solo"][0], 0.230_77);

    let together = json(&["bus", "--solo", "0.57,0.3,0.8"]);
    let measured: Vec<String> = together["utilisation"]
        .as_array()
        .unwrap()
        .iter()
        .map(Value::to_string)
        .collect();
    let back = json(&["solo", "--measured", &measured.join(",")]);
    for (task, b) in [0.57, 0.3, 0.8].into_iter().enumerate() {
        close(&back["solo"][task], b);
    }
    assert!(text(&["solo", "--measured", "0.2,0.1,0.3"]).contains("0.2308"));
}

#[test]
fn a_total_above_one_is_clamped_with_a_warning() {
    let output = cosched(&["solo", "--measured", "0.7,0.6", "--format", "json"]);
    assert!(output.status.success());
    let warning = String::from_utf8(output.stderr).unwrap();
    assert!(
        warning.starts_with("warning:") && warning.contains("1.3000"),
        "{warning}"
    );
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    close(&answer["clamped_from"], 1.3);
    close(&answer["total"], 1.0);
    close(
        &json(&["solo", "--measured", "0.2", "--total", "0.5"])["solo"][0],
        0.14 / 0.64,
    );
}

#[test]
fn threshold() {
    let answer = json(&["threshold", "--running", "0.4,0.4", "--power", I5]);
    assert_eq!(
        keys(&answer),
        ["admits_all", "admits_any", "running", "threshold"]
    );
    // From halving the interval for b_n, with the throughput predicted anew each time.
    close(&answer["threshold"], 0.432_83);
    assert_eq!(
        (&answer["admits_any"], &answer["admits_all"]),
        (&Value::Bool(true), &Value::Bool(false))
    );

    let throughput = json(&[
        "threshold",
        "--running",
        "0.5,0.5",
        "--power",
        I5,
        "--objective",
        "throughput",
    ]);
    close(&throughput["threshold"], 0.777_41);
    let edp = json(&[
        "threshold",
        "--running",
        "0.4,0.4",
        "--power",
        I5,
        "--objective",
        "edp",
    ]);
    assert!(edp["threshold"].as_f64() > answer["threshold"].as_f64());

    let nothing = json(&["threshold", "--running", "0,0", "--power", "1,1,100"]);
    assert_eq!(
        (&nothing["threshold"], &nothing["admits_any"]),
        (&serde_json::json!(0.0), &Value::Bool(false))
    );
    let all = json(&["threshold", "--power", I5]);
    assert_eq!(
        (&all["threshold"], &all["admits_all"]),
        (&serde_json::json!(1.0), &Value::Bool(true))
    );
    assert!(text(&["threshold", "--running", "0.4,0.4", "--power", I5]).contains("0.4328"));
    assert!(
        text(&["threshold", "--running", "0,0", "--power", "1,1,100"])
            .starts_with("no further task")
    );
    assert!(text(&["threshold", "--power", I5]).starts_with("any further task"));
}

#[test]
fn power() {
    let answer = json(&["power", "--power", I5, "--active", "6"]);
    assert_eq!(keys(&answer), ["active", "steps_w", "watts"]);
    close(&answer["watts"][4], 85.8);
    close(&answer["active"]["watts"], 110.4);

    let fitted = json(&["power", "--points", "0:26,0:27,1:49,3:75"]);
    assert_eq!(
        fitted["steps_w"],
        serde_json::json!([26.5, 22.5, 13.0, 13.0])
    );
    close(&fitted["fit"]["deviation_w"], 0.125_f64.sqrt());
    assert_eq!(fitted["fit"]["levelled"], Value::Bool(false));
    assert!(text(&["power", "--points", "0:10,1:20,2:18"]).contains("levelled"));
    assert!(text(&["power", "--power", I5, "--active", "6"]).contains("110.40 W"));
}

const THREADS: [&str; 11] = [
    "tickets",
    "--mips",
    "700,400",
    "--llcms",
    "1,14",
    "--on",
    "small",
    "--big",
    "4000,18.9,5",
    "--small",
    "1000,2.15,0.7",
];

#[test]
fn tickets() {
    let args = [&THREADS[..], &["--coefficients", "3.9,-20,-100"]].concat();
    let answer = json(&args);
    assert_eq!(keys(&answer), ["on", "threads", "total"]);
    let first = &answer["threads"][0];
    // 3.9 x 700 - 20 - 100 = 2610; (18.9 - 5) x 2610 / 4000 + 5 = 14.07 W; (2.15 - 0.7) x 0.7 + 0.7 = 1.715 W.
    close(&first["big_mips"], 2610.0);
    close(&first["big_w"], 14.069_75);
    close(&first["small_w"], 1.715);
    let benefit = (2610.0_f64 / 700.0).powi(2) * 1.715 / 14.069_75;
    close(&first["benefit"], benefit);
    assert_eq!(
        first["tickets"],
        serde_json::json!((100.0 * benefit).round() as u64)
    );
    assert!(text(&args).contains("tickets"));

    let bad = [&THREADS[..], &["--coefficients", "1,-100,0"]].concat();
    refused(&bad, &["--coefficients", "-1000", "above 0"]);
}

/// Asserts exit code 2, nothing on standard output, and one error with all these words.
#[track_caller]
fn refused(args: &[&str], words: &[&str]) {
    let output = cosched(args);
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{args:?}: {error}");
    assert!(output.stdout.is_empty());
    assert_eq!(error.matches("error:").count(), 1, "{error}");
    for word in words {
        assert!(error.contains(word), "{args:?}: {word:?} is not in {error}");
    }
}

#[test]
fn bad_input_names_the_flag_the_value_and_the_range() {
    for value in ["1.5", "-0.5", "NaN", "inf", "x", "", "1e400"] {
        for (verb, flag) in [
            ("bus", "--solo"),
            ("solo", "--measured"),
            ("threshold", "--running"),
        ] {
            let list = format!("0.5,{value}");
            refused(
                &[verb, flag, &list, "--power", "1,1"][..if verb == "threshold" { 5 } else { 3 }],
                &[flag, &format!("'{value}'"), "from 0 to 1"],
            );
        }
    }
    refused(
        &["bus", "--solo=-0.5,0.2"],
        &["--solo", "'-0.5'", "from 0 to 1"],
    );
    refused(&["bus"], &["--solo"]);
    refused(
        &["solo", "--measured", "0.5", "--total", "-1"],
        &["--total", "'-1'", "at least 0"],
    );
    refused(
        &["threshold", "--running", "0.5", "--power", "1,-2"],
        &["--power", "'-2'", "at least 0"],
    );
    refused(
        &["threshold", "--running", "0.5", "--power", "1"],
        &["--power", "expected 2"],
    );
    refused(
        &[
            "threshold",
            "--running",
            "0.5",
            "--power",
            "1,1",
            "--objective",
            "speed",
        ],
        &["--objective", "edp"],
    );
    refused(&["power"], &["--power", "--points"]);
    refused(
        &["power", "--points", "1:20,2:30"],
        &["--points", "0 active cores"],
    );
    refused(
        &["power", "--points", "1-20"],
        &["--points", "'1-20'", "2:61.2"],
    );
    refused(
        &["power", "--points", "0:1,99999999999:20"],
        &["--points", "99999999999:20"],
    );
    refused(&["power", "--power", "0,0"], &["--power", "above 0"]);
    let unequal = [
        "tickets",
        "--mips",
        "700,400",
        "--llcms",
        "1",
        "--on",
        "big",
        "--coefficients",
        "1,0,0",
    ];
    let cores = ["--big", "4000,18.9,5", "--small", "1000,2.15,0.7"];
    refused(
        &[&unequal[..], &cores[..]].concat(),
        &["--llcms", "expected 2"],
    );
    let cores = ["--big", "4000,18.9", "--small", "1000,2.15,0.7"];
    refused(
        &[&unequal[..], &cores[..]].concat(),
        &["--big", "'4000,18.9'", "busy power"],
    );
    let cores = ["--big", "4000,1,5", "--small", "1000,2.15,0.7"];
    refused(
        &[&unequal[..], &cores[..]].concat(),
        &["--big", "idle power", "at most the busy power"],
    );
}
