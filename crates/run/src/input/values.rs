//! Where values come from: `:::`, files, standard input. And how they become the rows of which each is a job.

use super::command::{os, told};
use super::read::read_bytes;
use super::replacement::Row;
use crate::exit::usage;
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// How values are read and grouped.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    /// `-a`: files of values, each a list of its own.
    pub files: Vec<std::path::PathBuf>,
    /// `-0`: values in files end with a zero byte instead of a line end.
    pub zero: bool,
    /// `--colsep`: divides a value into columns.
    pub columns: Option<Separator>,
    /// `-n` or `-N`: values of a job.
    pub per_job: Option<usize>,
    /// `-N`: the text around a replacement string is written for each of them.
    pub repeats: bool,
    /// `-r`: leave out empty values, and having none is no error.
    pub skip_empty: bool,
}

impl Reading {
    /// Whether an option is given that makes sense only with values.
    pub fn wants_values(&self) -> bool {
        !self.files.is_empty()
            || self.zero
            || self.columns.is_some()
            || self.per_job.is_some()
            || self.skip_empty
    }
}

/// What divides columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Separator {
    /// This text.
    Text(Vec<u8>),
    /// Any number of blanks.
    Blanks,
}

impl std::str::FromStr for Separator {
    type Err = String;

    /// Reads a text, `\t`, `\s+`, or a backslash and the character that is meant.
    fn from_str(text: &str) -> Result<Separator, String> {
        match text {
            r"\s+" | " +" | r"[ \t]+" => return Ok(Separator::Blanks),
            r"\t" => return Ok(Separator::Text(b"\t".to_vec())),
            _ => {}
        }
        let plain = match text.strip_prefix('\\') {
            Some(rest)
                if rest.len() == 1 && rest.starts_with(|c: char| c.is_ascii_punctuation()) =>
            {
                rest
            }
            _ if text.chars().count() == 1 => text,
            _ if !text.is_empty() && !text.contains(|c: char| r"\[](){}*+?|^$.".contains(c)) => {
                text
            }
            _ => {
                return Err(
                    "expected a character or a plain text, not a pattern, as in --colsep , or --colsep '\\t'; blanks \
                            are --colsep '\\s+'"
                        .to_owned(),
                );
            }
        };
        Ok(Separator::Text(plain.as_bytes().to_vec()))
    }
}

impl Separator {
    /// The columns of a value. Blanks around them, and the end of a line from Windows, do not count, as for GNU parallel.
    fn split(&self, value: &[u8]) -> Vec<OsString> {
        match self {
            Separator::Text(text) => {
                let mut columns = Vec::new();
                let mut rest = value;
                while let Some(at) = rest.windows(text.len()).position(|part| part == &text[..]) {
                    columns.push(os(rest[..at].trim_ascii()));
                    rest = &rest[at + text.len()..];
                }
                columns.push(os(rest.trim_ascii()));
                columns
            }
            Separator::Blanks => {
                // Blanks at the beginning make an empty first column, as a pattern would; at the end they make none.
                let value = value.trim_ascii_end();
                let mut columns = Vec::new();
                if value.first().is_none_or(u8::is_ascii_whitespace) {
                    columns.push(OsString::new());
                }
                let words = value.split(u8::is_ascii_whitespace);
                columns.extend(words.filter(|word| !word.is_empty()).map(os));
                columns
            }
        }
    }
}

/// A list of values.
struct List {
    values: Vec<OsString>,
    /// It goes together with the list before it, value by value.
    linked: bool,
}

impl List {
    fn read(file: &Path, linked: bool, reading: &Reading) -> anyhow::Result<List> {
        Ok(List {
            values: read_values(file, reading)?,
            linked,
        })
    }
}

/// The words that introduce values: whether they name files, and whether the list is linked to the one before.
fn separator(word: &OsStr) -> Option<(bool, bool)> {
    match word.to_str()? {
        ":::" => Some((false, false)),
        ":::+" => Some((false, true)),
        "::::" => Some((true, false)),
        "::::+" => Some((true, true)),
        _ => None,
    }
}

