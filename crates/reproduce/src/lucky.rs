//! Lucky scheduling: energy-delay product on one big and three small cores (its sections 1 to 4).

use crate::error::ReproduceError;
use crate::figure::{Axes, bars};
use crate::findings::{Cell, Chapter, Part, Table, Verdict, plain};
use crate::grid::{Candidate, Grid};
use crate::lab::Lab;
use crate::mixes::{Mix, copies, of_folder, spec_programs};
use crate::paper::lucky as paper;
use crate::stats::{Estimate, geometric_mean, mean, over, quantile};
use crate::trial::{Measured, Trial, machine};
use cosched_core::model::cross_core::{CoreType, benefit};
use cosched_core::{CpuSet, Nanos, Restart, Rng};
use cosched_sim::{CoreTypeFit, CoreTypesFit, FIT_LENGTH, MachineSpec, ProgramSpec, SimJob, Work, fit};
use std::sync::Arc;

const POLICIES: [&str; 3] = ["bias", "big-fair", "lucky"];
const BIAS: usize = 0;
const BIG_FAIR: usize = 1;
const LUCKY: usize = 2;

fn product(run: &Measured) -> Option<f64> {
    run.energy_j.map(|energy| energy * run.turnaround_s)
}

/// Energy-delay product that `ours` saves against `base`, in per cent, by seed.
pub(crate) fn saved(grid: &Grid, mix: usize, ours: usize, base: usize) -> Vec<f64> {
    let pairs = grid.of(mix, ours).iter().zip(grid.of(mix, base));
    pairs.filter_map(|(ours, base)| Some(100.0 * (1.0 - product(ours)? / product(base)?))).collect()
}

/// Energy-delay products of `ours` as shares of those of `base`, by mix, then by seed.
fn shares(grid: &Grid, ours: usize, base: usize) -> Vec<Vec<f64>> {
    let of = |mix: usize| {
        let pairs = grid.of(mix, ours).iter().zip(grid.of(mix, base));
        pairs.filter_map(|(ours, base)| Some(product(ours)? / product(base)?)).collect()
    };
    (0..grid.mixes).map(of).collect()
}

/// What is saved over the mixes in per cent, by the geometric mean of the shares. It is the only mean that gives the same
/// whichever of the two is the base.
fn saved_over_mixes(grid: &Grid, ours: usize, base: usize) -> Vec<f64> {
    over(&shares(grid, ours, base), |shares| Some(100.0 * (1.0 - geometric_mean(shares)?)))
}

/// The most that is saved in a mix, in per cent, by seed.
fn saved_most(grid: &Grid, ours: usize, base: usize) -> Vec<f64> {
    over(&shares(grid, ours, base), |shares| shares.iter().copied().reduce(f64::min).map(|least| 100.0 * (1.0 - least)))
}

/// The chapter.
pub(crate) fn chapter(lab: &Lab<'_>) -> Result<Chapter, ReproduceError> {
    let spec = machine("big1-small3")?;
    let mixes = of_folder("lucky", lab.work);
    let candidates = POLICIES.map(Candidate::new);
    let grid = Grid::simulate(&lab.pool, "lucky", &spec, &mixes, &candidates, &lab.seeds)?;
    let names: Vec<String> = mixes.iter().map(|mix| mix.short().to_uppercase()).collect();
    let mut parts = vec![Part::Text(format!(
        "Eight mixes of four programs on one core of 3.2 GHz and three of 0.8 GHz (`big1-small3`), with {} (single programs and \
         drawn mixes with one). Each job has a \
         tenth of its program's instructions; a job that ends starts again until all have ended once. The paper names no \
         program of its mixes: here they are drawn by their kind.",
        lab.seeds_in_words(),
    ))];
    let mut verdicts = Vec::new();
    figure_1(&grid, &names, &mut parts, &mut verdicts);
    let alone = alone(lab, &spec)?;
    efficiency(&spec, &alone, &mut parts, &mut verdicts);
    figure_3(&grid, &names, &mut parts, &mut verdicts);
    let mut causes = causes(lab, &spec, &names)?;
    causes.extend(draws(lab, &spec, &alone)?);
    causes.extend(latencies(lab, &spec)?);
    let title = "lucky: a lottery for the big core".to_owned();
    Ok(Chapter { id: "lucky", title, parts, verdicts, causes })
}

fn mix_of(names: &[String], name: &str) -> Option<usize> {
    names.iter().position(|one| one.eq_ignore_ascii_case(name))
}

