//! A command with replacement strings and the values to put there: `gzip -k {} ::: a b c`.

use super::COMMAND_LINE;
use super::command::{Command, os, told};
use super::job::JobInput;
use super::lines::Lines;
use super::read::{OWN_INPUT, has_input};
use super::replacement::{Replacement, Row, Strings};
use super::shell_line::ShellTemplate;
use super::values::{self, Reading, Rows, announce_silence, divided, rows};
use super::word::Word;
use crate::exit::usage;
use anyhow::Result;
use std::ffi::OsString;
use std::io::IsTerminal;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// The jobs of a command line.
pub(crate) enum Parsed {
    /// All are known.
    Listed {
        jobs: Vec<JobInput>,
        /// Standard input held their values.
        from_input: bool,
    },
    /// Their values come while the run goes on.
    Open { lines: Lines, jobs: Box<ValueJobs> },
}

impl From<JobInput> for Parsed {
    fn from(job: JobInput) -> Parsed {
        Parsed::Listed {
            jobs: vec![job],
            from_input: false,
        }
    }
}

/// One command, or one for each row of values.
///
/// A single word with characters that a shell would interpret (blanks, redirections, pipes) is a line for the shell.
/// Several words are started without a shell. Without a replacement string the values go to the end.
///
/// Without `:::`, `::::` and `-a`, values come from standard input if the command has a replacement string or an option
/// is given that makes sense only with values. They also do if the caller lets them. Otherwise the command is a single
/// job, and standard input is its own. With `streams` values of a single list may come while the run goes on.
///
/// # Errors
/// There is no command or no value, a file can't be read, or a value can't be put where it should go.
pub(crate) fn parse(words: &[OsString], reading: &Reading, streams: bool) -> Result<Parsed> {
    let command = values::template(words);
    if command.is_empty() {
        let first = words.first().map(told);
        let first = first.unwrap_or_default();
        return Err(usage(format!(
            "there is no command before `{first}`; as in `cosched run gzip ::: a.txt`, or in a list, as in -f commands.txt"
        )));
    }
    if reading.is_bare {
        check_operators(command)?;
    }
    let mut strings = Strings {
        whole: reading.whole.as_deref(),
        columns: Vec::new(),
    };
    let has_lists = command.len() < words.len() || !reading.files.is_empty();
    let wants_values =
        reading.wants_values() || Template::new(command, &strings)?.has_replacement();
    let from_stdin = !has_lists && (wants_values || reading.is_bare && has_input());
    if !has_lists && !from_stdin {
        return Ok(single_job(command, reading)?.into());
    }
    if from_stdin && std::io::stdin().is_terminal() {
        return Err(no_value("the command wants values", &strings));
    }
    if from_stdin && !reading.quiet {
        announce_silence(if wants_values {
            "values can also follow the command, as in `cosched run gzip ::: a.txt`"
        } else {
            "for a command that takes none write `cosched run -- COMMAND`"
        });
    }
    let mut lines = match values::only_file(words, reading, from_stdin) {
        Some(file) if streams => Lines::open(&file, reading.end.unwrap_or(b'\n'), u64::MAX)?,
        _ => None,
    };
    let Rows {
        names,
        rows,
        columns,
        from_input,
    } = match &mut lines {
        Some(lines) => values::open_rows(lines, reading)?,
        None => rows(words, reading, from_stdin)?,
    };
    let has_none = lines.as_ref().map_or(rows.is_empty(), Lines::has_ended);
    if has_none && from_stdin && !wants_values {
        let job = single_job(command, reading)?;
        return Ok(JobInput { stdin: None, ..job }.into());
    }
    if has_none && !from_stdin && !reading.skip_empty {
        return Err(no_value("the lists hold no value", &strings));
    }
    strings.columns = names;
    let template = Template::new(command, &strings)?;
    let template = template.or_at_end(&strings).map_err(|error| {
        if wants_values || has_lists {
            return error;
        }
        usage(format!(
            "{error}; or write `--` before a line that takes no value"
        ))
    })?;
    template.check_positions(columns)?;
    let jobs = ValueJobs {
        template,
        tag: tag_template(reading, &strings)?,
        reading: reading.clone(),
        number: 0,
        held: Vec::new(),
    };
    if let Some(lines) = lines.filter(|_| !has_none) {
        let jobs = Box::new(jobs);
        return Ok(Parsed::Open { lines, jobs });
    }
    let jobs = jobs.all(rows)?;
    Ok(Parsed::Listed { jobs, from_input })
}

