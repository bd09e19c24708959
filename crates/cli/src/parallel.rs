//! What GNU parallel has and cosched has not: options, each with what to do instead, and words that it gives to a shell.
//! docs/parallel.md has what both have.

use std::ffi::OsString;

/// Names of an option, and advice.
struct Foreign {
    names: &'static [&'static str],
    advice: &'static str,
}

const fn foreign(names: &'static [&'static str], advice: &'static str) -> Foreign {
    Foreign { names, advice }
}

const ONE_MACHINE: &str = "jobs run on this machine only; there is no equivalent";
const NO_PIPE: &str = "input is not divided among jobs; divide it into files first, as in `split -n l/8 big part.`, and run \
                       `cosched run sort {} ::: part.*`";
const PROGRESS: &str = "the progress line, with the time left, is shown on a terminal without asking; leave the option out";
const SEVERAL: &str =
    "the number of values of a job is given by -n N, as in `cosched run -n 100 rm ::: *.o`";
const LIVE: &str = "give --output live, which shows whole lines as they come";
const NO_SQL: &str = "there are no databases; --joblog FILE keeps a log, and --format json or --record FILE a record";
const NOTHING_ALIKE: &str = "there is nothing alike; leave the option out";
const NOTHING: &str = "there is nothing to be cited or silenced; leave the option out";
const REPLACEMENT: &str =
    "replacement strings have fixed names; write {}, {.}, {/}, {//}, {/.}, {1} or {#}";
const NO_SEMAPHORE: &str =
    "there is no semaphore; a list of all commands does it, as in `cosched run -f commands.txt`";
const VARIABLES: &str = "each job gets the whole environment; leave the option out";
const NO_TMUX: &str =
    "jobs have no terminal; their output is in the log folder, and --output live shows it";
const MEMORY: &str =
    "give --mem-keep SIZE: no further job is started while less memory is available";
const LOG_FILES: &str =
    "each job's output is kept in files in the log folder, which --logs DIR names";
const DOCTOR: &str = "`cosched doctor` shows the machine";

