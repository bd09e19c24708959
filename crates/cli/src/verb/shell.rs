//! `cosched completions` and `cosched man`: generated from the definition of the command line, and pages of the
//! documentation that are built in.

use anyhow::Context as _;
use clap::{Args, Command, ValueEnum};
use clap_complete::Shell;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

/// Print completions for a shell
///
/// For bash: cosched completions bash > ~/.local/share/bash-completion/completions/cosched
#[derive(Args, Debug)]
pub(crate) struct CompletionsArgs {
    /// Shell to print completions for
    #[arg(value_enum)]
    shell: Shell,
}

/// Print the manual page or a page of the documentation, or write the pages of all verbs to a folder
#[derive(Args, Debug)]
pub(crate) struct ManArgs {
    /// A page of the documentation (Markdown) instead of the manual page
    #[arg(value_enum, conflicts_with = "dir")]
    page: Option<Page>,

    /// Folder for cosched.1, cosched-run.1 and so on
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// A page of the documentation.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Page {
    /// Every verb and option
    CommandLine,
    /// The file that describes a batch
    MixFile,
    /// The policies and their parameters
    Policies,
    /// From GNU parallel to cosched
    Parallel,
    /// What happens when something dies, and what is left behind
    Safety,
    /// Which privileges help, and how to get them
    Privileges,
    /// The files that a run writes
    Formats,
    /// A machine to simulate
    MachineFile,
    /// A program to simulate
    ProgramFile,
    /// What the simulation does and where it ends
    Simulator,
}

impl Page {
    fn text(self) -> &'static str {
        match self {
            Page::CommandLine => include_str!("../../../../docs/command-line.md"),
            Page::MixFile => include_str!("../../../../docs/mix-file.md"),
            Page::Policies => include_str!("../../../../docs/policies.md"),
            Page::Parallel => include_str!("../../../../docs/parallel.md"),
            Page::Safety => include_str!("../../../../docs/safety.md"),
            Page::Privileges => include_str!("../../../../docs/privileges.md"),
            Page::Formats => include_str!("../../../../docs/formats.md"),
            Page::MachineFile => include_str!("../../../../docs/machine-file.md"),
            Page::ProgramFile => include_str!("../../../../docs/program-file.md"),
            Page::Simulator => include_str!("../../../../docs/simulator.md"),
        }
    }
}

/// Prints the completions of the command line `cli`.
pub(crate) fn completions(args: CompletionsArgs, mut cli: Command) -> anyhow::Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut cli, "cosched", &mut script);
    std::io::stdout().write_all(&script)?;
    Ok(ExitCode::SUCCESS)
}

/// Prints or writes the manual of the command line `cli`.
pub(crate) fn man(args: ManArgs, cli: Command) -> anyhow::Result<ExitCode> {
    match (args.dir, args.page) {
        (_, Some(page)) => std::io::stdout().write_all(page.text().as_bytes())?,
        (Some(dir), None) => {
            std::fs::create_dir_all(&dir).with_context(|| format!("{}", dir.display()))?;
            clap_mangen::generate_to(cli, &dir).with_context(|| format!("{}", dir.display()))?;
        }
        (None, None) => {
            let mut page = Vec::new();
            clap_mangen::Man::new(cli).render(&mut page)?;
            std::io::stdout().write_all(&page)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
