//! Prints the parameters of policies on a built-in machine, as the table `params` of its file; without a name, of all
//! machines: `cargo run --release -p cosched-sim --features examples --example fit -- server-2x64`.
#![allow(clippy::disallowed_methods, clippy::disallowed_macros)] // The rules are the library's.

use cosched_core::model::cross_core::RegressionFit;
use cosched_sim::*;
use std::error::Error;
use std::sync::Arc;

fn main() -> Result<(), Box<dyn Error>> {
    let asked: Vec<String> = std::env::args().skip(1).collect();
    for file in MACHINES
        .iter()
        .filter(|file| asked.is_empty() || asked.iter().any(|name| name == file.name))
    {
        let machine = Arc::new(builtin_machine(file.name).ok_or("no such machine")?);
        let fit = fit(&machine, FIT_LENGTH)?;
        println!("# {}: power of up to {} cores", file.name, fit.cores);
        if let Some(types) = &fit.core_types {
            let r = |fit: &RegressionFit| fit.r2.map_or(f64::NAN, f64::sqrt);
            println!(
                "# correlation {:.4} to big, {:.4} to small",
                r(&types.to_big),
                r(&types.to_small)
            );
        }
        println!("[params]");
        println!("source = \"fitted in the simulation by the example `fit` of cosched-sim\"");
        for (name, value) in fit.params() {
            println!("{name} = {value}");
        }
        println!();
    }
    Ok(())
}
