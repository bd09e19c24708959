//! Words in a line for the shell that bash knows, and that other shells take in another way or not at all.

use super::command::ShellLine;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

/// Commands that only some shells have.
const COMMANDS: &[&str] = &[
    "[[",
    "compgen",
    "coproc",
    "declare",
    "dirs",
    "disown",
    "function",
    "let",
    "mapfile",
    "popd",
    "pushd",
    "readarray",
    "select",
    "shopt",
    "source",
    "typeset",
];

/// Words after which another command begins.
const BEFORE: &[&str] = &[
    "!", "{", "do", "elif", "else", "if", "then", "time", "until", "while",
];

/// The first word in one of the lines that `/bin/sh` may not take as bash does, as far as it is easy to tell.
pub(crate) fn shell_word<'a>(lines: impl Iterator<Item = &'a ShellLine>) -> Option<String> {
    // The jobs of a template differ in their values only.
    let mut last: Option<(&OsStr, Found)> = None;
    for line in lines {
        let found = match last.take() {
            Some((script, found)) if script == line.script => found,
            _ => look(line.script.as_bytes()),
        };
        if let Some(word) = found.word {
            return Some(word);
        }
        if found.has_echo
            && line
                .values
                .iter()
                .any(|value| value.as_bytes().contains(&b'\\'))
        {
            return Some("echo".to_owned());
        }
        last = Some((&line.script, found));
    }
    None
}

/// What was found in a line.
#[derive(Default)]
struct Found {
    word: Option<String>,
    /// `echo` is a command in it.
    has_echo: bool,
}

/// Reads a line up to the first such word, or to a here-document.
fn look(line: &[u8]) -> Found {
    let mut found = Found::default();
    let mut at = 0;
    let mut command: Vec<u8> = Vec::new();
    let mut is_first_argument = false;
    while at < line.len() {
        let rest = &line[at..];
        // `$((1 + 2))` is for any shell.
        let is_sum = rest.starts_with(b"((") && line[..at].ends_with(b"$");
        let sign = if is_sum {
            expansion(&line[at - 1..], false)
        } else {
            sign(rest)
        };
        if sign.is_some() {
            found.word = sign;
            return found;
        }
        if is_sum {
            at += rest
                .windows(2)
                .position(|pair| pair == b"))")
                .map_or(rest.len(), |end| end + 2);
            continue;
        }
        match rest[0] {
            b' ' | b'\t' => at += 1,
            b'(' if rest.starts_with(b"(<")
                && !rest.starts_with(b"(<<")
                && line[..at].ends_with(b"$") =>
            {
                found.word = Some("$(<".to_owned());
                return found;
            }
            b'\n' | b';' | b'&' | b'|' | b'(' | b')' | b'`' => {
                command.clear();
                at += 1;
            }
            b'#' if at == 0 || b" \t\n;&|()".contains(&line[at - 1]) => {
                at += rest
                    .iter()
                    .position(|&byte| byte == b'\n')
                    .unwrap_or(rest.len());
            }
            b'<' if rest.starts_with(b"<<") => return found,
            b'<' | b'>' => at += 1,
            _ => {
                let length = word_length(rest);
                let word = &rest[..length];
                at += length;
                let redirects = line[..at - length]
                    .trim_ascii_end()
                    .last()
                    .is_some_and(|byte| b"<>".contains(byte));
                if let Some(sign) = within(word) {
                    found.word = Some(sign);
                    return found;
                }
                let is_one_of = |words: &[&str]| words.iter().any(|one| one.as_bytes() == word);
                if redirects {
                    continue;
                }
                if !command.is_empty() {
                    found.word = argument(&command, word, std::mem::take(&mut is_first_argument));
                } else if is_one_of(COMMANDS) {
                    found.word = Some(String::from_utf8_lossy(word).into_owned());
                } else if let Some(name) = assigned(word) {
                    let is_array = word.ends_with(b"=") && line[at..].starts_with(b"(");
                    found.word = if name.ends_with(b"+") {
                        told("+=")
                    } else {
                        told("=(").filter(|_| is_array)
                    };
                } else if !is_one_of(BEFORE) {
                    command = word.to_vec();
                    found.has_echo |= word == b"echo";
                    is_first_argument = true;
                }
                if found.word.is_some() {
                    return found;
                }
            }
        }
    }
    found
}

