//! `cosched completions` and `cosched man`: generated from the definition of the command line, and pages of the
//! documentation that are built in.

use crate::exit::usage;
use crate::input::told;
use crate::whole_file::write_whole;
use clap::{Args, Command, ValueEnum};
use clap_complete::Shell;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
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

    /// Folder for cosched.1, cosched-run.1 and so on; links in it are not followed
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
    /// What the simulation does and where it ends
    Simulator,
    /// The equations and where they come from
    Models,
    /// The policy `even`
    Even,
    /// Programs that load a machine, for tests
    Workloads,
    /// What was measured
    Benchmarks,
}

impl Page {
    fn text(self) -> &'static str {
        match self {
            Page::CommandLine => include_str!("../../../../docs/command-line.md"),
            Page::MixFile => include_str!("../../../../docs/mix-file.md"),
            Page::Policies => include_str!("../../../../docs/policies.md"),
            Page::Parallel => include_str!("../../../../docs/parallel.md"),
            Page::Safety => include_str!("../../../../docs/safety.md"),
            Page::Kernel => include_str!("../../../../docs/kernel.md"),
            Page::Privileges => include_str!("../../../../docs/privileges.md"),
            Page::Formats => include_str!("../../../../docs/formats.md"),
            Page::MachineFile => include_str!("../../../../docs/machine-file.md"),
            Page::ProgramFile => include_str!("../../../../docs/program-file.md"),
            Page::Simulator => include_str!("../../../../docs/simulator.md"),
            Page::Models => include_str!("../../../../docs/models.md"),
            Page::Even => include_str!("../../../../docs/even.md"),
            Page::Workloads => include_str!("../../../../docs/workloads.md"),
            Page::Benchmarks => include_str!("../../../../docs/benchmarks.md"),
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
        (Some(dir), None) => write_pages(cli, &dir)?,
        (None, None) => {
            let mut page = Vec::new();
            clap_mangen::Man::new(cli).render(&mut page)?;
            std::io::stdout().write_all(&page)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes the manual pages of the command line `cli` and of its verbs into a folder, and says which files that are. Links in
/// the folder are not followed, and only regular files are replaced.
fn write_pages(cli: Command, dir: &Path) -> anyhow::Result<()> {
    let mut out = std::io::stdout();
    match std::fs::create_dir(dir) {
        Ok(()) => writeln!(out, "made {}", told(dir))?,
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let dir = told(dir);
            return Err(usage(format!(
                "--dir {dir}: the folder above it is not there; make it, as in `mkdir -p {dir}`"
            )));
        }
        Err(error) => return Err(usage(format!("--dir {}: {error}", told(dir)))),
    }
    let mut cli = cli.disable_help_subcommand(true);
    cli.build();
    let mut pages = Vec::new();
    collect_pages(&cli, &mut pages)?;
    for (name, _) in &pages {
        let path = dir.join(name);
        if path.symlink_metadata().is_ok_and(|meta| !meta.is_file()) {
            let path = told(&path);
            return Err(usage(format!(
                "--dir: {path} is not a regular file, so it is not replaced; remove it first"
            )));
        }
    }
    for (name, page) in pages {
        let path = dir.join(&name);
        write_whole(&path, &page)?;
        writeln!(out, "wrote {}", told(&path))?;
    }
    Ok(())
}

/// The names and the text of the pages of a command and of those below it.
fn collect_pages(command: &Command, pages: &mut Vec<(String, Vec<u8>)>) -> std::io::Result<()> {
    for below in command
        .get_subcommands()
        .filter(|below| !below.is_hide_set())
    {
        collect_pages(below, pages)?;
    }
    let man = clap_mangen::Man::new(command.clone());
    let mut page = Vec::new();
    man.render(&mut page)?;
    pages.push((man.get_filename(), page));
    Ok(())
}
