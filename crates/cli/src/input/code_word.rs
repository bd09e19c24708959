//! Words that a program reads as code: what follows `sh -c`, `eval`, `ssh HOST`, `perl -e` and the like.
//!
//! A value is one argument, whatever it holds. But if that argument is a program's code, the program executes it. So
//! only values without special characters are put there.

/// Reads a simple command word by word, and knows whether the next word is code.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CodeWords {
    /// The option that announces code to the interpreter that was named.
    option: Option<u8>,
    next: bool,
    all: bool,
}

/// Interpreters, each with the letter of the option that is followed by code.
const INTERPRETERS: &[(&[&str], u8)] = &[
    (&["sh", "ash", "bash", "dash", "fish", "ksh", "mksh", "su", "zsh", "python", "python3"], b'c'),
    (&["lua", "node", "perl", "ruby"], b'e'),
    (&["php"], b'r'),
];

/// Commands that read all of their arguments as code, here or on another machine.
const ALL_CODE: &[&str] = &["eval", "rsh", "ssh", "trap"];

impl CodeWords {
    /// Takes in a word of the command; quotes in it count for nothing.
    pub(crate) fn word(&mut self, word: &[u8]) {
        let word: Vec<u8> = word.iter().copied().filter(|byte| !b"'\"\\".contains(byte)).collect();
        let name = word.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
        self.next = false;
        if ALL_CODE.iter().any(|command| command.as_bytes() == name) {
            self.all = true;
        } else if let Some((_, letter)) =
            INTERPRETERS.iter().find(|(names, _)| names.iter().any(|interpreter| interpreter.as_bytes() == name))
        {
            self.option = Some(*letter);
        } else if let (Some(letter), [b'-', letters @ ..]) = (self.option, &word[..])
            && !letters.starts_with(b"-")
        {
            self.next = letters.ends_with(&[letter]);
        }
    }

    /// Whether the word that comes next, or the present one if it is not complete yet, is code.
    pub(crate) fn is_code(&self) -> bool {
        self.next || self.all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_recognised() {
        let check = |words: &str, expected: bool| {
            let mut reader = CodeWords::default();
            words.split(' ').for_each(|word| reader.word(word.as_bytes()));
            assert_eq!(reader.is_code(), expected, "{words}");
        };
        for words in ["sh -c", "/bin/bash -lc", "env A=1 sudo sh -ec", "eval", "ssh host ls", "'sh' -c", "perl -we"] {
            check(words, true);
        }
        for words in ["sh", "sh -c x", "tar -c", "gcc -c", "sh -e", "grep -e", "sh --norc", "perl -c"] {
            check(words, false);
        }
    }
}
