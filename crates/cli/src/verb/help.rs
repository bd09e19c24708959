//! `cosched help`: a verb with all its options, or a page of the documentation; and the short screens of `--help`.

use super::run::brief;
use crate::exit::usage;
use crate::input::spelling::near;
use crate::input::told;
use crate::offer;
use crate::print::print;
use anyhow::Result;
use clap::{Arg, ArgAction, Args, Command, CommandFactory as _};
use clap_complete::engine::{ArgValueCandidates, CompletionCandidate};
use std::ffi::OsString;
use std::process::ExitCode;

/// Explain a verb with all its options, or print a page of the documentation
#[derive(Args)]
pub struct HelpArgs {
    /// A verb, as in run, or a page, as in policies [default: list both]
    #[arg(add = ArgValueCandidates::new(topics))]
    topic: Vec<String>,
}

/// A page of the documentation.
pub struct Page {
    pub name: &'static str,
    pub about: &'static str,
    text: &'static str,
}

/// A page, and its file if that has another name.
macro_rules! page {
    ($name:literal, $about:literal) => {
        page!($name, $about, $name)
    };
    ($name:literal, $about:literal, $file:literal) => {
        Page {
            name: $name,
            about: $about,
            text: include_str!(concat!("../../docs/", $file, ".md")),
        }
    };
}

/// The pages. None has the name of a verb.
#[rustfmt::skip]
pub const PAGES: [Page; 13] = [
    page!("command-line", "Every verb and option"),
    page!("mix-file", "The file that describes a batch"),
    page!("policies", "The policies and when to use each"),
    page!("parallel", "From GNU parallel to cosched"),
    page!("observing", "Observing programs that run already", "attach"),
    page!("queue", "The queue of a machine"),
    page!("workflows", "Snakemake, make, ninja, Nextflow, cron and Python"),
    page!("safety", "What happens when something dies, and what is left behind"),
    page!("kernel", "The scheduler in the kernel"),
    page!("privileges", "Which privileges help, and how to get them"),
    page!("formats", "The files that a run writes"),
    page!("machine-file", "A machine to simulate"),
    page!("program-file", "A program to simulate"),
];

/// Whether a page has this name.
pub fn is_page(name: &str) -> bool {
    PAGES.iter().any(|page| page.name == name)
}

/// The last lines of the list of verbs.
fn more() -> String {
    let names = PAGES.map(|page| page.name);
    format!(
        "For research: conform, decide, reproduce, workload.\n\
         `cosched help VERB` explains a verb, `cosched help PAGE` prints a page of the documentation:\n{}",
        names.join(", ")
    )
}

/// The command line for these words: where they ask for help, `run` shows the options of the first weeks.
pub fn with_screen(cli: Command, words: &[OsString]) -> Command {
    let mut options = words.iter().take_while(|word| *word != "--");
    let is_asked = options.any(|word| *word == "-h" || *word == "--help");
    if is_asked || words.len() < 2 {
        explained(cli).mut_subcommand("run", |run| run.mut_args(brief))
    } else {
        cli
    }
}

/// The command line with what help shows. Other calls start faster without it.
pub fn explained(cli: Command) -> Command {
    let flag = Arg::new("help").short('h').long("help").global(true);
    let flag = flag.action(ArgAction::HelpShort).display_order(999);
    let flag = flag.help("Print help; `cosched help VERB` prints more");
    let cli = cli.disable_help_flag(true).arg(flag);
    cli.after_help(more())
}

/// What `help` explains.
fn topics() -> Vec<CompletionCandidate> {
    let cli = crate::Cli::command();
    let mut words = Vec::new();
    for verb in cli.get_subcommands().filter(|verb| !verb.is_hide_set()) {
        let about = verb.get_about().map(ToString::to_string);
        words.push(offer::word(verb.get_name(), about.unwrap_or_default()));
    }
    words.extend(PAGES.map(|page| offer::word(page.name, page.about)));
    words
}

/// Prints what the user asks for about the command line `cli`.
pub fn run(args: HelpArgs, mut cli: Command) -> Result<ExitCode> {
    if let [name] = &args.topic[..]
        && let Some(page) = PAGES.iter().find(|page| page.name == name)
    {
        return print(page.text);
    }
    cli.build();
    let mut command = &cli;
    for word in &args.topic {
        let below = command.find_subcommand(word);
        command = below.ok_or_else(|| unknown(word, command))?;
    }
    let is_root = args.topic.is_empty();
    let command = command.clone();
    let mut shown = if is_root { command } else { full(command) };
    shown.print_help()?;
    Ok(ExitCode::SUCCESS)
}

/// A command whose short help has all options, a line or two each.
fn full(command: Command) -> Command {
    let command = command.mut_args(|arg| arg.hide_short_help(false));
    let about = command.get_long_about().or(command.get_about());
    let after = command.get_after_long_help().or(command.get_after_help());
    let (about, after) = (about.cloned(), after.cloned());
    command
        .about(about.unwrap_or_default())
        .after_help(after.unwrap_or_default())
}

fn unknown(word: &str, command: &Command) -> anyhow::Error {
    if is_page(word) {
        return usage(format!(
            "`cosched help {word}` prints a page, and takes no further word"
        ));
    }
    let verbs = command.get_subcommands().map(Command::get_name);
    let hint = match near(word, verbs.chain(PAGES.iter().map(|page| page.name))) {
        Some(other) => format!("is it `{other}`?"),
        None => "`cosched help` lists them".to_owned(),
    };
    usage(format!("there is no verb or page `{}`; {hint}", told(word)))
}
