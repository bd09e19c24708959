//! The bandwidth-aware SMT scheduler: mean IPC of mixes of 24 over linux (the poster's section 2).

use crate::reproduction::error::ReproduceError;
use crate::reproduction::figure::{Axes, bars};
use crate::reproduction::findings::{Cell, Chapter, Part, Table, Verdict};
use crate::reproduction::grid::{Candidate, Grid};
use crate::reproduction::lab::{Lab, in_words};
use crate::reproduction::mixes::of_folder;
use crate::reproduction::paper::bandwidth as paper;
use crate::reproduction::trial::{Measured, machine, with_long_slices};
use crate::statistics::{Estimate, mean, over};
use cosched_core::Counter;
use std::sync::Arc;

const MACHINES: [(&str, &str); 2] = [
    ("xeon-e5645", "three channels"),
    ("xeon-e5645-1ch", "one channel"),
];
const LINUX: usize = 0;

/// The chapter.
pub(crate) fn chapter(lab: &Lab<'_>) -> Result<Chapter, ReproduceError> {
    let mixes = of_folder("bandwidth", lab.work);
    let mut candidates = [
        Candidate::new("linux"),
        Candidate::with("bandwidth", "target", "ideal"),
        Candidate::with("bandwidth", "target", "online"),
        Candidate::new("round-robin"),
    ];
    candidates[1].label = "bandwidth, ideal".to_owned();
    candidates[2].label = "bandwidth, online".to_owned();
    let mut parts = vec![Part::Text(format!(
        "Ten mixes of 24 programs on `xeon-e5645`, {}, with {}; the poster does not name its own, so these are drawn from all. The target of the poster comes from solo runs \
         (`ideal`); `online` takes what each job has shown so far. The figure is the mean over the jobs of their instructions \
         per cycle, against `linux`.",
        lab.work_in_words(),
        in_words(lab.fewer_seeds()),
    ))];
    let mut verdicts = Vec::new();
    let (mut rows, mut rows_of_causes) = (Vec::new(), Vec::new());
    for (name, channels) in MACHINES {
        let what = format!("bandwidth on {name}");
        let (spec, seeds) = (machine(name)?, lab.fewer_seeds());
        let grid = Grid::simulate(&lab.pool, &what, &spec, &mixes, &candidates, seeds)?;
        let linux = [Candidate::new("linux")];
        let what = format!("slices of 200 ms on {name}");
        let long = Grid::simulate(
            &lab.pool,
            &what,
            &with_long_slices(&spec),
            &mixes,
            &linux,
            seeds,
        )?;
        // IPC is the better the greater: what is compared is its inverse, cycles per instruction.
        let cpi = |run: &Measured| run.mean_ipc.map(|ipc| 1.0 / ipc);
        let gains = |mix: usize, at: usize| grid.gains(mix, at, grid.of(mix, LINUX), cpi);
        let series = (1..candidates.len()).map(|at| {
            let label = candidates[at].label.clone();
            (
                label,
                (0..mixes.len())
                    .map(|mix| Estimate::of(&gains(mix, at)))
                    .collect(),
            )
        });
        let groups = mixes.iter().map(|mix| mix.short().to_owned());
        parts.push(bars(
            format!("bandwidth-figure-1-{name}"),
            format!("Mean IPC over `linux` of each mix with {channels} (the poster's Figure 1)."),
            Axes {
                x: "mix",
                y: "gain of mean IPC, %",
                decimals: 1,
            },
            groups.collect(),
            series.collect(),
            None,
        ));
        let over_mixes = |at: usize| {
            over(
                &(0..mixes.len())
                    .map(|mix| gains(mix, at))
                    .collect::<Vec<_>>(),
                mean,
            )
        };
        let row = |label: &str, of: &Grid, at: usize| {
            let gains: Vec<Vec<f64>> = (0..mixes.len())
                .map(|mix| of.gains(mix, at, grid.of(mix, LINUX), cpi))
                .collect();
            vec![
                Cell::text(channels),
                Cell::text(label),
                Cell::signed(&over(&gains, mean), 1),
                Cell::signed(&of.speed_up(at, (&grid, LINUX)), 1),
                Cell::mean(&of.unfairness(at), 0),
            ]
        };
        rows.extend((1..candidates.len()).map(|at| row(&candidates[at].label, &grid, at)));
        let mut unpaired = (*spec).clone();
        unpaired.counters.counts[Counter::L1Accesses] = false;
        let what = format!("pairs at random on {name}");
        let blind = [candidates[1].clone(), candidates[3].clone()];
        let random = Grid::simulate(
            &lab.pool,
            &what,
            &Arc::new(unpaired),
            &mixes,
            &blind,
            lab.few_seeds(),
        )?;
        rows_of_causes.push(row("linux, slices of 200 ms", &long, 0));
        rows_of_causes.push(row("round-robin, L1 not counted", &random, 1));
        rows_of_causes.push(row("round-robin", &grid, 3));
        rows_of_causes.push(row("bandwidth, ideal, L1 not counted", &random, 0));
        rows_of_causes.push(row("bandwidth, ideal", &grid, 1));
        let what = "gain of mean IPC of `bandwidth`, ideal target, %";
        verdicts.push(Verdict::gain(what, paper::SPEED_UP, 1, &over_mixes(1)).on(channels));
    }
    let columns = [
        "memory",
        "policy",
        "mean IPC, %",
        "turnaround, faster by %",
        "unfairness, %",
    ]
    .map(str::to_owned);
    parts.push(Part::Table(Table {
        id: "bandwidth-summary".to_owned(),
        caption: "Means over the ten mixes, against `linux`.".to_owned(),
        columns: columns.to_vec(),
        rows,
    }));
    let causes = vec![
        Part::Text(
            "**What the gain is due to.** `round-robin` chooses without regard to bandwidth, but its quanta are long, and like \
             `bandwidth` it pairs jobs on a core by their use of the L1 cache. The table takes one away after the other: the \
             kernel's threads with slices as long as a quantum; `round-robin` and `bandwidth` where L1 accesses are not counted, so \
             that pairs are as they come; and both as they are. Long quanta bring little. Most of what `round-robin` gains is \
             due to its pairs, and so is much of what `bandwidth` gains. What `bandwidth` adds to `round-robin` is due to its \
             selection; with one channel the ideal target adds nothing, and the online target does."
                .to_owned(),
        ),
        Part::Table(Table {
            id: "bandwidth-causes".to_owned(),
            caption: format!("Means over the ten mixes, against `linux`; without L1 {}.", in_words(lab.few_seeds())),
            columns: columns.to_vec(),
            rows: rows_of_causes,
        }),
    ];
    let title = "Bandwidth-aware selection and allocation: mean IPC".to_owned();
    Ok(Chapter {
        id: "bandwidth",
        title,
        parts,
        verdicts,
        causes,
    })
}
