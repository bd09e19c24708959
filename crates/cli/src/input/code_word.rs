//! Words that a program reads as code: what follows `sh -c`, `eval`, `ssh HOST`, `perl -e` and the like.
//!
//! A value is one argument, whatever it holds. But if that argument is a program's code, the program executes it. So
//! only values without special characters are put there. In doubt a word counts as code.

/// Reads a simple command word by word, and knows which words are code.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CodeWords {
    /// The interpreter that was named, while its options are read.
    reader: Option<&'static Interpreter>,
    /// The word before is an option that can have this one as its argument.
    argument: bool,
    /// A shell was told that its first word that is no option is code.
    shell_code: bool,
    /// The next word is code.
    next: bool,
    /// All further words are code.
    all: bool,
}

/// A program that takes code as an argument.
#[derive(Debug)]
struct Interpreter {
    /// Its names without a version.
    names: &'static [&'static str],
    /// The letters of options that are followed by code.
    code: &'static [u8],
    /// The same in words.
    words: &'static [&'static str],
    /// The letters of options that have an argument, behind them in the word or in the next one.
    arguments: &'static [u8],
    /// The code is the first word that is no option, and not the word after the letter.
    is_shell: bool,
    /// Options can stand behind other words.
    permutes: bool,
}

const NONE: Interpreter =
    Interpreter { names: &[], code: b"", words: &[], arguments: b"", is_shell: false, permutes: false };

static INTERPRETERS: &[Interpreter] = &[
    Interpreter {
        names: &["sh", "ash", "bash", "dash", "fish", "ksh", "mksh", "zsh"],
        code: b"c",
        words: &["command"],
        arguments: b"oO",
        is_shell: true,
        ..NONE
    },
    Interpreter { names: &["su"], code: b"c", words: &["command", "session-command"], permutes: true, ..NONE },
    Interpreter { names: &["python", "pypy"], code: b"c", arguments: b"QWX", ..NONE },
    Interpreter { names: &["perl"], code: b"eE", arguments: b"DFIMdimx", ..NONE },
    Interpreter { names: &["ruby"], code: b"e", arguments: b"CEFIKTWirx", ..NONE },
    Interpreter { names: &["lua"], code: b"e", arguments: b"l", ..NONE },
    Interpreter { names: &["node", "nodejs"], code: b"ep", words: &["eval", "print"], arguments: b"Cr", ..NONE },
    Interpreter { names: &["php"], code: b"BERr", words: &["run"], arguments: b"Scdfz", ..NONE },
];

/// Commands that read all of their arguments as code, here or on another machine.
const ALL_CODE: &[&str] = &["eval", "rsh", "ssh", "trap"];

impl Interpreter {
    fn of(name: &[u8]) -> Option<&'static Interpreter> {
        let version = name.iter().rev().take_while(|byte| byte.is_ascii_digit() || b".-".contains(byte)).count();
        let stem = &name[..name.len() - version];
        INTERPRETERS.iter().find(|one| one.names.iter().any(|name| name.as_bytes() == stem))
    }

    /// Where code begins in an option, given without its first dash: behind its letter, or behind `=`.
    fn code_at(&self, option: &[u8]) -> Option<usize> {
        if let Some(long) = option.strip_prefix(b"-") {
            let name = long.split(|&byte| byte == b'=').next().unwrap_or_default();
            let is_known = self.words.iter().any(|word| word.as_bytes() == name);
            return is_known.then_some((1 + name.len() + 1).min(option.len()));
        }
        let end = option.iter().position(|letter| self.arguments.contains(letter)).unwrap_or(option.len());
        option[..end].iter().position(|letter| self.code.contains(letter)).map(|at| at + 1)
    }
}

