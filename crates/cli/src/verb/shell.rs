//! `cosched completions` and `cosched man`: generated from the definition of the command line.

use crate::complete;
use crate::exit::OrUsage as _;
use crate::input::told;
use crate::print::print;
use crate::whole_file::write_whole;
use anyhow::Result;
use clap::{Args, Command};
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

/// Print the manual page, or write the pages of all verbs to a folder
#[derive(Args)]
pub struct ManArgs {
    /// Folder for cosched.1, cosched-run.1 and so on
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// Prints the script that lets a shell ask for completions.
pub fn completions(args: CompletionsArgs) -> Result<ExitCode> {
    print(complete::script(args.shell)?)
}

/// Prints or writes the manual of the command line `cli`.
pub fn man(args: ManArgs, cli: Command) -> Result<ExitCode> {
    match args.dir {
        Some(dir) => write_pages(cli, &dir).map(|()| ExitCode::SUCCESS),
        None => print(rendered(&Man::new(cli))?),
    }
}

fn rendered(man: &Man) -> std::io::Result<Vec<u8>> {
    let mut page = Vec::new();
    man.render(&mut page)?;
    Ok(page)
}

/// Writes the manual pages of the command line `cli` and of its verbs into a folder.
fn write_pages(mut cli: Command, dir: &Path) -> Result<()> {
    std::fs::create_dir_all(dir).or_usage_in(format!("--dir {}", told(dir)))?;
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
