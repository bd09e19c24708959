//! The command of a job, and how it is written so that a shell reads it in the same way.
//!
//! Commands are bytes, as file names are. Where text is needed (records, job logs, the terminal) a command is one line
//! that can be pasted into a shell: what is plain stays as it is, the rest is quoted. Bytes that are no UTF-8 and
//! control characters are written as in `$'\033'`, so two commands never have the same line unless they do the same.

use cosched_report::is_hidden;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// The command of a job.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Command {
    /// A program with its arguments, started without a shell.
    Argv(Vec<OsString>),
    /// A line for a shell's `-c`.
    Shell(ShellLine),
}

/// A shell for lines.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Shell {
    /// As the user named it.
    pub(crate) name: OsString,
    /// The program.
    pub(crate) path: PathBuf,
}

/// A line for a shell's `-c`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ShellLine {
    /// The line, with quoted values.
    pub(crate) script: OsString,
    /// The shell that reads it; `/bin/sh` by default.
    pub(crate) shell: Option<Rc<Shell>>,
}

impl Command {
    /// A line for `/bin/sh`.
    pub(crate) fn shell(line: impl Into<OsString>) -> Command {
        Command::Shell(ShellLine {
            script: line.into(),
            shell: None,
        })
    }

    /// Number of bytes in its words.
    pub(crate) fn length(&self) -> usize {
        match self {
            Command::Argv(words) => words.iter().map(|word| word.len()).sum(),
            Command::Shell(line) => line.script.len(),
        }
    }

    /// The command as one line that a shell would read in the same way.
    pub(crate) fn line(&self) -> String {
        match self {
            Command::Argv(words) => {
                let mut quoted = Vec::new();
                for (ix, word) in words.iter().enumerate() {
                    let word = word.as_bytes();
                    if ix == 0 && is_special_first(word) {
                        quoted.push(quote_always(word));
                    } else {
                        quoted.push(quote(word));
                    }
                }
                quoted.join(" ")
            }
            Command::Shell(line) => match line.script.to_str() {
                Some(text) if !text.contains(is_hidden) => text.to_owned(),
                _ => {
                    let words = line.words();
                    let words = words.iter().map(|word| quote(word.as_bytes()));
                    words.collect::<Vec<_>>().join(" ")
                }
            },
        }
    }

    /// The command as one line that any POSIX shell reads in the same way, and nobody else: bytes stay as they are.
    pub(crate) fn line_for_sh(&self) -> Vec<u8> {
        let words = match self {
            Command::Argv(words) => words,
            Command::Shell(line) => return line.script.as_bytes().to_vec(),
        };
        let mut quoted = Vec::new();
        for (ix, word) in words.iter().enumerate() {
            let quote = quote_at(ix);
            quoted.push(quote(word.as_bytes()));
        }
        quoted.join(&b' ')
    }
}

impl ShellLine {
    /// The program of the shell.
    pub(crate) fn program(&self) -> &Path {
        match &self.shell {
            Some(shell) => &shell.path,
            None => Path::new("/bin/sh"),
        }
    }

    /// The words with which the shell is called.
    pub(crate) fn words(&self) -> Vec<OsString> {
        let name = match &self.shell {
            Some(shell) => shell.name.clone(),
            None => "sh".into(),
        };
        vec![name, "-c".into(), self.script.clone()]
    }
}

/// Words that mean something else than a program's name at the beginning of a command.
const RESERVED: &str = "! { } [[ ]] case coproc do done elif else esac fi for function if in select then time until while";

/// Whether the shell would read this word, as the first of a command, as its own and not as a program's name.
fn is_special_first(word: &[u8]) -> bool {
    let mut reserved = RESERVED.split(' ').map(str::as_bytes);
    word.contains(&b'=') || reserved.any(|reserved| reserved == word)
}

/// Whether a shell takes this byte for itself everywhere.
pub(crate) fn is_plain_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"%+,-./:=@_".contains(&byte)
}

/// Whether a word means itself without quotes, after other words.
fn is_plain(word: &[u8]) -> bool {
    !word.is_empty() && word.iter().all(|&byte| is_plain_byte(byte))
}

