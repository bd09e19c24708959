//! Words that a program reads as code: what follows `sh -c`, `eval`, `ssh HOST`, `perl -e` and the like.
//!
//! A value is one argument, whatever it holds. But if that argument is a program's code, the program executes it. So
//! only values without special characters are put there. In doubt a word counts as code.

/// Reads a simple command word by word, and knows which words are code.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CodeWords {
    /// The interpreter that was named, while its options are read.
    reader: Option<&'static Interpreter>,
    /// Words that are no options and have come since.
    operands: usize,
    /// The word before is an option that has this one as its argument.
    argument: bool,
    /// The word before is an unknown option that can have this one as its argument.
    maybe_argument: bool,
    /// A shell was told that its first word that is no option is code.
    shell_code: bool,
    /// The next word is code.
    next: bool,
    /// All further words are code.
    all: bool,
    /// The command's program has come.
    begun: bool,
    /// That is one that starts another, so that any word can be a program.
    wrapped: bool,
    /// That is one to which all words are plain text, whatever they look like.
    plain: bool,
}

/// A program that takes code as an argument.
#[derive(Debug)]
struct Interpreter {
    /// Its names without a version.
    names: &'static [&'static str],
    /// The name is an ordinary word, too: it counts only where a program is expected, and not in folders of users.
    is_common: bool,
    /// The letters of options that are followed by code.
    code: &'static [u8],
    /// The same in words.
    words: &'static [&'static str],
    /// The letters of options that have an argument, behind them in the word or in the next one.
    arguments: &'static [u8],
    /// The letters of options after which its words are a command without a shell.
    direct: &'static [u8],
    /// The same in words.
    direct_words: &'static [&'static str],
    /// The code is the first word that is no option, and not the word after the letter.
    is_shell: bool,
    /// Words that begin with `+` are code.
    plus: bool,
    /// All words after the code are code as well.
    rest: bool,
    /// All of its words are code, joined with blanks.
    all: bool,
    /// So many words that are no options can stand before options.
    operands: usize,
    /// Its words are a program and its arguments.
    wraps: bool,
}

const NONE: Interpreter = Interpreter {
    names: &[],
    is_common: false,
    code: b"",
    words: &[],
    arguments: b"",
    direct: b"",
    direct_words: &[],
    is_shell: false,
    plus: false,
    rest: false,
    all: false,
    operands: 0,
    wraps: false,
};

/// Options can stand behind other words.
const PERMUTES: usize = usize::MAX;