fn told(what: &str) -> Option<String> {
    Some(what.to_owned())
}

/// What is before the `=` of an assignment; `None` for a word that is none.
fn assigned(word: &[u8]) -> Option<&[u8]> {
    let name = &word[..word.iter().position(|&byte| byte == b'=')?];
    (!word.starts_with(b"[")).then_some(name)
}

/// What only bash takes as an argument of a command that other shells have, too.
fn argument(command: &[u8], word: &[u8], is_first: bool) -> Option<String> {
    let with = |command: &str| told(&format!("{command} {}", String::from_utf8_lossy(word)));
    let option = word
        .strip_prefix(b"-")
        .filter(|letters| letters.first().is_some_and(u8::is_ascii_alphabetic));
    match command {
        b"[" | b"test" if word == b"==" => told("=="),
        b"[" | b"test" if word == b"-v" => with("test"),
        b"echo" if is_first && [&b"-e"[..], b"-ne", b"-en", b"-E"].contains(&word) => with("echo"),
        b"echo" if has_escape(word) => told("echo"),
        b"printf" if is_first && word.starts_with(b"-v") => told("printf -v"),
        b"printf" if has_format_beyond_posix(word) => told("printf"),
        b"read" if option.is_some_and(|letters| letters != b"r") => with("read"),
        b"trap" if [&b"ERR"[..], b"DEBUG", b"RETURN"].contains(&word) => with("trap"),
        b"set" if word == b"pipefail" => told("set -o pipefail"),
        b"exec" | b"type" if is_first && option.is_some() => {
            with(&String::from_utf8_lossy(command))
        }
        b"export" if option.is_some_and(|letters| letters != b"p") => with("export"),
        _ => None,
    }
}

/// A sign of bash at the beginning of this, outside of quotes.
fn sign(text: &[u8]) -> Option<String> {
    let is_path = |byte: &u8| byte.is_ascii_alphabetic() || b"/._~".contains(byte);
    if text
        .strip_prefix(b">&")
        .is_some_and(|to| to.trim_ascii_start().first().is_some_and(is_path))
    {
        return told(">&");
    }
    ["&>", "<<<", "<(", ">(", "|&", "(("]
        .iter()
        .find(|sign| text.starts_with(sign.as_bytes()))
        .map(|&sign| sign.to_owned())
}

/// How far a word reaches, with all quotes and `${...}` in it.
fn word_length(text: &[u8]) -> usize {
    let mut at = 0;
    while at < text.len() {
        let up_to = |from: usize, end: u8| {
            let mut at = from;
            while at < text.len() && text[at] != end {
                at += if text[at] == b'\\' && end != b'\'' {
                    2
                } else {
                    1
                };
            }
            at + 1
        };
        at = match text[at] {
            b'\\' => at + 2,
            quote @ (b'\'' | b'"') => up_to(at + 1, quote),
            b'$' if text[at + 1..].starts_with(b"{") => up_to(at + 2, b'}'),
            byte if b" \t\n;&|<>()`".contains(&byte) => break,
            _ => at + 1,
        };
    }
    at.clamp(1, text.len())
}

/// Variables that bash has and other shells have not.
const VARIABLES: &[&str] = &[
    "BASH",
    "BASHPID",
    "BASH_SOURCE",
    "BASH_VERSION",
    "EPOCHREALTIME",
    "EPOCHSECONDS",
    "EUID",
    "FUNCNAME",
    "GROUPS",
    "HOSTNAME",
    "HOSTTYPE",
    "LINENO",
    "MACHTYPE",
    "OSTYPE",
    "PIPESTATUS",
    "RANDOM",
    "SECONDS",
    "SHELLOPTS",
    "SRANDOM",
    "UID",
];