/// Words that mean something to a shell only.
const OPERATORS: [&str; 14] = [
    ">", ">>", "1>", "2>", "2>>", "&>", ">&2", "2>&1", "<", "|", "||", "&&", ";", "&",
];

/// Refuses a shell's operator as a word: GNU parallel gives the words to a shell, and cosched gives them to the program.
fn check_operators(command: &[OsString]) -> Result<()> {
    let operator = command
        .iter()
        .find(|word| OPERATORS.iter().any(|one| *word == one));
    let Some(operator) = operator else {
        return Ok(());
    };
    let operator = told(operator);
    Err(usage(format!(
        "`{operator}` as a word goes to the program, not to a shell; write the command as one word, as in \
         'sort {{}} > {{}}.out', or `--` before it if the program wants this word"
    )))
}

/// The most text that the commands for all values have, in MiB. More is taken for a mistake: a run needs about ten times as
/// much memory.
const MOST_TEXT_MIB: usize = 128;

/// Makes jobs from values.
pub(crate) struct ValueJobs {
    template: Template,
    tag: Option<Word>,
    reading: Reading,
    /// The number of the last job.
    number: u64,
    /// Values that are fewer than a job takes.
    held: Vec<OsString>,
}

impl ValueJobs {
    /// The job of a row.
    fn job(&self, row: Row, is_only: bool) -> Result<JobInput> {
        let command = self.template.fill(&row, self.reading.repeats)?;
        Ok(JobInput {
            tag: self.tag.as_ref().map(|tag| tag_text(tag, &row)),
            values: row.values,
            is_only,
            ..on_command_line(command)
        })
    }

    /// One job for each row of values.
    fn all(&self, rows: Vec<Row>) -> Result<Vec<JobInput>> {
        let is_only = rows.len() == 1;
        let mut length = 0;
        let mut jobs = Vec::with_capacity(rows.len());
        for row in rows {
            let job = self.job(row, is_only)?;
            length += job.command.as_ref().map_or(0, Command::length);
            if length > MOST_TEXT_MIB << 20 {
                return Err(usage(format!(
                    "the commands for all values have more than {MOST_TEXT_MIB} MiB; give fewer values at once, or a list through \
                     a pipe, as in `cat LIST | cosched run gzip {{}}`: its lines become jobs as they come"
                )));
            }
            jobs.push(job);
        }
        Ok(jobs)
    }

    /// Takes a value, and returns the job that is complete with it.
    ///
    /// # Errors
    /// It can't be a value.
    pub(crate) fn take(&mut self, value: OsString) -> Result<Option<JobInput>> {
        if value.as_bytes().contains(&0) {
            return Err(usage("the value holds a zero byte"));
        }
        if self.reading.skip_empty && value.as_bytes().trim_ascii().is_empty() {
            return Ok(None);
        }
        self.held.push(value);
        if self.held.len() < self.reading.per_job.unwrap_or(1) {
            return Ok(None);
        }
        self.rest().transpose()
    }

    /// Whether values wait for more.
    pub(crate) fn holds_some(&self) -> bool {
        !self.held.is_empty()
    }

    /// The job of the values that are left, if there are any.
    pub(crate) fn rest(&mut self) -> Option<Result<JobInput>> {
        if self.held.is_empty() {
            return None;
        }
        self.number += 1;
        let values = divided(std::mem::take(&mut self.held), &self.reading);
        let number = self.number;
        Some(self.job(Row { values, number }, false))
    }
}

