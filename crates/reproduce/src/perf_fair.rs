//! Perf&Fair: fairness and speed of mixes of 24 on six cores of two hardware threads (its section 7).

use crate::error::ReproduceError;
use crate::figure::{Axes, Curve, bars, curves};
use crate::findings::{Cell, Chapter, Part, Table, Verdict, plain};
use crate::grid::{Candidate, Grid};
use crate::lab::Lab;
use crate::mixes::{Mix, of_folder};
use crate::paper::perf_fair as paper;
use crate::stats::{Estimate, mean, over, quantile};
use crate::trial::{Measured, machine, policy};
use cosched_sim::MachineSpec;
use std::sync::Arc;

/// The machines: the paper does not say how many channels of memory its machine had.
const MACHINES: [(&str, &str); 3] =
    [("xeon-e5645", "three channels"), ("xeon-e5645-2ch", "two channels"), ("xeon-e5645-1ch", "one channel")];

/// The policies in the order of the columns. The first is the base.
const POLICIES: [&str; 6] = ["linux", "bandwidth", "fair", "perf-fair", "oracle", "round-robin"];
/// Position of a policy in that order.
const LINUX: usize = 0;
const BANDWIDTH: usize = 1;
const FAIR: usize = 2;
const PERF_FAIR: usize = 3;
const ROUND_ROBIN: usize = 5;

/// Mix 9 is the one of Figure 3.
const NINTH: usize = 8;

/// What was simulated on one machine.
struct Bench {
    name: &'static str,
    channels: &'static str,
    spec: Arc<MachineSpec>,
    candidates: Vec<Candidate>,
    grid: Grid,
}

impl Bench {
    fn base(&self, mix: usize) -> &[Measured] {
        self.grid.of(mix, LINUX)
    }

    /// Speed-up of turnaround over linux in per cent, by seed.
    fn speed_up(&self, mix: usize, candidate: usize) -> Vec<f64> {
        self.grid.gains(mix, candidate, self.base(mix), |run| Some(run.turnaround_s))
    }

    fn overall(&self, candidate: usize) -> Vec<f64> {
        self.grid.speed_up(candidate, (&self.grid, LINUX))
    }

    /// Lines read per us under linux, mean over the seeds.
    fn bandwidth(&self, mix: usize) -> f64 {
        mean(&self.grid.values(mix, LINUX, |run| Some(run.reads_per_us))).unwrap_or(0.0)
    }
}

/// The chapter.
pub(crate) fn chapter(lab: &Lab<'_>) -> Result<Chapter, ReproduceError> {
    let mixes = of_folder("perf-fair", lab.work);
    let mut candidates: Vec<Candidate> = POLICIES.map(Candidate::new).to_vec();
    candidates[FAIR].truth = true;
    candidates[PERF_FAIR].truth = true;
    for name in &lab.policies {
        let entry = policy(name)?;
        if !candidates.iter().any(|candidate| candidate.policy == entry.name) {
            candidates.push(Candidate::new(entry.name));
        }
    }
    let mut benches = Vec::new();
    for (name, channels) in MACHINES {
        let spec = machine(name)?;
        let what = format!("perf-fair on {name}");
        let grid = Grid::simulate(&lab.pool, &what, &spec, &mixes, &candidates, &lab.seeds)?;
        benches.push(Bench { name, channels, spec, candidates: candidates.clone(), grid });
    }
    let mut parts = vec![Part::Text(format!(
        "Thirteen mixes of 24 programs on `xeon-e5645` (six cores with two hardware threads), {}, with {}: the same jobs for \
         every policy, so that differences are pairs. `bandwidth` is the paper's Perf. The paper does not say how many \
         channels of memory its machine had, so there are three machines. Unfairness is the greatest slowdown over the \
         least, in per cent above 1; means over mixes are geometric; intervals are of 95 % over seeds. `round-robin` knows \
         nothing of jobs: what it gains over `linux` is mostly due to its long quanta.",
        lab.work_in_words(),
        lab.seeds_in_words(),
    ))];
    for bench in &benches {
        parts.push(Part::Heading(format!("{}: `{}`", capital(bench.channels), bench.name)));
        parts.push(Part::Table(summary(bench)));
    }
    let (first, last) = (&benches[0], &benches[benches.len() - 1]);
    for bench in [first, last] {
        parts.push(Part::Heading(format!("Figures 1 and 2 with {}", bench.channels)));
        parts.push(figure_1(bench, &mixes));
        parts.push(figure_2(bench, &mixes));
    }
    parts.push(Part::Heading("Figure 3: how jobs of mix 9 end".to_owned()));
    for bench in [first, last] {
        parts.push(figure_3(bench));
    }
    parts.push(Part::Heading("Groups of mixes by bandwidth".to_owned()));
    parts.push(Part::Table(groups(&benches)));
    parts.push(Part::Heading("What estimates are worth".to_owned()));
    parts.push(Part::Table(estimates(&benches)));
    let mut verdicts = Vec::new();
    for bench in [first, last] {
        verdicts.extend(judge(bench));
    }
    let causes = causes(lab, &mixes, &benches)?;
    let title = "Perf&Fair: fairness and speed".to_owned();
    Ok(Chapter { id: "perf-fair", title, parts, verdicts, causes })
}

