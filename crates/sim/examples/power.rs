//! Finds the power of the i5-2500's parts from what EFS measured on the whole machine (section 5.1): the power that each
//! active core adds (Eq. 25), and by how much programs deviate from it with four copies. `cargo run --release -p
//! cosched-sim --example power`.
#![allow(clippy::disallowed_methods, clippy::disallowed_macros)] // The rules are the library's.

use cosched_sim::*;
use std::error::Error;
use std::sync::Arc;

/// Power with one to four active cores in W: 26.6 when idle, and 22.6, 12, 12.3 and 12.3 for each further core.
const POWER_W: [f64; 4] = [49.2, 61.2, 73.5, 85.8];
/// Standard deviation of the power of different programs, as a share of it. Only the last one is used to fit.
const DEVIATION: [f64; 4] = [0.033, 0.028, 0.034, 0.051];

fn main() -> Result<(), Box<dyn Error>> {
    let machine = Arc::new(builtin_machine("i5-2500").ok_or("no such machine")?);
    let programs = PROGRAMS
        .iter()
        .filter(|file| file.file.starts_with("programs/spec-cpu2006/"));
    let programs: Vec<_> = programs
        .filter_map(|file| builtin_program(file.name).map(Arc::new))
        .collect();
    let of_copies = |copies| {
        programs
            .iter()
            .map(|program| rates(&machine, program, copies, FIT_LENGTH))
            .collect()
    };
    let rates: Vec<Vec<Rates>> = (1..=4).map(of_copies).collect();
    let (mut low, mut high) = (0.0, 5.0);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if Parts::new(&machine, &rates, middle).deviation(4, &rates) < DEVIATION[3] {
            low = middle
        } else {
            high = middle
        }
    }
    let parts = Parts::new(&machine, &rates, low);
    println!("uncore_w = {:.1}", parts.uncore_w);
    println!("active_w = {:.1}", parts.active_w);
    println!("nj_per_instruction = {:.2}", parts.nj_per_instruction);
    println!("cores  power [W]  EFS   deviation  EFS");
    for copies in 1..=4 {
        println!(
            "{copies:5} {:9.1} {:6.1} {:8.1} % {:5.1} %",
            parts.mean_w(copies, &rates),
            POWER_W[copies - 1],
            100.0 * parts.deviation(copies, &rates),
            100.0 * DEVIATION[copies - 1]
        );
    }
    Ok(())
}

/// Power and energies of the parts of the machine.
struct Parts {
    static_w: f64,
    uncore_w: f64,
    active_w: f64,
    nj_per_instruction: f64,
    nj_per_line: f64,
}

impl Parts {
    /// With this energy of an instruction, the uncore and the cores that come nearest to the four powers (least squares).
    fn new(machine: &MachineSpec, rates: &[Vec<Rates>], nj_per_instruction: f64) -> Parts {
        let (static_w, nj_per_line) = (machine.power.static_w, machine.power.nj_per_line);
        let mut parts = Parts {
            static_w,
            uncore_w: 0.0,
            active_w: 0.0,
            nj_per_instruction,
            nj_per_line,
        };
        let rest: Vec<f64> = (1..=4)
            .map(|copies| POWER_W[copies - 1] - parts.mean_w(copies, rates))
            .collect();
        let mean = rest.iter().sum::<f64>() / 4.0;
        let from_mean = |at: usize| at as f64 - 1.5;
        parts.active_w = (0..4).map(|at| from_mean(at) * rest[at]).sum::<f64>() / 5.0;
        parts.uncore_w = mean - 2.5 * parts.active_w;
        parts
    }

    fn power_w(&self, copies: usize, rates: &Rates) -> f64 {
        let moved = self.nj_per_instruction * rates.instructions_per_ns
            + self.nj_per_line * rates.lines_per_ns;
        self.static_w + self.uncore_w + self.active_w * copies as f64 + moved
    }

    fn mean_w(&self, copies: usize, rates: &[Vec<Rates>]) -> f64 {
        let of = &rates[copies - 1];
        of.iter()
            .map(|rates| self.power_w(copies, rates))
            .sum::<f64>()
            / of.len() as f64
    }

    fn deviation(&self, copies: usize, rates: &[Vec<Rates>]) -> f64 {
        let (of, mean) = (&rates[copies - 1], self.mean_w(copies, rates));
        let squares: f64 = of
            .iter()
            .map(|rates| (self.power_w(copies, rates) / mean - 1.0).powi(2))
            .sum();
        (squares / of.len() as f64).sqrt()
    }
}
