//! EFS: energy and time of programs that share one memory bus (its sections 3 and 5).

use crate::error::ReproduceError;
use crate::figure::{Axes, Curve, bars, curves, timeline};
use crate::findings::{Cell, Chapter, Part, Table, Verdict, plain};
use crate::lab::{Lab, in_words};
use crate::mixes::{copies, of_folder, program};
use crate::paper::efs as paper;
use crate::stats::{Estimate, mean};
use crate::trial::{Measured, Trial, machine, refitted};
use cosched_core::model::bus;
use cosched_core::{CpuSet, Nanos, TaskId};
use cosched_sim::program::Stall;
use cosched_sim::{FIT_LENGTH, MachineSpec, PROGRAMS, ProgramSpec, SimJob, Work, rates};
use std::sync::Arc;

/// What energies rest on.
const POWER: &str = "on fitted power";

/// Cores of the machine.
const CORES: usize = 4;

/// The programs of SPEC CPU2006, by name.
fn spec_programs() -> Vec<Arc<ProgramSpec>> {
    PROGRAMS.iter().filter(|file| file.file.contains("/spec-cpu2006/")).map(|file| program(file.name)).collect()
}

/// The chapter.
pub(crate) fn chapter(lab: &Lab<'_>) -> Result<Chapter, ReproduceError> {
    let full = machine("i5-2500")?;
    let slow = machine("i5-2500-1.6ghz")?;
    let programs = spec_programs();
    let mut parts = vec![Part::Text(format!(
        "Four cores that share one channel of memory (`i5-2500`), {}, with {} (Figures 8 and 10; all others with {}). Energy is that of the whole system. EFS's \
         scheduler is part of a kernel with periods of 18 ms; here it decides every 200 ms, and its other times are scaled \
         alike. It judges 29 programs, the paper 25 that it does not name, and the mixes of Figure 10 are drawn from \
         programs of high demand. The power of the machine is fitted to the paper's calibration, and what further streams cost was chosen so \
         that four of them get the paper's 150 lines per us: figures that follow from these are marked.",
        lab.work_in_words(),
        lab.seeds_in_words(),
        in_words(lab.few_seeds()),
    ))];
    let mut verdicts = Vec::new();
    calibration(lab, &full, &programs, &mut parts, &mut verdicts)?;
    figure_4(lab, &slow, &programs, &mut parts, &mut verdicts)?;
    figure_6(lab, &slow, &mut parts, &mut verdicts)?;
    figure_7(lab, &full, &mut parts, &mut verdicts)?;
    table_1(lab, &full, &mut parts, &mut verdicts)?;
    let eights = figure_8(lab, &full, &programs, &mut parts, &mut verdicts)?;
    figure_9(lab, &full, &eights, &mut parts, &mut verdicts)?;
    figure_10(lab, &full, &mut parts, &mut verdicts)?;
    let mut causes = causes(lab, &full, &programs)?;
    causes.extend(figure_6_causes(lab, &slow)?);
    causes.push(no_gain(&full, &programs, &eights));
    let title = "EFS: energy by leaving cores idle".to_owned();
    Ok(Chapter { id: "efs", title, parts, verdicts, causes })
}

/// Trials of several lists of jobs under several policies, for all seeds: by list, then by policy, then by seed.
fn runs(
    lab: &Lab<'_>,
    what: &str,
    machine: &Arc<MachineSpec>,
    lists: &[Vec<SimJob>],
    change: &[&(dyn Fn(Trial) -> Trial + Sync)],
    seeds: &[u64],
) -> Result<Vec<Vec<Vec<Measured>>>, ReproduceError> {
    let mut trials = Vec::new();
    for jobs in lists {
        for change in change {
            trials.extend(seeds.iter().map(|&seed| change(Trial::new(machine, jobs, "linux", seed))));
        }
    }
    let mut results = lab.pool.map(what, &trials, Trial::simulate)?.into_iter();
    let mut of_seeds = || results.by_ref().take(seeds.len()).collect();
    Ok(lists.iter().map(|_| change.iter().map(|_| of_seeds()).collect()).collect())
}

fn linux(trial: Trial) -> Trial {
    trial
}

fn efs(trial: Trial) -> Trial {
    Trial { policy: "efs", ..trial }
}

fn energy(run: &Measured) -> Option<f64> {
    run.energy_j
}

fn time(run: &Measured) -> Option<f64> {
    Some(run.turnaround_s)
}

fn energy_delay(run: &Measured) -> Option<f64> {
    run.energy_j.map(|energy| energy * run.turnaround_s)
}

/// By how many per cent ours has less than the base, by seed.
fn saved(base: &[Measured], ours: &[Measured], of: impl Fn(&Measured) -> Option<f64>) -> Vec<f64> {
    base.iter().zip(ours).filter_map(|(base, ours)| Some(100.0 * (1.0 - of(ours)? / of(base)?))).collect()
}

/// By how many per cent ours takes longer than the base, by seed.
fn slower(base: &[Measured], ours: &[Measured]) -> Vec<f64> {
    base.iter().zip(ours).map(|(base, ours)| 100.0 * (ours.turnaround_s / base.turnaround_s - 1.0)).collect()
}

