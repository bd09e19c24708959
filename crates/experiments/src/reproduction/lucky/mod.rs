//! Lucky scheduling: energy-delay product on one big and three small cores (its sections 1 to 4).
//!
//! `efficiency` is Figure 2 and the regression; `draws` draws mixes of the paper's kinds, by which its figures are judged;
//! `causes` changes one thing at a time.

mod causes;
mod draws;
mod efficiency;

use crate::reproduction::error::ReproduceError;
use crate::reproduction::figure::{Axes, bars};
use crate::reproduction::findings::{Cell, Chapter, Part, Table, Verdict};
use crate::reproduction::grid::{Candidate, Grid};
use crate::reproduction::lab::{Lab, in_words};
use crate::reproduction::mixes::of_folder;
use crate::reproduction::paper::lucky as paper;
use crate::reproduction::trial::{Measured, machine};
use crate::statistics::{Estimate, geometric_mean, mean, over};

const POLICIES: [&str; 3] = ["bias", "big-fair", "lucky"];
const BIAS: usize = 0;
const BIG_FAIR: usize = 1;
const LUCKY: usize = 2;

fn product(run: &Measured) -> Option<f64> {
    run.energy_j.map(|energy| energy * run.turnaround_s)
}

/// Energy-delay product that `ours` saves against `base`, in per cent, by seed.
fn saved(grid: &Grid, mix: usize, ours: usize, base: usize) -> Vec<f64> {
    let pairs = grid.of(mix, ours).iter().zip(grid.of(mix, base));
    pairs
        .filter_map(|(ours, base)| Some(100.0 * (1.0 - product(ours)? / product(base)?)))
        .collect()
}

/// Energy-delay products of `ours` as shares of those of `base`, by mix, then by seed.
fn shares(grid: &Grid, ours: usize, base: usize) -> Vec<Vec<f64>> {
    let of = |mix: usize| {
        let pairs = grid.of(mix, ours).iter().zip(grid.of(mix, base));
        pairs
            .filter_map(|(ours, base)| Some(product(ours)? / product(base)?))
            .collect()
    };
    (0..grid.mixes).map(of).collect()
}

/// What is saved over the mixes in per cent, by the geometric mean of the shares. It is the only mean that gives the same
/// whichever of the two is the base.
fn saved_over_mixes(grid: &Grid, ours: usize, base: usize) -> Vec<f64> {
    over(&shares(grid, ours, base), share_saved)
}

fn share_saved(shares: &[f64]) -> Option<f64> {
    Some(100.0 * (1.0 - geometric_mean(shares)?))
}

/// The chapter.
pub(crate) fn chapter(lab: &Lab<'_>) -> Result<Chapter, ReproduceError> {
    let spec = machine("big1-small3")?;
    let mixes = of_folder("lucky", lab.work);
    let candidates = POLICIES.map(Candidate::new);
    let grid = Grid::simulate(&lab.pool, "lucky", &spec, &mixes, &candidates, &lab.seeds)?;
    let names: Vec<String> = mixes.iter().map(|mix| mix.short().to_uppercase()).collect();
    let mut parts = vec![Part::Text(format!(
        "Eight mixes of four programs on one core of 3.2 GHz and three of 0.8 GHz (`big1-small3`), with {} (single programs with \
         {}, drawn mixes with one). Each job has a \
         tenth of its program's instructions; a job that ends starts again until all have ended once. The paper names no \
         program of its mixes. The tables and figures are of one set, drawn by kind; the verdicts are of many such sets, because \
         single mixes decide.",
        lab.seeds_in_words(),
        in_words(lab.few_seeds()),
    ))];
    let mut verdicts = Vec::new();
    figure_1(&grid, &names, &mut parts, &mut verdicts);
    let alone = efficiency::alone(lab, &spec)?;
    efficiency::figure_2(&spec, &alone, &mut parts, &mut verdicts)?;
    figure_3(&grid, &names, &mut parts);
    let draws = draws::Draws::simulate(lab, &spec, &alone)?;
    verdicts.extend(draws.judge());
    let causes = causes::causes(lab, &spec, &names, &alone, &draws)?;
    let title = "lucky: a lottery for the big core".to_owned();
    Ok(Chapter {
        id: "lucky",
        title,
        parts,
        verdicts,
        causes,
    })
}

fn mix_of(names: &[String], name: &str) -> Option<usize> {
    names.iter().position(|one| one.eq_ignore_ascii_case(name))
}