static INTERPRETERS: &[Interpreter] = &[
    Interpreter {
        names: &[
            "sh", "ash", "bash", "csh", "dash", "hush", "ksh", "lksh", "mksh", "oksh", "osh",
            "posh", "rbash", "rksh", "tcsh", "yash", "zsh",
        ],
        code: b"c",
        words: &["command"],
        arguments: b"oO",
        is_shell: true,
        ..NONE
    },
    Interpreter {
        names: &["fish"],
        code: b"cC",
        words: &["command", "init-command"],
        arguments: b"dfo",
        ..NONE
    },
    Interpreter {
        names: &["elvish", "nu", "xonsh"],
        code: b"c",
        words: &["commands"],
        ..NONE
    },
    Interpreter {
        names: &["su", "runuser"],
        code: b"c",
        words: &["command", "session-command"],
        arguments: b"gGsw",
        // Of `runuser` only: `su` has no such option.
        direct: b"u",
        direct_words: &["user"],
        operands: PERMUTES,
        ..NONE
    },
    // Only directly behind the file's name.
    Interpreter {
        names: &["flock"],
        code: b"c",
        words: &["command"],
        arguments: b"Ew",
        operands: 1,
        wraps: true,
        ..NONE
    },
    Interpreter {
        names: &["script", "scriptlive"],
        is_common: true,
        code: b"c",
        words: &["command"],
        arguments: b"BEIOTmo",
        operands: PERMUTES,
        ..NONE
    },
    Interpreter {
        names: &["env"],
        is_common: true,
        code: b"S",
        words: &["split-string"],
        arguments: b"Cu",
        rest: true,
        wraps: true,
        ..NONE
    },
    Interpreter {
        names: &["watch"],
        is_common: true,
        direct: b"x",
        direct_words: &["exec"],
        all: true,
        ..NONE
    },
    Interpreter {
        names: &[
            "autossh",
            "clush",
            "dsh",
            "hyperfine",
            "mosh",
            "parallel",
            "pdsh",
            "pssh",
            "remsh",
            "sg",
            "slogin",
            "tmux",
        ],
        is_common: true,
        all: true,
        ..NONE
    },
    Interpreter {
        names: &["screen"],
        is_common: true,
        code: b"X",
        arguments: b"STcehpst",
        rest: true,
        ..NONE
    },
    Interpreter {
        names: &["entr"],
        code: b"s",
        rest: true,
        ..NONE
    },
    Interpreter {
        names: &["split"],
        is_common: true,
        words: &["filter"],
        operands: PERMUTES,
        ..NONE
    },
    Interpreter {
        names: &["tar"],
        is_common: true,
        code: b"FI",
        words: &[
            "checkpoint-action",
            "info-script",
            "new-volume-script",
            "to-command",
            "use-compress-program",
        ],
        arguments: b"CHKLNTVXbfg",
        operands: PERMUTES,
        ..NONE
    },
    Interpreter {
        names: &["make", "gmake"],
        is_common: true,
        words: &["eval"],
        operands: PERMUTES,
        ..NONE
    },
    Interpreter {
        names: &["python", "pypy"],
        code: b"c",
        arguments: b"QWX",
        ..NONE
    },
    Interpreter {
        names: &["perl"],
        code: b"eE",
        arguments: b"DFIMdimx",
        ..NONE
    },
    Interpreter {
        names: &["ruby"],
        code: b"e",
        arguments: b"CEFIKTWirx",
        ..NONE
    },
    Interpreter {
        names: &["lua", "luajit"],
        code: b"e",
        arguments: b"jl",
        ..NONE
    },
    Interpreter {
        names: &["node", "nodejs"],
        code: b"ep",
        words: &["eval", "print"],
        arguments: b"Cr",
        ..NONE
    },
    Interpreter {
        names: &["php"],
        code: b"BERr",
        words: &["run"],
        arguments: b"Scdfz",
        ..NONE
    },
    Interpreter {
        names: &["expect", "guile"],
        is_common: true,
        code: b"c",
        arguments: b"dfLlsx",
        ..NONE
    },
    Interpreter {
        names: &["R", "Rscript", "octave", "elixir", "groovy", "scala", "bun"],
        is_common: true,
        code: b"e",
        words: &["eval"],
        operands: PERMUTES,
        ..NONE
    },
    Interpreter {
        names: &["julia"],
        code: b"Ee",
        words: &["eval", "print"],
        arguments: b"CHJLpt",
        ..NONE
    },
    Interpreter {
        names: &["gdb"],
        words: &["eval-command", "ex", "iex", "init-eval-command"],
        operands: PERMUTES,
        ..NONE
    },
    Interpreter {
        names: &["ex", "nvim", "vi", "view", "vim", "vimdiff"],
        is_common: true,
        code: b"c",
        words: &["cmd"],
        arguments: b"STUWiqrstuw",
        plus: true,
        operands: PERMUTES,
        ..NONE
    },
    Interpreter {
        names: &["emacs", "emacsclient"],
        words: &["eval", "execute"],
        code: b"e",
        operands: PERMUTES,
        ..NONE
    },
    Interpreter {
        names: &["psql"],
        code: b"c",
        words: &["command"],
        arguments: b"dfhopvFLPRTU",
        operands: PERMUTES,
        ..NONE
    },
    Interpreter {
        names: &["mariadb", "mysql"],
        code: b"e",
        words: &["execute"],
        arguments: b"DPShu",
        operands: PERMUTES,
        ..NONE
    },
];

