//! The time of the models. Run with `cargo bench -p cosched-core --bench model`.

use cosched_core::model::bus::throughput;
use cosched_core::model::bus_admission_table::{BusAdmissionTable, BusLoad, Gain};
use divan::{Bencher, black_box};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

fn main() {
    divan::main();
}

const TASKS: [usize; 3] = [4, 64, 512];

/// Demands from 0 to 1, the same in every run.
fn demands(tasks: usize) -> Vec<f64> {
    let mut random = ChaCha8Rng::seed_from_u64(tasks as u64);
    (0..tasks)
        .map(|_| f64::from(random.next_u32()) / f64::from(u32::MAX))
        .collect()
}

/// A gain that has a threshold beside these demands: half of what a task without demand would add.
fn gain(solo: &[f64]) -> f64 {
    let now = throughput(solo).unwrap();
    (now + 0.5) / now
}

#[divan::bench(args = TASKS)]
fn predict_speeds(bencher: Bencher, tasks: usize) {
    let solo = demands(tasks);
    bencher.bench_local(|| throughput(black_box(&solo)).unwrap());
}

fn loaded(table: &BusAdmissionTable, solo: &[f64]) -> BusLoad {
    let mut load = BusLoad::new();
    for &b in solo {
        load.add(table, table.class_of(b).unwrap());
    }
    load
}

/// Each call uses another of 64 loads, so that branch prediction cannot learn the path.
#[divan::bench(args = TASKS)]
fn incremental_ask(bencher: Bencher, tasks: usize) {
    let table = BusAdmissionTable::new();
    let mut random = ChaCha8Rng::seed_from_u64(tasks as u64);
    let loads: Vec<(BusLoad, Gain)> = (0..64)
        .map(|_| {
            let share =
                |random: &mut ChaCha8Rng| f64::from(random.next_u32()) / f64::from(u32::MAX);
            let greatest = share(&mut random);
            let solo: Vec<f64> = (0..tasks).map(|_| greatest * share(&mut random)).collect();
            (loaded(&table, &solo), Gain::of(gain(&solo)).unwrap())
        })
        .collect();
    let mut next = 0;
    bencher.bench_local(|| {
        next = (next + 27) % 64;
        let (load, gain) = &loads[next];
        table.ceiling(black_box(load), *gain)
    });
}

#[divan::bench(args = TASKS)]
fn incremental_add_and_remove(bencher: Bencher, tasks: usize) {
    let table = BusAdmissionTable::new();
    let mut load = loaded(&table, &demands(tasks));
    let class = table.class_of(0.4).unwrap();
    bencher.bench_local(|| {
        load.add(&table, black_box(class));
        load.remove(&table, black_box(class));
    });
}

#[divan::bench]
fn table_construction() -> BusAdmissionTable {
    BusAdmissionTable::new()
}