/// One memory-intensive and three compute-intensive threads: equal shares of the big core against the lowest bias.
fn figure_1(grid: &Grid, names: &[String], parts: &mut Vec<Part>, verdicts: &mut Vec<Verdict>) {
    let Some(mix) = mix_of(names, "3ci-1mi") else { return };
    let (bias, fair) = (grid.of(mix, BIAS), grid.of(mix, BIG_FAIR));
    let faster: Vec<f64> = bias.iter().zip(fair).map(|(bias, fair)| bias.turnaround_s / fair.turnaround_s).collect();
    let energy: Vec<f64> = (bias.iter().zip(fair))
        .filter_map(|(bias, fair)| Some(100.0 * (1.0 - fair.energy_j? / bias.energy_j?)))
        .collect();
    let share: Vec<f64> = (bias.iter())
        .map(|run| 100.0 * run.watch.on_big_s.values().copied().fold(0.0, f64::max) / run.turnaround_s)
        .collect();
    parts.push(Part::Heading("Figure 1: equal shares of the big core".to_owned()));
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
    let gain: Vec<f64> = faster.iter().map(|faster| 100.0 * (faster - 1.0)).collect();
    verdicts.push(Verdict::gain(
        "Figure 1: `big-fair` faster than `bias`, %",
        100.0 * (paper::FIGURE_1.0 - 1.0),
        0,
        &gain,
    ));
    verdicts.push(Verdict::gain("Figure 1: energy saved by `big-fair`, %", paper::FIGURE_1.1, 0, &energy));
    verdicts.push(Verdict::size(
        "Figure 1: share of the big core of one thread under `bias`, %",
        paper::FIGURE_1.2,
        0,
        &share,
    ));
}

/// A program alone on each type of core.
struct Alone {
    program: Arc<ProgramSpec>,
    big: Measured,
    small: Measured,
}

impl Alone {
    /// Million lines read a second on the big core.
    fn misses(&self) -> f64 {
        self.big.reads_per_us
    }
}

/// Every program alone on each type of core.
fn alone(lab: &Lab<'_>, spec: &Arc<MachineSpec>) -> Result<Vec<Alone>, ReproduceError> {
    let programs = spec_programs();
    let machine = spec.machine();
    let on = |core_type: usize| -> CpuSet {
        let cpus = machine.cpus.iter().filter(|cpu| cpu.core_type == core_type);
        cpus.map(|cpu| cpu.id).take(1).collect()
    };
    let work = Work::SoloTime(Nanos::from_ms(20_000));
    let trials: Vec<Trial> = (programs.iter())
        .flat_map(|program| {
            let trial = Trial::new(spec, &copies(program, 1, work), "linux", lab.seeds[0]);
            [0, 1].map(|core_type| Trial { usable: Some(on(core_type)), ..trial.clone() })
        })
        .collect();
    let mut runs = lab.pool.map("lucky: programs alone", &trials, Trial::simulate)?.into_iter();
    let mut found = Vec::new();
    for program in programs {
        if let (Some(big), Some(small)) = (runs.next(), runs.next()) {
            found.push(Alone { program, big, small });
        }
    }
    Ok(found)
}

/// A program: the big core's efficiency over the small one's, and its million misses a second on the big core.
struct Found {
    name: String,
    ratio: f64,
    misses: f64,
}

/// Fits the types of core, and finds what each program gains from the big one.
fn benefits(spec: &Arc<MachineSpec>, alone: &[Alone]) -> Option<(CoreTypesFit, Vec<Found>)> {
    let types = fit(spec, FIT_LENGTH).ok()?.core_types?;
    let core = |of: &CoreTypeFit| CoreType::new(of.capacity_mips, of.busy_w, of.idle_w).ok();
    let (big, small) = (core(&types.big)?, core(&types.small)?);
    let mips = |run: &Measured| run.instructions as f64 / run.turnaround_s / 1e6;
    let ratio = |one: &Alone| {
        // The highest MIPS are the capacity; noise of the counters may lift one slightly above.
        let at_most = |mips: f64, core: &CoreType| mips.min(core.capacity_mips());
        let ratio = benefit(&big, at_most(mips(&one.big), &big), &small, at_most(mips(&one.small), &small)).ok()?;
        Some(Found { name: one.program.name.clone(), ratio, misses: one.misses() })
    };
    let found = alone.iter().filter_map(ratio).collect();
    Some((types, found))
}