/// A command without values. Its standard input is that of the run.
fn single_job(words: &[OsString], reading: &Reading) -> Result<JobInput> {
    let tag = tag_template(reading, &Strings::default())?;
    let row = Row {
        values: Vec::new(),
        number: 1,
    };
    Ok(JobInput {
        tag: tag.map(|tag| tag_text(&tag, &row)),
        stdin: has_input().then(|| OWN_INPUT.into()),
        is_only: true,
        ..on_command_line(whole_command(words))
    })
}

fn tag_template(reading: &Reading, strings: &Strings) -> Result<Option<Word>> {
    let Some(tag) = &reading.tag else {
        return Ok(None);
    };
    let tag = Word::parse(tag.as_bytes(), strings)?;
    if tag.has_slot() {
        return Err(usage(
            "--tagstring: {%} is known only when a job starts; {#} is its number",
        ));
    }
    Ok(Some(tag))
}

fn tag_text(tag: &Word, row: &Row) -> OsString {
    os(&tag.fill(row, false, <[u8]>::to_vec).join(&b' '))
}

fn on_command_line(command: Command) -> JobInput {
    JobInput::command(command, COMMAND_LINE.to_owned())
}

/// A command without values.
fn whole_command(words: &[OsString]) -> Command {
    match words {
        [line] if is_shell_line(line.as_bytes()) => Command::shell(line.clone()),
        words => Command::Argv(words.to_vec()),
    }
}

fn no_value(problem: &str, strings: &Strings) -> anyhow::Error {
    let what = strings.told();
    usage(format!(
        "{problem}; give values, as in `cosched run gzip ::: a.txt`, or -r if there may be none; a command in a list (-f) \
         keeps its {what}"
    ))
}

/// Whether the only word of a command is a line for the shell.
pub fn is_shell_line(word: &[u8]) -> bool {
    word.iter()
        .any(|byte| byte.is_ascii_whitespace() || b"|&;<>()$`\\\"'*?[]#~=%!".contains(byte))
}

/// A command with replacement strings.
enum Template {
    Shell(ShellTemplate),
    Words(Vec<Word>),
}

impl Template {
    fn new(words: &[OsString], strings: &Strings) -> Result<Template> {
        let mut parsed = Vec::new();
        for word in words {
            parsed.push(Word::parse(word.as_bytes(), strings)?);
        }
        // `{#}` alone makes no shell line, although the shell knows `#`.
        if let [word] = &parsed[..]
            && word.texts().any(is_shell_line)
        {
            let line = words[0].as_bytes();
            return Ok(Template::Shell(ShellTemplate::new(line, strings)?));
        }
        if parsed.iter().any(Word::has_slot) {
            return Ok(Template::Shell(ShellTemplate::of_words(parsed)));
        }
        Ok(Template::Words(parsed))
    }

    fn replacements(&self) -> Vec<Replacement> {
        match self {
            Template::Shell(line) => line.replacements().collect(),
            Template::Words(words) => words.iter().flat_map(Word::replacements).collect(),
        }
    }

    fn has_replacement(&self) -> bool {
        !self.replacements().is_empty()
    }

    /// The same command with the values at its end, if it has no replacement string.
    fn or_at_end(self, strings: &Strings) -> Result<Template> {
        if self.has_replacement() {
            return Ok(self);
        }
        match self {
            Template::Shell(line) => Ok(Template::Shell(line.with_values_at_end(strings)?)),
            Template::Words(mut words) => {
                words.push(Word::parse(b"{}", &Strings::default())?);
                Ok(Template::Words(words))
            }
        }
    }