/// All of them, from the manual of GNU parallel 20221122.
const FOREIGN: &[Foreign] = &[
    foreign(
        &[
            "--pipe",
            "--spreadstdin",
            "--pipepart",
            "--pipe-part",
            "--block",
            "--block-size",
            "--blocktimeout",
        ],
        NO_PIPE,
    ),
    foreign(
        &[
            "--recstart",
            "--recend",
            "--regexp",
            "--remove-rec-sep",
            "--removerecsep",
            "--rrs",
            "--groupby",
        ],
        NO_PIPE,
    ),
    foreign(
        &[
            "--cat",
            "--fifo",
            "--tee",
            "--round-robin",
            "--round",
            "--roundrobin",
            "--bin",
            "--shard",
            "--lines",
        ],
        NO_PIPE,
    ),
    foreign(
        &[
            "--sshlogin",
            "-S",
            "--sshloginfile",
            "--slf",
            "--ssh",
            "--sshdelay",
            "--controlmaster",
            "-M",
        ],
        ONE_MACHINE,
    ),
    foreign(
        &[
            "--transfer",
            "--transferfile",
            "--tf",
            "--return",
            "--cleanup",
            "--basefile",
            "--bf",
            "--trc",
        ],
        ONE_MACHINE,
    ),
    foreign(
        &[
            "--onall",
            "--nonall",
            "--filter-hosts",
            "--hostgroups",
            "--hgrp",
            "--tollef",
            "--instance",
        ],
        ONE_MACHINE,
    ),
    foreign(
        &["--bar", "--eta", "--progress", "--latest-line", "--ll"],
        PROGRESS,
    ),
    foreign(&["-X", "-m", "--xargs", "-s", "--max-chars"], SEVERAL),
    foreign(&["-L", "-l", "--max-lines"], SEVERAL),
    foreign(
        &[
            "-u",
            "--ungroup",
            "--line-buffer",
            "--linebuffer",
            "--lb",
            "--fg",
            "--bg",
        ],
        LIVE,
    ),
    foreign(&["--group"], "give --output group"),
    foreign(&["--silent"], "that is the default; leave the option out"),
    foreign(
        &[
            "--unquote",
            "--combineexec",
            "--combine-exec",
            "--group-by",
            "--groupby",
        ],
        NOTHING_ALIKE,
    ),
    foreign(&["--parset", "--template", "--tmpl"], NOTHING_ALIKE),
    foreign(&["-V"], "give `cosched --version`"),
    foreign(
        &["--link", "--xapply"],
        "link lists with `:::+`, as in `cosched run echo {1} {2} ::: a b :::+ 1 2`; the shortest list decides",
    ),
    foreign(
        &[
            "-I",
            "-i",
            "--replace",
            "-U",
            "--extensionreplace",
            "--er",
            "--basenamereplace",
            "--bnr",
        ],
        REPLACEMENT,
    ),
    foreign(
        &[
            "--dirnamereplace",
            "--dnr",
            "--basenameextensionreplace",
            "--bner",
            "--seqreplace",
        ],
        REPLACEMENT,
    ),
    foreign(
        &["--slotreplace", "--rpl", "--plus", "--parens"],
        REPLACEMENT,
    ),
    foreign(
        &["--process-slot-var"],
        "there are no slots, since a job can be paused while others run; the variable COSCHED_JOB holds a job's name",
    ),
    foreign(
        &["-d", "--delimiter"],
        "values are divided by line ends, or by zero bytes with -0; as in `tr , '\\n' < list | cosched run gzip {}`",
    ),
    foreign(
        &["-e", "--eof"],
        "choose the values beforehand, as in `sed '/^END$/Q' list | cosched run gzip {}`",
    ),
    foreign(
        &["-E", "--arg-sep", "--arg-file-sep"],
        "the words are always `:::`, `:::+`, `::::` and `::::+`",
    ),
    foreign(
        &["--csv"],
        "give --colsep ,; a comma between quotes divides there, too",
    ),
    foreign(
        &["--header"],
        "there are no named columns; leave the first line out, as in `tail -n +2 table | cosched run ...`",
    ),
    foreign(
        &["--skip-first-line"],
        "leave the first line out beforehand, as in `tail -n +2 list | cosched run gzip {}`",
    ),
    foreign(
        &["--trim"],
        "values stay as they are, except columns (--colsep), which have no blanks around them; trim them beforehand, as in \
         `sed 's/^ *//; s/ *$//' list | cosched run ...`",
    ),
    foreign(
        &["--shuf"],
        "there is no random order; shuffle the values beforehand, as in `shuf list | cosched run gzip {}`",
    ),
    foreign(
        &["--filter"],
        "choose the values beforehand, as in `grep -v x list | cosched run gzip {}`",
    ),
    foreign(
        &["--quote"],
        "nothing needs more quotes: several words are started without a shell, and values are always one piece",
    ),
    foreign(
        &["--shellquote", "--shell-quote"],
        "--dry-run --quiet prints the commands, with quotes",
    ),
    foreign(
        &["--tagstring", "--tag-string", "--ctag", "--ctagstring"],
        "give --tag, which puts the values before each line",
    ),
    foreign(
        &["--color", "--colour", "--color-failed", "--cf"],
        "output is shown as it is; leave the option out",
    ),
    foreign(
        &["--joblog-append"],
        "give --joblog FILE --resume, which continues a log",
    ),
    foreign(
        &["--resume-failed", "--retry-failed"],
        "give --resume with the same --joblog: it leaves out only the jobs that succeeded",
    ),
    foreign(&["--memfree"], MEMORY),
    foreign(&["--memsuspend", "--noswap", "--limit"], MEMORY),
    foreign(
        &["--nice"],
        "start cosched itself with it, as in `nice -n 10 cosched run ...`",
    ),
    foreign(
        &["--termseq"],
        "give --grace DURATION, the time from SIGTERM to SIGKILL",
    ),
    foreign(
        &["--wd", "--workdir", "-W"],
        "jobs run in the caller's folder; a mix file gives each its cwd, and `cd` does it in a line for the shell",
    ),
    foreign(&["--env", "--record-env", "--session"], VARIABLES),
    foreign(
        &[
            "--files",
            "--outputasfiles",
            "--compress",
            "--compress-program",
            "--decompress-program",
        ],
        LOG_FILES,
    ),
    foreign(&["--tempdir", "--tmpdir", "--delete-tmp"], LOG_FILES),
    foreign(
        &[
            "--tmux",
            "--tmuxpane",
            "--tty",
            "--interactive",
            "--open-tty",
            "-o",
        ],
        NO_TMUX,
    ),
    foreign(
        &["--sqlmaster", "--sqlworker", "--sqlandworker", "--sql"],
        NO_SQL,
    ),
    foreign(
        &[
            "--semaphore",
            "--semaphorename",
            "--semaphoretimeout",
            "--id",
            "--st",
            "--wait",
        ],
        NO_SEMAPHORE,
    ),
    foreign(
        &["--no-keep-order", "--nokeeporder", "--nk"],
        "that is the default; leave the option out",
    ),
    foreign(
        &[
            "--citation",
            "--will-cite",
            "--bibtex",
            "--no-notice",
            "--gnu",
            "--minversion",
            "--unsafe",
        ],
        NOTHING,
    ),
    foreign(
        &[
            "--number-of-cpus",
            "--number-of-cores",
            "--number-of-sockets",
            "--number-of-threads",
        ],
        DOCTOR,
    ),
    foreign(&["--show-limits", "--max-line-length-allowed"], DOCTOR),
    foreign(
        &[
            "--use-cpus-instead-of-cores",
            "--use-cores-instead-of-threads",
            "--use-sockets-instead-of-threads",
        ],
        "--cpus LIST names the CPUs to use, as in --cpus 0-3",
    ),
    foreign(
        &["-J", "--plain"],
        "there are no files of options; --profile FILE is a machine profile",
    ),
    foreign(
        &["--shebang", "--hashbang", "--shebang-wrap", "--embed"],
        "there is no equivalent; put the call into a script",
    ),
    foreign(
        &["-t"],
        "give --verbose, which reports each job's start and end",
    ),
    foreign(
        &["--exit", "-x", "--stdin", "-T"],
        "there is no equivalent; leave the option out",
    ),
];