fn capital(words: &str) -> String {
    let mut letters = words.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// Unfairness and speed of each policy over all mixes.
fn summary(bench: &Bench) -> Table {
    let rows = bench.candidates.iter().enumerate().map(|(at, candidate)| {
        let published = |of: &[(&str, f64)]| match of.iter().find(|(name, _)| *name == candidate.policy) {
            Some((_, value)) => Cell::number(*value, 1),
            None => Cell::Absent("not published".to_owned()),
        };
        let speed: Vec<f64> = (0..bench.grid.mixes).filter_map(|mix| mean(&bench.speed_up(mix, at))).collect();
        let range = [0.0, 1.0].map(|share| quantile(&speed, share).map_or(String::new(), |value| plain(value, 1)));
        vec![
            Cell::text(format!("`{}`", candidate.label)),
            Cell::mean(&bench.grid.unfairness(at), 1),
            published(&paper::UNFAIRNESS),
            Cell::signed(&bench.overall(at), 1),
            published(&paper::SPEED_UP),
            Cell::text(format!("{} to {}", range[0], range[1])),
            Cell::mean(&bench.grid.means(at, |run| Some(run.reads_per_us)), 0),
        ]
    });
    Table {
        id: format!("perf-fair-summary-{}", bench.name),
        caption: format!("Unfairness and speed-up of turnaround over `linux` with {}.", bench.channels),
        columns: [
            "policy",
            "unfairness, %",
            "paper",
            "speed-up, %",
            "paper",
            "least and greatest mix, %",
            "lines read per us",
        ]
        .map(str::to_owned)
        .to_vec(),
        rows: rows.collect(),
    }
}

/// The names of the mixes without their folder.
fn names(mixes: &[Mix]) -> Vec<String> {
    mixes.iter().map(|mix| mix.short().to_owned()).collect()
}

fn figure_1(bench: &Bench, mixes: &[Mix]) -> Part {
    let series = bench.candidates.iter().enumerate().map(|(at, candidate)| {
        let of = |mix| Estimate::of(&bench.grid.values(mix, at, Measured::unfair_percent));
        (candidate.label.clone(), (0..mixes.len()).map(of).collect())
    });
    bars(
        format!("perf-fair-figure-1-{}", bench.name),
        format!("Unfairness of each mix with {} (the paper's Figure 1).", bench.channels),
        Axes { x: "mix", y: "unfairness, %", decimals: 1 },
        names(mixes),
        series.collect(),
        None,
    )
}

fn figure_2(bench: &Bench, mixes: &[Mix]) -> Part {
    let policies = bench.candidates.iter().enumerate().filter(|&(at, _)| at != LINUX);
    let series = policies.map(|(at, candidate)| {
        let of = |mix| Estimate::of(&bench.speed_up(mix, at));
        (candidate.label.clone(), (0..mixes.len()).map(of).collect())
    });
    let line = (0..mixes.len()).map(|mix| bench.bandwidth(mix)).collect();
    bars(
        format!("perf-fair-figure-2-{}", bench.name),
        format!(
            "Speed-up of turnaround over `linux` of each mix with {}, and its mean bandwidth under `linux` (the paper's \
             Figure 2).",
            bench.channels
        ),
        Axes { x: "mix", y: "speed-up, %", decimals: 1 },
        names(mixes),
        series.collect(),
        Some(("lines read per us".to_owned(), line)),
    )
}

/// The paper's curves: jobs of mix 9 that have not ended, for the first seed.
fn figure_3(bench: &Bench) -> Part {
    let lines = bench.candidates.iter().enumerate().map(|(at, candidate)| {
        let ends = &bench.grid.of(NINTH, at)[0].ends_s;
        let mut points = vec![(0.0, ends.len() as f64)];
        points.extend(ends.iter().enumerate().map(|(ended, &end)| (end, (ends.len() - ended - 1) as f64)));
        Curve::steps(candidate.label.clone(), points)
    });
    curves(
        format!("perf-fair-figure-3-{}", bench.name),
        format!("Jobs of mix 9 that have not ended, with {}, first seed (the paper's Figure 3).", bench.channels),
        Axes { x: "time, s", y: "jobs", decimals: 1 },
        lines.collect(),
    )
}

/// The group of a mix by its bandwidth under linux: 0, 1 or 2.
fn group_of(bench: &Bench, mix: usize) -> usize {
    let reads = bench.bandwidth(mix);
    paper::GROUPS.iter().filter(|&&limit| reads >= limit).count()
}

const GROUP_NAMES: [&str; 3] = ["below 80", "80 to 120", "above 120"];

/// For each seed, the mean speed-up of the mixes of a group.
fn of_group(bench: &Bench, group: usize, candidate: usize) -> Vec<f64> {
    let mixes: Vec<Vec<f64>> = (0..bench.grid.mixes)
        .filter(|&mix| group_of(bench, mix) == group)
        .map(|mix| bench.speed_up(mix, candidate))
        .collect();
    over(&mixes, mean)
}

fn groups(benches: &[Bench]) -> Table {
    let mut rows = Vec::new();
    for bench in benches {
        for (group, name) in GROUP_NAMES.iter().enumerate() {
            let mixes = (0..bench.grid.mixes).filter(|&mix| group_of(bench, mix) == group).count();
            let mut row = vec![Cell::text(bench.channels), Cell::text(*name), Cell::number(mixes as f64, 0)];
            row.extend(
                (1..bench.candidates.len()).map(|candidate| Cell::signed(&of_group(bench, group, candidate), 1)),
            );
            rows.push(row);
        }
    }
    let mut columns = vec!["memory".to_owned(), "lines read per us under `linux`".to_owned(), "mixes".to_owned()];
    columns.extend(benches[0].candidates.iter().skip(1).map(|candidate| format!("`{}`", candidate.label)));
    Table {
        id: "perf-fair-groups".to_owned(),
        caption: "Mean speed-up over `linux` in per cent, by the mean bandwidth of the mix (the paper's section 7.2)."
            .to_owned(),
        columns,
        rows,
    }
}

/// CPUs that are idle while something is measured; `None` if nothing is.
fn idle_while_measuring(run: &Measured) -> Option<f64> {
    let measuring = run.watch.measuring.as_s();
    (measuring > 0.0).then(|| run.watch.idle_measuring_s / measuring)
}

/// Errors of the estimates, and their price.
fn estimates(benches: &[Bench]) -> Table {
    let mut rows = Vec::new();
    for bench in benches {
        for at in [FAIR, PERF_FAIR] {
            let of = |run: &Measured, share: f64| {
                let sizes: Vec<f64> = run.watch.solo_errors.iter().map(|error| 100.0 * error.abs()).collect();
                quantile(&sizes, share)
            };
            let progress = |run: &Measured| {
                let sizes: Vec<f64> = run.progress_errors.iter().map(|error| 100.0 * error.abs()).collect();
                mean(&sizes)
            };
            let spread = |run: &Measured| {
                let errors = &run.progress_errors;
                Some(100.0 * (quantile(errors, 1.0)? - quantile(errors, 0.0)?))
            };
            let grid = &bench.grid;
            rows.push(vec![
                Cell::text(bench.channels),
                Cell::text(format!("`{}`", bench.candidates[at].label)),
                Cell::signed(&grid.means(at, |run| Some(100.0 * mean(&run.watch.solo_errors)?)), 1),
                Cell::mean(&grid.means(at, |run| of(run, 0.5)), 1),
                Cell::mean(&grid.means(at, |run| of(run, 0.9)), 1),
                Cell::mean(&grid.means(at, progress), 1),
                Cell::mean(&grid.means(at, spread), 1),
                Cell::mean(&grid.means(at, |run| Some(100.0 * run.watch.measuring.as_s() / run.turnaround_s)), 1),
                Cell::mean(&grid.means(at, idle_while_measuring), 1),
            ]);
        }
    }
    Table {
        id: "perf-fair-estimates".to_owned(),
        caption:
            "Estimates against the truth. IPC alone: estimate / truth - 1 at each new estimate, its mean, and median \
                  and nine tenths of its size. Progress: estimate / truth - 1 at the end of each job, mean size, and \
                  distance between the greatest and the least in a mix. Price: share of the time \
                  in which something is measured alone, and CPUs out of twelve that are idle meanwhile."
                .to_owned(),
        columns: [
            "memory",
            "policy",
            "IPC alone, mean, %",
            "median size",
            "nine tenths",
            "progress, mean size, %",
            "spread",
            "time measuring, %",
            "idle CPUs",
        ]
        .map(str::to_owned)
        .to_vec(),
        rows,
    }
}

fn judge(bench: &Bench) -> Vec<Verdict> {
    let grid = &bench.grid;
    let with = bench.channels;
    let position = |name: &str| POLICIES.iter().position(|policy| *policy == name).unwrap_or(LINUX);
    let mut verdicts = Vec::new();
    for (name, figure) in paper::UNFAIRNESS {
        let what = format!("unfairness of `{name}`, %, {with}");
        verdicts.push(Verdict::size(what, figure, 1, &grid.unfairness(position(name))));
    }
    let values: Vec<(&str, Vec<f64>)> =
        paper::UNFAIRNESS.iter().map(|(name, _)| (*name, grid.unfairness(position(name)))).collect();
    let order = ["bandwidth", "linux", "perf-fair", "fair", "oracle"];
    verdicts.push(Verdict::order(format!("unfairness, {with}"), &order, &values));
    for (name, figure) in paper::MIXES_ABOVE_20 {
        let above = |seed: usize| {
            let is_above = |mix: &usize| grid.of(*mix, position(name))[seed].unfair_percent() > Some(20.0);
            (0..grid.mixes).filter(is_above).count() as f64
        };
        let counts: Vec<f64> = (0..grid.seeds).map(above).collect();
        let what = format!("mixes of 13 above 20 % under `{name}`, {with}");
        verdicts.push(Verdict::size(what, figure, 1, &counts));
    }
    for (name, figure) in paper::SPEED_UP {
        let what = format!("speed-up of `{name}`, %, {with}");
        verdicts.push(Verdict::gain(what, figure, 1, &bench.overall(position(name))));
    }
    let speeds: Vec<(&str, Vec<f64>)> =
        ["perf-fair", "bandwidth", "fair", "linux"].map(|name| (name, bench.overall(position(name)))).to_vec();
    verdicts.push(Verdict::order(format!("speed, {with}"), &["perf-fair", "bandwidth", "fair", "linux"], &speeds));
    let beats = |seed: usize| {
        let wins = |mix: &usize| grid.of(*mix, PERF_FAIR)[seed].turnaround_s < grid.of(*mix, FAIR)[seed].turnaround_s;
        (0..grid.mixes).filter(wins).count() as f64
    };
    let wins: Vec<f64> = (0..grid.seeds).map(beats).collect();
    verdicts.push(Verdict::size(
        format!("mixes of 13 in which `perf-fair` is faster than `fair`, {with}"),
        13.0,
        1,
        &wins,
    ));
    let orders: [&[&str]; 3] =
        [&["perf-fair", "bandwidth ~ fair"], &["perf-fair ~ bandwidth", "fair"], &["bandwidth", "perf-fair", "fair"]];
    for (group, order) in orders.iter().enumerate() {
        let values: Vec<(&str, Vec<f64>)> =
            ["perf-fair", "bandwidth", "fair"].map(|name| (name, of_group(bench, group, position(name)))).to_vec();
        if values.iter().all(|(_, values)| !values.is_empty()) {
            let what = format!("speed in mixes with {} lines per us, {with}", GROUP_NAMES[group]);
            verdicts.push(Verdict::order(what, order, &values));
        }
    }
    // The paper says who is first, and no figures.
    let others = [BANDWIDTH, FAIR, PERF_FAIR];
    for (what, end, order) in [
        ("first to finish 12 jobs of mix 9", 11, ["linux", "others"]),
        ("first to finish all jobs of mix 9", 23, ["others", "linux"]),
    ] {
        let ends = |candidate: usize, seed: usize| grid.of(NINTH, candidate)[seed].ends_s.get(end).copied();
        let linux: Vec<f64> = (0..grid.seeds).filter_map(|seed| Some(-ends(LINUX, seed)?)).collect();
        // Being first of all is against the first of the others, being last against the last of them.
        let of_others = |seed: usize| {
            let all = others.iter().filter_map(|&candidate| ends(candidate, seed));
            if order[0] == "linux" { all.reduce(f64::min) } else { all.reduce(f64::max) }
        };
        let rest: Vec<f64> = (0..grid.seeds).filter_map(|seed| Some(-of_others(seed)?)).collect();
        verdicts.push(Verdict::order(format!("{what}, {with}"), &order, &[("linux", linux), ("others", rest)]));
    }
    verdicts
}

/// Values of the knob between performance and fairness, in quanta; the paper's is 1.
const MARGINS: [f64; 6] = [0.0, 0.5, 1.0, 4.0, 16.0, 64.0];

/// A period in which the kernel gives each of two threads on a CPU a slice as long as a quantum, in ms.
const LONG_PERIOD_MS: f64 = 400.0;

/// In how many mixes `linux` has ended half of the jobs first, and all of them last.
fn half_and_all(benches: &[Bench]) -> Table {
    let others = [BANDWIDTH, FAIR, PERF_FAIR];
    let rows = benches.iter().map(|bench| {
        let grid = &bench.grid;
        let count = |seed: usize, end: usize, is_first: bool| {
            let of = |mix: usize, candidate: usize| grid.of(mix, candidate)[seed].ends_s.get(end).copied();
            let is_it = |&mix: &usize| {
                others.iter().all(|&other| match (of(mix, LINUX), of(mix, other)) {
                    (Some(linux), Some(other)) => (linux < other) == is_first,
                    _ => false,
                })
            };
            (0..grid.mixes).filter(is_it).count() as f64
        };
        let over_seeds = |end: usize, is_first: bool| -> Vec<f64> {
            (0..grid.seeds).map(|seed| count(seed, end, is_first)).collect()
        };
        vec![Cell::text(bench.channels), Cell::mean(&over_seeds(11, true), 1), Cell::mean(&over_seeds(23, false), 1)]
    });
    Table {
        id: "perf-fair-half".to_owned(),
        caption:
            "Mixes of 13 in which `linux` ends 12 jobs before `bandwidth`, `fair` and `perf-fair`, and all jobs after \
                  them."
                .to_owned(),
        columns: ["memory", "12 jobs first", "all jobs last"].map(str::to_owned).to_vec(),
        rows: rows.collect(),
    }
}

/// Experiments that show what the differences come from.
fn causes(lab: &Lab<'_>, mixes: &[Mix], benches: &[Bench]) -> Result<Vec<Part>, ReproduceError> {
    let seeds = lab.few_seeds();
    let ends = [&benches[0], &benches[benches.len() - 1]];
    let figure = |values: Vec<f64>| mean(&values).map_or_else(|| "-".to_owned(), |mean| plain(mean, 1));
    let mut parts = vec![
        Part::Text(format!(
            "**How many channels** the paper's machine had decides how much there is to gain. Unfairness of `linux` is {} % with \
             three channels and {} % with one (the paper: 33 %). `bandwidth` gains {} % and {} % (5 %). No number of channels \
             gives both: with three, memory is hardly short, and hardly anything can be gained by sparing it; with one, \
             `bandwidth` gains as in the paper, and `linux` is less fair than there.",
            figure(ends[0].grid.unfairness(LINUX)),
            figure(ends[1].grid.unfairness(LINUX)),
            figure(ends[0].overall(BANDWIDTH)),
            figure(ends[1].overall(BANDWIDTH)),
        )),
        Part::Text(
            "**Figure 3 is of one mix**, whose programs are not published. How often `linux` is the first to have ended half of \
             the jobs, and the last to have ended all, over all mixes: hardly ever the first, so that the choice of the mix does \
             not explain it. `bandwidth` prefers some jobs so much that half of them end early."
                .to_owned(),
        ),
        Part::Table(half_and_all(benches)),
    ];

    let mut rows = Vec::new();
    for bench in ends {
        let mut spec = (*bench.spec).clone();
        spec.kernel.period_ms = LONG_PERIOD_MS;
        let long = Arc::new(spec);
        let what = format!("slices of 200 ms on {}", bench.name);
        let grid = Grid::simulate(&lab.pool, &what, &long, mixes, &[Candidate::new("linux")], seeds)?;
        let slices = grid.speed_up(0, (&bench.grid, LINUX));
        let rest = |at: usize| -> Vec<f64> {
            let over = bench.overall(at);
            slices
                .iter()
                .zip(over)
                .map(|(slices, over)| 100.0 * ((1.0 + over / 100.0) / (1.0 + slices / 100.0) - 1.0))
                .collect()
        };
        let mut row = vec![Cell::text(bench.channels), Cell::signed(&slices, 1)];
        row.extend([ROUND_ROBIN, BANDWIDTH, FAIR, PERF_FAIR].map(|at| Cell::signed(&rest(at), 1)));
        rows.push(row);
    }
    parts.push(Part::Text(
        "**How much is refill.** The kernel changes threads every few milliseconds, and each finds its part of the cache \
         taken. With slices as long as a quantum, the kernel model avoids that as the policies do; what is left of their gain \
         is due to what they choose."
            .to_owned(),
    ));
    parts.push(Part::Table(Table {
        id: "perf-fair-refill".to_owned(),
        caption: "Speed-up in per cent: of `linux` with slices of 200 ms over `linux`, and of each policy over that."
            .to_owned(),
        columns: ["memory", "`linux`, 200 ms", "`round-robin`", "`bandwidth`", "`fair`", "`perf-fair`"]
            .map(str::to_owned)
            .to_vec(),
        rows,
    }));

    let once = [
        Candidate::new("perf-fair").with_truth(),
        Candidate::with("perf-fair", "valid_quanta", 1_000_000u32).with_truth(),
        Candidate {
            params: vec![("light_llc_trans_per_us", "19".to_owned()), ("light_mm_trans_per_us", "3.5".to_owned())],
            ..Candidate::new("perf-fair").with_truth()
        },
        Candidate {
            params: vec![
                ("light_llc_trans_per_us", "19".to_owned()),
                ("light_mm_trans_per_us", "3.5".to_owned()),
                ("renewal_share_max", "0.25".to_owned()),
            ],
            ..Candidate::new("perf-fair").with_truth()
        },
        Candidate::new("oracle"),
    ];
    let labels = [
        "every 40 quanta, at most 5 % of the time (ours)",
        "once for each job",
        "every 40 quanta, at most 5 % of the time, the paper's limits of light jobs",
        "every 40 quanta without limit, and the paper's limits of light jobs",
        "never: true progress (`oracle`)",
    ];
    let mut rows = Vec::new();
    for bench in ends {
        let what = format!("estimating once on {}", bench.name);
        let grid = Grid::simulate(&lab.pool, &what, &bench.spec, mixes, &once, seeds)?;
        for (at, label) in labels.iter().enumerate() {
            rows.push(vec![
                Cell::text(bench.channels),
                Cell::text(*label),
                Cell::signed(&grid.speed_up(at, (&bench.grid, LINUX)), 1),
                Cell::mean(&grid.unfairness(at), 1),
                Cell::mean(&grid.means(at, |run| Some(100.0 * run.watch.measuring.as_s() / run.turnaround_s)), 1),
                Cell::mean(&grid.means(at, idle_while_measuring), 1),
            ]);
        }
    }
    parts.push(Part::Text(
        "**The price of estimation.** `perf-fair` spends time on measuring jobs alone, with CPUs idle. The paper's scheduler \
         does so every 40 quanta of each job. Here renewed estimates take at most 5 % of the time, which is our limit, and the \
         limits of light jobs, which may run beside a measurement, are fitted to each machine; the paper has 19 and 3.5 \
         transactions per us and no limit of time. If each job is measured only once, much of the fairness is gone, more than \
         the paper lost. With three channels even true progress brings less than the paper's 5.6 %: there the price of \
         measuring is not what is missing."
            .to_owned(),
    ));
    parts.push(Part::Table(Table {
        id: "perf-fair-once".to_owned(),
        caption: "`perf-fair` by how often it estimates what jobs do alone.".to_owned(),
        columns: ["memory", "estimates", "speed-up, %", "unfairness, %", "time measuring, %", "idle CPUs"]
            .map(str::to_owned)
            .to_vec(),
        rows,
    }));

    let mut rows = Vec::new();
    for bench in ends {
        for noise in [0.01, 0.05, 0.1] {
            let mut spec = (*bench.spec).clone();
            spec.counters.noise = noise;
            let noisy = Arc::new(spec);
            let what = format!("noise of {} % on {}", plain(100.0 * noise, 0), bench.name);
            let both = [Candidate::new("perf-fair"), Candidate::new("oracle")];
            let grid = Grid::simulate(&lab.pool, &what, &noisy, mixes, &both, seeds)?;
            let above = |run: &Measured| Some(f64::from(u8::from(run.unfair_percent() > Some(20.0))));
            let mixes_above: Vec<f64> = grid.means(0, above).iter().map(|share| share * grid.mixes as f64).collect();
            rows.push(vec![
                Cell::text(bench.channels),
                Cell::number(100.0 * noise, 0),
                Cell::mean(&grid.unfairness(0), 1),
                Cell::mean(&mixes_above, 1),
                Cell::mean(&grid.unfairness(1), 1),
            ]);
        }
    }
    parts.push(Part::Text(
        "**Fairer than the paper.** `oracle` and, with three channels, `perf-fair` are fairer here than there. A simulated solo \
         trace is exactly that of the job, and counters are off by 1 % at most; the paper's traces are of other runs, and \
         nothing is said about its counters. Counters that are off by more make `perf-fair` less fair."
            .to_owned(),
    ));
    parts.push(Part::Table(Table {
        id: "perf-fair-noise".to_owned(),
        caption: "Unfairness by how much counts are off at most.".to_owned(),
        columns: ["memory", "noise, %", "`perf-fair`, %", "mixes above 20 %", "`oracle`, %"]
            .map(str::to_owned)
            .to_vec(),
        rows,
    }));

    let known = [
        Candidate::new("bandwidth"),
        Candidate::with("bandwidth", "target", "ideal"),
        Candidate::new("perf-fair"),
        Candidate::new("oracle"),
    ];
    let labels = [
        ("`bandwidth`, online target", "what jobs have shown so far"),
        ("`bandwidth`, ideal target", "their bandwidth alone"),
        ("`perf-fair`", "estimates of their speed alone"),
        ("`oracle`", "their bandwidth alone, and their speed alone at each instruction"),
    ];
    let mut rows = Vec::new();
    for bench in ends {
        let what = format!("what is known on {}", bench.name);
        let grid = Grid::simulate(&lab.pool, &what, &bench.spec, mixes, &known, seeds)?;
        for (at, (label, knows)) in labels.iter().enumerate() {
            rows.push(vec![
                Cell::text(bench.channels),
                Cell::text(*label),
                Cell::text(*knows),
                Cell::signed(&grid.speed_up(at, (&bench.grid, LINUX)), 1),
                Cell::mean(&grid.unfairness(at), 1),
            ]);
        }
    }
    parts.push(Part::Text(
        "**What fairness costs, and what the oracle knows.** Whoever knows the bandwidth of jobs alone chooses no better than \
         whoever goes by what they have shown. Whoever knows their true progress beside that is fairest, and in the \
         mean over the mixes faster than `bandwidth`. So what fairness costs `perf-fair` is what it costs to find out who is \
         behind, and to be wrong about it."
            .to_owned(),
    ));
    parts.push(Part::Table(Table {
        id: "perf-fair-knowledge".to_owned(),
        caption: "Speed and unfairness by what a policy knows.".to_owned(),
        columns: ["memory", "policy", "knows", "speed-up, %", "unfairness, %"].map(str::to_owned).to_vec(),
        rows,
    }));

    let knob: Vec<Candidate> =
        MARGINS.iter().map(|margin| Candidate::with("perf-fair", "progress_margin_quanta", margin)).collect();
    let mut rows = Vec::new();
    let mut lines = Vec::new();
    for bench in ends {
        let what = format!("the knob on {}", bench.name);
        let grid = Grid::simulate(&lab.pool, &what, &bench.spec, mixes, &knob, seeds)?;
        let mut points = Vec::new();
        for (at, margin) in MARGINS.iter().enumerate() {
            let (speed, unfairness) = (grid.speed_up(at, (&bench.grid, LINUX)), grid.unfairness(at));
            points.extend(mean(&unfairness).zip(mean(&speed)));
            rows.push(vec![
                Cell::text(bench.channels),
                Cell::number(*margin, 1),
                Cell::signed(&speed, 1),
                Cell::mean(&unfairness, 1),
            ]);
        }
        lines.push(Curve::line(bench.channels.to_owned(), points));
    }
    parts.push(Part::Text(
        "**The knob between performance and fairness** is the distance in quanta that a job keeps from the greatest progress \
         (`progress_margin_quanta`; 1 in the paper)."
            .to_owned(),
    ));
    parts.push(Part::Table(Table {
        id: "perf-fair-knob".to_owned(),
        caption: "`perf-fair` by its margin.".to_owned(),
        columns: ["memory", "margin, quanta", "speed-up, %", "unfairness, %"].map(str::to_owned).to_vec(),
        rows,
    }));
    parts.push(curves(
        "perf-fair-knob-curve".to_owned(),
        "Unfairness against speed-up for margins from 0 to 64 quanta.".to_owned(),
        Axes { x: "unfairness, %", y: "speed-up, %", decimals: 1 },
        lines,
    ));
    Ok(parts)
}
