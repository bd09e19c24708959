//! Damaged files are parsed, or refused at one of their lines.

use super::{
    CURVE, MACHINE, OVERLAP, PROGRAM, READ_CURVE, READ_MACHINE, READ_PROGRAM, TWO_SOCKETS,
};

#[test]
fn a_file_with_any_line_missing_is_read_or_refused_at_a_line() {
    let files = [
        (READ_MACHINE, MACHINE),
        (READ_MACHINE, TWO_SOCKETS),
        (READ_PROGRAM, PROGRAM),
        (READ_CURVE, CURVE),
    ];
    let mut refused = 0;
    for (read, good) in files {
        let lines: Vec<&str> = good.lines().collect();
        for ix in 0..lines.len() {
            let rest = [&lines[..ix], &lines[ix + 1..]].concat().join("\n");
            let Err(error) = read(&rest, "my.toml") else {
                continue;
            };
            refused += 1;
            let error = error.to_string();
            let line: usize = error
                .strip_prefix("my.toml:")
                .and_then(|rest| rest.split_once(": "))
                .and_then(|(line, _)| line.parse().ok())
                .unwrap_or_else(|| panic!("no line in: {error}"));
            assert!((1..=lines.len()).contains(&line), "{error}");
        }
    }
    assert!(refused > 100, "{refused}");
}

/// Parts of files are cut out, doubled, moved and replaced. Each result is parsed, or refused at one of its lines.
#[test]
fn mutilated_files_are_read_or_refused_at_a_line() {
    let mut rng = cosched_core::Rng::new(1);
    let odd = [
        "\u{e9}",
        "\"",
        "[",
        "]]",
        "=",
        "-",
        "nan",
        "inf",
        "1e308",
        "0",
        "9",
        "\n",
        "\r",
        "\0",
        "#",
        "{",
        "true",
        "\u{1f600}",
    ];
    for (read, good) in [
        (READ_MACHINE, MACHINE),
        (READ_PROGRAM, PROGRAM),
        (READ_PROGRAM, OVERLAP),
        (READ_CURVE, CURVE),
    ] {
        for _ in 0..1_500 {
            let mut chars: Vec<char> = good.chars().collect();
            for _ in 0..=rng.below(3) {
                let at = rng.below(chars.len() as u64) as usize;
                let end = (at + rng.below(12) as usize).min(chars.len());
                let piece: Vec<char> = chars[at..end].to_vec();
                let put = match rng.below(4) {
                    0 => Vec::new(),
                    1 => [piece.clone(), piece].concat(),
                    _ => odd[rng.below(odd.len() as u64) as usize].chars().collect(),
                };
                chars.splice(at..end, put);
            }
            let text: String = chars.into_iter().collect();
            if let Err(error) = read(&text, "my.toml") {
                let said = error.to_string();
                let line = said
                    .strip_prefix("my.toml:")
                    .and_then(|rest| rest.split(':').next()?.parse::<usize>().ok());
                let lines = text.matches('\n').count() + 1;
                assert!(
                    line.is_some_and(|line| (1..=lines).contains(&line)),
                    "{said}\n{text}"
                );
            }
        }
    }
}