/// The words of the command, before the first `:::` or the like.
pub(crate) fn template(words: &[OsString]) -> &[OsString] {
    let end = words
        .iter()
        .position(|word| separator(word).is_some())
        .unwrap_or(words.len());
    &words[..end]
}

/// The files of values that a command line names.
pub(crate) fn files(words: &[OsString]) -> impl Iterator<Item = &Path> {
    let mut in_files = false;
    words.iter().filter_map(move |word| {
        if let Some((of_files, _)) = separator(word) {
            in_files = of_files;
            return None;
        }
        in_files.then_some(Path::new(word))
    })
}

/// More jobs than this are taken for a mistake: each costs memory from the beginning.
pub(crate) const MOST_JOBS: usize = 5_000_000;

/// The rows of values of a command line, each of which is a job. `from_stdin` tells that standard input holds values, if
/// nothing else does. Returns the number of columns that each row has; `None` if rows can differ.
///
/// # Errors
/// A file can't be read, or the lists make no sense.
pub(crate) fn rows(
    words: &[OsString],
    reading: &Reading,
    from_stdin: bool,
) -> anyhow::Result<(Vec<Row>, Option<usize>)> {
    let mut lists = Vec::new();
    for file in &reading.files {
        lists.push(List::read(file, false, reading)?);
    }
    let mut rest = &words[template(words).len()..];
    if rest.is_empty() && lists.is_empty() && from_stdin {
        lists.push(List::read(Path::new("-"), false, reading)?);
    }
    while let Some((word, others)) = rest.split_first() {
        let length = others
            .iter()
            .take_while(|word| separator(word).is_none())
            .count();
        let (section, others) = others.split_at(length);
        push_lists(&mut lists, word, section, reading)?;
        rest = others;
    }
    let columns = (reading.columns.is_none() && reading.per_job.is_none()).then_some(lists.len());
    let mut combined = combine(lists, reading)?;
    if let Some(separator) = &reading.columns {
        for row in &mut combined {
            *row = row
                .iter()
                .flat_map(|value| separator.split(value.as_encoded_bytes()))
                .collect();
        }
    }
    let rows = (1..)
        .zip(combined)
        .map(|(number, values)| Row { values, number });
    Ok((rows.collect(), columns))
}

/// Adds the lists of a section: `word` is its separator, as `:::`.
fn push_lists(
    lists: &mut Vec<List>,
    word: &OsString,
    section: &[OsString],
    reading: &Reading,
) -> anyhow::Result<()> {
    let (in_files, linked) = separator(word).unwrap_or_default();
    if section.is_empty() && (in_files || !reading.skip_empty) {
        return Err(empty_section(&told(word), in_files));
    }
    if linked && lists.is_empty() {
        return Err(usage(format!(
            "`{}` links a list to the one before it, and there is none; as in `cosched run echo {{1}} {{2}} ::: a b \
             :::+ 1 2`",
            told(word)
        )));
    }
    if !in_files {
        lists.push(List {
            values: kept(section.to_vec(), reading),
            linked,
        });
        return Ok(());
    }
    for (number, file) in section.iter().enumerate() {
        // Only the first of the files is linked.
        lists.push(List::read(Path::new(file), linked && number == 0, reading)?);
    }
    Ok(())
}

fn empty_section(word: &str, in_files: bool) -> anyhow::Error {
    let (what, example, with_r) = if in_files {
        ("file", "gzip -k {} :::: names.txt", "")
    } else {
        (
            "value",
            "gzip -k {} ::: a.txt b.txt",
            "; with -r it is no error to have none",
        )
    };
    usage(format!(
        "there is no {what} after `{word}`; as in `cosched run {example}`{with_r}"
    ))
}

