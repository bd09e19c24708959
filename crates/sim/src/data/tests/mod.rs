//! The built-in files are valid, and errors name the place and the expected values.

mod builtin;
mod curve_file;
mod damaged;
mod documented;
mod machine_file;
mod program_file;

use super::{SpecError, parse_curve, parse_machine, parse_program};

const MACHINE: &str = include_str!("../../../../../machines/big1-small3.toml");
const TWO_SOCKETS: &str = include_str!("../../../../../machines/server-2x64.toml");
const PROGRAM: &str = include_str!("../../../../../programs/spec-cpu2006/gcc.toml");
const OVERLAP: &str = include_str!("../../../../../programs/spec-cpu2006/libquantum.toml");
const CURVE: &str = include_str!("../../../../../machines/latency/ddr3-1333.toml");

type Reader = fn(&str, &str) -> Result<(), SpecError>;

const READ_MACHINE: Reader = |text, file| parse_machine(text, file).map(drop);
const READ_PROGRAM: Reader = |text, file| parse_program(text, file).map(drop);
const READ_CURVE: Reader = |text, file| parse_curve(text, file).map(drop);

/// The number of the first line that contains this part.
fn line_of(text: &str, part: &str) -> usize {
    let at = text
        .find(part)
        .unwrap_or_else(|| panic!("`{part}` is not in the text"));
    text[..at].matches('\n').count() + 1
}

/// Replaces `from` by `to` in a valid file. The parser's error must name the line of `at` and contain the parts.
fn check(read: Reader, good: &str, (from, to): (&str, &str), at: &str, parts: &[&str]) {
    assert!(good.contains(from), "`{from}` is not in the file");
    let bad = good.replacen(from, to, 1);
    let error = read(&bad, "my.toml").expect_err(to).to_string();
    let place = format!("my.toml:{}: ", line_of(&bad, at));
    assert!(error.starts_with(&place), "{error}\nexpected {place}");
    for part in parts {
        assert!(error.contains(part), "{error}\nexpected `{part}`");
    }
}
