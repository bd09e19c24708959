//! `cosched completions` and `cosched man`: generated from the definition of the command line, and pages of the
//! documentation that are built in.

use crate::exit::OrUsage as _;
use crate::input::told;
use crate::print::print;
use crate::whole_file::write_whole;
use anyhow::Result;
use clap::{Args, Command, ValueEnum};
use clap_complete::Shell;
use clap_mangen::Man;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Print completions for a shell
///
/// For bash: cosched completions bash > ~/.local/share/bash-completion/completions/cosched
#[derive(Args)]
pub struct CompletionsArgs {
    /// Shell to print completions for
    #[arg(value_enum)]
    shell: Shell,
}

/// Print the manual page or a page of the documentation, or write the pages of all verbs to a folder
#[derive(Args)]
pub struct ManArgs {
    /// A page of the documentation (Markdown) instead of the manual page
    #[arg(value_enum, conflicts_with = "dir")]
    page: Option<Page>,

    /// Folder for cosched.1, cosched-run.1 and so on
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// A page of the documentation.
#[derive(Clone, Copy, ValueEnum)]
enum Page {
    /// Every verb and option
    CommandLine,
    /// The file that describes a batch
    MixFile,
    /// The policies and their parameters
    Policies,
    /// From GNU parallel to cosched
    Parallel,
    /// Observing programs that run already
    Attach,
    /// The queue of a machine
    Queue,
    /// Snakemake, make, ninja, Nextflow, cron and Python
    Workflows,
    /// What happens when something dies, and what is left behind
    Safety,
    /// The scheduler in the kernel
    Kernel,
    /// Which privileges help, and how to get them
    Privileges,
    /// The files that a run writes
    Formats,
    /// A machine to simulate
    MachineFile,
    /// A program to simulate
    ProgramFile,
}

impl Page {
    fn text(self) -> &'static str {
        match self {
            Page::CommandLine => include_str!("../../docs/command-line.md"),
            Page::MixFile => include_str!("../../docs/mix-file.md"),
            Page::Policies => include_str!("../../docs/policies.md"),
            Page::Parallel => include_str!("../../docs/parallel.md"),
            Page::Attach => include_str!("../../docs/attach.md"),
            Page::Queue => include_str!("../../docs/queue.md"),
            Page::Workflows => include_str!("../../docs/workflows.md"),
            Page::Safety => include_str!("../../docs/safety.md"),
            Page::Kernel => include_str!("../../docs/kernel.md"),
            Page::Privileges => include_str!("../../docs/privileges.md"),
            Page::Formats => include_str!("../../docs/formats.md"),
            Page::MachineFile => include_str!("../../docs/machine-file.md"),
            Page::ProgramFile => include_str!("../../docs/program-file.md"),
        }
    }
}

/// Prints the completions of the command line `cli`.
pub fn completions(args: CompletionsArgs, mut cli: Command) -> Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut cli, "cosched", &mut script);
    print(script)
}

/// Prints or writes the manual of the command line `cli`.
pub fn man(args: ManArgs, cli: Command) -> Result<ExitCode> {
    if let Some(dir) = args.dir {
        write_pages(cli, &dir)?;
        return Ok(ExitCode::SUCCESS);
    }
    let page = match args.page {
        Some(page) => page.text().as_bytes().to_vec(),
        None => rendered(&Man::new(cli))?,
    };
    print(page)
}

fn rendered(man: &Man) -> std::io::Result<Vec<u8>> {
    let mut page = Vec::new();
    man.render(&mut page)?;
    Ok(page)
}

/// Writes the manual pages of the command line `cli` and of its verbs into a folder.
fn write_pages(cli: Command, dir: &Path) -> Result<()> {
    std::fs::create_dir_all(dir).or_usage_in(format!("--dir {}", told(dir)))?;
    let mut cli = cli.disable_help_subcommand(true);
    cli.build();
    write_page(&cli, dir)
}

/// Writes the pages of a command and of those below it.
fn write_page(command: &Command, dir: &Path) -> Result<()> {
    for below in command.get_subcommands() {
        if !below.is_hide_set() {
            write_page(below, dir)?;
        }
    }
    let man = Man::new(command.clone());
    write_whole(&dir.join(man.get_filename()), &rendered(&man)?)
}
