//! Where values come from: `:::`, files, standard input. And how they become the rows of which each is a job.

use super::command::{os, told};
use super::read::read_bytes;
use super::replacement::Row;
use crate::exit::usage;
use anyhow::Result;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// How values are read and grouped.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    /// `-a`: files of values, each a list of its own.
    pub files: Vec<PathBuf>,
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
            r"\s+" => return Ok(Separator::Blanks),
            r"\t" => return Ok(Separator::Text(b"\t".to_vec())),
            _ => {}
        }
        let plain = match text.strip_prefix('\\') {
            Some(sign) if sign.len() == 1 && !sign.contains(char::is_alphanumeric) => sign,
            _ => text,
        };
        let is_pattern = plain.chars().count() > 1 && plain.contains(is_sign_of_patterns);
        if plain.is_empty() || is_pattern {
            return Err(r"expected plain text, not a pattern, as in --colsep , or --colsep '\t'; blanks are --colsep '\s+'".to_owned());
        }
        Ok(Separator::Text(plain.as_bytes().to_vec()))
    }
}

fn is_sign_of_patterns(c: char) -> bool {
    r"\[](){}*+?|^$.".contains(c)
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
    fn read(file: &Path, linked: bool, reading: &Reading) -> Result<List> {
        let values = read_values(file, reading)?;
        Ok(List { values, linked })
    }
}

/// What follows a word that introduces values, such as `::::+`.
#[derive(Clone, Copy)]
struct Section {
    /// Files with the values, not the values themselves.
    in_files: bool,
    /// Its list is linked to the one before.
    linked: bool,
}

impl Section {
    fn of(word: &OsStr) -> Option<Section> {
        let word = word.to_str()?;
        let plain = word.strip_suffix('+');
        let linked = plain.is_some();
        let in_files = match plain.unwrap_or(word) {
            ":::" => false,
            "::::" => true,
            _ => return None,
        };
        Some(Section { in_files, linked })
    }
}

/// The words before the first that introduces values.
pub(crate) fn template(words: &[OsString]) -> &[OsString] {
    let mut sections = words.iter().map(|word| Section::of(word));
    match sections.position(|section| section.is_some()) {
        Some(end) => &words[..end],
        None => words,
    }
}

/// The files of values that a command line names.
pub(crate) fn files(words: &[OsString]) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut in_files = false;
    for word in words {
        match Section::of(word) {
            Some(section) => in_files = section.in_files,
            None if in_files => files.push(word.into()),
            None => {}
        }
    }
    files
}

/// More jobs than this are taken for a mistake: each costs memory from the beginning.
pub(crate) const MOST_JOBS: usize = 5_000_000;

/// The rows of values of a command line.
pub(crate) struct Rows {
    /// Each is a job.
    pub(crate) rows: Vec<Row>,
    /// The number of values in each row; `None` if rows can differ.
    pub(crate) columns: Option<usize>,
}

/// Reads and combines the values of a command line. With `from_stdin` standard input holds values, if nothing else does.
///
/// # Errors
/// A file can't be read, or the lists make no sense.
pub(crate) fn rows(words: &[OsString], reading: &Reading, from_stdin: bool) -> Result<Rows> {
    let lists = lists(words, reading, from_stdin)?;
    let can_differ = reading.columns.is_some() || reading.per_job.is_some();
    let columns = (!can_differ).then_some(lists.len());
    let mut rows = Vec::new();
    for (number, mut values) in (1..).zip(combine(lists, reading)?) {
        if let Some(separator) = &reading.columns {
            let divided = values.iter();
            let divided = divided.flat_map(|value| separator.split(value.as_bytes()));
            values = divided.collect();
        }
        rows.push(Row { values, number });
    }
    Ok(Rows { rows, columns })
}

fn lists(words: &[OsString], reading: &Reading, from_stdin: bool) -> Result<Vec<List>> {
    let mut lists = Vec::new();
    for file in &reading.files {
        lists.push(List::read(file, false, reading)?);
    }
    let mut rest = &words[template(words).len()..];
    if rest.is_empty() && lists.is_empty() && from_stdin {
        lists.push(List::read(Path::new("-"), false, reading)?);
    }
    while let Some((word, others)) = rest.split_first() {
        let values = template(others);
        push_lists(&mut lists, word, values, reading)?;
        rest = &others[values.len()..];
    }
    Ok(lists)
}