/// One memory-intensive and three compute-intensive threads: equal shares of the big core against the lowest bias.
fn figure_1(grid: &Grid, names: &[String], parts: &mut Vec<Part>, verdicts: &mut Vec<Verdict>) {
    let Some(mix) = mix_of(names, "3ci-1mi") else {
        return;
    };
    let (bias, fair) = (grid.of(mix, BIAS), grid.of(mix, BIG_FAIR));
    let faster: Vec<f64> = bias
        .iter()
        .zip(fair)
        .map(|(bias, fair)| bias.turnaround_s / fair.turnaround_s)
        .collect();
    let energy: Vec<f64> = (bias.iter().zip(fair))
        .filter_map(|(bias, fair)| Some(100.0 * (1.0 - fair.energy_j? / bias.energy_j?)))
        .collect();
    let share: Vec<f64> = (bias.iter())
        .map(|run| {
            100.0 * run.watch.on_big_s.values().copied().fold(0.0, f64::max) / run.turnaround_s
        })
        .collect();
    parts.push(Part::Heading(
        "Figure 1: equal shares of the big core".to_owned(),
    ));
    parts.push(Part::Table(Table {
        id: "lucky-figure-1".to_owned(),
        caption: "3CI-1MI: `big-fair` against `bias`, and how long one thread had the big core under `bias`."
            .to_owned(),
        columns: ["", "here", "paper"].map(str::to_owned).to_vec(),
        rows: vec![
            vec![Cell::text("times as fast"), Cell::mean(&faster, 2), Cell::number(paper::FIGURE_1.0, 2)],
            vec![Cell::text("energy saved, %"), Cell::signed(&energy, 1), Cell::number(paper::FIGURE_1.1, 0)],
            vec![Cell::text("share of one thread, %"), Cell::mean(&share, 0), Cell::number(paper::FIGURE_1.2, 0)],
        ],
    }));
    verdicts.push(Verdict::size(
        "Figure 1: share of the big core of one thread under `bias`, %",
        paper::FIGURE_1.2,
        0,
        &share,
    ));
}

/// Energy-delay product of each mix.
fn figure_3(grid: &Grid, names: &[String], parts: &mut Vec<Part>) {
    let column = |ours: usize, base: usize| -> Vec<Option<Estimate>> {
        (0..grid.mixes)
            .map(|mix| Estimate::of(&saved(grid, mix, ours, base)))
            .collect()
    };
    parts.push(Part::Heading("Figure 3: energy-delay product".to_owned()));
    parts.push(bars(
        "lucky-figure-3".to_owned(),
        "Energy-delay product that `lucky` saves over `bias` and `big-fair`, and `big-fair` over `bias`.".to_owned(),
        Axes { x: "mix", y: "saved, %", decimals: 1 },
        names.to_vec(),
        vec![
            ("lucky over bias".to_owned(), column(LUCKY, BIAS)),
            ("lucky over big-fair".to_owned(), column(LUCKY, BIG_FAIR)),
            ("big-fair over bias".to_owned(), column(BIG_FAIR, BIAS)),
        ],
        None,
    ));
    let row = |name: &str, ours: usize, base: usize, paper: f64| {
        let shares = shares(grid, ours, base);
        vec![
            Cell::text(name),
            Cell::signed(
                &over(&shares, |shares| Some(100.0 * (1.0 - mean(shares)?))),
                0,
            ),
            Cell::signed(&saved_over_mixes(grid, ours, base), 0),
            Cell::signed(
                &over(&shares, |shares| {
                    let more: Vec<f64> = shares
                        .iter()
                        .map(|share| 100.0 * (1.0 / share - 1.0))
                        .collect();
                    mean(&more)
                }),
                0,
            ),
            Cell::number(paper, 0),
        ]
    };
    parts.push(Part::Table(Table {
        id: "lucky-definitions".to_owned(),
        caption: "Means over the mixes, by three definitions. The paper does not say which is its own, and its means do not \
                  compose by any of them. The verdicts take the geometric mean of the shares, which treats both policies alike."
            .to_owned(),
        columns: [
            "",
            "share saved, mean, %",
            "by the geometric mean, %",
            "the other's excess, mean, %",
            "paper, %",
        ]
        .map(str::to_owned)
        .to_vec(),
        rows: vec![
            row("lucky over bias", LUCKY, BIAS, paper::OVER_BIAS.0),
            row("lucky over big-fair", LUCKY, BIG_FAIR, paper::OVER_BIG_FAIR.0),
            row("big-fair over bias", BIG_FAIR, BIAS, paper::BIG_FAIR_OVER_BIAS),
        ],
    }));
}
