//! A list of commands, one on a line, as `parallel` and `xargs` take it.

use super::{Command, JobInput};

/// Each line is a command for the shell; empty lines and lines that begin with `#` are skipped.
pub(crate) fn parse(text: &str, file: &str) -> Vec<JobInput> {
    let lines = text.lines().enumerate().map(|(ix, line)| (ix + 1, line.trim()));
    lines
        .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
        .map(|(number, line)| JobInput::command(Command::Shell(line.to_owned()), format!("{file}:{number}")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_keep_their_numbers() {
        let jobs = parse("# list\n\n  gzip -k a  \nxz b\n", "jobs.txt");
        assert_eq!(jobs.len(), 2);
        assert_eq!(jobs[0].command, Some(Command::Shell("gzip -k a".to_owned())));
        assert_eq!(jobs[1].place, "jobs.txt:4");
    }
}