/// What only bash expands at this `$`.
fn expansion(rest: &[u8], is_quoted: bool) -> Option<String> {
    let rest = rest.strip_prefix(b"$")?;
    match rest.first()? {
        b'\'' if !is_quoted => return Some("$'...'".to_owned()),
        b'"' if !is_quoted => return Some("$\"...\"".to_owned()),
        b'[' => return Some("$[".to_owned()),
        b'(' if rest.starts_with(b"(<") && !rest.starts_with(b"(<<") => {
            return Some("$(<".to_owned());
        }
        b'(' if rest.starts_with(b"((") => {
            let end = rest
                .windows(2)
                .position(|pair| pair == b"))")
                .unwrap_or(rest.len());
            let is_ours = |pair: &[u8]| [&b"++"[..], b"--", b"**"].contains(&pair);
            return rest[..end]
                .windows(2)
                .find(|pair| is_ours(pair))
                .and_then(|pair| told(&String::from_utf8_lossy(pair)));
        }
        _ => {}
    }
    let name = rest.strip_prefix(b"{").unwrap_or(rest);
    let length = name
        .iter()
        .take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_')
        .count();
    if rest.starts_with(b"{") {
        let is_ours = match &name[length..] {
            [b'!', next, ..] if length == 0 => next.is_ascii_alphabetic(),
            [b'@' | b'*', b':', ..] if length == 0 => true,
            [b'/' | b'^' | b',' | b'[' | b'@', ..] => length > 0,
            [b':', next, ..] => length > 0 && !b"-=?+".contains(next),
            _ => false,
        };
        if is_ours {
            let end = rest
                .iter()
                .position(|&byte| byte == b'}')
                .map_or(rest.len(), |end| end + 1);
            return told(&format!("${}", String::from_utf8_lossy(&rest[..end])));
        }
    }
    VARIABLES
        .iter()
        .find(|one| one.as_bytes() == &name[..length])
        .map(|one| format!("${one}"))
}

/// What only bash expands in a word: `$'...'`, `$[`, some variables, `[^a]`, and lists in braces.
fn within(word: &[u8]) -> Option<String> {
    let (mut at, mut is_quoted) = (0, false);
    while at < word.len() {
        let rest = &word[at..];
        let end = |end: u8| {
            rest[1..]
                .iter()
                .position(|&byte| byte == end)
                .map_or(rest.len(), |found| found + 2)
        };
        at += match rest[0] {
            b'\\' => 2,
            b'\'' => end(b'\''),
            b'"' => {
                is_quoted = !is_quoted;
                1
            }
            b'$' if expansion(rest, is_quoted).is_some() => return expansion(rest, is_quoted),
            b'$' if rest.starts_with(b"${") => end(b'}'),
            _ if is_quoted => 1,
            b'[' if rest.starts_with(b"[^") && rest.contains(&b']') => {
                return Some("[^".to_owned());
            }
            b'{' => {
                let list = &rest[..end(b'}')];
                let is_list = list.contains(&b',') || list.windows(2).any(|pair| pair == b"..");
                if list.ends_with(b"}") && is_list {
                    return Some(String::from_utf8_lossy(list).into_owned());
                }
                1
            }
            _ => 1,
        };
    }
    None
}

/// Whether a quoted word holds a backslash that some shells' `echo` reads as a sign of another character.
fn has_escape(word: &[u8]) -> bool {
    let is_quoted = word.iter().any(|byte| b"'\"".contains(byte));
    let is_sign = |pair: &[u8]| pair[0] == b'\\' && b"0abcfnrtv".contains(&pair[1]);
    (is_quoted && word.windows(2).any(is_sign))
        || word
            .windows(3)
            .any(|three| three[0] == b'\\' && is_sign(&three[1..]))
}

/// Whether a word holds a sign or a conversion that only some shells' `printf` knows.
fn has_format_beyond_posix(word: &[u8]) -> bool {
    let is_quoted = word.iter().any(|byte| b"'\"".contains(byte));
    let is_ours = |pair: &[u8]| match pair[0] {
        b'\\' => is_quoted && b"xuUeE".contains(&pair[1]),
        b'%' => b"q(".contains(&pair[1]),
        _ => false,
    };
    word.windows(2).any(is_ours)
}

#[cfg(test)]
mod tests {
    use super::super::command::{Command, os};
    use super::*;

    fn word(line: &str, value: &str) -> Option<String> {
        let Command::Shell(mut line) = Command::shell(line) else {
            unreachable!("it is a line")
        };
        line.values = vec![os(value.as_bytes())];
        shell_word([&line, &line].into_iter())
    }