/// Whether a word means itself without quotes, also at the beginning of a command.
pub(crate) fn is_bare(word: &[u8]) -> bool {
    is_plain(word) && !is_special_first(word)
}

/// Quotes a word for the shell if it needs it.
pub fn quote(word: &[u8]) -> String {
    match std::str::from_utf8(word) {
        Ok(text) if is_plain(word) => text.to_owned(),
        _ => quote_always(word),
    }
}

/// A path as text: as it is, or quoted for a shell if it is no UTF-8.
pub fn path_text(path: &Path) -> String {
    match path.to_str() {
        Some(text) => text.to_owned(),
        None => quote(path.as_os_str().as_bytes()),
    }
}

/// Quotes a word for the shell.
fn quote_always(word: &[u8]) -> String {
    if let Ok(text) = std::str::from_utf8(word)
        && !text.contains(is_hidden)
    {
        return format!("'{}'", text.replace('\'', r"'\''"));
    }
    quote_in_a_line(word)
}

/// What quotes the word at a place of a command for any POSIX shell if it needs it; its bytes stay as they are.
pub(crate) fn quote_at(ix: usize) -> fn(&[u8]) -> Vec<u8> {
    if ix == 0 {
        quote_first
    } else {
        quote_if_needed
    }
}

fn quote_first(word: &[u8]) -> Vec<u8> {
    if is_special_first(word) {
        quote_for_sh(word)
    } else {
        quote_if_needed(word)
    }
}

/// Quotes a word for any POSIX shell if it needs it; its bytes stay as they are.
pub fn quote_if_needed(word: &[u8]) -> Vec<u8> {
    if is_plain(word) {
        word.to_vec()
    } else {
        quote_for_sh(word)
    }
}

/// Quotes a word for any POSIX shell; its bytes stay as they are.
pub(crate) fn quote_for_sh(word: &[u8]) -> Vec<u8> {
    [b"'", &in_single_quotes(word)[..], b"'"].concat()
}

/// A text for between single quotes, in any POSIX shell.
pub(crate) fn in_single_quotes(text: &[u8]) -> Vec<u8> {
    let mut quoted = Vec::with_capacity(text.len());
    for &byte in text {
        match byte {
            b'\'' => quoted.extend_from_slice(br"'\''"),
            byte => quoted.push(byte),
        }
    }
    quoted
}

/// A text for between double quotes, in any POSIX shell. What is not plain stands in single quotes: there each byte but one
/// means itself, whatever the encoding.
pub(crate) fn in_double_quotes(text: &[u8]) -> Vec<u8> {
    let is_plain = |&byte: &u8| is_plain_byte(byte) || byte == b' ';
    if text.iter().all(is_plain) {
        text.to_vec()
    } else {
        [b"\"", &quote_for_sh(text)[..], b"\""].concat()
    }
}

/// Quotes a word for bash, so that it stays in one line and holds no tab.
pub(crate) fn quote_in_a_line(word: &[u8]) -> String {
    let mut quoted = "$'".to_owned();
    for chunk in word.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\n' => quoted.push_str("\\n"),
                '\t' => quoted.push_str("\\t"),
                '\'' | '\\' => quoted.extend(['\\', c]),
                c if is_hidden(c) => {
                    let mut bytes = [0; 4];
                    c.encode_utf8(&mut bytes);
                    push_octal(&mut quoted, &bytes[..c.len_utf8()]);
                }
                c => quoted.push(c),
            }
        }
        push_octal(&mut quoted, chunk.invalid());
    }
    quoted.push('\'');
    quoted
}

/// Writes three digits for each byte: with fewer, or in hexadecimal, a digit that follows could be taken for a part of it.
fn push_octal(text: &mut String, bytes: &[u8]) {
    for byte in bytes {
        text.push_str(&format!("\\{byte:03o}"));
    }
}

/// The word that [`quote`] wrote; `None` if it did not write this text.
pub fn unquote(text: &str) -> Option<OsString> {
    let text = text.as_bytes();
    if is_plain(text) {
        return Some(os(text));
    }
    let inner = text.strip_suffix(b"'")?;
    if let Some(escaped) = inner.strip_prefix(b"$'") {
        return unescaped(escaped);
    }
    let inner = inner.strip_prefix(b"'")?;
    let parts = split_at(inner, br"'\''");
    let is_whole = parts.iter().all(|part| !part.contains(&b'\''));
    is_whole.then(|| os(&parts.join(&b'\'')))
}