/// Commands that read all of their arguments as code, here or on another machine.
const ALL_CODE: &[&str] = &["eval", "rsh", "ssh", "trap"];

/// Programs of the system whose words are text, names of files or patterns: `grep ssh {}` starts no ssh. `rsync` and `scp`
/// are none: they may give a path to the shell of another machine.
const PLAIN: &[&str] = &[
    "ag", "cat", "echo", "egrep", "fgrep", "file", "grep", "head", "ls", "man", "printf", "rg",
    "stat", "tail", "touch", "wc", "which", "zgrep",
];

/// Programs that start the one that is named among their arguments.
const WRAPPERS: &[&str] = &[
    "builtin",
    "busybox",
    "chroot",
    "chrt",
    "command",
    "doas",
    "env",
    "exec",
    "find",
    "firejail",
    "flock",
    "ionice",
    "ltrace",
    "nice",
    "nohup",
    "nsenter",
    "numactl",
    "perf",
    "pkexec",
    "prlimit",
    "runuser",
    "setarch",
    "setpriv",
    "setsid",
    "stdbuf",
    "strace",
    "sudo",
    "systemd-run",
    "taskset",
    "time",
    "timeout",
    "toybox",
    "unshare",
    "xargs",
];

/// Words of the shell before a program.
const BEFORE: &[&str] = &[
    "!", "{", "do", "elif", "else", "if", "then", "until", "while",
];

/// Folders of the system's programs.
const SYSTEM: &[&str] = &[
    "/bin/",
    "/sbin/",
    "/usr/bin/",
    "/usr/sbin/",
    "/usr/local/bin/",
];

impl Interpreter {
    /// The one that a word names; `expected` tells whether a program's name is expected there.
    fn of(word: &[u8], expected: bool) -> Option<&'static Interpreter> {
        let name = &word[name_at(word)..];
        let version = name
            .iter()
            .rev()
            .take_while(|byte| byte.is_ascii_digit() || b".-".contains(byte))
            .count();
        let stem = &name[..name.len() - version];
        let found = INTERPRETERS
            .iter()
            .find(|one| one.names.iter().any(|name| name.as_bytes() == stem))?;
        (!found.is_common || (expected && is_of_system(word))).then_some(found)
    }

    /// Where code begins in an option, given without its first dash: behind its letter, or behind `=`.
    fn code_at(&self, option: &[u8]) -> Option<usize> {
        let dashes = usize::from(option.starts_with(b"-"));
        let name = name_of(option);
        // Most programs take the beginning of a long option for all of it.
        let is_it = |word: &&str| {
            word.as_bytes() == name || (dashes > 0 && word.as_bytes().starts_with(name))
        };
        if !name.is_empty() && self.words.iter().any(is_it) {
            return Some((dashes + name.len() + 1).min(option.len()));
        }
        if dashes > 0 {
            return None;
        }
        let end = option
            .iter()
            .position(|letter| self.arguments.contains(letter))
            .unwrap_or(option.len());
        option[..end]
            .iter()
            .position(|letter| self.code.contains(letter))
            .map(|at| at + 1)
    }

    /// Whether with this option its words are a command without a shell.
    fn is_direct(&self, option: &[u8]) -> bool {
        if option.starts_with(b"-") {
            return self
                .direct_words
                .iter()
                .any(|word| word.as_bytes() == name_of(option));
        }
        let end = option
            .iter()
            .position(|letter| self.arguments.contains(letter))
            .unwrap_or(option.len());
        option[..end]
            .iter()
            .any(|letter| self.direct.contains(letter))
    }
}

/// Where the name of a program begins, behind its folder.
fn name_at(word: &[u8]) -> usize {
    word.iter()
        .rposition(|&byte| byte == b'/')
        .map_or(0, |slash| slash + 1)
}

/// Whether a program is found by its name or lies in a folder of the system. One of that name in a folder of the user can be
/// anything.
fn is_of_system(word: &[u8]) -> bool {
    let folder = &word[..name_at(word)];
    folder.is_empty() || SYSTEM.iter().any(|system| system.as_bytes() == folder)
}