/// Adds the lists of a section that `word` introduces.
fn push_lists(
    lists: &mut Vec<List>,
    word: &OsString,
    values: &[OsString],
    reading: &Reading,
) -> Result<()> {
    let Some(Section { in_files, linked }) = Section::of(word) else {
        return Ok(());
    };
    let word = told(word);
    if values.is_empty() && (in_files || !reading.skip_empty) {
        let what = if in_files { "file" } else { "value" };
        return Err(usage(format!(
            "there is no {what} after `{word}`; as in `cosched run gzip {word} a.txt`"
        )));
    }
    if linked && lists.is_empty() {
        return Err(usage(format!(
            "`{word}` links a list to the one before it, and there is none; {LINKED_LISTS}"
        )));
    }
    if !in_files {
        let values = without_empty(values.to_vec(), reading);
        lists.push(List { values, linked });
        return Ok(());
    }
    for (number, file) in values.iter().enumerate() {
        // Only the first of the files is linked.
        lists.push(List::read(Path::new(file), linked && number == 0, reading)?);
    }
    Ok(())
}

const LINKED_LISTS: &str = "as in `cosched run echo {1} {2} ::: a b :::+ 1 2`";

/// The combinations of all lists; the last list changes fastest. Linked lists go together, as far as the shorter one
/// reaches.
fn combine(lists: Vec<List>, reading: &Reading) -> Result<Vec<Vec<OsString>>> {
    if let Some(per_job) = reading.per_job {
        let [list] = &lists[..] else {
            let lists = lists.len();
            return Err(usage(format!(
                "-n {per_job} needs one list of values, and there are {lists}"
            )));
        };
        let rows = list.values.chunks(per_job);
        return Ok(rows.map(<[_]>::to_vec).collect());
    }
    let groups = linked_groups(lists);
    let mut total = Some(1usize);
    for group in &groups {
        total = total.and_then(|total| total.checked_mul(group.len()));
    }
    if total.is_none_or(|total| total > MOST_JOBS) {
        return Err(usage(format!(
            "the lists make more than {MOST_JOBS} jobs; link lists that belong together, {LINKED_LISTS}"
        )));
    }
    let mut rows: Vec<Vec<OsString>> = vec![Vec::new()];
    for group in groups {
        let mut longer = Vec::new();
        for row in &rows {
            longer.extend(group.iter().map(|more| [&row[..], &more[..]].concat()));
        }
        rows = longer;
    }
    Ok(rows)
}

/// The rows of each group of linked lists.
fn linked_groups(lists: Vec<List>) -> Vec<Vec<Vec<OsString>>> {
    let mut groups: Vec<Vec<Vec<OsString>>> = Vec::new();
    for List { values, linked } in lists {
        if linked && let Some(group) = groups.last_mut() {
            group.truncate(values.len());
            for (row, value) in group.iter_mut().zip(values) {
                row.push(value);
            }
        } else {
            groups.push(values.into_iter().map(|value| vec![value]).collect());
        }
    }
    groups
}

/// Leaves out empty values if the user wants that.
fn without_empty(mut values: Vec<OsString>, reading: &Reading) -> Vec<OsString> {
    if reading.skip_empty {
        values.retain(|value| !value.as_bytes().trim_ascii().is_empty());
    }
    values
}

/// The values in a file, one a line; `-` is standard input.
fn read_values(file: &Path, reading: &Reading) -> Result<Vec<OsString>> {
    let bytes = read_bytes(file)?;
    if bytes.is_empty() {
        return Ok(Vec::new());
    }
    let end = if reading.zero { b'\0' } else { b'\n' };
    let bytes = bytes.strip_suffix(&[end]).unwrap_or(&bytes);
    let mut values = Vec::new();
    for (line, value) in (1..).zip(bytes.split(|&byte| byte == end)) {
        if value.contains(&0) {
            let file = told(file);
            return Err(usage(format!(
                "{file}:{line}: the value holds a zero byte; give -0 if these divide values"
            )));
        }
        values.push(os(value));
    }
    Ok(without_empty(values, reading))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows_of(words: &str, reading: &Reading) -> Result<Vec<String>, String> {
        let words: Vec<OsString> = words.split_whitespace().map(OsString::from).collect();
        let found = rows(&words, reading, false).map_err(|error| error.to_string())?;
        let text = |row: &Row| {
            row.values
                .iter()
                .map(|value| value.to_string_lossy())
                .collect::<Vec<_>>()
                .join(",")
        };
        Ok(found.rows.iter().map(text).collect())
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
        let found = rows(&[], &reading, false).unwrap().rows;
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
        assert!(error("x ::::").contains("no file after `::::`"));
        assert!(error("x :::+ a").contains("there is none"));
        let many = vec!["a"; 300].join(" ");
        assert!(
            error(&format!("x ::: {many} ::: {many} ::: {many}"))
                .contains("more than 5000000 jobs")
        );
    }
}