/// The parts of a text between the places where `what` stands.
fn split_at<'a>(text: &'a [u8], what: &[u8]) -> Vec<&'a [u8]> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.windows(what.len()).position(|part| part == what) {
        parts.push(&rest[..at]);
        rest = &rest[at + what.len()..];
    }
    parts.push(rest);
    parts
}

/// The text that [`quote_in_a_line`] wrote, without what is around it.
fn unescaped(text: &[u8]) -> Option<OsString> {
    let mut bytes = Vec::new();
    let mut rest = text.iter().copied();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        bytes.push(match rest.next()? {
            b'n' => b'\n',
            b't' => b'\t',
            digit @ b'0'..=b'7' => {
                let digits = [digit, rest.next()?, rest.next()?];
                u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 8).ok()?
            }
            quoted @ (b'\'' | b'\\') => quoted,
            _ => return None,
        });
    }
    Some(os(&bytes))
}

/// Bytes as an owned system string.
pub(crate) fn os(bytes: &[u8]) -> OsString {
    OsString::from_vec(bytes.to_vec())
}

/// The text of a word for messages: control characters and bytes that are no UTF-8 are made visible.
pub fn told(word: impl AsRef<OsStr>) -> String {
    cosched_report::visible_bytes(word.as_ref().as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn argv(words: &[&[u8]]) -> Command {
        Command::Argv(words.iter().map(|word| os(word)).collect())
    }

    #[test]
    fn lines_are_quoted_for_the_shell() {
        let line = argv(&[b"a", b"b c", b"it's", b"", b"x=1", b"*", b"a\nb"]).line();
        assert_eq!(line, "a 'b c' 'it'\\''s' '' x=1 '*' 'a\nb'");
        assert_eq!(argv(&[b"x=1", b"a"]).line(), "'x=1' a");
        assert_eq!(argv(&[b"if", b"if"]).line(), "'if' if");
    }

    #[test]
    fn bytes_are_written_so_that_they_can_be_read_back() {
        assert_eq!(
            argv(&[b"cat", b"\xff1", b"\x1b[2J'\\\n", "\u{9b}ü".as_bytes()]).line(),
            { r"cat $'\3771' $'\033[2J\'\\\n' $'\302\233ü'" }
        );
        assert_eq!(Command::shell("sort < a > b").line(), "sort < a > b");
        assert_eq!(Command::shell(os(b"cat \xff")).line(), r"sh -c $'cat \377'");
        assert_eq!(Command::shell("echo \u{1b}").line(), r"sh -c $'echo \033'");
    }

    /// A shell that knows `$'...'` reads each line as the words that it was made of, and so does cosched.
    #[test]
    fn a_shell_reads_the_same_words() {
        let every: Vec<u8> = (1..=255).collect();
        let words: Vec<Vec<u8>> = vec![
            b"printf".to_vec(),
            b"%s\\0".to_vec(),
            every.clone(),
            b"-n".to_vec(),
            b"$(touch x)`touch x`".to_vec(),
            b"\x0112".to_vec(),
            Vec::new(),
        ];
        let others: [&[u8]; 4] = [b"it's", b"a b", b"''", b"\t'\\"];
        for word in words.iter().map(|word| &word[..]).chain(others) {
            assert_eq!(unquote(&quote(word)), Some(os(word)));
        }
        assert_eq!(
            ["a b", "'a", "'a'b'", "$'\\8'"].map(unquote),
            [None, None, None, None]
        );
        let command = Command::Argv(words.iter().map(|word| os(word)).collect());
        let Ok(output) = std::process::Command::new("bash")
            .args(["-c", &command.line()])
            .output()
        else {
            println!("skipped, because there is no bash");
            return;
        };
        let mut expected = words[2..].join(&0);
        expected.push(0);
        assert_eq!(output.stdout, expected);
    }
}
