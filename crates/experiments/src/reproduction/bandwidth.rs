//! The bandwidth-aware SMT scheduler: mean IPC of mixes of 24 over linux (the poster's section 2).

use crate::reproduction::engine::{
    Axes, Candidate, Cell, Chapter, Grid, Lab, Measured, Mix, Result, Series, Verdict, bars,
    changed, gain, in_words, machine, of_folder, with_long_slices,
};
use crate::reproduction::paper::bandwidth as paper;
use crate::statistics::{mean, over};
use cosched_core::Counter;
use cosched_sim::MachineSpec;
use std::sync::Arc;

const MACHINES: [(&str, &str); 2] = [
    ("xeon-e5645", "three channels"),
    ("xeon-e5645-1ch", "one channel"),
];

/// Positions of candidates.
const LINUX: usize = 0;
const IDEAL: usize = 1;
const ROUND_ROBIN: usize = 3;

fn candidates() -> [Candidate; 4] {
    [
        Candidate::new("linux"),
        Candidate::new("bandwidth")
            .with("target", "ideal")
            .named("bandwidth, ideal"),
        Candidate::new("bandwidth")
            .with("target", "online")
            .named("bandwidth, online"),
        Candidate::new("round-robin"),
    ]
}

const COLUMNS: [&str; 5] = [
    "memory",
    "policy",
    "mean IPC, %",
    "turnaround, faster by %",
    "unfairness, %",
];

/// What is simulated on one machine.
struct Bench<'a> {
    lab: &'a Lab<'a>,
    mixes: &'a [Mix],
    name: &'static str,
    channels: &'static str,
    grid: Grid,
}

impl<'a> Bench<'a> {
    fn simulate(
        lab: &'a Lab<'a>,
        mixes: &'a [Mix],
        (name, channels): (&'static str, &'static str),
    ) -> Result<Bench<'a>> {
        let what = format!("bandwidth on {name}");
        let seeds = lab.fewer_seeds();
        let grid = Grid::simulate(lab, &what, &machine(name), mixes, &candidates(), seeds)?;
        Ok(Bench {
            lab,
            mixes,
            name,
            channels,
            grid,
        })
    }

    /// Gain of mean IPC over `linux` in per cent: by mix, then by seed.
    fn gains(&self, of: &Grid, at: usize) -> Vec<Vec<f64>> {
        let figure = Measured::cycles_per_instruction;
        of.compared_with((&self.grid, LINUX), at, figure, gain)
    }

    fn row(&self, label: &str, of: &Grid, at: usize) -> Vec<Cell> {
        vec![
            Cell::text(self.channels),
            Cell::text(label),
            Cell::signed(&over(&self.gains(of, at), mean), 1),
            Cell::signed(&of.speed_up(at, (&self.grid, LINUX)), 1),
            Cell::mean(&of.unfairness(at), 0),
        ]
    }

    fn summary(&self) -> Vec<Vec<Cell>> {
        let others = candidates().into_iter().enumerate().skip(1);
        others
            .map(|(at, candidate)| self.row(&candidate.label, &self.grid, at))
            .collect()
    }

    fn figure_1(&self, chapter: &mut Chapter) {
        let others = candidates().into_iter().enumerate().skip(1);
        let series = others.map(|(at, one)| -> Series { (one.label, self.gains(&self.grid, at)) });
        chapter.figure(bars(
            format!("bandwidth-figure-1-{}", self.name),
            format!(
                "Mean IPC over `linux` of each mix with {} (the poster's Figure 1).",
                self.channels
            ),
            Axes {
                x: "mix",
                y: "gain of mean IPC, %",
                decimals: 1,
            },
            self.mixes.iter().map(|mix| mix.name.clone()).collect(),
            series.collect(),
            None,
        ));
    }

    /// What is left of the gain without long quanta, and without pairs by the use of the L1 cache.
    fn causes(&self) -> Result<Vec<Vec<Cell>>> {
        let spec = machine(self.name);
        let long = self.grid_of(
            "slices of 200 ms",
            with_long_slices(&spec),
            &[LINUX],
            self.lab.fewer_seeds(),
        )?;
        let blind = changed(&spec, |machine| {
            machine.counters.counts[Counter::L1Accesses] = false;
        });
        let random = self.grid_of(
            "pairs at random",
            Arc::new(blind),
            &[IDEAL, ROUND_ROBIN],
            self.lab.few_seeds(),
        )?;
        Ok(vec![
            self.row("linux, slices of 200 ms", &long, 0),
            self.row("round-robin, L1 not counted", &random, 1),
            self.row("round-robin", &self.grid, ROUND_ROBIN),
            self.row("bandwidth, ideal, L1 not counted", &random, 0),
            self.row("bandwidth, ideal", &self.grid, IDEAL),
        ])
    }

    fn grid_of(
        &self,
        what: &str,
        spec: Arc<MachineSpec>,
        which: &[usize],
        seeds: &[u64],
    ) -> Result<Grid> {
        let what = format!("{what} on {}", self.name);
        let candidates = which.iter().map(|&at| candidates()[at].clone());
        let candidates: Vec<Candidate> = candidates.collect();
        Grid::simulate(self.lab, &what, &spec, self.mixes, &candidates, seeds)
    }
}

/// The chapter.
pub(super) fn chapter(lab: &Lab<'_>) -> Result<Chapter> {
    let mut chapter = Chapter::new(
        "bandwidth",
        "Bandwidth-aware selection and allocation: mean IPC",
    );
    chapter.text(format!(
        "Ten mixes of 24 programs on `xeon-e5645`, {}, with {}. The poster does not name its programs, so these are drawn from \
         all. The poster's target comes from solo runs (`ideal`); `online` is what each job has shown so far. The figure is the \
         mean over the jobs of their instructions per cycle, against `linux`.",
        lab.work_in_words(),
        in_words(lab.fewer_seeds()),
    ));
    let mixes = of_folder("bandwidth", lab.work());
    let (mut summary, mut causes) = (Vec::new(), Vec::new());
    for of in MACHINES {
        let bench = Bench::simulate(lab, &mixes, of)?;
        bench.figure_1(&mut chapter);
        summary.extend(bench.summary());
        causes.extend(bench.causes()?);
        let what = "gain of mean IPC of `bandwidth`, ideal target, %";
        let gain = over(&bench.gains(&bench.grid, IDEAL), mean);
        chapter.judge(Verdict::gain(what, paper::SPEED_UP, 1, &gain).on(bench.channels));
    }
    chapter.table(
        "bandwidth-summary",
        "Means over the ten mixes, against `linux`.",
        COLUMNS,
        summary,
    );
    chapter.causes(
        "**What the gain is due to.** `round-robin` ignores bandwidth. But its quanta are long, and like `bandwidth` it pairs \
         jobs on a core by their use of the L1 cache. The table takes one away after the other: slices of the kernel's threads \
         are as long as a quantum; L1 accesses are not counted, so pairs are random; both stay. Long quanta bring little. \
         Most of what `round-robin` gains is due to its pairs, and so is much of what `bandwidth` gains. Selection adds the \
         rest. With one channel the ideal target adds nothing, and the online target does.",
    );
    chapter.table(
        "bandwidth-causes",
        format!(
            "Means over the ten mixes, against `linux`; without L1 {}.",
            in_words(lab.few_seeds())
        ),
        COLUMNS,
        causes,
    );
    Ok(chapter)
}
