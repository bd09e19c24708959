//! Calls of `cosched run`.

use crate::common;
use std::io::Write as _;
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

pub(crate) fn call(folder: &TempDir, words: &[&str]) -> Command {
    common::command(folder.path(), &[&["run"], words].concat())
}

pub(crate) fn run(folder: &TempDir, words: &[&str]) -> Output {
    call(folder, words).output().expect("the binary runs")
}

pub(crate) fn run_with_input(folder: &TempDir, words: &[&str], input: &[u8]) -> Output {
    let mut command = call(folder, words);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it runs");
    // A command that does not read its input closes it early.
    let _ = child.stdin.take().expect("a pipe").write_all(input);
    child.wait_with_output().expect("it ends")
}
