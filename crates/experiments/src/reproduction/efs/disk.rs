//! A disk that jobs share, which the paper hopes to treat as it treats the bus (section 6).

use super::{Bench, EFS, LINUX};
use crate::reproduction::engine::{
    Draft, ExperimentMix, FindingCell, Grid, Result, TrialCandidate, TrialMeasurements, changed,
    program, saved,
};
use crate::statistics::mean;
use cosched_core::{PerDevice, Restart};
use cosched_sim::machine::DeviceSpec;
use cosched_sim::program::ProgramPhase;
use cosched_sim::{MachineSpec, ProgramSpec, SimJob};
use std::sync::Arc;

const MB_PER_S: f64 = 100.0;

/// Shares of its time alone for which a job waits for the disk. The last mix has all of them.
const DEMANDS: [f64; 4] = [0.1, 0.25, 0.5, 0.9];

fn with_disk(spec: &MachineSpec, stream_cost: f64) -> MachineSpec {
    changed(spec, |machine| {
        machine.devices.disk = Some(DeviceSpec {
            mb_per_s: MB_PER_S,
            stream_cost,
        });
    })
}

/// A program that computes and then moves bytes, again and again, and hardly uses memory.
fn reader(spec: &MachineSpec, demand: f64, work_ms: f64) -> ProgramSpec {
    let mut reader = program("povray").as_ref().clone();
    let wait_ms = work_ms * demand / (1.0 - demand);
    reader.phases = vec![ProgramPhase {
        instructions: work_ms * spec.core_types[0].ghz * 1e6 / reader.core.cpi,
        cpi: 1.0,
        memory: 1.0,
        then_sleep_ms: 0.0,
        then_mb: PerDevice {
            disk: wait_ms * MB_PER_S / 1e3,
            net: 0.0,
        },
    }];
    reader
}

/// Jobs with these demands in turn. Each has parts of another length, so that they don't stay in step.
fn mix(bench: &Bench<'_>, number: usize, name: String, demands: &[f64]) -> ExperimentMix {
    let mut jobs = Vec::new();
    for at in 0..number {
        let work_ms = 10.0 + at as f64;
        let demand = demands[at % demands.len()];
        jobs.push(SimJob {
            program: Arc::new(reader(&bench.full, demand, work_ms)),
            work: bench.lab.work(),
            cpus: 1,
            nice: 0,
        });
    }
    ExperimentMix {
        name,
        jobs,
        restart: Restart::Never,
    }
}

fn mixes(bench: &Bench<'_>, number: usize) -> Vec<ExperimentMix> {
    let mut mixes = Vec::new();
    for demand in DEMANDS {
        let name = format!("{number}, {:.0} %", 100.0 * demand);
        mixes.push(mix(bench, number, name, &[demand]));
    }
    mixes.push(mix(bench, number, format!("{number}, mixed"), &DEMANDS));
    mixes
}

fn mean_turnaround(run: &TrialMeasurements) -> Option<f64> {
    mean(&run.ends_s)
}

/// `efs` that counts the disk against `linux`, on a disk without and with seeks.
pub(super) fn hopes(draft: &mut Draft, bench: &Bench<'_>) -> Result<()> {
    let mixes = [mixes(bench, 4), mixes(bench, 8)].concat();
    let both = [
        TrialCandidate::new("linux"),
        TrialCandidate::new("efs").with("disk", "on"),
    ];
    let mut rows = Vec::new();
    for stream_cost in [0.0, 0.25] {
        let spec = Arc::new(with_disk(&bench.full, stream_cost));
        let grid = Grid::simulate(bench.lab, &spec, &mixes, &both, &bench.lab.seeds)?;
        let figures = [
            TrialMeasurements::time,
            TrialMeasurements::energy,
            mean_turnaround,
        ];
        let saved = figures.map(|figure| grid.compared(EFS, LINUX, figure, saved));
        for (at, mix) in mixes.iter().enumerate() {
            let mut row = vec![
                FindingCell::text(&mix.name),
                FindingCell::number(stream_cost, 2),
            ];
            row.extend(saved.iter().map(|saved| FindingCell::range(&saved[at], 1)));
            rows.push(row);
        }
    }
    draft.table("disk", rows);
    Ok(())
}