/// The element-wise mean of several lists of one value for each seed.
fn over(lists: &[Vec<f64>]) -> Vec<f64> {
    let seeds = lists.iter().map(Vec::len).min().unwrap_or(0);
    (0..seeds).map(|seed| lists.iter().map(|list| list[seed]).sum::<f64>() / lists.len() as f64).collect()
}

/// Power by the number of cores in use (section 5.1).
fn calibration(
    lab: &Lab<'_>,
    machine: &Arc<MachineSpec>,
    programs: &[Arc<ProgramSpec>],
    parts: &mut Vec<Part>,
    verdicts: &mut Vec<Verdict>,
) -> Result<(), ReproduceError> {
    let lists: Vec<Vec<SimJob>> = (1..=CORES)
        .flat_map(|cores| programs.iter().map(move |program| (program, cores)))
        .map(|(program, cores)| copies(program, cores, lab.work))
        .collect();
    let results = runs(lab, "efs: power by cores in use", machine, &lists, &[&linux], lab.few_seeds())?;
    let mut rows = Vec::new();
    let mut last = vec![paper::POWER_W[0]; lab.few_seeds().len()];
    for cores in 1..=CORES {
        let of_programs: Vec<Vec<f64>> = results[(cores - 1) * programs.len()..cores * programs.len()]
            .iter()
            .map(|by_policy| by_policy[0].iter().filter_map(Measured::power_w).collect())
            .collect();
        let means = over(&of_programs);
        let deviation: Vec<f64> = (means.iter().enumerate())
            .map(|(seed, mean)| {
                let squares: f64 =
                    of_programs.iter().map(|power| (power[seed] / mean - 1.0) * (power[seed] / mean - 1.0)).sum();
                100.0 * (squares / programs.len() as f64).sqrt()
            })
            .collect();
        let step: Vec<f64> = means.iter().zip(&last).map(|(now, before)| now - before).collect();
        rows.push(vec![
            Cell::number(cores as f64, 0),
            Cell::mean(&means, 1),
            Cell::mean(&step, 1),
            Cell::number(paper::POWER_W[cores], 1),
            Cell::mean(&deviation, 1),
            Cell::number(paper::POWER_DEVIATION[cores - 1], 1),
        ]);
        verdicts.push(Verdict::size(format!("P_{cores}, W"), paper::POWER_W[cores], 1, &step).fitted());
        let what = format!("deviation of power between programs, {cores} cores in use, %");
        let verdict = Verdict::size(what, paper::POWER_DEVIATION[cores - 1], 1, &deviation);
        verdicts.push(if cores == CORES { verdict.fitted() } else { verdict.resting_on(POWER) });
        last = means;
    }
    parts.push(Part::Heading("Calibration of P_k".to_owned()));
    parts.push(Part::Table(Table {
        id: "efs-power".to_owned(),
        caption: "Power of the system by the number of cores that run copies of one program; means over 29 programs, and \
                  the standard deviation between them (Eq. 25). The parts of the machine's power are fitted to the paper's \
                  means and to its deviation with four cores."
            .to_owned(),
        columns: ["cores", "power, W", "P_k, W", "paper", "deviation, %", "paper"].map(str::to_owned).to_vec(),
        rows,
    }));
    Ok(())
}

/// Transactions per us that the machine's bus serves, as its file says.
fn mu(machine: &MachineSpec) -> f64 {
    let value = machine.params.iter().find(|(name, _)| name == "mu_trans_per_us");
    value.and_then(|(_, value)| value.parse().ok()).unwrap_or(paper::MU)
}

/// The share of time for which a program keeps the bus busy when it is alone.
fn solo_utilisation(machine: &Arc<MachineSpec>, program: &Arc<ProgramSpec>) -> f64 {
    (rates(machine, program, 1, FIT_LENGTH).lines_per_ns * 1e3 / mu(machine)).min(0.999)
}

/// Work of the four together in the time that one would take alone: the sum of their speeds.
fn throughput(run: &Measured) -> f64 {
    run.slowdowns.iter().map(|slowdown| 1.0 / slowdown).sum()
}

