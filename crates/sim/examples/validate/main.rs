//! Holds the simulated machine against measurements that are not its own. `cargo run --release -p cosched-sim --example validate`.
#![allow(clippy::disallowed_methods, clippy::disallowed_macros)] // The rules are the library's.

mod champsim;
mod table;

use cosched_sim::parse_machine_with;
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn main() {
    let folder = std::env::args_os()
        .nth(1)
        .map_or(PathBuf::from("examples/champsim"), PathBuf::from);
    let home = Path::new("examples/champsim");
    let read =
        |name: &str| std::fs::read_to_string(home.join(name)).expect("it is in the repository");
    let machine = parse_machine_with(&read("machine.toml"), "machine.toml", &|_| {
        Ok(read("latency.toml"))
    });
    let machine = Arc::new(machine.expect("it is right"));
    print!(
        "{}",
        champsim::report(&folder, &machine).unwrap_or_else(|why| why)
    );
}
