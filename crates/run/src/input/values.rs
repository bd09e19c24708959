//! Where values come from: `:::`, files, standard input. And how they become the rows of which each is a job.

use super::command::{os, told};
use super::lines::{Line, Lines};
use super::read::{is_input, read_bytes};
use super::replacement::Row;
use crate::exit::usage;
use crate::stderr;
use anyhow::Result;
use regex_lite::Regex;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// How values are read and grouped.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    /// `-a`: files of values, each a list of its own.
    pub files: Vec<PathBuf>,
    /// `-0` and `-d`: values in files end with this byte instead of a line end.
    pub end: Option<u8>,
    /// `--colsep`: divides a value into columns.
    pub columns: Option<Separator>,
    /// `-n` or `-N`: values of a job.
    pub per_job: Option<usize>,
    /// `-N`: the text around a replacement string is written for each of them.
    pub repeats: bool,
    /// `-r`: leave out empty values, and having none is no error.
    pub skip_empty: bool,
    /// `--header`: the first value of each list names its columns.
    pub header: bool,
    /// `-I`: what stands in the place of `{}`.
    pub whole: Option<OsString>,
    /// `--tagstring`: the tag of each job's output, with replacement strings.
    pub tag: Option<OsString>,
    /// No `--` comes before the command: standard input may hold values, and a shell's operator is a slip.
    pub is_bare: bool,
    /// Say nothing while standard input is silent.
    pub quiet: bool,
}

impl Reading {
    /// Whether an option is given that makes sense only with values.
    pub fn wants_values(&self) -> bool {
        !self.files.is_empty()
            || self.end.is_some()
            || self.header
            || self.whole.is_some()
            || self.columns.is_some()
            || self.per_job.is_some()
            || self.skip_empty
    }
}

/// What divides columns: a regular expression.
#[derive(Clone, Debug)]
pub struct Separator(Regex);

impl std::str::FromStr for Separator {
    type Err = String;

    /// Reads a regular expression; a single character stands for itself.
    fn from_str(text: &str) -> Result<Separator, String> {
        let expected =
            |why: &str| format!("{why}; expected a text or a pattern, as in , or '\\s+'");
        let pattern = match text.chars().count() {
            0 => return Err(expected("it is empty")),
            1 => regex_lite::escape(text),
            _ => text.to_owned(),
        };
        let regex = Regex::new(&letters(pattern.as_bytes()));
        regex
            .map(Separator)
            .map_err(|error| expected(&error.to_string()))
    }
}

impl Separator {
    /// The columns of a value, without blanks around them and without empty columns at the end, as for GNU parallel.
    fn split(&self, value: &[u8]) -> Vec<OsString> {
        let mut columns = Vec::new();
        for column in self.0.split(&letters(value)) {
            let bytes: Vec<u8> = column.chars().map(|letter| letter as u8).collect();
            columns.push(os(bytes.trim_ascii()));
        }
        while columns.len() > 1 && columns.last().is_some_and(|column| column.is_empty()) {
            columns.pop();
        }
        columns
    }
}

/// A letter for each byte: values are bytes, and patterns read text.
fn letters(bytes: &[u8]) -> String {
    bytes.iter().map(|&byte| char::from(byte)).collect()
}

/// How long standard input may be silent before the user is told.
const PATIENCE: Timespec = Timespec {
    tv_sec: 2,
    tv_nsec: 0,
};

/// A list of values.
struct List {
    values: Vec<OsString>,
    /// It goes together with the list before it, value by value.
    linked: bool,
    /// It was read from standard input.
    from_input: bool,
}