impl CodeWords {
    /// Takes in a word of the command; quotes in it count for nothing.
    pub(crate) fn word(&mut self, word: &[u8]) {
        let word = bare(word);
        if std::mem::take(&mut self.next) {
            return;
        }
        let name = word.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
        self.all |= ALL_CODE.iter().any(|command| command.as_bytes() == name);
        let Some(reader) = self.reader else {
            self.reader = Interpreter::of(name);
            return;
        };
        match word.strip_prefix(b"-") {
            Some(b"-") if self.shell_code => {}
            Some(b"" | b"-") => self.reader = None,
            Some(option) => {
                // An unknown long option may have an argument.
                self.argument = option.starts_with(b"-") && !option.contains(&b'=');
                match reader.code_at(option) {
                    Some(_) if reader.is_shell => self.shell_code = true,
                    Some(at) => {
                        // In `node -pe` both letters want the code that follows.
                        let ends = option.last().is_some_and(|letter| reader.code.contains(letter));
                        self.next = (at == option.len() || ends) && !option.contains(&b'=');
                        self.argument = false;
                    }
                    None => {}
                }
                // `-eo pipefail`, `-I folder`
                let last = option.last().filter(|_| !option.starts_with(b"-"));
                self.argument |= last.is_some_and(|letter| reader.arguments.contains(letter));
            }
            None if std::mem::take(&mut self.argument) || reader.permutes => {}
            // Its program, or the code itself; what follows are that program's arguments.
            None => (self.reader, self.shell_code) = (None, false),
        }
    }

    /// Whether what comes next is code, in a word that begins with this.
    pub(crate) fn is_code_in(&self, begun: &[u8]) -> bool {
        let begun = bare(begun);
        let attached = self.reader.zip(begun.strip_prefix(b"-"));
        let attached = attached.is_some_and(|(reader, option)| !reader.is_shell && reader.code_at(option).is_some());
        self.all || self.next || attached || (self.shell_code && !begun.starts_with(b"-"))
    }
}

/// A word without its quotes.
fn bare(word: &[u8]) -> Vec<u8> {
    word.iter().copied().filter(|byte| !b"'\"\\".contains(byte)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a value at the end of these words is code; the last word has only begun.
    fn is_code(words: &str) -> bool {
        let mut words: Vec<&str> = words.split(' ').collect();
        let begun = words.pop().unwrap();
        let mut reader = CodeWords::default();
        words.iter().for_each(|word| reader.word(word.as_bytes()));
        reader.is_code_in(begun.as_bytes())
    }

    #[test]
    fn code_is_recognised() {
        for words in [
            "sh -c ",
            "/bin/bash -lc ",
            "env A=1 sudo sh -ec ",
            "eval ",
            "ssh host ls ",
            "'sh' -c ",
            "sh -ce ",
            "bash -cx ",
            "bash -c -e ",
            "bash -c -- ",
            "bash -eo pipefail -c ",
            "bash --rcfile f -c ",
            "bash -c -o pipefail ",
            "fish --command ",
            "su bob -c ",
            "perl -we ",
            "perl -i -pe ",
            "perl -I lib -lne ",
            "perl -eprint",
            "perl '-eprint+\"",
            "perl -e 1 -e ",
            "perl5.36 -E ",
            "python3.12 -c ",
            "python -W ignore -c ",
            "pypy3 -c1+",
            "node --eval ",
            "node --eval=1+",
            "node -pe ",
            "php8.2 -d a=1 -r ",
            "ruby -rset -ne ",
        ] {
            assert!(is_code(words), "{words}");
        }
    }

    #[test]
    fn arguments_are_no_code() {
        for words in [
            "sh ",
            "sh -c x ",
            "sh -c x -c ",
            "tar -c ",
            "gcc -c ",
            "sh -e ",
            "grep -e ",
            "sh --norc ",
            "perl -c ",
            "perl -I",
            "perl -Mre",
            "python3 tool.py -c ",
            "python3 -u tool.py -c ",
            "python3 -m mod -c ",
            "bash script -c ",
            "perl -e 1 x -e ",
            "node x.js --eval ",
            "ruby -r",
        ] {
            assert!(!is_code(words), "{words}");
        }
    }
}
