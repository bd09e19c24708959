//! `cosched completions` and `cosched man`: generated from the definition of the command line.

use anyhow::Context as _;
use clap::{Args, Command};
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

/// Print the manual page, or write the pages of all verbs to a folder
#[derive(Args, Debug)]
pub(crate) struct ManArgs {
    /// Folder for cosched.1, cosched-run.1 and so on
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
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
    match args.dir {
        Some(dir) => {
            std::fs::create_dir_all(&dir).with_context(|| format!("{}", dir.display()))?;
            clap_mangen::generate_to(cli, &dir).with_context(|| format!("{}", dir.display()))?;
        }
        None => {
            let mut page = Vec::new();
            clap_mangen::Man::new(cli).render(&mut page)?;
            std::io::stdout().write_all(&page)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