/// The combinations of all lists; the last list changes fastest. Linked lists go together, as far as the shorter one
/// reaches.
fn combine(lists: Vec<List>, reading: &Reading) -> anyhow::Result<Vec<Vec<OsString>>> {
    if let Some(per_job) = reading.per_job {
        let [List { values, .. }] = &lists[..] else {
            return Err(usage(format!(
                "-n {per_job} takes its values from one list, and there are {}; give one, as in `cosched run -n 2 cp {{1}} \
                 {{2}} ::: a a.bak b b.bak`",
                lists.len()
            )));
        };
        return Ok(values.chunks(per_job).map(<[_]>::to_vec).collect());
    }
    let mut groups: Vec<Vec<Vec<OsString>>> = Vec::new();
    for List { values, linked } in lists {
        match groups.last_mut().filter(|_| linked) {
            Some(group) => {
                group.truncate(values.len());
                group
                    .iter_mut()
                    .zip(values)
                    .for_each(|(row, value)| row.push(value));
            }
            None => groups.push(values.into_iter().map(|value| vec![value]).collect()),
        }
    }
    let total = groups
        .iter()
        .try_fold(1usize, |product, group| product.checked_mul(group.len()));
    if total.is_none_or(|total| total > MOST_JOBS) {
        return Err(usage(format!(
            "the lists of values make more than {MOST_JOBS} jobs; link lists that belong together, as in `cosched run echo \
             {{1}} {{2}} ::: a b :::+ 1 2`"
        )));
    }
    let mut rows: Vec<Vec<OsString>> = vec![Vec::new()];
    for group in groups {
        rows = rows
            .iter()
            .flat_map(|row| group.iter().map(|more| [&row[..], &more[..]].concat()))
            .collect();
    }
    Ok(rows)
}

/// Without the empty values, if they are to be left out.
fn kept(mut values: Vec<OsString>, reading: &Reading) -> Vec<OsString> {
    if reading.skip_empty {
        values.retain(|value| {
            value
                .as_encoded_bytes()
                .iter()
                .any(|byte| !byte.is_ascii_whitespace())
        });
    }
    values
}

