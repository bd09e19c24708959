//! A line for the shell with replacement strings: values go in as the shell's variables.
//!
//! `sort {} > {}.out` becomes the script `cosched_1=$1; set --; sort "${cosched_1}" > "${cosched_1}".out`, which is run
//! as `sh -c SCRIPT sh VALUE`. The shell has parsed the script before it looks at the value, so a value is never
//! executed, split or expanded. For people there is the line with the quoted value in its place.

use super::command::{Command, ShellLine, is_plain_byte, os, quote, quote_always};
use super::replacement::{Replacement, Row};
use super::shell_lexer::{Lexed, Piece, Place, Quoting, lex};
use crate::exit::usage;
use cosched_report::is_hidden;
use std::ffi::OsString;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;

/// A line for the shell with replacement strings.
#[derive(Clone, Debug)]
pub(crate) struct ShellTemplate {
    line: Vec<u8>,
    pieces: Vec<Piece>,
}

/// A line that is being filled with the values of a job.
struct Filled<'a> {
    row: &'a Row,
    /// Each distinct replacement string has variables of its own, by their numbers.
    known: Vec<(Replacement, Vec<usize>)>,
    values: Vec<OsString>,
    body: Vec<u8>,
    shown: Option<String>,
}

impl Filled<'_> {
    /// Adds text of the line.
    fn push(&mut self, text: &[u8]) {
        self.body.extend(text);
        self.shown = self
            .shown
            .take()
            .and_then(|shown| Some(shown + std::str::from_utf8(text).ok()?));
    }

    /// The numbers of the variables that a replacement string stands for.
    fn numbers(&mut self, what: Replacement) -> Vec<usize> {
        if let Some((_, numbers)) = self.known.iter().find(|(known, _)| *known == what) {
            return numbers.clone();
        }
        let from = self.values.len() + 1;
        self.values.extend(what.of(self.row));
        let numbers: Vec<usize> = (from..=self.values.len()).collect();
        self.known.push((what, numbers.clone()));
        numbers
    }
}

impl ShellTemplate {
    /// Takes a line apart.
    ///
    /// # Errors
    /// A replacement string stands where no value can be put safely.
    pub(crate) fn new(line: &[u8]) -> anyhow::Result<ShellTemplate> {
        Ok(ShellTemplate {
            line: line.to_vec(),
            pieces: lex(line)?.pieces,
        })
    }

    /// Its replacement strings.
    pub(crate) fn replacements(&self) -> impl Iterator<Item = Replacement> {
        self.places().map(|place| place.what)
    }

    /// The same line with `{}` as its last argument.
    ///
    /// # Errors
    /// A word at its end would be no argument.
    pub(crate) fn with_values_at_end(self) -> anyhow::Result<ShellTemplate> {
        let Lexed {
            no_more: Some(why), ..
        } = lex(&self.line)?
        else {
            return ShellTemplate::new(&[&self.line, &b" {}"[..]].concat());
        };
        let shown = cosched_report::visible_bytes(&self.line);
        Err(usage(format!(
            "the line for the shell has no {{}}, and the value can't go to its end, since {why}: {shown}; write {{}} where it \
             belongs, as in `sort {{}} > {{}}.out`"
        )))
    }