/// The name of an option, without a second dash and without what is behind `=`.
fn name_of(option: &[u8]) -> &[u8] {
    let name = option.strip_prefix(b"-").unwrap_or(option);
    name.split(|&byte| byte == b'=').next().unwrap_or_default()
}

impl CodeWords {
    /// Takes in a word of the command; quotes in it count for nothing.
    pub(crate) fn word(&mut self, word: &[u8]) {
        let word = bare(word);
        if std::mem::take(&mut self.next) {
            return;
        }
        let name = &word[name_at(&word)..];
        self.all |= ALL_CODE.iter().any(|command| command.as_bytes() == name);
        let Some(reader) = self.reader else {
            self.program(&word, name);
            return;
        };
        let (is_argument, maybe) = (
            std::mem::take(&mut self.argument),
            std::mem::take(&mut self.maybe_argument),
        );
        // In `perl -i -pe` nothing but the option's own word is its argument.
        if is_argument && !word.starts_with(b"-") {
            return;
        }
        match word.strip_prefix(b"-") {
            Some(b"-") if self.shell_code => {}
            // The words that follow are no options, but still a program where one is started.
            Some(b"" | b"-") if reader.operands == PERMUTES || reader.all || reader.wraps => {}
            Some(b"" | b"-") => self.reader = None,
            Some(option) if reader.is_direct(option) => self.reader = None,
            Some(option) => self.option(reader, option),
            // `+x` and `+o pipefail` undo an option of a shell.
            None if reader.is_shell && word.starts_with(b"+") => {
                self.argument = word
                    .last()
                    .is_some_and(|letter| reader.arguments.contains(letter));
            }
            None => {
                let named = Interpreter::of(&word, true).filter(|_| reader.wraps);
                self.operands += usize::from(!maybe);
                if named.is_some() || (self.operands > reader.operands && !reader.all && !maybe) {
                    // Its program, or the code itself; what follows are that program's arguments.
                    (self.reader, self.shell_code, self.operands) = (named, false, 0);
                }
            }
        }
    }

    /// Takes in a word that is no word of an interpreter.
    fn program(&mut self, word: &[u8], name: &[u8]) {
        let is_one_of =
            |words: &[&str], word: &[u8]| words.iter().any(|one| one.as_bytes() == word);
        let is_before = word.contains(&b'=') || is_one_of(BEFORE, word);
        self.reader = Interpreter::of(word, !self.begun || self.wrapped);
        self.operands = 0;
        if !self.begun && !is_before {
            self.begun = true;
            self.wrapped = is_one_of(WRAPPERS, name);
            self.plain = is_one_of(PLAIN, name) && is_of_system(word);
        }
    }

    /// Takes in an option of an interpreter, without its first dash.
    fn option(&mut self, reader: &'static Interpreter, option: &[u8]) {
        // An unknown long option may have an argument.
        self.maybe_argument = option.starts_with(b"-") && !option.contains(&b'=');
        match reader.code_at(option) {
            Some(_) if reader.is_shell => self.shell_code = true,
            Some(at) => {
                // In `node -pe` both letters want the code that follows.
                let ends = option
                    .last()
                    .is_some_and(|letter| reader.code.contains(letter));
                self.next = (at == option.len() || ends) && !option.contains(&b'=');
                self.maybe_argument = false;
                self.all |= reader.rest;
            }
            None => {}
        }
        // `-eo pipefail`, `-I folder`
        let last = option.last().filter(|_| !option.starts_with(b"-"));
        self.argument = !self.next && last.is_some_and(|letter| reader.arguments.contains(letter));
    }