/// Throughput of four identical tasks against what one needs of the bus alone.
fn figure_4(
    lab: &Lab<'_>,
    machine: &Arc<MachineSpec>,
    programs: &[Arc<ProgramSpec>],
    parts: &mut Vec<Part>,
    verdicts: &mut Vec<Verdict>,
) -> Result<(), ReproduceError> {
    let synthetic: Vec<Arc<ProgramSpec>> = (1..=10).map(|tenth| program(&format!("bus-{}", 10 * tenth))).collect();
    let all: Vec<&Arc<ProgramSpec>> = synthetic.iter().chain(programs).collect();
    let lists: Vec<Vec<SimJob>> = all.iter().map(|program| copies(program, CORES, lab.work)).collect();
    let results = runs(lab, "efs: Figure 4", machine, &lists, &[&linux], lab.few_seeds())?;
    let (mut rows, mut made, mut real) = (Vec::new(), Vec::new(), Vec::new());
    let mut off: Vec<Vec<f64>> = Vec::new();
    let mut below = 0;
    for (at, program) in all.iter().enumerate() {
        let demand = solo_utilisation(machine, program);
        let model = bus::throughput(&[demand; CORES]).unwrap_or(f64::NAN);
        let values: Vec<f64> = results[at][0].iter().map(throughput).collect();
        let point = (100.0 * demand, mean(&values).unwrap_or(0.0));
        rows.push(vec![
            Cell::text(program.name.clone()),
            Cell::number(100.0 * demand, 1),
            Cell::number(model, 2),
            Cell::mean(&values, 2),
        ]);
        if at < synthetic.len() {
            made.push(point);
            off.push(values.iter().map(|value| 100.0 * (model / value - 1.0).abs()).collect());
        } else {
            real.push(point);
            below += usize::from(point.1 < 0.99 * model);
        }
    }
    let model: Vec<(f64, f64)> = (0..100)
        .filter_map(|percent| {
            let demand = f64::from(percent) / 100.0;
            bus::throughput(&[demand; CORES]).ok().map(|throughput| (f64::from(percent), throughput))
        })
        .collect();
    parts.push(Part::Heading("Figure 4: throughput of four identical tasks".to_owned()));
    parts.push(curves(
        "efs-figure-4".to_owned(),
        "Throughput of four identical tasks, against the share of the bus that one uses alone: EFS's model, synthetic \
         programs that only miss, and SPEC CPU2006 programs, which also destroy each other's cache."
            .to_owned(),
        Axes { x: "solo utilisation of the bus, %", y: "throughput", decimals: 2 },
        vec![
            Curve::line("model (Eqs. 10-12)".to_owned(), model),
            Curve::line("synthetic".to_owned(), made),
            Curve::points("SPEC CPU2006".to_owned(), real),
        ],
    ));
    parts.push(Part::Table(Table {
        id: "efs-figure-4-points".to_owned(),
        caption: "The points of Figure 4: solo utilisation in per cent, throughput by the model, throughput here."
            .to_owned(),
        columns: ["program", "solo utilisation, %", "model", "here"].map(str::to_owned).to_vec(),
        rows,
    }));
    let seeds = off.first().map_or(0, Vec::len);
    let most: Vec<f64> = (0..seeds).map(|seed| off.iter().map(|list| list[seed]).fold(0.0, f64::max)).collect();
    verdicts.push(Verdict::size(
        "greatest difference of the synthetic program from the model, %",
        paper::FIGURE_4_MOST,
        1,
        &most,
    ));
    parts.push(Part::Text(format!("Of {} SPEC programs {below} lie more than 1 % below the model.", programs.len())));
    Ok(())
}

/// A synthetic program like `bus-60` that uses such a share of the bus alone, with so many misses at once. `None` if it can't
/// use as much.
fn synthetic(machine: &Arc<MachineSpec>, demand: f64, at_once: f64) -> Option<Arc<ProgramSpec>> {
    let base = program("bus-60");
    let with = |factor: f64| {
        let mut made = (*base).clone();
        made.name = format!("bus-{}-{}", plain(100.0 * demand, 0), plain(at_once, 0));
        made.core.cpi *= factor;
        made.memory.stall = Stall::Overlap { mlp: at_once };
        Arc::new(made)
    };
    // More time in the core between two reads means less use of the bus.
    let (mut low, mut high) = (0.02, 64.0);
    if solo_utilisation(machine, &with(low)) < demand {
        return None;
    }
    for _ in 0..40 {
        let middle = 0.5 * (low + high);
        if solo_utilisation(machine, &with(middle)) > demand { low = middle } else { high = middle }
    }
    Some(with(0.5 * (low + high)))
}

/// Misses at once of the synthetic programs, as many as it takes to fill the bus alone.
const AT_ONCE: f64 = 40.0;

/// The other's utilisation, and estimates by Eq. 9 and by the additive model, by seed; all in per cent.
type Row = (f64, Vec<f64>, Vec<f64>);

/// Estimates of the solo utilisation of a program beside others.
struct Beside {
    truth: f64,
    rows: Vec<Row>,
}

