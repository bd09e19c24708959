//! Errors in program files.

use super::{OVERLAP, PROGRAM, READ_PROGRAM, check};

#[test]
fn wrong_program_files_are_refused_with_line_and_remedy() {
    let check = |change, at: &str, parts: &[&str]| check(READ_PROGRAM, PROGRAM, change, at, parts);
    check(
        ("cpi = 0.52", "cpi = 0"),
        "cpi = 0\n",
        &["[core] cpi is 0; expected 0.05 to 100"],
    );
    check(("at_mb = 2.5", "at_mb = true"), "at_mb", &["at_mb is true"]);
    check(
        ("[7, 3.1]", "[1, 3.1]"),
        "[1, 3.1]",
        &["[1, 3.1]", "ascending"],
    );
    check(
        ("[7, 3.1]", "[7, 7.1]"),
        "[7, 7.1]",
        &["[7, 7.1]", "never ascending"],
    );
    check(
        ("[1.75, 6.7]", "[1.75, 13]"),
        "[1.75, 13]",
        &["[1.75, 13]", "0 to llc_accesses_per_ki"],
    );
    check(
        ("[7, 3.1]", "[7, -3.1]"),
        "[7, -3.1]",
        &["[7, -3.1]", "0 to llc_accesses_per_ki"],
    );
    check(
        ("[7, 3.1]", "[7]"),
        "[7]",
        &["llc_misses_per_ki is [7]; expected pairs of MB"],
    );
    check(
        ("[7, 3.1]", "[7, 3.1, 2]"),
        "[7, 3.1, 2]",
        &["[7, 3.1, 2]", "pairs of MB"],
    );
    check(
        ("[7, 3.1]", "[\"7\", 3.1]"),
        "3.1",
        &["pairs of MB", "cosched help program-file"],
    );
    check(
        ("[[1.75, 6.7], [7, 3.1], [19.25, 1.5]]", "[]"),
        "llc_misses",
        &["llc_misses_per_ki is []"],
    );
    check(
        ("from_cycles = 228\n", ""),
        "[memory]",
        &["from_cycles is missing"],
    );
    check(
        ("from_cycles = 228", "from_cycles = 228\nmlp = 2"),
        "mlp",
        &["mlp is 2", "either mlp"],
    );
    check(
        ("cpi_fixed = 0.52", "cpi_fixed = -5"),
        "cpi_fixed",
        &["is -5; expected at least 0.04"],
    );
    check(
        ("instructions = 6e9", "instructions = 10"),
        "instructions = 10,",
        &["10", "1000 to 1e15"],
    );
    check(
        ("memory = 2.0", "memory = -2.0"),
        "memory = -2.0",
        &["[phases.parts] memory is -2"],
    );
    check(
        ("memory = 2.0", "mem = 2.0"),
        "mem = 2.0",
        &["`mem`", "`memory`"],
    );
    check(
        ("[phases]\nassumed", "[phases]\n#"),
        "[phases]",
        &["source is missing"],
    );
    check(("[cache]", "[cash]"), "[cash]", &["`cash`", "`cache`"]);
    check(
        ("title = \"SPEC CPU2006 gcc: C compiler\"\n", ""),
        "schema",
        &["title is missing"],
    );
}

#[test]
fn wrong_stalls_are_refused() {
    let check = |change, at: &str, parts: &[&str]| check(READ_PROGRAM, OVERLAP, change, at, parts);
    check(
        ("mlp = 17\n", ""),
        "[memory]",
        &["mlp is missing; expected either mlp, or cpi_fixed"],
    );
    check(("mlp = 17", "mlp = 0.5"), "mlp = 0.5", &["1 to 64"]);
}

#[test]
fn use_of_memory_without_misses_is_refused() {
    let bad = OVERLAP.replace("[[1.75, 30.5], [7, 25.4], [19.25, 14.6]]", "[[1.75, 0]]");
    let error = READ_PROGRAM(&bad, "my.toml")
        .expect_err("reads without misses")
        .to_string();
    assert!(
        error.contains("reads_per_ki is 22.3; expected 0, since with at_mb of cache"),
        "{error}"
    );
}

/// 100 times 4.9 is 490.00000000000006.
#[test]
fn writes_may_be_a_hundred_times_the_reads() {
    let written = |writes: &str| {
        let text = OVERLAP.replace("reads_per_ki = 22.3", "reads_per_ki = 4.9");
        READ_PROGRAM(
            &text.replace("writes_per_ki = 9.3", &format!("writes_per_ki = {writes}")),
            "my.toml",
        )
    };
    let error = written("491").expect_err("too many").to_string();
    assert!(
        error.contains("writes_per_ki is 491; expected at most 100 for each line read"),
        "{error}"
    );
    assert!(written("490").is_ok());
}

#[test]
fn writes_without_reads_are_refused() {
    for reads in ["0", "1e-308", "0.023"] {
        let bad = OVERLAP.replace("reads_per_ki = 22.3", &format!("reads_per_ki = {reads}"));
        let error = READ_PROGRAM(&bad, "my.toml")
            .expect_err("writes follow reads")
            .to_string();
        assert!(
            error.contains("writes_per_ki is 9.3; expected at most") && error.contains("my.toml:"),
            "{error}"
        );
    }
}