    #[test]
    fn words_of_bash_are_found_outside_of_quotes() {
        for (line, found) in [
            ("ls a &> a.log", "&>"),
            ("ls a|&cat", "|&"),
            ("cat <<< a", "<<<"),
            ("diff <(sort a) b", "<("),
            ("tee >(wc) < a", ">("),
            ("[[ a == b ]]", "[["),
            ("if [[ -f a ]]; then ls; fi", "[["),
            ("A=1 [ a == b ]", "=="),
            ("true && test a == b", "=="),
            ("echo -e a", "echo -e"),
            ("for i in {1..3}; do ls; done", "{1..3}"),
            ("ls x{a,b}y", "{a,b}"),
            ("printf $'\\t'", "$'...'"),
            ("sort -t$'\\t' a", "$'...'"),
            ("source a", "source"),
            ("ls > a; echo 'a\\tb'", "echo"),
            ("echo a\\\\tb", "echo"),
            ("printf 'a\\x41b'", "printf"),
            ("echo \"$(< a)\"", "$(<"),
            ("cat $(< a)", "$(<"),
            ("case a in [^0-9]*) ls;; esac", "[^"),
            ("ls [^a]*.txt", "[^"),
            ("echo \"n$RANDOM\"", "$RANDOM"),
            ("echo u${UID}", "$UID"),
            ("i=1; ((i=i+1)); ls", "(("),
            ("echo $[1+2]", "$["),
            ("echo $\"hi\"", "$\"...\""),
            ("out=a; out+=.gz; echo \"$out\"", "+="),
            ("a=(1 2); echo", "=("),
            ("let n=1+1; echo $n", "let"),
            ("printf -v x %s a", "printf -v"),
            ("printf %q a", "printf"),
            ("printf '%(%Y)T'", "printf"),
            ("read -a y < two", "read -a"),
            ("trap 'echo err' ERR; false", "trap ERR"),
            ("type -P ls", "type -P"),
            ("export -f f", "export -f"),
            ("exec -a b ls", "exec -a"),
            ("test -v HOME", "test -v"),
            ("set -o pipefail; ls", "set -o pipefail"),
            ("ls >& log", ">&"),
            ("echo $LINENO", "$LINENO"),
            ("echo $OSTYPE", "$OSTYPE"),
            ("echo ${x/a/b}", "${x/a/b}"),
            ("echo \"${x:0:1}\"", "${x:0:1}"),
            ("echo ${x^^}", "${x^^}"),
            ("echo ${a[1]}", "${a[1]}"),
            ("echo ${!x}", "${!x}"),
            ("echo ${@:2}", "${@:2}"),
            ("echo $((x++))", "++"),
            ("echo \"$((2**3))\"", "**"),
        ] {
            assert_eq!(word(line, "a").as_deref(), Some(found), "{line}");
        }
        for line in [
            "echo '&> <<< [[ $x' \"{1..3} <(a)\" \\{a,b} -e",
            "bash -c '[[ a == b ]]'",
            "awk '{print $1, $2}' a",
            "echo {} ${x:-{a,b}} a",
            "cat << E\n[[ it's\nE",
            "ls # {a,b} <(",
            "find . -exec ls {} ;",
            "ls 2>&1 >&2 && ls | wc & ls > /dev/null",
            "grep -e a; printf 'a\\n'; expr a == b",
            "echo \"a\"",
            "echo '$RANDOM $(< a) [^a]' \"[^a] $RANDOMLY $(ls < a)\" $((1 + 2)) $(cat <<E\nE\n)",
            "grep '[^a]' a | sed 's/[^b]//' \"$(ls)\"",
            "(ls; (pwd)); printf 'a\\n%s' b",
            "echo ${x:-a} ${x:=a} ${x:+a/b} ${x:?no} ${x%.gz} ${x##*/} ${#x} ${1} ${@} $((x + 1 - -1)) a+=b",
            "read -r x < a; trap 'rm a' EXIT; type ls; export x=1; exec ls; ls 2>&1 >&- >&2; test -f a; set -e",
            "",
        ] {
            assert_eq!(word(line, "a"), None, "{line}");
        }
    }

    #[test]
    fn values_with_backslashes_are_another_text_to_some_echo() {
        assert_eq!(
            word("set --; echo \"$x\"", r"a\tb").as_deref(),
            Some("echo")
        );
        assert_eq!(word("set --; printf %s \"$x\"", r"a\tb"), None);
    }
}