/// Estimates for a program that uses 57 % of the bus alone beside one of varying use, from simulated counters.
fn beside(
    lab: &Lab<'_>,
    machine: &Arc<MachineSpec>,
    at_once: f64,
    others: &[u32],
) -> Result<Option<Beside>, ReproduceError> {
    let Some(observed) = synthetic(machine, paper::FIGURE_6_SOLO, at_once) else { return Ok(None) };
    let truth = solo_utilisation(machine, &observed);
    let work = Work::SoloTime(Nanos::from_ms(20_000));
    let mut lists = Vec::new();
    let mut used = Vec::new();
    for &percent in others {
        let mut jobs = copies(&observed, 1, work);
        if percent > 0 {
            // The greatest is as great as one program alone can be.
            let Some(other) = synthetic(machine, f64::from(percent.min(99)) / 100.0, at_once) else { continue };
            jobs.extend(copies(&other, 1, work));
        }
        lists.push(jobs);
        used.push(f64::from(percent));
    }
    // Both run for at least as long as one takes alone.
    let watched = |trial: Trial| Trial { noted: Nanos::from_ms(10_000), ..trial };
    let what = format!("efs: Figure 6, {} misses at once", plain(at_once, 0));
    let results = runs(lab, &what, machine, &lists, &[&watched], lab.few_seeds())?;
    let mu = mu(machine);
    let mut rows = Vec::new();
    for (percent, by_policy) in used.into_iter().zip(&results) {
        let (mut models, mut sums) = (Vec::new(), Vec::new());
        for run in &by_policy[0] {
            let used = |task: u32| {
                run.watch
                    .lines
                    .get(&TaskId(task))
                    .map_or(0.0, |&(lines, ns)| lines as f64 * 1e3 / ns.max(1) as f64 / mu)
            };
            let (mine, other) = (used(0), used(1));
            sums.push(100.0 * mine);
            if let Ok(solo) = bus::solo_utilisation(mine, (1.0 - mine - other).max(1e-6)) {
                models.push(100.0 * solo);
            }
        }
        rows.push((percent, models, sums));
    }
    Ok(Some(Beside { truth: 100.0 * truth, rows }))
}

/// The mean size of the error of estimates over the rows, by seed.
fn errors(beside: &Beside, of: impl Fn(&Row) -> &Vec<f64>) -> Vec<f64> {
    let sizes = |row| of(row).iter().map(|value| (value - beside.truth).abs()).collect();
    over(&beside.rows.iter().map(sizes).collect::<Vec<Vec<f64>>>())
}

/// Solo utilisation estimated beside another program, by Eq. 9 and by the additive model.
fn figure_6(
    lab: &Lab<'_>,
    machine: &Arc<MachineSpec>,
    parts: &mut Vec<Part>,
    verdicts: &mut Vec<Verdict>,
) -> Result<(), ReproduceError> {
    let tenths: Vec<u32> = (0..=10).map(|tenth| 10 * tenth).collect();
    let Some(found) = beside(lab, machine, AT_ONCE, &tenths)? else { return Ok(()) };
    let of =
        |values: fn(&Row) -> &Vec<f64>| found.rows.iter().filter_map(|row| Some((row.0, mean(values(row))?))).collect();
    parts.push(Part::Heading("Figure 6: solo utilisation, estimated beside another program".to_owned()));
    parts.push(curves(
        "efs-figure-6".to_owned(),
"Estimates of a solo utilisation of 57 % beside another program: from simulated counters, by the other's use of the bus."
            .to_owned(),
        Axes { x: "solo utilisation of the other, %", y: "estimate, %", decimals: 1 },
        vec![
            Curve::line("by Eq. 9".to_owned(), of(|row| &row.1)),
            Curve::line("truth".to_owned(), vec![(0.0, found.truth), (100.0, found.truth)]),
            Curve::line("additive model".to_owned(), of(|row| &row.2)),
        ],
    ));
    let row = |(x, models, sums): &Row| {
        vec![Cell::number(*x, 0), Cell::number(found.truth, 1), Cell::mean(models, 1), Cell::mean(sums, 1)]
    };
    parts.push(Part::Table(Table {
        id: "efs-figure-6-numbers".to_owned(),
        caption: "The estimates of Figure 6, in per cent.".to_owned(),
        columns: ["other, %", "truth", "by Eq. 9", "additive"].map(str::to_owned).to_vec(),
        rows: found.rows.iter().map(row).collect(),
    }));
    verdicts.push(Verdict::order(
        "error of the estimate of a solo utilisation of 57 % (Figure 6)",
        &["additive", "Eq. 9"],
        &[("additive", errors(&found, |row| &row.2)), ("Eq. 9", errors(&found, |row| &row.1))],
    ));
    Ok(())
}

/// Time that Figure 7 shows: the paper's 300 ms, scaled from its periods of 18 ms to quanta of 200 ms.
const FIGURE_7: Nanos = Nanos::from_ms(3_300);

/// Who has which core, with four copies of a program that only misses.
fn figure_7(
    lab: &Lab<'_>,
    machine: &Arc<MachineSpec>,
    parts: &mut Vec<Part>,
    verdicts: &mut Vec<Verdict>,
) -> Result<(), ReproduceError> {
    let jobs = copies(&program("bus-100"), CORES, lab.work);
    let watched = |trial: Trial| Trial { noted: FIGURE_7, ..trial };
    let both: [&(dyn Fn(Trial) -> Trial + Sync); 2] = [&watched, &|trial| efs(watched(trial))];
    let results = runs(lab, "efs: Figure 7", machine, &[jobs], &both, lab.few_seeds())?;
    parts.push(Part::Heading("Figure 7: which cores are in use".to_owned()));
    for (runs, name) in results[0].iter().zip(["linux", "efs"]) {
        parts.push(timeline(
            format!("efs-figure-7-{name}"),
            format!(
                "Cores in use under `{name}` with four copies of a program that only misses, in the first {} s. (The \
                 paper's 300 ms, by the length of the quantum.)",
                FIGURE_7.as_s()
            ),
            CORES,
            &runs[0].watch.stays,
        ));
        let busy = runs.iter().map(|run| CORES as f64 - run.watch.idle_s / run.turnaround_s).collect::<Vec<f64>>();
        let paper = if name == "linux" { 4.0 } else { 1.0 };
        let what = format!("cores in use on average under `{name}`, four copies that only miss");
        verdicts.push(Verdict::size(what, paper, 1, &busy));
    }
    Ok(())
}

