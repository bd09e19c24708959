//! The bandwidth-aware SMT scheduler: mean IPC of mixes of 24 over linux (the poster's section 2).

use crate::reproduction::engine::{
    Chapter, Draft, ExperimentMix, FindingCell, Grid, Lab, Result, Series, TrialCandidate,
    TrialMeasurements, changed, gain, machine, of_folder, saved, with_long_slices,
};
use crate::statistics::{mean, over};
use cosched_core::Counter;
use cosched_sim::MachineSpec;
use std::sync::Arc;

/// The machines; the first is judged, as in Perf&Fair, whose machine this is.
const MACHINES: [(&str, &str); 2] = [
    ("xeon-e5645", "three channels"),
    ("xeon-e5645-1ch", "one channel"),
];

/// Positions of candidates.
const LINUX: usize = 0;
const IDEAL: usize = 1;
const ROUND_ROBIN: usize = 3;

/// What is simulated on one machine.
struct Bench<'a> {
    lab: &'a Lab<'a>,
    mixes: &'a [ExperimentMix],
    name: &'static str,
    channels: &'static str,
    candidates: &'a [TrialCandidate],
    grid: Grid,
}

impl<'a> Bench<'a> {
    fn simulate(
        lab: &'a Lab<'a>,
        mixes: &'a [ExperimentMix],
        name: &'static str,
        channels: &'static str,
        candidates: &'a [TrialCandidate],
    ) -> Result<Bench<'a>> {
        let seeds = lab.fewer_seeds();
        let grid = Grid::simulate(lab, &machine(name), mixes, candidates, seeds)?;
        Ok(Bench {
            lab,
            mixes,
            name,
            channels,
            candidates,
            grid,
        })
    }

    /// Gain of mean IPC over `linux` in per cent: by mix, then by seed.
    fn gains(&self, of: &Grid, at: usize) -> Vec<Vec<f64>> {
        let figure = TrialMeasurements::cycles_per_instruction;
        of.compared_with((&self.grid, LINUX), at, figure, gain)
    }

    fn row(&self, label: &str, of: &Grid, at: usize) -> Vec<FindingCell> {
        vec![
            FindingCell::text(self.channels),
            FindingCell::text(label),
            FindingCell::signed(&over(&self.gains(of, at), mean), 1),
            FindingCell::signed(&of.speed_up(at, (&self.grid, LINUX)), 1),
            FindingCell::mean(&of.unfairness(at), 0),
        ]
    }

    fn summary(&self) -> Vec<Vec<FindingCell>> {
        let mut rows = Vec::new();
        for (at, candidate) in self.candidates.iter().enumerate().skip(1) {
            rows.push(self.row(&candidate.label, &self.grid, at));
        }
        rows
    }

    fn figure_1(&self, draft: &mut Draft) {
        let mut series: Vec<Series> = Vec::new();
        for (at, candidate) in self.candidates.iter().enumerate().skip(1) {
            series.push((candidate.label.clone(), self.gains(&self.grid, at)));
        }
        let names = self.mixes.iter().map(|mix| mix.name.clone());
        draft.bars("figure-1-{machine}", names.collect(), series);
    }

    /// What is left of the gain without long quanta, and without pairs by the use of the L1 cache.
    fn due_to(&self) -> Result<Vec<Vec<FindingCell>>> {
        let spec = machine(self.name);
        let long = self.grid_of(with_long_slices(&spec), &[LINUX], self.lab.fewer_seeds())?;
        let blind = changed(&spec, |machine| {
            machine.counters.counts[Counter::L1Accesses] = false;
        });
        let random = self.grid_of(Arc::new(blind), &[IDEAL, ROUND_ROBIN], self.lab.few_seeds())?;
        Ok(vec![
            self.row("linux, slices of 200 ms", &long, 0),
            self.row("round-robin, L1 not counted", &random, 1),
            self.row("round-robin", &self.grid, ROUND_ROBIN),
            self.row("bandwidth, ideal, L1 not counted", &random, 0),
            self.row("bandwidth, ideal", &self.grid, IDEAL),
        ])
    }

    /// What contention for bandwidth takes from each job under `linux`, in per cent: by mix and job, then by seed.
    fn degradations(&self) -> Result<Vec<Vec<f64>>> {
        let free = without_contention(&machine(self.name));
        let free = self.grid_of(free, &[LINUX], self.lab.few_seeds())?;
        let mut degradations = Vec::new();
        for mix in 0..free.mixes {
            for job in 0..self.mixes[mix].jobs.len() {
                let pairs = self.grid.runs(mix, LINUX).iter().zip(free.runs(mix, 0));
                let lost = pairs.map(|(here, free)| saved(here.ipcs[job], free.ipcs[job]));
                degradations.push(lost.collect());
            }
        }
        Ok(degradations)
    }

    fn grid_of(&self, spec: Arc<MachineSpec>, which: &[usize], seeds: &[u64]) -> Result<Grid> {
        let candidates = which.iter().map(|&at| self.candidates[at].clone());
        let candidates: Vec<TrialCandidate> = candidates.collect();
        Grid::simulate(self.lab, &spec, self.mixes, &candidates, seeds)
    }
}

/// The machine where no job waits for the bandwidth of memory or of an L1 cache.
fn without_contention(spec: &MachineSpec) -> Arc<MachineSpec> {
    Arc::new(changed(spec, |machine| {
        machine.memory.gb_per_s_per_channel *= 1_000.0;
        machine.memory.stream_loss = 0.0;
        machine.smt.l1_wait_cycles = 0.0;
    }))
}

/// The greatest of these values.
fn greatest(values: &[f64]) -> Option<f64> {
    values.iter().copied().reduce(f64::max)
}

/// The chapter.
pub(super) fn chapter(lab: &Lab<'_>) -> Result<Chapter> {
    let mut draft = Draft::new("bandwidth", include_str!("bandwidth.toml"), lab);
    let mixes = of_folder("bandwidth", lab.work());
    let candidates = draft.candidates("compared");
    let mut benches = Vec::new();
    for (name, channels) in MACHINES {
        let bench = Bench::simulate(lab, &mixes, name, channels, &candidates)?;
        draft.machine(name, channels);
        bench.figure_1(&mut draft);
        benches.push(bench);
    }
    let (mut summary, mut degradation, mut due_to) = (Vec::new(), Vec::new(), Vec::new());
    for bench in &benches {
        summary.extend(bench.summary());
        due_to.extend(bench.due_to()?);
        let lost = bench.degradations()?;
        let most = over(&lost, greatest);
        degradation.push(vec![
            FindingCell::text(bench.channels),
            FindingCell::mean(&over(&lost, mean), 0),
            FindingCell::mean(&most, 0),
        ]);
        if degradation.len() == 1 {
            draft.judge("gain", &over(&bench.gains(&bench.grid, IDEAL), mean));
            draft.judge("degradation", &most);
        }
    }
    draft.table("summary", summary);
    draft.table("degradation", degradation);
    draft.causes();
    draft.table("due-to", due_to);
    Ok(draft.finish())
}