/// The big core's efficiency over the small one's for each program alone, and how well one is predicted from the other.
fn efficiency(spec: &Arc<MachineSpec>, alone: &[Alone], parts: &mut Vec<Part>, verdicts: &mut Vec<Verdict>) {
    let Some((types, mut found)) = benefits(spec, alone) else { return };
    found.sort_by(|a, b| b.ratio.total_cmp(&a.ratio));
    parts.push(Part::Heading("Figure 2: where each program is more efficient".to_owned()));
    parts.push(bars(
        "lucky-figure-2".to_owned(),
        "MIPS squared per watt on the big core over that on the small one, each program alone.".to_owned(),
        Axes { x: "program", y: "big / small", decimals: 2 },
        found.iter().map(|one| one.name.clone()).collect(),
        vec![("big / small".to_owned(), found.iter().map(|one| Estimate::of(&[one.ratio])).collect())],
        None,
    ));
    let ratio = |name: &str| found.iter().find(|one| one.name == name).map_or(0.0, |one| one.ratio);
    for gains in ["zeusmp", "bwaves"] {
        let values = [(gains, vec![ratio(gains)]), ("astar", vec![ratio("astar")])];
        verdicts.push(Verdict::order("Figure 2: efficiency of the big core", &[gains, "astar"], &values));
    }
    for (name, figure) in paper::MISSES {
        let misses = found.iter().find(|one| one.name == name).map_or(0.0, |one| one.misses);
        verdicts.push(Verdict::size(
            format!("million misses a second of {name} on the big core"),
            figure,
            0,
            &[misses],
        ));
    }
    let mut rows = Vec::new();
    for (name, regression) in [("to the big core", &types.to_big), ("to the small core", &types.to_small)] {
        let Some(r2) = regression.r2 else { continue };
        rows.push(vec![
            Cell::text(name),
            Cell::number(r2.sqrt(), 2),
            Cell::number(r2, 2),
            Cell::number(paper::CORRELATION, 2),
        ]);
        // Correlations near 1 differ by what they leave unexplained.
        let left = 100.0 * (1.0 - paper::CORRELATION * paper::CORRELATION);
        let what = format!("variance that the prediction {name} leaves unexplained, %");
        verdicts.push(Verdict::size(what, left, 0, &[100.0 * (1.0 - r2)]));
    }
    parts.push(Part::Table(Table {
        id: "lucky-regression".to_owned(),
        caption:
            "The regression that predicts MIPS on the other type of core from MIPS and misses (section 2.2), over all \
                  programs."
                .to_owned(),
        columns: ["prediction", "correlation", "R squared", "paper's correlation"].map(str::to_owned).to_vec(),
        rows,
    }));
}