    /// Whether what comes next is code, in a word that begins with this.
    pub(crate) fn is_code_in(&self, begun: &[u8]) -> bool {
        if self.plain {
            return false;
        }
        let begun = bare(begun);
        let in_reader = self.reader.is_some_and(|reader| {
            let attached = begun.strip_prefix(b"-");
            let attached =
                attached.is_some_and(|option| !reader.is_shell && reader.code_at(option).is_some());
            reader.all || attached || (reader.plus && begun.starts_with(b"+"))
        });
        self.all || self.next || in_reader || (self.shell_code && !begun.starts_with(b"-"))
    }
}

/// A word without its quotes.
fn bare(word: &[u8]) -> Vec<u8> {
    word.iter()
        .copied()
        .filter(|byte| !b"'\"\\".contains(byte))
        .collect()
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
    fn words_of_plain_programs_are_text() {
        for words in [
            "grep ssh ",
            "grep -r eval ",
            "echo sh -c ",
            "/bin/echo ssh h ",
        ] {
            assert!(!is_code(words), "{words}");
        }
        let others = [
            "srun sh -c ",
            "A=1 sh -c ",
            "nohup ssh h ",
            "mine ssh h ",
            "./grep ssh h ",
            "~/bin/stat sh -c ",
        ];
        for words in others
            .into_iter()
            .chain(["rsync -e ssh h:", "scp -S ssh h:", "tar -M -F "])
        {
            assert!(is_code(words), "{words}");
        }
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
            "bash +x -c ",
            "bash +o pipefail -c ",
            "bash -c +x ",
            "tcsh -c ",
            "fish -C ",
            "flock F -c ",
            "flock -w 5 F -c ",
            "flock --nonblock F --command ",
            "flock F sh -c ",
            "flock F perl -e ",
            "flock --nonblock F perl -e ",
            "script -c ",
            "script -qc ",
            "script -q F -c ",
            "script --command=",
            "script --comm ",
            "/usr/bin/script -ec",
            "runuser bob -c ",
            "runuser -c ",
            "runuser - bob --session-command=",
            "runuser -u bob perl -e ",
            "su -s /bin/bash bob -c ",
            "su --shell /bin/bash bob -c ",
            "sg group -c ",
            "sg group ",
            "env -S ",
            "env -Sprog ",
            "env --split-string=prog ",
            "env -S prog x ",
            "env -i sh -c ",
            "env --ignore-environment sh -c ",
            "env A=1 watch ls ",
            "watch -n 1 ls ",
            "then watch ls ",
            "A=1 watch ls ",
            "watch -x sh -c ",
            "tmux new-session -d ",
            "screen -S s -X stuff ",
            "xargs -n 1 sh -c ",
            "find . -exec sh -c ",
            "busybox sh -c ",
            "timeout 5 script -c ",
            "nsenter -t 1 -m -- sh -c ",
            "taskset -c 0 bash -c ",
            "setpriv --reuid 1 sh -c ",
            "chroot dir /bin/sh -c ",
            "hyperfine ",
            "split -n 4 --filter=",
            "split --filter ",
            "tar -xf f --to-command ",
            "tar -I ",
            "make --eval=",
            "expect -c ",
            "gdb -batch -ex ",
            "gdb prog -ex ",
            "vim -c ",
            "vim file +",
            "Rscript -e ",
            "julia -E ",
            "octave --eval ",
            "emacs --batch --eval ",
            "psql -d db -c ",
            "mysql db -e ",
            "luajit -e ",
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
            "flock ",
            "flock F tar -c ",
            "flock F ls ",
            "./script -c ",
            "bash script -c ",
            "echo script -c ",
            "cat env -S ",
            "echo watch ",
            "watch -x ls ",
            "watch --exec ls ",
            "runuser -u bob tar -c ",
            "env A=1 prog -S ",
            "env prog ",
            "taskset -c ",
            "timeout 5 ls -c ",
            "screen -dmS s prog ",
            "split -n 4 ",
            "tar -cf ",
            "tar -cf f -C ",
            "gdb --args prog ",
            "gdb -x ",
            "vim ",
            "R ",
            "make -C ",
            "+x -c ",
        ] {
            assert!(!is_code(words), "{words}");
        }
    }
}