impl List {
    fn read(file: &Path, linked: bool, reading: &Reading) -> Result<List> {
        let values = read_values(file, reading)?;
        Ok(List {
            values,
            linked,
            from_input: is_input(file),
        })
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
    /// The names of the columns, if they have any.
    pub(crate) names: Vec<OsString>,
    /// Each is a job.
    pub(crate) rows: Vec<Row>,
    /// The number of values in each row; `None` if rows can differ.
    pub(crate) columns: Option<usize>,
    /// Standard input held values.
    pub(crate) from_input: bool,
}

/// Reads and combines the values of a command line. With `from_stdin` standard input holds the values, and nothing else does.
///
/// # Errors
/// A file can't be read, or the lists make no sense.
pub(crate) fn rows(words: &[OsString], reading: &Reading, from_stdin: bool) -> Result<Rows> {
    let mut lists = lists(words, reading, from_stdin)?;
    let names = if reading.header {
        take_names(&mut lists, reading)
    } else {
        Vec::new()
    };
    let can_differ = reading.columns.is_some() || reading.per_job.is_some();
    let columns = (!can_differ).then_some(lists.len());
    let from_input = lists.iter().any(|list| list.from_input);
    let mut rows = Vec::new();
    for (number, mut values) in (1..).zip(combine(lists, reading)?) {
        values = divided(values, reading);
        rows.push(Row { values, number });
    }
    Ok(Rows {
        names,
        rows,
        columns,
        from_input,
    })
}

/// The file or input that holds the only list, if values come from a file.
pub(super) fn only_file(
    words: &[OsString],
    reading: &Reading,
    from_stdin: bool,
) -> Option<PathBuf> {
    let mut all = files(words);
    // Any other word after the command is a value, or begins a list of values.
    let has_values = words.len() != template(words).len() + 2 * all.len();
    all.extend(reading.files.iter().cloned());
    all.extend(from_stdin.then(|| "-".into()));
    (all.len() == 1 && !has_values).then(|| all.remove(0))
}

/// Rows that come: there is none yet. Waits for the first line, which may name the columns.
///
/// # Errors
/// The input can't be read.
pub(super) fn open_rows(lines: &mut Lines, reading: &Reading) -> Result<Rows> {
    lines.wait()?;
    let mut names = Vec::new();
    if reading.header
        && let Some(Line { place, bytes }) = lines.next()
    {
        let name = bytes.map_err(|why| usage(format!("{place}: {why}")))?;
        names = divided(vec![os(&name)], reading);
        lines.wait()?;
    }
    let can_differ = reading.columns.is_some() || reading.per_job.is_some();
    Ok(Rows {
        names,
        rows: Vec::new(),
        columns: (!can_differ).then_some(1),
        from_input: true,
    })
}

/// The columns of values.
pub(super) fn divided(values: Vec<OsString>, reading: &Reading) -> Vec<OsString> {
    let Some(separator) = &reading.columns else {
        return values;
    };
    let values = values.iter().map(|value| value.as_bytes());
    values.flat_map(|value| separator.split(value)).collect()
}

/// Takes the first value of each list, which names its columns.
fn take_names(lists: &mut [List], reading: &Reading) -> Vec<OsString> {
    let mut names = Vec::new();
    for List { values, .. } in lists {
        if !values.is_empty() {
            names.push(values.remove(0));
        }
    }
    divided(names, reading)
}

fn lists(words: &[OsString], reading: &Reading, from_stdin: bool) -> Result<Vec<List>> {
    let mut lists = Vec::new();
    for file in &reading.files {
        lists.push(List::read(file, false, reading)?);
    }
    let mut rest = &words[template(words).len()..];
    if from_stdin {
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
        lists.push(List {
            values,
            linked,
            from_input: false,
        });
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
    for List { values, linked, .. } in lists {
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

/// Says that standard input is waited for if nothing comes for two seconds, and what else can be done.
pub(crate) fn announce_silence(remedy: &str) {
    let input = std::io::stdin();
    let mut fds = [PollFd::new(&input, PollFlags::IN)];
    let is_silent = matches!(poll(&mut fds, Some(&PATIENCE)), Ok(0));
    if is_silent {
        stderr::say(format!(
            "cosched: waiting for values on standard input; {remedy}"
        ));
    }
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
    let end = reading.end.unwrap_or(b'\n');
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

    #[test]
    fn a_file_is_the_only_list_if_there_is_no_other_value() {
        let only = |words: &str, files: &[&str], from_stdin| {
            let words: Vec<OsString> = words.split_whitespace().map(OsString::from).collect();
            let reading = Reading {
                files: files.iter().map(PathBuf::from).collect(),
                ..Reading::default()
            };
            only_file(&words, &reading, from_stdin)
        };
        assert_eq!(only("x {}", &[], true), Some("-".into()));
        assert_eq!(only("x :::: a", &[], false), Some("a".into()));
        assert_eq!(only("x {}", &["a"], false), Some("a".into()));
        for (words, files) in [
            ("x ::: a", &[][..]),
            ("x ::: a", &["b"]),
            ("x :::: a", &["b"]),
            ("x :::: a b", &[]),
            ("x :::: a ::: b", &[]),
            ("x :::: a :::: b", &[]),
        ] {
            assert_eq!(only(words, files, false), None, "{words} {files:?}");
        }
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
            end: Some(0),
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
        assert_eq!(columns("|", "a|b"), ["a", "b"]);
        assert_eq!(columns("[,;]", "a,b;c,,"), ["a", "b", "c"]);
        for pattern in ["", "[,"] {
            let error = pattern.parse::<Separator>().unwrap_err();
            assert!(error.contains("as in ,"), "{error}");
        }
        let bytes = ",".parse::<Separator>().unwrap().split(b"\xff,\xe4");
        assert_eq!(bytes, [os(b"\xff"), os(b"\xe4")]);
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
