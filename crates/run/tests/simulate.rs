//! Simulated runs of a program that is not `cosched`.

use cosched_run::exit::Exit;
use cosched_run::{JobSource, Logs, MachineOptions, OutputOptions, RunOptions, run};
use std::path::Path;

const MIX: &str = "[[job]]\nprogram = \"mcf\"\ncopies = 3\nwork_instructions = 2e9\n";

/// The options of a run that keeps nothing.
fn options(folder: &Path) -> RunOptions {
    let mix = folder.join("mix.toml");
    std::fs::write(&mix, MIX).expect("a mix file");
    RunOptions {
        jobs: JobSource::Mix(mix),
        machine: MachineOptions {
            on: Some("i5-2500".to_owned()),
            ..MachineOptions::default()
        },
        output: OutputOptions {
            logs: Logs::Nowhere,
            quiet: true,
            ..OutputOptions::default()
        },
        leaves_signals: true,
        ..RunOptions::default()
    }
}

#[test]
fn a_thread_can_simulate_and_nothing_is_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = options(folder.path());
    let simulations: Vec<_> = (0..2)
        .map(|_| {
            let options = options.clone();
            std::thread::spawn(move || {
                let outcome = run(&options).expect("a run");
                assert_eq!(outcome.exit, Exit::Success);
                outcome.record.expect("a record").to_json()
            })
        })
        .collect();
    let records: Vec<String> = simulations
        .into_iter()
        .map(|thread| thread.join().expect("a record"))
        .collect();
    assert_eq!(records[0], records[1]);
    assert!(records[0].contains("mcf#3"), "{}", records[0]);
    let files = std::fs::read_dir(folder.path()).expect("the folder");
    assert_eq!(files.count(), 1, "the mix file");
}

#[test]
fn a_log_folder_is_written_if_it_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut options = options(folder.path());
    options.output.logs = Logs::At(folder.path().join("logs"));
    let outcome = run(&options).expect("a run");
    let written = std::fs::read_to_string(folder.path().join("logs/run.json")).expect("a record");
    assert_eq!(outcome.record.expect("a record").to_json(), written);
}
