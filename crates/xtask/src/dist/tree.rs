//! The tree of installed files for a processor: `bin` and `share`, for `/usr/local` or `/usr`.

use super::command::{output, run};
use super::parts;
use super::source::SourceArchive;
use anyhow::Result;
use std::fs;
use std::path::Path;

/// Shells, and where they look for completions.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "share/bash-completion/completions/cosched"),
    ("zsh", "share/zsh/site-functions/_cosched"),
    ("fish", "share/fish/vendor_completions.d/cosched.fish"),
];

/// Files of the source that go with the binary, in `share/doc/cosched`.
const DOCUMENTS: [&str; 4] = ["README.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE"];

/// Name of the tree's folder and archive.
pub fn name(source: &SourceArchive, arch: &str) -> String {
    format!("{}-{}-linux", source.name, arch)
}

/// Fills the tree of a binary. The binary `own`, for this machine's processor, prints pages and completions.
///
/// # Errors
/// The binary fails, or a file cannot be written.
pub fn fill(source: &SourceArchive, arch: &str, binary: &Path, own: &Path) -> Result<()> {
    let tree = source.work.join(name(source, arch));
    let documents = tree.join("share/doc/cosched");
    for folder in ["bin", "share/man/man1", "share/doc/cosched"] {
        fs::create_dir_all(tree.join(folder))?;
    }
    fs::copy(binary, tree.join("bin/cosched"))?;
    for name in DOCUMENTS {
        fs::copy(source.tree().join(name), documents.join(name))?;
    }
    fs::copy(parts::texts(source), documents.join("third-party.txt"))?;
    print_pages(source, &tree, own)
}

fn print_pages(source: &SourceArchive, tree: &Path, own: &Path) -> Result<()> {
    run(source
        .command(own, "man --dir")
        .arg(tree.join("share/man/man1")))?;
    for (shell, file) in COMPLETIONS {
        let file = tree.join(file);
        fs::create_dir_all(file.parent().unwrap_or(tree))?;
        fs::write(file, output(source.command(own, "completions").arg(shell))?)?;
    }
    Ok(())
}