    fn places(&self) -> impl Iterator<Item = &Place> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Place(place) => Some(place),
            Piece::Text(_) => None,
        })
    }

    /// The command of one job. With `repeats` the text around a string is written for each of several values.
    ///
    /// # Errors
    /// A value with special characters would become code, or it is not clear what is to be repeated.
    pub(crate) fn fill(&self, row: &Row, repeats: bool) -> anyhow::Result<Command> {
        let mut filled = Filled {
            row,
            known: Vec::new(),
            values: Vec::new(),
            body: Vec::new(),
            shown: Some(String::new()),
        };
        let mut at = 0;
        for unit in if repeats && row.values.len() > 1 {
            self.units()?
        } else {
            Vec::new()
        } {
            self.fill_range(at..unit.start, None, &mut filled)?;
            for nth in 0..row.values.len() {
                if nth > 0 {
                    filled.push(b" ");
                }
                self.fill_range(unit.clone(), Some(nth), &mut filled)?;
            }
            at = unit.end;
        }
        self.fill_range(at..self.line.len(), None, &mut filled)?;
        let Filled {
            values,
            body,
            shown,
            ..
        } = filled;
        let set: Vec<String> = (1..=values.len())
            .map(|number| format!("cosched_{number}=${{{number}}}"))
            .collect();
        let mut script = if set.is_empty() {
            Vec::new()
        } else {
            format!("{}; set --; ", set.join(" ")).into_bytes()
        };
        script.extend(body);
        // What a terminal could obey is shown by the quoted form of the whole command.
        let shown = shown.filter(|shown| !shown.contains(is_hidden));
        Ok(Command::Shell(ShellLine {
            script: os(&script),
            values,
            shown,
            shell: None,
        }))
    }

    /// The parts of the line that are repeated for each value of a job.
    fn units(&self) -> anyhow::Result<Vec<Range<usize>>> {
        let mut units: Vec<Range<usize>> = Vec::new();
        for place in self
            .places()
            .filter(|place| matches!(place.what, Replacement::All(_)))
        {
            let Some(unit) = &place.unit else {
                return Err(usage(format!(
                    "-N repeats the text around {} for each value, and here it ends inside quotes that hold more: {}; with -n \
                     the values stand there side by side, and {{1}} and {{2}} name them",
                    cosched_report::visible_bytes(&self.line[place.at.clone()]),
                    cosched_report::visible_bytes(&self.line)
                )));
            };
            // Places in a substitution can stand within what is repeated as a whole.
            let mut whole = unit.clone();
            while let Some(last) = units.pop_if(|last| whole.start < last.end) {
                whole = last.start.min(whole.start)..last.end.max(whole.end);
            }
            units.push(whole);
        }
        Ok(units)
    }

    /// Fills in a part of the line, with all values or with the one that is told.
    fn fill_range(
        &self,
        range: Range<usize>,
        nth: Option<usize>,
        filled: &mut Filled,
    ) -> anyhow::Result<()> {
        for piece in &self.pieces {
            let place = match piece {
                Piece::Text(text) => {
                    let (from, to) = (text.start.max(range.start), text.end.min(range.end));
                    if from < to {
                        filled.push(&self.line[from..to]);
                    }
                    continue;
                }
                Piece::Place(place) if range.contains(&place.at.start) => place,
                Piece::Place(_) => continue,
            };
            let mut numbers = filled.numbers(place.what);
            if let (Some(nth), Replacement::All(_)) = (nth, place.what) {
                numbers = vec![numbers[nth]];
            }
            let texts: Vec<&[u8]> = numbers
                .iter()
                .map(|&number| filled.values[number - 1].as_bytes())
                .collect();
            if place.is_code {
                texts.iter().try_for_each(|text| check_code(text))?;
            }
            let text = self.shown(place, &texts);
            let join = |between: &str, form: &dyn Fn(&usize) -> String| {
                numbers.iter().map(form).collect::<Vec<_>>().join(between)
            };
            filled.body.extend(match place.quoting {
                Quoting::None => {
                    join(" ", &|number| format!("\"${{cosched_{number}}}\"")).into_bytes()
                }
                Quoting::Double | Quoting::Here => {
                    join(" ", &|number| format!("${{cosched_{number}}}")).into_bytes()
                }
                Quoting::Single => format!(
                    "'\"{}\"'",
                    join(" ", &|number| format!("${{cosched_{number}}}"))
                )
                .into_bytes(),
            });
            filled.shown = filled.shown.take().and_then(|shown| Some(shown + &text?));
        }
        Ok(())
    }

    /// The quoted values as they can stand in the place; `None` if they can't.
    fn shown(&self, place: &Place, texts: &[&[u8]]) -> Option<String> {
        let before = self.line[..place.at.start].last().copied();
        // After a letter the text could become part of a variable's name.
        let is_apart = before.is_none_or(|byte| b" \t\n/.,:@%+-=\"'".contains(&byte));
        let is_plain =
            |text: &[u8]| !text.is_empty() && text.iter().all(|&byte| is_plain_byte(byte));
        let all_plain = texts.iter().all(|text| is_plain(text));
        let joined = || String::from_utf8_lossy(&texts.join(&b' ')).into_owned();
        match place.quoting {
            Quoting::None => {
                let bare = texts.len() == 1 && self.can_stand_bare(place, texts[0]);
                let words = texts.iter().map(|text| {
                    if bare {
                        quote(text)
                    } else {
                        quote_always(text)
                    }
                });
                Some(words.collect::<Vec<_>>().join(" "))
            }
            Quoting::Double if all_plain && is_apart => Some(joined()),
            Quoting::Double => Some(format!("\"{}\"", quote_always(&texts.join(&b' ')))),
            Quoting::Single if all_plain => Some(joined()),
            Quoting::Single => Some(format!("'{}'", quote_always(&texts.join(&b' ')))),
            Quoting::Here => (all_plain && is_apart).then(joined),
        }
    }

    /// Whether a plain value means the same without quotes: the whole word must be plain, and be no word of the shell's
    /// own, no assignment and no number of a redirection.
    fn can_stand_bare(&self, place: &Place, value: &[u8]) -> bool {
        let is_part = |byte: &u8| is_plain_byte(*byte) && *byte != b'=';
        if !value.iter().all(is_part) {
            return false;
        }
        let (head, tail) = (&self.line[..place.at.start], &self.line[place.at.end..]);
        let start = head.len() - head.iter().rev().take_while(|byte| is_part(byte)).count();
        let length = tail.iter().take_while(|byte| is_part(byte)).count();
        let begins = start == 0 || b" \t\n".contains(&head[start - 1]);
        let ends = tail
            .get(length)
            .is_none_or(|byte| b" \t\n;|&)".contains(byte));
        let alone = start == head.len() && length == 0;
        let has_mark = |text: &[u8]| text.iter().any(|byte| !byte.is_ascii_alphabetic());
        // `{}` alone is checked by its value; with letters around it could become a word of the shell's own.
        let is_own = if alone {
            super::command::is_special_first(value)
        } else {
            !has_mark(&head[start..]) && !has_mark(&tail[..length])
        };
        begins && ends && !is_own
    }
}

/// Refuses a value with special characters where a program takes it for code.
pub(crate) fn check_code(value: &[u8]) -> anyhow::Result<()> {
    if !value.is_empty() && value.iter().all(|&byte| is_plain_byte(byte)) {
        return Ok(());
    }
    Err(usage(format!(
        "the value {} would be read as code, since its place is in the code of a shell or another program; pass it as an \
         argument instead, as in `sh -c 'echo \"$1\"' sh {{}}`",
        cosched_report::visible(&quote(value))
    )))
}

#[cfg(test)]
#[path = "shell_line_tests.rs"]
mod tests;