/// The error for an option of `cosched run` that is one of GNU parallel's; `None` if it is not.
pub(crate) fn advice(option: &str) -> Option<String> {
    let found = FOREIGN
        .iter()
        .find(|foreign| foreign.names.contains(&option))?;
    Some(format!(
        "{option} is an option of GNU parallel, not of cosched: {}; `cosched man parallel` compares both",
        found.advice
    ))
}

/// A word of a command in several words that a shell would take for itself. GNU parallel hands all words to a shell.
pub(crate) fn literal_word(command: &[OsString]) -> Option<String> {
    const TAKEN: [&str; 9] = [">", ">>", "<", "|&", "&&", "2>", "2>>", "&>", "2>&1"];
    // These have operators of that form themselves.
    const OWN: [&str; 4] = ["test", "[", "[[", "expr"];
    let words: Vec<&str> = command
        .iter()
        .map(|word| word.to_str().unwrap_or_default())
        .collect();
    let end = words
        .iter()
        .position(|word| word.starts_with(":::"))
        .unwrap_or(words.len());
    let (first, more) = words[..end].split_first()?;
    if OWN.contains(first) {
        return None;
    }
    let before = std::iter::once(first).chain(more);
    let ends_with_semicolon = more
        .iter()
        .any(|word| word.starts_with("-exec") || word.starts_with("-ok"));
    let is_taken = |(before, word): &(&&str, &&str)| match **word {
        "&" | "|" | "||" => !DIVIDES.contains(*before),
        ";" => !ends_with_semicolon && !DIVIDES.contains(*before),
        word => {
            TAKEN.contains(&word)
                || (!SEARCHES.contains(first) && (is_redirection(word) || is_pipe(word)))
        }
    };
    before
        .zip(more)
        .find(is_taken)
        .map(|(_, word)| (*word).to_owned())
}

/// Programs whose patterns can look like a redirection, as `>{}` for the names in a FASTA file.
const SEARCHES: [&str; 8] = ["ag", "awk", "egrep", "fgrep", "grep", "rg", "sed", "zgrep"];

/// Options that are followed by a sign that divides fields.
const DIVIDES: [&str; 4] = ["-F", "-d", "-s", "-t"];

/// Whether a word is a redirection together with its file: `2>log`, `&>log`, `>/dev/null`, `>>log`.
fn is_redirection(word: &str) -> bool {
    let file = |sign: &str| {
        word.strip_prefix(sign)
            .map(|rest| rest.strip_prefix('>').unwrap_or(rest))
    };
    let is_name = |name: &str| {
        !name.is_empty() && !name.contains(|c: char| c.is_whitespace() || "<>|=".contains(c))
    };
    ["1>", "2>", "&>", ">"]
        .iter()
        .find_map(|sign| file(sign))
        .is_some_and(is_name)
}

/// Whether a word is a pipe together with a command: `|wc -l`.
fn is_pipe(word: &str) -> bool {
    word.strip_prefix('|').is_some_and(|rest| {
        rest.trim_start()
            .starts_with(|c: char| c.is_ascii_lowercase())
    })
}

/// The names of all of these options.
#[cfg(test)]
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    FOREIGN
        .iter()
        .flat_map(|foreign| foreign.names.iter().copied())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_only_a_shell_knows_are_noticed() {
        for (command, found) in [
            ("echo {} > {}.out ::: a", Some(">")),
            ("cat a | wc", Some("|")),
            ("echo {} ::: > |", None),
            ("expr 3 > 2", None),
            ("ls {} >/dev/null", Some(">/dev/null")),
            ("ls {} >>./log", Some(">>./log")),
            ("ls {} >{}.out ::: a", Some(">{}.out")),
            ("ls {} 2>/dev/null ::: a", Some("2>/dev/null")),
            ("ls {} 2>>log", Some("2>>log")),
            ("ls {} &>log", Some("&>log")),
            ("sleep {} & ::: 1", Some("&")),
            ("sleep 1 & ls", Some("&")),
            ("cut -d & -f 1", None),
            ("echo {} >>log.txt", Some(">>log.txt")),
            ("echo {} >o2", Some(">o2")),
            ("echo {} 1>o2", Some("1>o2")),
            ("echo {} |wc", Some("|wc")),
            ("echo {} |& cat", Some("|&")),
            ("echo {} ; echo b", Some(";")),
            ("find . -execdir ls {} ;", None),
            ("awk -F | {}", None),
            ("sort -t | {}", None),
            ("grep -F || {}", None),
            ("grep <tag> a", None),
            ("grep >{} a", None),
            ("echo <tag>", None),
            ("echo >name", Some(">name")),
            ("echo 2>=1 &>", Some("&>")),
            ("echo a&b R&D", None),
            ("find . -exec ls {} ;", None),
            (">", None),
        ] {
            let command: Vec<OsString> = command.split(' ').map(OsString::from).collect();
            assert_eq!(literal_word(&command).as_deref(), found, "{command:?}");
        }
    }
}
