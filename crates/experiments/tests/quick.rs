//! The short form of the experiments is the one in results/, to the last byte.
#![allow(clippy::disallowed_methods)] // A test reads the repository.

use cosched_experiments::reproduction::findings::markdown::markdown;
use cosched_experiments::reproduction::{
    EXPERIMENTS, Findings, Pool, ReproductionRequest, reproduce,
};
use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;

/// Written by `cosched reproduce --quick`.
const PAGE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../results/reproduction-quick.md"
);

#[test]
fn the_short_form_is_the_page_in_results() {
    let stop = AtomicBool::new(false);
    let threads = std::thread::available_parallelism().map_or(1, |threads| threads.get());
    let pool = Pool {
        threads,
        progress: &|_, _, _| (),
        stop: &stop,
    };
    let request = ReproductionRequest {
        experiments: EXPERIMENTS.iter().collect(),
        quick: true,
        seeds: None,
        first_seed: 1,
    };
    let findings = reproduce(&request, pool).unwrap();
    tables_are_sound(&findings);
    keys_are_unique(&findings);
    let now = markdown(&findings, None);
    let page = std::fs::read_to_string(PAGE).unwrap();
    let differs = now
        .lines()
        .zip(page.lines())
        .find(|(now, page)| now != page);
    assert_eq!(
        differs, None,
        "`cosched reproduce --quick > results/reproduction-quick.md` writes it again"
    );
    assert!(now == page, "the page has another length");
}

/// A published result is judged once, and no two are told apart by their keys alone.
fn keys_are_unique(findings: &Findings) {
    for chapter in &findings.chapters {
        let (mut keys, mut words) = (BTreeSet::new(), BTreeSet::new());
        for verdict in &chapter.verdicts {
            assert!(keys.insert(&verdict.key), "{}", verdict.key);
            assert!(words.insert(&verdict.what), "{}", verdict.what);
        }
    }
}

/// Every table has a name of its own, columns that can be told apart, and rows that fill them.
fn tables_are_sound(findings: &Findings) {
    let mut ids = BTreeSet::new();
    for (table, _) in findings.tables() {
        assert!(ids.insert(&table.id), "{}", table.id);
        let names: BTreeSet<&String> = table.columns.iter().collect();
        assert_eq!(
            names.len(),
            table.columns.len(),
            "{}: {:?}",
            table.id,
            table.columns
        );
        assert!(
            table
                .rows
                .iter()
                .all(|row| row.len() == table.columns.len()),
            "{}",
            table.id
        );
        assert!(!table.rows.is_empty(), "{}", table.id);
    }
    assert!(ids.len() > 20);
}