/// Four copies of a program that only misses: one after the other, together, and together under EFS.
fn table_1(
    lab: &Lab<'_>,
    machine: &Arc<MachineSpec>,
    parts: &mut Vec<Part>,
    verdicts: &mut Vec<Verdict>,
) -> Result<(), ReproduceError> {
    let jobs = copies(&program("bus-100"), CORES, lab.work);
    let serial = |trial: Trial| Trial { at_once: 1, ..trial };
    let three: [&(dyn Fn(Trial) -> Trial + Sync); 3] = [&serial, &linux, &efs];
    let results = runs(lab, "efs: Table 1", machine, &[jobs], &three, lab.few_seeds())?;
    let parallel = &results[0][1];
    let mut rows = Vec::new();
    let names = ["serial, `linux`", "parallel, `linux`", "parallel, `efs`"];
    for (at, name) in names.iter().enumerate() {
        let (paper_s, paper_j) = paper::TABLE_1[at];
        let (base_s, base_j) = paper::TABLE_1[1];
        let ratio = |of: fn(&Measured) -> Option<f64>| -> Vec<f64> {
            let pairs = results[0][at].iter().zip(parallel);
            pairs.filter_map(|(ours, base)| Some(of(ours)? / of(base)?)).collect()
        };
        let power: Vec<f64> = results[0][at].iter().filter_map(Measured::power_w).collect();
        rows.push(vec![
            Cell::text(*name),
            Cell::mean(&ratio(time), 3),
            Cell::number(paper_s / base_s, 3),
            Cell::mean(&ratio(energy), 3),
            Cell::number(paper_j / base_j, 3),
            Cell::mean(&power, 1),
            Cell::number(paper_j / paper_s, 1),
        ]);
        // A ratio near 1 would agree with any other; what is saved is the result.
        if at != 1 {
            let less = |values: Vec<f64>| values.iter().map(|share| 100.0 * (1.0 - share)).collect::<Vec<f64>>();
            let what = format!("Table 1: time saved by {name} against parallel, %");
            verdicts.push(Verdict::gain(what, 100.0 * (1.0 - paper_s / base_s), 1, &less(ratio(time))));
            let what = format!("Table 1: energy saved by {name} against parallel, %");
            let verdict = Verdict::gain(what, 100.0 * (1.0 - paper_j / base_j), 1, &less(ratio(energy)));
            verdicts.push(verdict.resting_on(POWER));
        }
        let what = format!("Table 1: power of {name}, W");
        verdicts.push(Verdict::size(what, paper_j / paper_s, 1, &power).resting_on(POWER));
    }
    parts.push(Part::Heading("Table 1: four copies that only miss".to_owned()));
    parts.push(Part::Table(Table {
        id: "efs-table-1".to_owned(),
        caption: "Time and energy of the system as shares of those in parallel under `linux`, and power.".to_owned(),
        columns: ["how", "time", "paper", "energy", "paper", "power, W", "paper"].map(str::to_owned).to_vec(),
        rows,
    }));
    Ok(())
}

/// The runs of Figure 8: by program, then `linux` and `efs`, then by seed.
struct Eights {
    names: Vec<String>,
    lists: Vec<Vec<SimJob>>,
    results: Vec<Vec<Vec<Measured>>>,
}