    /// Checks that `{3}` has a third list, where the number of lists is known.
    fn check_positions(&self, columns: Option<usize>) -> Result<()> {
        let Some(columns) = columns else {
            return Ok(());
        };
        for what in self.replacements() {
            let Replacement::Nth(n, _) = what else {
                continue;
            };
            let number = n.unsigned_abs() as usize;
            if number > columns {
                let lists = match columns {
                    1 => "is one list".to_owned(),
                    _ => format!("are {columns} lists"),
                };
                return Err(usage(format!(
                    "{{{n}}} is the value of list {number}, and there {lists}; {{1}} is the first"
                )));
            }
        }
        Ok(())
    }

    /// The command of one job. With `repeats` the text around a string is written for each of several values.
    fn fill(&self, row: &Row, repeats: bool) -> Result<Command> {
        let words = match self {
            Template::Shell(line) => return Ok(line.fill(row, repeats)),
            Template::Words(words) => words,
        };
        let mut argv = Vec::new();
        for word in words {
            let filled = word.fill(row, repeats, <[u8]>::to_vec);
            argv.extend(filled.into_iter().map(OsString::from_vec));
        }
        if argv.is_empty() {
            let values: Vec<String> = row.values.iter().map(told).collect();
            let values = values.join(" ");
            return Err(usage(format!(
                "with the values `{values}` nothing is left of the command"
            )));
        }
        Ok(Command::Argv(argv))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(words: &str) -> Vec<String> {
        lines_with(words, &Reading::default())
    }

    fn lines_with(words: &str, reading: &Reading) -> Vec<String> {
        let words: Vec<OsString> = words.split('~').map(OsString::from).collect();
        listed(&words, reading)
            .into_iter()
            .map(|job| job.command.unwrap().line())
            .collect()
    }

    fn listed(words: &[OsString], reading: &Reading) -> Vec<JobInput> {
        match parse(words, reading, false).unwrap() {
            Parsed::Listed { jobs, .. } => jobs,
            Parsed::Open { .. } => panic!("nothing may stream"),
        }
    }

    fn error(words: &str) -> String {
        let words: Vec<OsString> = words.split('~').map(OsString::from).collect();
        let parsed = parse(&words, &Reading::default(), false);
        parsed.err().expect("an error").to_string()
    }

    #[test]
    fn values_go_where_they_are_wanted() {
        assert_eq!(
            lines("gzip~-k~{}~:::~a~b c"),
            ["gzip -k a", "gzip -k 'b c'"]
        );
        assert_eq!(lines("gzip~-k~:::~a"), ["gzip -k a"]);
        assert_eq!(lines("cp~{}~{}.bak~:::~a"), ["cp a a.bak"]);
        assert_eq!(
            lines("sort {} > {}.out~:::~a~b c"),
            ["sort a > a.out", "sort 'b c' > 'b c'.out"]
        );
        assert_eq!(
            lines("x~{2}-{1}~:::~a~b~:::~1~2"),
            ["x 1-a", "x 2-a", "x 1-b", "x 2-b"]
        );
        assert_eq!(lines("awk~{print}~:::~f"), ["awk '{print}' f"]);
        assert_eq!(lines("true"), ["true"]);
        assert_eq!(lines("sleep 1; true"), ["sleep 1; true"]);
        assert_eq!(lines("grep x file~:::~a b"), ["grep x file 'a b'"]);
    }

    #[test]
    fn parts_of_values_and_numbers() {
        assert_eq!(
            lines("cc~-o~{/.}~{}~:::~d/a.c~b.c"),
            ["cc -o a d/a.c", "cc -o b b.c"]
        );
        assert_eq!(
            lines("mv~{1}~{2//}/{1/}.{#}~:::~d/a~:::~e/b"),
            ["mv d/a e/a.1"]
        );
        assert_eq!(lines("echo~{#}~:::~a~b"), ["echo 1", "echo 2"]);
        assert_eq!(
            lines("env~D={%}~a b~{}~:::~x y"),
            ["env D=${PARALLEL_JOBSLOT} 'a b' 'x y'"]
        );
        assert_eq!(lines("a=b~{%}~:::~x"), ["'a=b' ${PARALLEL_JOBSLOT}"]);
        assert_eq!(lines("if~a=b~{%}~:::~x"), ["'if' a=b ${PARALLEL_JOBSLOT}"]);
        assert_eq!(lines("{}~:::~a"), ["a"]);
        assert_eq!(lines("{/}~x~:::~d/a"), ["a x"]);
        assert_eq!(lines("{//}~:::~d/a"), ["d"]);
    }

    #[test]
    fn several_values_are_several_words() {
        assert_eq!(lines("echo~{}~:::~a b~:::~c"), ["echo 'a b' c"]);
        assert_eq!(lines("echo {}~:::~a b~:::~c"), ["echo 'a b' 'c'"]);
        let two = Reading {
            per_job: Some(2),
            ..Reading::default()
        };
        assert_eq!(
            lines_with("echo~x{}y~:::~a~b~c", &two),
            ["echo xa by", "echo xcy"]
        );
        assert_eq!(lines_with("cp~{2}~{1}~:::~a~b~c", &two), ["cp b a", "cp c"]);
    }

    /// What GNU parallel 20221122 printed for the same words.
    #[test]
    fn text_around_a_string_is_repeated_for_each_value() {
        let two = Reading {
            per_job: Some(2),
            repeats: true,
            ..Reading::default()
        };
        let check = |words: &str, expected: &[&str]| {
            assert_eq!(lines_with(words, &two), expected, "{words}")
        };
        check("echo~x{}y~:::~a~b~c", &["echo xay xby", "echo xcy"]);
        check(
            "rm~{.}.o~{/}z~:::~d/a.c~e/b.c",
            &["rm d/a.o e/b.o a.cz b.cz"],
        );
        check(
            "echo~x{}y{1}z~:::~a~b~c",
            &["echo xayaz xbyaz", "echo xcycz"],
        );
        check(
            "echo~x{}y{.}z~{}{#}~:::~a.1~b.2",
            &["echo xa.1yaz xb.2ybz a.11 b.21"],
        );
        check("echo~{1}{#}{2}~:::~a~b~c", &["echo a1b", "echo c2"]);
        check("echo~pre~:::~a~b~c", &["echo pre a b", "echo pre c"]);
        let one = Reading {
            per_job: Some(1),
            repeats: true,
            ..Reading::default()
        };
        assert_eq!(
            lines_with("echo~x{}y~:::~a~b", &one),
            ["echo xay", "echo xby"]
        );
    }

    #[test]
    fn missing_parts_are_told() {
        for words in [":::~a", "x~:::", "x~:::~a~:::"] {
            assert!(error(words).contains("cosched run"));
        }
        assert!(
            error("x~{3}~:::~a").starts_with("{3} is the value of list 3, and there is one list")
        );
        assert!(error("x~{-2}~:::~a").starts_with("{-2} is the value of list 2"));
        assert!(error("echo hi;~:::~reboot").contains("write {} where the value belongs"));
    }

    /// As with `{}` two thousand times, for twenty thousand combinations of values.
    #[test]
    fn commands_that_would_fill_the_memory_are_refused() {
        let text = "{}".repeat(2_000);
        let values = |count: usize| vec!["x".repeat(100); count].join("~");
        let words = |count: usize| format!("echo~{text}~:::~{}", values(count));
        let error = error(&words(700));
        assert!(error.contains("more than 128 MiB"), "{error}");
        assert_eq!(lines(&words(3)).len(), 3);
    }

    #[test]
    fn values_are_bytes() {
        let words: Vec<OsString> = ["cat", "{}", ":::"]
            .iter()
            .map(OsString::from)
            .chain([OsString::from_vec(vec![0xff])])
            .collect();
        let jobs = listed(&words, &Reading::default());
        assert_eq!(jobs[0].command.as_ref().unwrap().line(), r"cat $'\377'");
    }
}
