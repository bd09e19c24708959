//! Lucky scheduling: energy-delay product on one big and three small cores (its sections 1 to 4).
//!
//! `alone` is what programs do alone on each type of core, `efficiency` Figure 2 and the regression. `draws` draws mixes of
//! the paper's kinds, by which its figures are judged. `causes`, `few_misses` and `misses` change one thing at a time. `hopes` tries
//! what the paper announces.

mod alone;
mod causes;
mod draws;
mod efficiency;
mod few_misses;
mod hopes;
mod misses;

use crate::reproduction::engine::{
    Chapter, Draft, FindingCell, Grid, Lab, Result, Series, TrialCandidate, TrialMeasurements,
    machine, of_folder, saved, share,
};
use crate::statistics::{geometric_mean, mean, over};

const BIAS: usize = 0;
const BIG_FAIR: usize = 1;
const LUCKY: usize = 2;

fn candidates() -> [TrialCandidate; 3] {
    ["bias", "big-fair", "lucky"].map(TrialCandidate::new)
}

/// Energy-delay product that `ours` saves against `base`, in per cent: by mix, then by seed.
fn products_saved(grid: &Grid, ours: usize, base: usize) -> Vec<Vec<f64>> {
    grid.compared(ours, base, TrialMeasurements::energy_delay, saved)
}

/// Energy-delay products of `ours` as shares of those of `base`: by mix, then by seed.
fn shares(grid: &Grid, ours: usize, base: usize) -> Vec<Vec<f64>> {
    grid.compared(ours, base, TrialMeasurements::energy_delay, share)
}

/// Savings over the mixes in per cent, by the geometric mean of the shares. It is the only mean that gives the same
/// whichever of the two is the base.
fn saved_over_mixes(grid: &Grid, ours: usize, base: usize) -> Vec<f64> {
    over(&shares(grid, ours, base), share_saved)
}

fn share_saved(shares: &[f64]) -> Option<f64> {
    Some(100.0 * (1.0 - geometric_mean(shares)?))
}

/// The chapter.
pub(super) fn chapter(lab: &Lab<'_>) -> Result<Chapter> {
    let mut draft = Draft::new("lucky", include_str!("chapter.toml"), lab);
    let spec = machine("big1-small3");
    let mixes = of_folder("lucky", lab.work());
    let grid = Grid::simulate(lab, &spec, &mixes, &candidates(), &lab.seeds)?;
    let names: Vec<String> = mixes.iter().map(|mix| mix.name.to_uppercase()).collect();
    if let Some(mix) = names.iter().position(|name| name == "3CI-1MI") {
        figure_1(&mut draft, &grid, mix);
    }
    let alone = alone::all(lab, &spec)?;
    efficiency::figure_2(&mut draft, &spec, &alone)?;
    figure_3(&mut draft, &grid, names);
    let draws = draws::Draws::simulate(lab, &spec, &alone)?;
    draws.judge(&mut draft);
    draft.causes();
    causes::idle_power(&mut draft, lab, &spec)?;
    draws.show(&mut draft, &spec, &alone)?;
    causes::moves(&mut draft, lab, &spec)?;
    causes::latencies(&mut draft, lab, &spec)?;
    few_misses::causes(&mut draft, &alone);
    misses::causes(&mut draft, lab, &spec, &alone)?;
    hopes::all(&mut draft, lab, &spec)?;
    Ok(draft.finish())
}

/// The greatest share of the big core that one thread had, in per cent.
fn share_of_one_thread(run: &TrialMeasurements) -> Option<f64> {
    let times = run.watch.on_big_s.values().copied();
    let most = times.fold(0.0, f64::max);
    Some(100.0 * most / run.turnaround_s)
}

/// One memory-intensive and three compute-intensive threads: equal shares of the big core against the lowest bias.
fn figure_1(draft: &mut Draft, grid: &Grid, mix: usize) {
    let faster = &grid.compared(BIAS, BIG_FAIR, TrialMeasurements::time, share)[mix];
    let energy = &grid.compared(BIG_FAIR, BIAS, TrialMeasurements::energy, saved)[mix];
    let of_one = grid.values(mix, BIAS, share_of_one_thread);
    let papers_faster = 1.0 + draft.published("figure-1-time") / 100.0;
    let rows = vec![
        vec![
            FindingCell::text("times as fast"),
            FindingCell::mean(faster, 2),
            FindingCell::number(papers_faster, 2),
        ],
        vec![
            FindingCell::text("energy saved, %"),
            FindingCell::signed(energy, 1),
            draft.cell("figure-1-energy", 0),
        ],
        vec![
            FindingCell::text("share of one thread, %"),
            FindingCell::mean(&of_one, 0),
            draft.cell("figure-1-share", 0),
        ],
    ];
    draft.table("figure-1", rows);
    draft.judge("figure-1-share", &of_one);
}

/// The comparisons of Figure 3: a name, ours and the base, and the published mean.
const COMPARISONS: [(&str, usize, usize, &str); 3] = [
    ("lucky over bias", LUCKY, BIAS, "over-bias-mean"),
    ("lucky over big-fair", LUCKY, BIG_FAIR, "over-big-fair-mean"),
    (
        "big-fair over bias",
        BIG_FAIR,
        BIAS,
        "big-fair-over-bias-mean",
    ),
];

fn mean_share_saved(shares: &[f64]) -> Option<f64> {
    Some(100.0 * (1.0 - mean(shares)?))
}

/// What the other has more, in the mean.
fn mean_excess(shares: &[f64]) -> Option<f64> {
    let inverses: Vec<f64> = shares.iter().map(|share| 1.0 / share).collect();
    Some(100.0 * (mean(&inverses)? - 1.0))
}

/// Energy-delay product of each mix.
fn figure_3(draft: &mut Draft, grid: &Grid, names: Vec<String>) {
    let mut series: Vec<Series> = Vec::new();
    let mut rows = Vec::new();
    for (name, ours, base, published) in COMPARISONS {
        let saved = products_saved(grid, ours, base);
        series.push((name.to_owned(), saved));
        let shares = shares(grid, ours, base);
        rows.push(vec![
            FindingCell::text(name),
            FindingCell::signed(&over(&shares, mean_share_saved), 0),
            FindingCell::signed(&over(&shares, share_saved), 0),
            FindingCell::signed(&over(&shares, mean_excess), 0),
            draft.cell(published, 0),
        ]);
    }
    draft.bars("figure-3", names, series);
    draft.table("definitions", rows);
}