/// Energy-delay product of each mix.
fn figure_3(grid: &Grid, names: &[String], parts: &mut Vec<Part>, verdicts: &mut Vec<Verdict>) {
    let column = |ours: usize, base: usize| -> Vec<Option<Estimate>> {
        (0..grid.mixes).map(|mix| Estimate::of(&saved(grid, mix, ours, base))).collect()
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
            Cell::signed(&over(&shares, |shares| Some(100.0 * (1.0 - mean(shares)?))), 0),
            Cell::signed(&saved_over_mixes(grid, ours, base), 0),
            Cell::signed(
                &over(&shares, |shares| {
                    let more: Vec<f64> = shares.iter().map(|share| 100.0 * (1.0 / share - 1.0)).collect();
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
    let (means, most) = (saved_over_mixes(grid, LUCKY, BIAS), saved_most(grid, LUCKY, BIAS));
    verdicts.push(Verdict::gain("Figure 3: saved by `lucky` over `bias`, mean, %", paper::OVER_BIAS.0, 0, &means));
    verdicts.push(Verdict::gain("Figure 3: the same, greatest, %", paper::OVER_BIAS.1, 0, &most));
    let (means, most) = (saved_over_mixes(grid, LUCKY, BIG_FAIR), saved_most(grid, LUCKY, BIG_FAIR));
    verdicts.push(Verdict::gain(
        "Figure 3: saved by `lucky` over `big-fair`, mean, %",
        paper::OVER_BIG_FAIR.0,
        0,
        &means,
    ));
    verdicts.push(Verdict::gain("Figure 3: the same, greatest, %", paper::OVER_BIG_FAIR.1, 0, &most));
    for (name, figure) in paper::WORSE {
        if let Some(mix) = mix_of(names, name) {
            let what = format!("Figure 3: {}, saved by `lucky` over `big-fair`, %", name.to_uppercase());
            verdicts.push(Verdict::gain(what, figure, 0, &saved(grid, mix, LUCKY, BIG_FAIR)));
        }
    }
    let means = saved_over_mixes(grid, BIG_FAIR, BIAS);
    let what = "Figure 3: saved by `big-fair` over `bias`, mean, %";
    verdicts.push(Verdict::gain(what, paper::BIG_FAIR_OVER_BIAS, 0, &means));
}

/// Experiments that show what the differences come from.
fn causes(lab: &Lab<'_>, spec: &Arc<MachineSpec>, names: &[String]) -> Result<Vec<Part>, ReproduceError> {
    let seeds = lab.few_seeds();
    let candidates = POLICIES.map(Candidate::new);
    let mixes = of_folder("lucky", lab.work);
    let mut rows = Vec::new();
    for idle_w in [0.7, 3.0, 6.0, 9.0] {
        let mut changed = (**spec).clone();
        changed.core_types[0].idle_w = idle_w;
        // The policy knows the machine's power.
        for (name, value) in &mut changed.params {
            if name == "big_idle_w" {
                *value = idle_w.to_string();
            } else if name == "big_busy_w"
                && let Ok(busy) = value.parse::<f64>()
            {
                *value = (busy - spec.core_types[0].idle_w + idle_w).to_string();
            }
        }
        let what = format!("lucky: big core idle at {idle_w} W");
        let grid = Grid::simulate(&lab.pool, &what, &Arc::new(changed), &mixes, &candidates, seeds)?;
        let worst = mix_of(names, "4mi").map_or_else(Vec::new, |mix| saved(&grid, mix, LUCKY, BIG_FAIR));
        rows.push(vec![
            Cell::number(idle_w, 1),
            Cell::signed(&saved_over_mixes(&grid, LUCKY, BIAS), 1),
            Cell::signed(&saved_over_mixes(&grid, LUCKY, BIG_FAIR), 1),
            Cell::signed(&saved_over_mixes(&grid, BIG_FAIR, BIAS), 1),
            Cell::signed(&worst, 1),
        ]);
    }
    Ok(vec![
        Part::Text(
            "**The idle power of the big core** is not in the paper; 3 W is assumed. It hardly changes what `lucky` saves."
                .to_owned(),
        ),
        Part::Table(Table {
            id: "lucky-idle-power".to_owned(),
            caption: "Energy-delay product saved, means over the mixes, by the power of the idle big core.".to_owned(),
            columns: ["idle, W", "lucky over bias, %", "lucky over big-fair, %", "big-fair over bias, %", "4MI, lucky over big-fair, %"]
                .map(str::to_owned)
                .to_vec(),
            rows,
        }),
    ])
}

/// Part of its program's instructions that a job has, as in the mixes.
const PART: f64 = 0.1;
/// At most so many million misses a second make a program compute-intensive, at least so many memory-intensive: the paper's
/// figures, by which its mixes are drawn here.
const COMPUTE: f64 = 2.0;
const MEMORY: f64 = 14.0;
/// Mixes of each kind that are drawn.
const DRAWN: usize = 30;
/// The same in the short form.
const QUICK_DRAWN: usize = 8;

/// Other mixes of the same kinds: how much depends on which programs are drawn.
fn draws(lab: &Lab<'_>, spec: &Arc<MachineSpec>, alone: &[Alone]) -> Result<Vec<Part>, ReproduceError> {
    let of = |which: &dyn Fn(f64) -> bool| -> Vec<&Arc<ProgramSpec>> {
        alone.iter().filter(|one| which(one.misses())).map(|one| &one.program).collect()
    };
    let (compute, memory) = (of(&|misses| misses <= COMPUTE), of(&|misses| misses >= MEMORY));
    let drawn = if lab.few < crate::FEW { QUICK_DRAWN } else { DRAWN };
    let pick = |from: &[&Arc<ProgramSpec>], count: usize, rng: &mut Rng| -> Vec<SimJob> {
        let mut left = from.to_vec();
        let mut jobs = Vec::new();
        while jobs.len() < count && !left.is_empty() {
            let program = left.swap_remove(rng.below(left.len() as u64) as usize);
            let instructions = PART * program.instructions.unwrap_or(1e12);
            jobs.extend(copies(program, 1, Work::Instructions(instructions as u64)));
        }
        jobs
    };
    let mut rows = Vec::new();
    for (kind, name) in ["4CI", "3CI-1MI", "2CI-2MI", "1CI-3MI", "4MI"].iter().enumerate() {
        let mut rng = Rng::new(lab.seeds[0] ^ (kind as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mixes: Vec<Mix> = (0..drawn)
            .map(|_| {
                let mut jobs = pick(&compute, 4 - kind, &mut rng);
                jobs.extend(pick(&memory, kind, &mut rng));
                Mix { name: "drawn", jobs, restart: Restart::UntilLast }
            })
            .collect();
        let what = format!("lucky: mixes of the kind {name}");
        let grid = Grid::simulate(&lab.pool, &what, spec, &mixes, &POLICIES.map(Candidate::new), &lab.seeds[..1])?;
        let mut row = vec![Cell::text(*name)];
        for (ours, base) in [(LUCKY, BIAS), (LUCKY, BIG_FAIR), (BIG_FAIR, BIAS)] {
            let savings: Vec<f64> = (0..grid.mixes).flat_map(|mix| saved(&grid, mix, ours, base)).collect();
            row.push(Cell::text(match (mean(&savings), quantile(&savings, 0.1), quantile(&savings, 0.9)) {
                (Some(mean), Some(low), Some(high)) => {
                    format!("{} ({} to {})", plain(mean, 0), plain(low, 0), plain(high, 0))
                }
                _ => "-".to_owned(),
            }));
        }
        rows.push(row);
    }
    Ok(vec![
        Part::Text(
            "**Single mixes decide.** The paper names no programs. Mixes of the same kind that are drawn otherwise come out \
             otherwise, above all against `bias`: it gives one job the big core all the time, which is best if that job is the \
             longest and worst if it is the shortest."
                .to_owned(),
        ),
        Part::Table(Table {
            id: "lucky-draws".to_owned(),
            caption: format!(
                "Energy-delay product saved in per cent, over {drawn} mixes of each kind: mean, and in brackets from the 10th \
                 to the 90th percentile."
            ),
            columns: ["kind", "lucky over bias", "lucky over big-fair", "big-fair over bias"].map(str::to_owned).to_vec(),
            rows,
        }),
    ])
}

/// Figure 2 and the regression, by the latency of memory.
fn latencies(lab: &Lab<'_>, spec: &Arc<MachineSpec>) -> Result<Vec<Part>, ReproduceError> {
    let mut rows = Vec::new();
    for factor in [1.0, 0.5, 0.25, 0.1] {
        let mut changed = (**spec).clone();
        changed.memory.idle_latency_ns *= factor;
        let changed = Arc::new(changed);
        let Some((types, found)) = benefits(&changed, &alone(lab, &changed)?) else { continue };
        let ratio = |name: &str| found.iter().find(|one| one.name == name).map_or(f64::NAN, |one| one.ratio);
        let mut row = vec![Cell::number(factor, 2)];
        row.extend(["zeusmp", "bwaves", "astar"].map(|name| Cell::number(ratio(name), 2)));
        row.extend([types.to_big.r2, types.to_small.r2].map(|r2| Cell::number(r2.unwrap_or(f64::NAN).sqrt(), 2)));
        rows.push(row);
    }
    Ok(vec![
        Part::Text(
            "**Figure 2 and the regression.** In the paper zeusmp and bwaves gain more from the big core than astar although \
             they miss often, and the regression explains nearly everything. The programs here wait for memory as PROFET \
             measured it, as long on a fast core as on a slow one. If memory answers faster, as it does to a prefetcher that is \
             early, zeusmp and bwaves gain more and come near to astar, and the regression explains more; but they do not pass \
             it. So this order is not explained: the profiles of these programs may differ from the paper's, which were \
             measured on another processor with inputs that are not named. Its counter may also miss prefetched lines: the \
             paper has 29 million misses a second for bwaves, here it reads far more."
                .to_owned(),
        ),
        Part::Table(Table {
            id: "lucky-latencies".to_owned(),
            caption: "Efficiency of the big core over the small one, and correlation of the prediction, by the idle latency of \
                      memory."
                .to_owned(),
            columns: ["latency x", "zeusmp", "bwaves", "astar", "correlation to big", "to small"].map(str::to_owned).to_vec(),
            rows,
        }),
    ])
}
