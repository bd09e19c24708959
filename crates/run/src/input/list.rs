//! A list of commands, one on a line, as `parallel` and `xargs` take it.

use super::command::{Command, os};
use super::job::JobInput;
use super::json_line;
use crate::exit::usage;

/// Each line is a command for the shell, or a JSON object; empty lines and lines that begin with `#` are skipped. A command is bytes, as
/// file names are.
///
/// # Errors
/// A line holds a zero byte, which no command can.
pub(crate) fn parse(bytes: &[u8], file: &str) -> anyhow::Result<Vec<JobInput>> {
    let mut jobs = Vec::new();
    for (number, line) in (1..).zip(bytes.split(|&byte| byte == b'\n')) {
        jobs.extend(job(line, &format!("{file}:{number}"))?);
    }
    Ok(jobs)
}

/// The job of a line; `None` if there is none.
///
/// # Errors
/// The line holds a zero byte.
pub(crate) fn job(line: &[u8], place: &str) -> anyhow::Result<Option<JobInput>> {
    let line = line.trim_ascii();
    if line.is_empty() || line.starts_with(b"#") {
        return Ok(None);
    }
    if line.contains(&0) {
        return Err(usage(format!("{place}: the command holds a zero byte")));
    }
    if json_line::is_object(line) {
        return json_line::job(line, place).map(Some);
    }
    let command = Command::shell(os(line));
    Ok(Some(JobInput::command(command, place.to_owned())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_keep_their_numbers() {
        let jobs = parse(b"# list\n\n  gzip -k a  \nxz b\n", "jobs.txt").unwrap();
        assert_eq!(jobs.len(), 2);
        assert_eq!(jobs[0].command, Some(Command::shell("gzip -k a")));
        assert_eq!(jobs[1].place, "jobs.txt:4");
    }

    #[test]
    fn commands_are_bytes() {
        let jobs = parse(b"cat \xff\r\n", "jobs.txt").unwrap();
        assert_eq!(jobs[0].command, Some(Command::shell(os(b"cat \xff"))));
        assert!(
            parse(b"a\nb\0c\n", "jobs.txt")
                .unwrap_err()
                .to_string()
                .starts_with("jobs.txt:2: ")
        );
    }
}
