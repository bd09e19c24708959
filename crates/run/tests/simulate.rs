//! Simulated runs of a program that is not `cosched`.

use cosched_core::model::cross_core::BothWays;
use cosched_report::{SeriesReader, add_pairs, core_types_text};
use cosched_run::exit::Exit;
use cosched_run::{Logs, MachineOptions, OutputOptions, RunOptions, Source, run};
use std::path::Path;

const MIX: &str = "[[job]]\nprogram = \"mcf\"\ncopies = 3\nwork_instructions = 2e9\n";

/// The options of a run that keeps nothing.
fn options(folder: &Path) -> RunOptions {
    let mix = folder.join("mix.toml");
    std::fs::write(&mix, MIX).expect("a mix file");
    RunOptions {
        jobs: Source::Mix(mix),
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

#[test]
fn the_coefficients_between_types_of_core_follow_from_the_series_of_a_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut options = options(folder.path());
    let jobs = ["gamess", "hmmer", "milc", "zeusmp"]
        .map(|name| format!("[[job]]\nprogram = \"{name}\"\nwork_instructions = 5e10\n"));
    std::fs::write(folder.path().join("mix.toml"), jobs.concat()).expect("a mix file");
    options.machine.on = Some("big1-small3".to_owned());
    options.policy.name = Some("lucky".to_owned());
    options.output.logs = Logs::At(folder.path().join("logs"));
    run(&options).expect("a run");
    let mut pairs = BothWays::default();
    let text = std::fs::read(folder.path().join("logs/series.jsonl")).expect("a series");
    for _ in 0..2 {
        let series = SeriesReader::new(text.as_slice(), "s").expect("a series");
        add_pairs(&mut pairs, series).expect("pairs");
    }
    // Runs add up.
    assert!(pairs.to_big.count() > 50.0 && pairs.to_big.count() % 2.0 == 0.0);
    let fit = pairs.to_big.fit().expect("coefficients");
    assert!(fit.r2 > Some(0.95), "{fit:?}");
    let told = core_types_text(&pairs).expect("a text");
    let alpha = format!("--param to_big_alpha={:.4} ", fit.regression.alpha);
    assert!(told.starts_with(&alpha), "{told}");
    options.output.logs = Logs::Nowhere;
    for option in told
        .lines()
        .next()
        .expect("options")
        .split("--param ")
        .skip(1)
    {
        let (name, value) = option.trim().split_once('=').expect("name and value");
        options
            .policy
            .params
            .push((name.to_owned(), value.to_owned()));
    }
    assert_eq!(options.policy.params.len(), 6, "{told}");
    run(&options).expect("a run with these parameters");
}