/// Four copies of each program.
fn figure_8(
    lab: &Lab<'_>,
    machine: &Arc<MachineSpec>,
    programs: &[Arc<ProgramSpec>],
    parts: &mut Vec<Part>,
    verdicts: &mut Vec<Verdict>,
) -> Result<Eights, ReproduceError> {
    let lists: Vec<Vec<SimJob>> = programs.iter().map(|program| copies(program, CORES, lab.work)).collect();
    let results = runs(lab, "efs: Figure 8", machine, &lists, &[&linux, &efs], &lab.seeds)?;
    let names: Vec<String> = programs.iter().map(|program| program.name.clone()).collect();
    let of = |at: usize| (&results[at][0], &results[at][1]);
    let savings: Vec<Vec<f64>> = (0..names.len()).map(|at| saved(of(at).0, of(at).1, energy)).collect();
    let slowdowns: Vec<Vec<f64>> = (0..names.len()).map(|at| slower(of(at).0, of(at).1)).collect();
    let products: Vec<Vec<f64>> = (0..names.len()).map(|at| saved(of(at).0, of(at).1, energy_delay)).collect();
    parts.push(Part::Heading("Figure 8: four copies of each program".to_owned()));
    parts.push(bars(
        "efs-figure-8".to_owned(),
        "What `efs` changes for four copies of each program, against `linux`.".to_owned(),
        Axes { x: "program", y: "%", decimals: 1 },
        names.clone(),
        vec![
            ("energy saved".to_owned(), savings.iter().map(|values| Estimate::of(values)).collect()),
            ("time lost".to_owned(), slowdowns.iter().map(|values| Estimate::of(values)).collect()),
        ],
        None,
    ));
    let affected: Vec<usize> = (0..names.len()).filter(|&at| mean(&savings[at]).unwrap_or(0.0).abs() > 3.0).collect();
    let pick = |of: &[Vec<f64>]| over(&affected.iter().map(|&at| of[at].clone()).collect::<Vec<_>>());
    let (energy_mean, slow_mean, product_mean) = paper::FIGURE_8;
    verdicts.push(
        Verdict::gain("Figure 8: energy saved, mean over the programs, %", energy_mean, 1, &over(&savings))
            .resting_on(POWER),
    );
    verdicts.push(Verdict::gain("Figure 8: time lost, mean, %", slow_mean, 1, &over(&slowdowns)));
    verdicts.push(
        Verdict::gain("Figure 8: energy-delay product saved, mean, %", product_mean, 1, &over(&products))
            .resting_on(POWER),
    );
    let share = 100.0 * affected.len() as f64 / names.len() as f64;
    let what = "Figure 8: programs whose energy changes by more than 3 %, % of all";
    verdicts.push(Verdict::size(what, 100.0 * paper::AFFECTED.0 / paper::PROGRAMS, 0, &[share]));
    verdicts.push(
        Verdict::gain("Figure 8: energy saved by these, mean, %", paper::AFFECTED.1, 1, &pick(&savings))
            .resting_on(POWER),
    );
    verdicts.push(Verdict::gain("Figure 8: time lost by these, mean, %", paper::AFFECTED.2, 1, &pick(&slowdowns)));
    for (name, less, longer) in paper::NAMED {
        if let Some(at) = names.iter().position(|one| one == name) {
            verdicts.push(Verdict::gain(format!("Figure 8: energy saved by {name}, %"), less, 1, &savings[at]));
            verdicts.push(Verdict::gain(format!("Figure 8: time lost by {name}, %"), longer, 1, &slowdowns[at]));
        }
    }
    Ok(Eights { names, lists, results })
}

/// A change from the first runs to the second, by seed.
type Change = dyn Fn(&[Measured], &[Measured]) -> Vec<f64>;

/// Fewer cores for the same copies.
fn figure_9(
    lab: &Lab<'_>,
    machine: &Arc<MachineSpec>,
    eights: &Eights,
    parts: &mut Vec<Part>,
    verdicts: &mut Vec<Verdict>,
) -> Result<(), ReproduceError> {
    let all = machine.machine().all_cpus();
    let first = |cores: usize| -> CpuSet { all.iter().take(cores).collect() };
    let on = |cores: usize| move |trial: Trial| Trial { usable: Some(first(cores)), ..trial };
    let (one, two, three) = (on(1), on(2), on(3));
    let fewer: [&(dyn Fn(Trial) -> Trial + Sync); 3] = [&one, &two, &three];
    let seeds = lab.few_seeds();
    let results = runs(lab, "efs: Figure 9", machine, &eights.lists, &fewer, seeds)?;
    let mut rows = Vec::new();
    let mut values: Vec<(String, Vec<f64>, Vec<f64>)> = Vec::new();
    for cores in 1..=3 {
        let lists = |of: &Change| {
            let by_program = results.iter().zip(&eights.results);
            over(&by_program.map(|(fewer, full)| of(&full[0][..seeds.len()], &fewer[cores - 1])).collect::<Vec<_>>())
        };
        values.push((
            format!("linux, {cores} of 4 cores"),
            lists(&|base, ours| saved(base, ours, energy)),
            lists(&slower),
        ));
    }
    let ours = |of: &Change| {
        over(
            &eights.results.iter().map(|both| of(&both[0][..seeds.len()], &both[1][..seeds.len()])).collect::<Vec<_>>(),
        )
    };
    values.push(("efs".to_owned(), ours(&|base, ours| saved(base, ours, energy)), ours(&slower)));
    for (name, energy, time) in &values {
        rows.push(vec![Cell::text(name.clone()), Cell::signed(energy, 1), Cell::signed(time, 1)]);
    }
    parts.push(Part::Heading("Figure 9: fewer cores, fixed".to_owned()));
    parts.push(Part::Table(Table {
        id: "efs-figure-9".to_owned(),
        caption: format!(
            "Means over {} programs with four copies each, against `linux` on four cores: `linux` on one, two and three \
             cores, and `efs`.",
            eights.names.len()
        ),
        columns: ["how", "energy saved, %", "time lost, %"].map(str::to_owned).to_vec(),
        rows,
    }));
    let energies: Vec<(&str, Vec<f64>)> =
        values.iter().map(|(name, energy, _)| (name.as_str(), energy.clone())).collect();
    // The paper says that EFS is better than all of them, and does not order them.
    let fixed = energies[..3].iter().max_by(|a, b| mean(&a.1).unwrap_or(0.0).total_cmp(&mean(&b.1).unwrap_or(0.0)));
    if let Some((_, best)) = fixed {
        let both = [("efs", energies[3].1.clone()), ("fewer cores", best.clone())];
        verdicts.push(Verdict::order(
            "Figure 9: energy saved, against the best of fewer cores",
            &["efs", "fewer cores"],
            &both,
        ));
    }
    Ok(())
}