/// The values in a file, one a line; `-` is standard input.
fn read_values(file: &Path, reading: &Reading) -> anyhow::Result<Vec<OsString>> {
    let bytes = read_bytes(file)?;
    let end = if reading.zero { b'\0' } else { b'\n' };
    if bytes.is_empty() {
        return Ok(Vec::new());
    }
    let bytes = bytes.strip_suffix(&[end]).unwrap_or(&bytes);
    let shown = told(file.as_os_str());
    if let Some(at) = bytes
        .iter()
        .position(|&byte| byte == 0)
        .filter(|_| !reading.zero)
    {
        let line = bytes[..at].iter().filter(|&&byte| byte == b'\n').count() + 1;
        return Err(usage(format!(
            "{shown}:{line}: the value holds a zero byte; where zero bytes divide values, give -0"
        )));
    }
    Ok(kept(
        bytes.split(|&byte| byte == end).map(os).collect(),
        reading,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows_of(words: &str, reading: &Reading) -> Result<Vec<String>, String> {
        let words: Vec<OsString> = words.split_whitespace().map(OsString::from).collect();
        let (rows, _) = rows(&words, reading, false).map_err(|error| error.to_string())?;
        let text = |row: &Row| {
            row.values
                .iter()
                .map(|value| value.to_string_lossy())
                .collect::<Vec<_>>()
                .join(",")
        };
        Ok(rows.iter().map(text).collect())
    }

    fn lists(words: &str) -> Vec<String> {
        rows_of(words, &Reading::default()).unwrap()
    }

    /// As GNU parallel 20221122 combines them.
    #[test]
    fn lists_are_combined_and_linked() {
        assert_eq!(lists("x ::: a b ::: 1 2"), ["a,1", "a,2", "b,1", "b,2"]);
        assert_eq!(lists("x ::: a b c :::+ 1 2"), ["a,1", "b,2"]);
        assert_eq!(lists("x ::: a b :::+ 1 2 3"), ["a,1", "b,2"]);
        assert_eq!(
            lists("x ::: a b :::+ 1 2 ::: x y"),
            ["a,1,x", "a,1,y", "b,2,x", "b,2,y"]
        );
    }

    #[test]
    fn values_come_from_files() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &[u8]| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        let (a, b) = (file("a", b"f1\n\nf 2\n"), file("b", b"g1\ng2"));
        // Word by word: the name of the folder is random, and may hold these letters.
        let word = |word: &str| match word {
            "A" => a.to_str().unwrap().to_owned(),
            "B" => b.to_str().unwrap().to_owned(),
            other => other.to_owned(),
        };
        let words = |text: &str| text.split(' ').map(word).collect::<Vec<_>>().join(" ");
        assert_eq!(lists(&words("x :::: A")), ["f1", "", "f 2"]);
        assert_eq!(
            lists(&words("x :::: B B")),
            ["g1,g1", "g1,g2", "g2,g1", "g2,g2"]
        );
        assert_eq!(lists(&words("x :::: A ::::+ B")), ["f1,g1", ",g2"]);
        let reading = Reading {
            files: vec![a.clone()],
            skip_empty: true,
            ..Reading::default()
        };
        assert_eq!(rows_of("x ::: q", &reading).unwrap(), ["f1,q", "f 2,q"]);
        let zero = file("zero", b"a\nb\0\xff\0");
        let reading = Reading {
            files: vec![zero.clone()],
            zero: true,
            ..Reading::default()
        };
        let found = rows(&[], &reading, false).unwrap().0;
        assert_eq!(
            found
                .iter()
                .map(|row| row.values[0].clone())
                .collect::<Vec<_>>(),
            [os(b"a\nb"), os(b"\xff")]
        );
        let reading = Reading {
            files: vec![zero],
            ..Reading::default()
        };
        assert!(
            rows_of("x", &reading)
                .unwrap_err()
                .contains("zero:2: the value holds a zero byte")
        );
    }

    #[test]
    fn columns_and_groups() {
        let columns = |text: &str, value: &str| {
            let columns = text.parse::<Separator>().unwrap().split(value.as_bytes());
            columns
                .iter()
                .map(|column| column.to_string_lossy().into_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(columns(",", "a,,b"), ["a", "", "b"]);
        assert_eq!(columns(r"\t", "a b\tc"), ["a b", "c"]);
        assert_eq!(columns(",", " a , b c\t,d\r"), ["a", "b c", "d"]);
        assert_eq!(columns(r"\|", "a|b"), ["a", "b"]);
        assert_eq!(columns("::", "a::b:c"), ["a", "b:c"]);
        assert_eq!(columns(r"\s+", " a \t b "), ["", "a", "b"]);
        for pattern in ["", "[,;]", "a|b", r"\d", "a.b"] {
            assert!(
                pattern
                    .parse::<Separator>()
                    .unwrap_err()
                    .contains("as in --colsep ,"),
                "{pattern}"
            );
        }
        let reading = Reading {
            per_job: Some(2),
            ..Reading::default()
        };
        assert_eq!(rows_of("x ::: a b c", &reading).unwrap(), ["a,b", "c"]);
        assert!(
            rows_of("x ::: a b ::: c", &reading)
                .unwrap_err()
                .contains("one list")
        );
    }

    #[test]
    fn mistakes_are_told() {
        let error = |words: &str| rows_of(words, &Reading::default()).unwrap_err();
        assert!(error("x :::").contains("no value after `:::`; as in `cosched run"));
        assert!(error("x :::").ends_with("with -r it is no error to have none"));
        assert!(error("x ::::").contains("no file after `::::`"));
        assert!(error("x :::+ a").contains("there is none"));
        let many = vec!["a"; 300].join(" ");
        assert!(
            error(&format!("x ::: {many} ::: {many} ::: {many}"))
                .contains("more than 5000000 jobs")
        );
    }
}
