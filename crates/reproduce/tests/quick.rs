//! The short form of the experiments is the one in the documentation, to the last byte.
#![allow(clippy::disallowed_methods)] // A test reads the repository.

use cosched_reproduce::findings::markdown::markdown;
use cosched_reproduce::{Experiment, Pool, Request, reproduce};
use std::sync::atomic::AtomicBool;

/// Written by `cosched reproduce --quick --format markdown`.
const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reproduction-quick.md");

#[test]
fn the_short_form_is_the_one_in_the_documentation() {
    let stop = AtomicBool::new(false);
    let threads = std::thread::available_parallelism().map_or(1, |threads| threads.get());
    let pool = Pool { threads, progress: &|_, _, _| (), stop: &stop };
    let request = Request {
        experiments: Experiment::ALL.to_vec(),
        quick: true,
        sensitivity: false,
        seeds: None,
        first_seed: 1,
        policies: Vec::new(),
    };
    let now = markdown(&reproduce(&request, pool).unwrap(), None);
    let page = std::fs::read_to_string(PAGE).unwrap();
    let differs = now.lines().zip(page.lines()).find(|(now, page)| now != page);
    assert_eq!(
        differs, None,
        "`cosched reproduce --quick --format markdown > docs/reproduction-quick.md` writes it again"
    );
    assert!(now == page, "the page has another length");
}