/// Mixes of high demand.
fn figure_10(
    lab: &Lab<'_>,
    machine: &Arc<MachineSpec>,
    parts: &mut Vec<Part>,
    verdicts: &mut Vec<Verdict>,
) -> Result<(), ReproduceError> {
    let mixes = of_folder("efs", lab.work);
    let lists: Vec<Vec<SimJob>> = mixes.iter().map(|mix| mix.jobs.clone()).collect();
    let results = runs(lab, "efs: Figure 10", machine, &lists, &[&linux, &efs], &lab.seeds)?;
    let savings: Vec<Vec<f64>> = results.iter().map(|both| saved(&both[0], &both[1], energy)).collect();
    let slowdowns: Vec<Vec<f64>> = results.iter().map(|both| slower(&both[0], &both[1])).collect();
    let names = mixes.iter().map(|mix| {
        let name = mix.name.rsplit('/').next().unwrap_or_default();
        format!("{name} ({} jobs)", mix.jobs.len())
    });
    parts.push(Part::Heading("Figure 10: mixes of high demand".to_owned()));
    parts.push(bars(
        "efs-figure-10".to_owned(),
        "What `efs` changes for mixes of programs that ask for much of the bus, against `linux`.".to_owned(),
        Axes { x: "mix", y: "%", decimals: 1 },
        names.collect(),
        vec![
            ("energy saved".to_owned(), savings.iter().map(|values| Estimate::of(values)).collect()),
            ("time lost".to_owned(), slowdowns.iter().map(|values| Estimate::of(values)).collect()),
        ],
        None,
    ));
    let faster: Vec<f64> = over(&slowdowns).iter().map(|lost| -lost).collect();
    verdicts.push(
        Verdict::gain("Figure 10: energy saved, mean over the mixes, %", paper::FIGURE_10.0, 1, &over(&savings))
            .resting_on(POWER),
    );
    verdicts.push(Verdict::gain("Figure 10: speed-up, mean, %", paper::FIGURE_10.1, 1, &faster));
    Ok(())
}

/// What further streams cost: each, and all together at most, as shares of the bandwidth. The first of them is the world as it
/// is; the last comes near to the paper's Table 1.
const LOSSES: [(f64, f64); 4] = [(0.025, 0.086), (0.0, 0.086), (0.05, 0.15), (0.08, 0.25)];

