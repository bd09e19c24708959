//! Errors in latency files.

use super::{CURVE, READ_CURVE, check};

#[test]
fn wrong_latency_files_are_refused_with_line_and_remedy() {
    let check = |change, at: &str, parts: &[&str]| check(READ_CURVE, CURVE, change, at, parts);
    check(("    [0, 1], ", "    "), "    [0.", &["from [0, 1]"]);
    check(("    [0, 1]", "    [0, 1.1]"), "[0, 1.1]", &["from [0, 1]"]);
    check(
        ("[0.9613, 6.579]", "[0.9613, 1.001]"),
        "[0.9613, 1.001]",
        &["ascending"],
    );
    check(
        ("[0.9613, 6.579]", "[1.9, 6.579]"),
        "[1.9, 6.579]",
        &["0 to 1"],
    );
    check(
        ("reads = 0.6", "reads = 0.4"),
        "reads = 0.4",
        &["is 0.4; expected more than in the line before"],
    );
    check(("reads = 0.5", "reads = 0"), "reads = 0\n", &["0.01 to 1"]);
    let cut = &CURVE[..CURVE.find("[[line]]").expect("there")];
    let error = READ_CURVE(cut, "my.toml").expect_err("no line").to_string();
    assert!(
        error.contains("line is missing; expected a list of tables"),
        "{error}"
    );
}
