//! The bandwidth-aware SMT scheduler: mean IPC of mixes of 24 over linux (the poster's section 2).

use crate::error::ReproduceError;
use crate::figure::{Axes, bars};
use crate::findings::{Cell, Chapter, Part, Table, Verdict};
use crate::grid::{Candidate, Grid};
use crate::lab::{Lab, in_words};
use crate::mixes::of_folder;
use crate::paper::bandwidth as paper;
use crate::stats::{Estimate, mean, over};
use crate::trial::{Measured, machine};

const MACHINES: [(&str, &str); 2] = [("xeon-e5645", "three channels"), ("xeon-e5645-1ch", "one channel")];
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
    let mut rows = Vec::new();
    for (name, channels) in MACHINES {
        let what = format!("bandwidth on {name}");
        let grid = Grid::simulate(&lab.pool, &what, &machine(name)?, &mixes, &candidates, lab.fewer_seeds())?;
        // IPC is the better the greater: what is compared is its inverse, cycles per instruction.
        let cpi = |run: &Measured| run.mean_ipc.map(|ipc| 1.0 / ipc);
        let gains = |mix: usize, at: usize| grid.gains(mix, at, grid.of(mix, LINUX), cpi);
        let series = (1..candidates.len()).map(|at| {
            let label = candidates[at].label.clone();
            (label, (0..mixes.len()).map(|mix| Estimate::of(&gains(mix, at))).collect())
        });
        let groups = mixes.iter().map(|mix| mix.short().to_owned());
        parts.push(bars(
            format!("bandwidth-figure-1-{name}"),
            format!("Mean IPC over `linux` of each mix with {channels} (the poster's Figure 1)."),
            Axes { x: "mix", y: "gain of mean IPC, %", decimals: 1 },
            groups.collect(),
            series.collect(),
            None,
        ));
        let over_mixes = |at: usize| over(&(0..mixes.len()).map(|mix| gains(mix, at)).collect::<Vec<_>>(), mean);
        for (at, candidate) in candidates.iter().enumerate().skip(1) {
            rows.push(vec![
                Cell::text(channels),
                Cell::text(candidate.label.clone()),
                Cell::signed(&over_mixes(at), 1),
                Cell::signed(&grid.speed_up(at, (&grid, LINUX)), 1),
                Cell::mean(&grid.unfairness(at), 0),
            ]);
        }
        let what = format!("gain of mean IPC of `bandwidth`, ideal target, %, {channels}");
        verdicts.push(Verdict::gain(what, paper::SPEED_UP, 1, &over_mixes(1)));
    }
    parts.push(Part::Table(Table {
        id: "bandwidth-summary".to_owned(),
        caption:
            "Means over the ten mixes, against `linux`. What `round-robin` gains is due to its long quanta, in which \
                  jobs keep their part of the cache."
                .to_owned(),
        columns: ["memory", "policy", "mean IPC, %", "turnaround, faster by %", "unfairness, %"]
            .map(str::to_owned)
            .to_vec(),
        rows,
    }));
    let title = "Bandwidth-aware selection and allocation: mean IPC".to_owned();
    Ok(Chapter { id: "bandwidth", title, parts, verdicts, causes: Vec::new() })
}
