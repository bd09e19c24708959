//! The pages of the formats list every key, every range and every machine.

use super::{
    CURVE, MACHINE, OVERLAP, PROGRAM, READ_CURVE, READ_MACHINE, READ_PROGRAM, Reader, TWO_SOCKETS,
};
use crate::data::MACHINES;

const MACHINE_PAGE: &str = include_str!("../../../../../docs/machine-file.md");
const PROGRAM_PAGE: &str = include_str!("../../../../../docs/program-file.md");

/// Whether a table of the page has a row that starts with the key and contains the text.
fn has_row(page: &str, key: &str, text: &str) -> bool {
    page.lines()
        .any(|line| line.starts_with(&format!("| `{key}` |")) && line.contains(text))
}

/// Replaces each number of a valid file by an impossible one. Returns each key, and the range in the error.
/// Parameters of policies are left out: the page leaves them to `cosched list policies`.
fn ranges(read: Reader, good: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let before_params = good.lines().take_while(|line| *line != "[params]");
    for (ix, line) in before_params.enumerate() {
        let Some((key, value)) = line.split_once(" = ") else {
            continue;
        };
        if value.parse::<f64>().is_err() {
            continue;
        }
        let mut lines: Vec<&str> = good.lines().collect();
        let bad = format!("{key} = -1e18");
        lines[ix] = &bad;
        let error = read(&lines.join("\n"), "my.toml")
            .expect_err(&bad)
            .to_string();
        assert!(
            error.starts_with(&format!("my.toml:{}: ", ix + 1)),
            "{error}"
        );
        let (_, range) = error
            .split_once("; expected ")
            .unwrap_or_else(|| panic!("no range in: {error}"));
        let range = range.split(';').next().unwrap_or_default();
        let range = range.trim_start_matches("a number from ");
        let short = range.replace("1000000000", "1e9").replace("1000000", "1e6");
        found.push((key.to_owned(), short));
    }
    found
}

#[test]
fn every_number_has_a_documented_range() {
    let files: [(Reader, &str, &str, usize); 4] = [
        (READ_MACHINE, MACHINE, MACHINE_PAGE, 31),
        (READ_MACHINE, TWO_SOCKETS, MACHINE_PAGE, 24),
        (READ_PROGRAM, PROGRAM, PROGRAM_PAGE, 9),
        (READ_PROGRAM, OVERLAP, PROGRAM_PAGE, 7),
    ];
    for (read, good, page, least) in files {
        let ranges = ranges(read, good);
        assert!(ranges.len() >= least, "{}: {ranges:?}", ranges.len());
        for (key, range) in ranges {
            assert!(has_row(page, &key, &range), "no row for {key} with {range}");
        }
    }
}

/// The keys that the parser expects in place of an unknown one, which is put after `place`.
fn expected_keys(read: Reader, good: &str, place: &str) -> Vec<String> {
    assert!(good.contains(place), "`{place}` is not in the file");
    let text = good.replacen(place, &format!("{place}no_such_key = 1\n"), 1);
    let error = read(&text, "my.toml").expect_err(&text).to_string();
    let (_, keys) = error
        .split_once("the key `no_such_key` is unknown; expected ")
        .unwrap_or_else(|| panic!("no keys in: {error}"));
    let keys = keys.split(';').next().unwrap_or_default();
    keys.split('`')
        .skip(1)
        .step_by(2)
        .map(str::to_owned)
        .collect()
}

#[test]
fn every_key_is_documented() {
    let check = |read: Reader, good: &str, page: &str, places: &[&str], least: usize| {
        let mut keys = Vec::new();
        for place in places {
            keys.extend(expected_keys(read, good, place));
        }
        assert!(keys.len() >= least, "{keys:?}");
        for key in keys {
            let is_table = page.contains(&format!("[{key}]")) || page.contains(&format!(".{key}]"));
            assert!(
                has_row(page, &key, "") || is_table,
                "{key} is not documented"
            );
        }
    };
    let machine = [
        "2x64\"\n",
        "[topology]\n",
        "[[core_type]]\n",
        "[core_type.pipeline]\n",
        "[core_type.power]\n",
        "[smt]\n",
        "[llc]\n",
        "[llc.latency]\n",
        "[llc.replacement]\n",
        "[memory]\n",
        "[memory.banks]\n",
        "[latency]\n",
        "[power]\n",
        "[kernel]\n",
        "[kernel.switching]\n",
        "[counters]\n",
    ];
    check(READ_MACHINE, TWO_SOCKETS, MACHINE_PAGE, &machine, 90);
    check(
        READ_CURVE,
        CURVE,
        MACHINE_PAGE,
        &["ddr3-1333\"\n", "[[line]]\n"],
        8,
    );
    let program = [
        "gcc\"\n",
        "[length]\n",
        "[core]\n",
        "[core.hits]\n",
        "[cache]\n",
        "[memory]\n",
        "[phases]\n",
    ];
    check(READ_PROGRAM, PROGRAM, PROGRAM_PAGE, &program, 36);
    let end = PROGRAM.find("parts = ").expect("there");
    let part = format!("{}[[phases.parts]]\n", &PROGRAM[..end]);
    check(
        READ_PROGRAM,
        &part,
        PROGRAM_PAGE,
        &["[[phases.parts]]\n"],
        4,
    );
}

#[test]
fn the_examples_of_the_pages_are_right() {
    for (read, page) in [
        (READ_MACHINE, MACHINE_PAGE),
        (READ_CURVE, MACHINE_PAGE),
        (READ_PROGRAM, PROGRAM_PAGE),
    ] {
        let indented = |line: &&str| line.starts_with("    ") || line.is_empty();
        let lines: Vec<&str> = page.lines().collect();
        let examples: Vec<String> = lines
            .split(|line| !indented(line))
            .map(|block| {
                block
                    .iter()
                    .map(|line| line.get(4..).unwrap_or(""))
                    .collect::<Vec<_>>()
                    .join("\n")
            })
            .filter(|block| block.contains("schema = "))
            .collect();
        assert!(
            examples
                .iter()
                .any(|example| read(example, "example").is_ok()),
            "{examples:?}"
        );
    }
}

#[test]
fn machines_are_listed_in_the_page() {
    for file in MACHINES {
        assert!(
            has_row(MACHINE_PAGE, file.name, ""),
            "docs/machine-file.md does not list {}",
            file.name
        );
    }
}

#[test]
fn no_key_has_two_rows_in_one_table() {
    for page in [MACHINE_PAGE, PROGRAM_PAGE] {
        let mut keys: Vec<&str> = Vec::new();
        for line in page.lines() {
            let key = line
                .strip_prefix("| `")
                .and_then(|row| row.split('`').next());
            let Some(key) = key else {
                keys.clear();
                continue;
            };
            assert!(!keys.contains(&key), "{key} has two rows");
            keys.push(key);
        }
    }
}