/// Experiments that show what the differences come from.
fn causes(
    lab: &Lab<'_>,
    machine: &Arc<MachineSpec>,
    programs: &[Arc<ProgramSpec>],
) -> Result<Vec<Part>, ReproduceError> {
    let seeds = lab.few_seeds();
    let lists: Vec<Vec<SimJob>> = programs.iter().map(|program| copies(program, CORES, lab.work)).collect();
    let only_misses = vec![copies(&program("bus-100"), CORES, lab.work)];
    let high: Vec<Vec<SimJob>> = of_folder("efs", lab.work).into_iter().map(|mix| mix.jobs).collect();
    let gems = programs.iter().position(|program| program.name == "GemsFDTD");
    let serial = |trial: Trial| Trial { at_once: 1, ..trial };
    let mut rows = Vec::new();
    for (loss, most) in LOSSES {
        let mut spec = (**machine).clone();
        spec.memory.stream_loss = loss;
        spec.memory.stream_loss_most = most;
        let changed = refitted(spec);
        let what = format!("efs: streams cost {} %", plain(100.0 * loss, 1));
        let four = runs(lab, &what, &changed, &lists, &[&linux, &efs], seeds)?;
        let alone = runs(lab, &what, &changed, &only_misses, &[&serial, &linux], seeds)?;
        let mixed = runs(lab, &what, &changed, &high, &[&linux, &efs], seeds)?;
        let savings = over(&four.iter().map(|both| saved(&both[0], &both[1], energy)).collect::<Vec<_>>());
        let times = over(&four.iter().map(|both| slower(&both[0], &both[1])).collect::<Vec<_>>());
        let best: Vec<f64> = (0..seeds.len())
            .map(|seed| four.iter().map(|both| -slower(&both[0], &both[1])[seed]).fold(f64::NEG_INFINITY, f64::max))
            .collect();
        let of_gems = gems.map_or_else(Vec::new, |at| slower(&four[at][0], &four[at][1]));
        let of_mixes = over(&mixed.iter().map(|both| slower(&both[0], &both[1])).collect::<Vec<_>>());
        let pairs = alone[0][0].iter().zip(&alone[0][1]);
        let ratio: Vec<f64> = pairs.map(|(serial, both)| serial.turnaround_s / both.turnaround_s).collect();
        rows.push(vec![
            Cell::text(format!("{} %, at most {} %", plain(100.0 * loss, 1), plain(100.0 * most, 1))),
            Cell::mean(&ratio, 2),
            Cell::signed(&savings, 1),
            Cell::signed(&times, 1),
            Cell::signed(&of_gems, 1),
            Cell::signed(&best, 1),
            Cell::signed(&of_mixes, 1),
        ]);
    }
    let (table_s, table_j) = (&paper::TABLE_1, paper::FIGURE_8);
    rows.push(vec![
        Cell::text("the paper"),
        Cell::number(table_s[0].0 / table_s[1].0, 2),
        Cell::number(table_j.0, 1),
        Cell::number(table_j.1, 1),
        Cell::number(paper::NAMED[1].2, 1),
        Cell::number(-paper::NAMED[1].2, 1),
        Cell::number(-paper::FIGURE_10.1, 1),
    ]);
    Ok(vec![
        Part::Text(format!(
            "**Table 1 and the time that EFS costs.** In the paper four copies that only miss take {} times as long together as \
             one after the other, though the throughput of its model never falls below 1. Here further streams cost some \
             bandwidth (they close each other's rows), as much as is published for that. What they cost moves all times: how \
             much EFS loses, and how much GemsFDTD and the mixes of Figure 10 gain. If streams cost so much that Table 1 came \
             out, the best program would gain far more time than the paper's best. So what made the paper's program so slow, \
             perhaps prefetches that were fetched in vain, did not act on the others alike. What it was can't be known from \
             what is published.",
            plain(table_s[1].0 / table_s[0].0, 2)
        )),
        Part::Table(Table {
            id: "efs-stream-loss".to_owned(),
            caption: "By what each further stream costs, and all together at most: time of four copies that only miss, one \
                      after the other / together; and `efs` against `linux`: four copies of each program, and the mixes of \
                      Figure 10. The first row is the world as it is."
                .to_owned(),
            columns: [
                "a further stream costs",
                "serial / parallel",
                "energy saved, %",
                "time lost, %",
                "GemsFDTD, time lost, %",
                "best program, time gained, %",
                "Figure 10, time lost, %",
            ]
            .map(str::to_owned)
            .to_vec(),
            rows,
        }),
    ])
}

/// Figure 6 with programs that wait for fewer misses at once.
fn figure_6_causes(lab: &Lab<'_>, machine: &Arc<MachineSpec>) -> Result<Vec<Part>, ReproduceError> {
    let others = [20, 40, 60, 80, 100];
    let mut rows = Vec::new();
    for at_once in [AT_ONCE, 20.0, 12.0, 8.0] {
        let Some(found) = beside(lab, machine, at_once, &others)? else { continue };
        rows.push(vec![
            Cell::number(at_once, 0),
            Cell::number(found.rows.last().map_or(0.0, |row| row.0), 0),
            Cell::mean(&errors(&found, |row| &row.1), 1),
            Cell::mean(&errors(&found, |row| &row.2), 1),
        ]);
    }
    Ok(vec![
        Part::Text(
            "**Figure 6.** Eq. 9 takes every access that finds the bus busy for lost time. The synthetic program here has as \
             many misses under way at once as it takes to fill the bus alone; such a program hardly waits until the bus is \
             full, and then the bus has no free share left from which its demand could be told. The fewer misses \
             are under way at once, the nearer Eq. 9 comes."
                .to_owned(),
        ),
        Part::Table(Table {
            id: "efs-figure-6-causes".to_owned(),
            caption: "Mean size of the error of the estimates of Figure 6 in percentage points, by the misses that programs \
                      have under way at once, beside others of 20 % up to the greatest that they can use."
                .to_owned(),
            columns: ["misses at once", "greatest other, %", "Eq. 9", "additive"].map(str::to_owned).to_vec(),
            rows,
        }),
    ])
}

/// Which programs EFS leaves as they are.
fn no_gain(machine: &Arc<MachineSpec>, programs: &[Arc<ProgramSpec>], eights: &Eights) -> Part {
    let (mut least, mut most) = (f64::INFINITY, 0.0f64);
    for (program, both) in programs.iter().zip(&eights.results) {
        let demand = 100.0 * solo_utilisation(machine, program);
        if mean(&saved(&both[0], &both[1], energy)).unwrap_or(0.0).abs() > 3.0 {
            least = least.min(demand);
        } else {
            most = most.max(demand);
        }
    }
    Part::Text(format!(
        "**Where EFS can't gain.** Programs whose energy changes by more than 3 % use {} of the bus alone; those that it leaves as \
         they are use at most {} %. Programs that destroy each other's cache ask for more of the bus together than alone, so \
         that it finds some of them as well; the others stay together.",
        if least.is_finite() { format!("at least {} %", plain(least, 0)) } else { "any share".to_owned() },
        plain(most, 0)
    ))
}
