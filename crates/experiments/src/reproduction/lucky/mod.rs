//! Lucky scheduling: energy-delay product on one big and three small cores (its sections 1 to 4).
//!
//! `alone` is what programs do alone on each type of core, `efficiency` Figure 2 and the regression. `draws` draws mixes of
//! the paper's kinds, by which its figures are judged. `causes` and `misses` change one thing at a time.

mod alone;
mod causes;
mod draws;
mod efficiency;
mod misses;

use crate::reproduction::engine::{
    Axes, Candidate, Cell, Chapter, Grid, Lab, Measured, Result, Series, Verdict, bars, in_words,
    machine, of_folder, saved, share,
};
use crate::reproduction::paper::lucky as paper;
use crate::statistics::{geometric_mean, mean, over};

const BIAS: usize = 0;
const BIG_FAIR: usize = 1;
const LUCKY: usize = 2;

fn candidates() -> [Candidate; 3] {
    ["bias", "big-fair", "lucky"].map(Candidate::new)
}

/// Energy-delay product that `ours` saves against `base`, in per cent: by mix, then by seed.
fn products_saved(grid: &Grid, ours: usize, base: usize) -> Vec<Vec<f64>> {
    grid.compared(ours, base, Measured::energy_delay, saved)
}

/// Energy-delay products of `ours` as shares of those of `base`: by mix, then by seed.
fn shares(grid: &Grid, ours: usize, base: usize) -> Vec<Vec<f64>> {
    grid.compared(ours, base, Measured::energy_delay, share)
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
    let mut chapter = Chapter::new("lucky", "lucky: a lottery for the big core");
    chapter.text(format!(
        "Eight mixes of four programs on one core of 3.2 GHz and three of 0.8 GHz (`big1-small3`), with {} (single programs with \
         {}, drawn mixes with one). Each job has a tenth of its program's instructions; a job that ends starts again until all \
         have ended once. The paper names no program of its mixes. The tables and figures are of one set, drawn by kind; the \
         verdicts are of many such sets, because single mixes decide.",
        lab.seeds_in_words(),
        in_words(lab.few_seeds()),
    ));
    let spec = machine("big1-small3");
    let mixes = of_folder("lucky", lab.work());
    let grid = Grid::simulate(lab, "lucky", &spec, &mixes, &candidates(), &lab.seeds)?;
    let names: Vec<String> = mixes.iter().map(|mix| mix.name.to_uppercase()).collect();
    if let Some(mix) = names.iter().position(|name| name == "3CI-1MI") {
        figure_1(&mut chapter, &grid, mix);
    }
    let alone = alone::all(lab, &spec)?;
    efficiency::figure_2(&mut chapter, &spec, &alone)?;
    figure_3(&mut chapter, &grid, names);
    let draws = draws::Draws::simulate(lab, &spec, &alone)?;
    chapter.verdicts.extend(draws.judge());
    chapter.causes(lab.of_causes());
    causes::idle_power(&mut chapter, lab, &spec)?;
    draws.show(&mut chapter, &spec, &alone)?;
    causes::moves(&mut chapter, lab, &spec)?;
    causes::latencies(&mut chapter, lab, &spec)?;
    misses::causes(&mut chapter, lab, &spec, &alone)?;
    Ok(chapter)
}

/// The greatest share of the big core that one thread had, in per cent.
fn share_of_one_thread(run: &Measured) -> Option<f64> {
    let most = run.watch.on_big_s.values().copied().fold(0.0, f64::max);
    Some(100.0 * most / run.turnaround_s)
}

/// One memory-intensive and three compute-intensive threads: equal shares of the big core against the lowest bias.
fn figure_1(chapter: &mut Chapter, grid: &Grid, mix: usize) {
    let faster = &grid.compared(BIAS, BIG_FAIR, Measured::time, share)[mix];
    let energy = &grid.compared(BIG_FAIR, BIAS, Measured::energy, saved)[mix];
    let of_one = grid.values(mix, BIAS, share_of_one_thread);
    let (papers_faster, papers_energy, papers_share) = paper::FIGURE_1;
    chapter.heading("Figure 1: equal shares of the big core");
    chapter.table(
        "lucky-figure-1",
        "3CI-1MI: `big-fair` against `bias`, and how long one thread had the big core under `bias`.",
        ["", "here", "paper"],
        vec![
            vec![
                Cell::text("times as fast"),
                Cell::mean(faster, 2),
                Cell::number(papers_faster, 2),
            ],
            vec![
                Cell::text("energy saved, %"),
                Cell::signed(energy, 1),
                Cell::number(papers_energy, 0),
            ],
            vec![
                Cell::text("share of one thread, %"),
                Cell::mean(&of_one, 0),
                Cell::number(papers_share, 0),
            ],
        ],
    );
    let what = "Figure 1: share of the big core of one thread under `bias`, %";
    chapter.judge(Verdict::size(what, papers_share, 0, &of_one));
}

/// The comparisons of Figure 3: a name, ours and the base, and what the paper saves in the mean.
const COMPARISONS: [(&str, usize, usize, f64); 3] = [
    ("lucky over bias", LUCKY, BIAS, paper::OVER_BIAS.0),
    (
        "lucky over big-fair",
        LUCKY,
        BIG_FAIR,
        paper::OVER_BIG_FAIR.0,
    ),
    (
        "big-fair over bias",
        BIG_FAIR,
        BIAS,
        paper::BIG_FAIR_OVER_BIAS,
    ),
];

fn mean_share_saved(shares: &[f64]) -> Option<f64> {
    Some(100.0 * (1.0 - mean(shares)?))
}

/// What the other has more, in the mean.
fn mean_excess(shares: &[f64]) -> Option<f64> {
    let excesses = shares.iter().map(|share| 100.0 * (1.0 / share - 1.0));
    mean(&excesses.collect::<Vec<_>>())
}

/// Energy-delay product of each mix.
fn figure_3(chapter: &mut Chapter, grid: &Grid, names: Vec<String>) {
    let (mut series, mut rows) = (Vec::new(), Vec::new());
    for (name, ours, base, papers) in COMPARISONS {
        let of_mixes: Series = (name.to_owned(), products_saved(grid, ours, base));
        series.push(of_mixes);
        let shares = shares(grid, ours, base);
        rows.push(vec![
            Cell::text(name),
            Cell::signed(&over(&shares, mean_share_saved), 0),
            Cell::signed(&over(&shares, share_saved), 0),
            Cell::signed(&over(&shares, mean_excess), 0),
            Cell::number(papers, 0),
        ]);
    }
    chapter.heading("Figure 3: energy-delay product");
    chapter.figure(bars(
        "lucky-figure-3".to_owned(),
        "Energy-delay product that `lucky` saves over `bias` and `big-fair`, and `big-fair` over `bias`.".to_owned(),
        Axes {
            x: "mix",
            y: "saved, %",
            decimals: 1,
        },
        names,
        series,
        None,
    ));
    chapter.table(
        "lucky-definitions",
        "Means over the mixes, by three definitions. The paper does not say which is its own, and its means do not compose by any \
         of them. The verdicts take the geometric mean of the shares, which treats both policies alike.",
        [
            "",
            "share saved, mean, %",
            "by the geometric mean, %",
            "the other's excess, mean, %",
            "paper, %",
        ],
        rows,
    );
}
