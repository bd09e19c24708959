//! A command with `{}` and the values to put there: `gzip -k {} ::: a b c`.

use super::{Command, JobInput, quote};
use crate::exit::usage;

/// One command, or one for each value after `:::`.
///
/// A single word with characters that a shell would interpret (blanks, redirections, pipes) is a line for the shell;
/// values are quoted when they are put into it. Several words are started without a shell. Without `{}` the value goes
/// to the end. Several `:::` give every combination; `{1}` is a value of the first list, `{2}` of the second.
pub(crate) fn parse(words: &[String]) -> anyhow::Result<Vec<JobInput>> {
    let mut parts = words.split(|word| word == ":::");
    let template = parts.next().unwrap_or_default();
    let sources: Vec<&[String]> = parts.collect();
    if template.is_empty() {
        return Err(usage("there is no command before `:::`; as in `cosched run gzip -k {} ::: a.txt b.txt`"));
    }
    let place = super::COMMAND_LINE.to_owned();
    if sources.is_empty() {
        let command = match template {
            [line] if is_shell_line(line) => Command::Shell(line.clone()),
            words => Command::Argv(words.to_vec()),
        };
        return Ok(vec![JobInput::command(command, place)]);
    }
    let mut combinations: Vec<Vec<&str>> = vec![Vec::new()];
    for source in &sources {
        if source.is_empty() {
            return Err(usage("there is no value after `:::`; as in `cosched run gzip -k {} ::: a.txt b.txt`"));
        }
        let mut longer = Vec::new();
        for value in *source {
            longer.extend(combinations.iter().map(|done| [&done[..], &[value.as_str()]].concat()));
        }
        combinations = longer;
    }
    let command = |values: &Vec<&str>| match template {
        [line] if is_shell_line(line) => {
            let quoted: Vec<String> = values.iter().map(|value| quote(value)).collect();
            let quoted: Vec<&str> = quoted.iter().map(String::as_str).collect();
            Command::Shell(match fill(line, &quoted) {
                Some(filled) => filled,
                None => format!("{line} {}", quoted.join(" ")),
            })
        }
        words => {
            let mut used = false;
            let mut argv: Vec<String> = Vec::new();
            for word in words {
                match fill(word, values) {
                    Some(filled) => {
                        used = true;
                        argv.push(filled);
                    }
                    None => argv.push(word.clone()),
                }
            }
            if !used {
                argv.extend(values.iter().map(|value| (*value).to_owned()));
            }
            Command::Argv(argv)
        }
    };
    Ok(combinations.iter().map(|values| JobInput::command(command(values), place.clone())).collect())
}

fn is_shell_line(word: &str) -> bool {
    word.contains(|c: char| c.is_whitespace() || "|&;<>()$`\\\"'*?[]#~=%!".contains(c))
}

/// Replaces `{}` and `{N}` by the values; `None` if the text has neither.
fn fill(text: &str, values: &[&str]) -> Option<String> {
    let mut result = String::new();
    let mut rest = text;
    let mut used = false;
    while let Some(start) = rest.find('{') {
        let Some(length) = rest[start..].find('}') else { break };
        let inside = &rest[start + 1..start + length];
        let value = match inside {
            "" => Some(values.join(" ")),
            number => number.parse::<usize>().ok().and_then(|n| values.get(n.checked_sub(1)?)).map(|&v| v.to_owned()),
        };
        result.push_str(&rest[..start]);
        match value {
            Some(value) => {
                used = true;
                result.push_str(&value);
                rest = &rest[start + length + 1..];
            }
            None => {
                result.push('{');
                rest = &rest[start + 1..];
            }
        }
    }
    result.push_str(rest);
    used.then_some(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(words: &str) -> Vec<String> {
        let words: Vec<String> = words.split('~').map(str::to_owned).collect();
        parse(&words).unwrap().into_iter().map(|job| job.command.unwrap().line()).collect()
    }

    #[test]
    fn values_go_where_they_are_wanted() {
        assert_eq!(lines("gzip~-k~{}~:::~a~b c"), ["gzip -k a", "gzip -k 'b c'"]);
        assert_eq!(lines("gzip~-k~:::~a"), ["gzip -k a"]);
        assert_eq!(lines("cp~{}~{}.bak~:::~a"), ["cp a a.bak"]);
        assert_eq!(lines("sort {} > {}.out~:::~a~b c"), ["sort a > a.out", "sort 'b c' > 'b c'.out"]);
        assert_eq!(lines("x~{2}-{1}~:::~a~b~:::~1~2"), ["x 1-a", "x 1-b", "x 2-a", "x 2-b"]);
        assert_eq!(lines("awk~{print}~:::~f"), ["awk '{print}' f"]);
        assert_eq!(lines("true"), ["true"]);
        assert_eq!(lines("sleep 1; true"), ["sleep 1; true"]);
    }

    #[test]
    fn missing_parts_are_told() {
        for words in [":::~a", "x~:::", "x~:::~a~:::"] {
            let words: Vec<String> = words.split('~').map(str::to_owned).collect();
            assert!(parse(&words).unwrap_err().to_string().contains("cosched run"));
        }
    }
}
