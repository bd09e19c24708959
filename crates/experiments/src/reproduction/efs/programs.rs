//! Four copies of each program, on all cores and on fewer, and mixes of high demand (section 5.3, Figures 8 to 10).

use super::bus::solo_utilisation;
use super::effects::{CORES, Change, Effects, POWER, STREAMS, runs};
use crate::reproduction::error::ReproduceError;
use crate::reproduction::findings::{Cell, Part, Table, Verdict};
use crate::reproduction::lab::Lab;
use crate::reproduction::mixes::{copies, of_folder};
use crate::reproduction::paper::efs as paper;
use crate::reproduction::trial::Trial;
use crate::statistics::{mean, over};
use cosched_core::CpuSet;
use cosched_sim::{MachineSpec, ProgramSpec, SimJob};
use std::sync::Arc;

/// Four copies of each program.
pub(super) fn fours(lab: &Lab<'_>, programs: &[Arc<ProgramSpec>]) -> Vec<Vec<SimJob>> {
    programs
        .iter()
        .map(|program| copies(program, CORES, lab.work))
        .collect()
}

/// A program is affected when its energy changes by more than this, in per cent (section 5.3).
const AFFECTED: f64 = 3.0;

/// The programs that are affected, by their position.
fn affected(effects: &Effects) -> Vec<usize> {
    let changes = effects.energy_saved();
    (0..changes.len())
        .filter(|&at| mean(&changes[at]).unwrap_or(0.0).abs() > AFFECTED)
        .collect()
}

/// Four copies of each program under `linux` and `efs`.
pub(super) fn figure_8(
    lab: &Lab<'_>,
    machine: &Arc<MachineSpec>,
    programs: &[Arc<ProgramSpec>],
    parts: &mut Vec<Part>,
    verdicts: &mut Vec<Verdict>,
) -> Result<Effects, ReproduceError> {
    let effects = Effects::simulate(
        lab,
        "efs: Figure 8",
        machine,
        &fours(lab, programs),
        &lab.seeds,
    )?;
    let names: Vec<String> = programs
        .iter()
        .map(|program| program.name.clone())
        .collect();
    parts.push(Part::Heading(
        "Figure 8: four copies of each program".to_owned(),
    ));
    let caption = "What `efs` changes for four copies of each program, against `linux`.";
    parts.push(effects.figure("efs-figure-8", caption, "program", names.clone()));
    let (savings, slowdowns, products) = (
        effects.energy_saved(),
        effects.time_lost(),
        effects.product_saved(),
    );
    let affected = affected(&effects);
    let pick = |of: &[Vec<f64>]| {
        over(
            &affected
                .iter()
                .map(|&at| of[at].clone())
                .collect::<Vec<_>>(),
            mean,
        )
    };
    let time = |what: String, figure: f64, ours: &[f64]| {
        Verdict::gain(what, figure, 1, ours).resting_on(STREAMS)
    };
    let energy = |what: String, figure: f64, ours: &[f64]| {
        Verdict::gain(what, figure, 1, ours).resting_on(POWER)
    };
    let chip_mean = over(&effects.chip_energy_saved(), mean);
    let (energy_mean, slow_mean, product_mean) = paper::FIGURE_8;
    let is_affected = |saved: &[f64]| saved.iter().filter(|saved| saved.abs() > AFFECTED).count();
    let share = over(&savings, |saved| {
        Some(100.0 * is_affected(saved) as f64 / names.len() as f64)
    });
    let what = "Figure 8: affected programs, whose energy changes by more than 3 %, % of all";
    verdicts.extend([
        energy(
            "Figure 8: energy saved, mean over the programs, %".to_owned(),
            energy_mean,
            &over(&savings, mean),
        ),
        energy(
            "Figure 8: energy of the CPU saved, mean, %".to_owned(),
            paper::FIGURE_8_CPU,
            &chip_mean,
        ),
        time(
            "Figure 8: time lost, mean, %".to_owned(),
            slow_mean,
            &over(&slowdowns, mean),
        ),
        energy(
            "Figure 8: energy-delay product saved, mean, %".to_owned(),
            product_mean,
            &over(&products, mean),
        ),
        Verdict::size(what, 100.0 * paper::AFFECTED.0 / paper::PROGRAMS, 0, &share)
            .resting_on(POWER),
        energy(
            "Figure 8: energy saved by the affected, mean, %".to_owned(),
            paper::AFFECTED.1,
            &pick(&savings),
        ),
        time(
            "Figure 8: time lost by the affected, mean, %".to_owned(),
            paper::AFFECTED.2,
            &pick(&slowdowns),
        ),
    ]);
    let best = over(&slowdowns, |lost| {
        lost.iter().copied().reduce(f64::min).map(|lost| -lost)
    });
    verdicts.push(time(
        "Figure 8: time gained by the best program, %".to_owned(),
        paper::BEST_GAIN,
        &best,
    ));
    for (name, less, longer) in paper::NAMED {
        if let Some(at) = names.iter().position(|one| one == name) {
            verdicts.push(energy(
                format!("Figure 8: energy saved by {name}, %"),
                less,
                &savings[at],
            ));
            verdicts.push(time(
                format!("Figure 8: time lost by {name}, %"),
                longer,
                &slowdowns[at],
            ));
        }
    }
    Ok(effects)
}

/// Energy saved and time lost in per cent, means over the programs by seed.
struct Means {
    name: String,
    energy: Vec<f64>,
    time: Vec<f64>,
}

/// Fewer cores for the same copies: one, two and three of them. `full` are the runs of Figure 8.
pub(super) fn figure_9(
    lab: &Lab<'_>,
    machine: &Arc<MachineSpec>,
    programs: &[Arc<ProgramSpec>],
    full: &Effects,
    parts: &mut Vec<Part>,
    verdicts: &mut Vec<Verdict>,
) -> Result<Vec<Effects>, ReproduceError> {
    let all = machine.machine().all_cpus();
    let first = |cores: usize| -> CpuSet { all.iter().take(cores).collect() };
    let on = |cores: usize| {
        move |trial: Trial| Trial {
            usable: Some(first(cores)),
            ..trial
        }
    };
    let (one, two, three) = (on(1), on(2), on(3));
    let fewer: [&Change<'_>; 3] = [&one, &two, &three];
    let seeds = lab.few_seeds();
    let results = runs(
        lab,
        "efs: Figure 9",
        machine,
        &fours(lab, programs),
        &fewer,
        seeds,
    )?;
    let full = full.first(seeds.len());
    let means = |name: String, effects: &Effects| Means {
        name,
        energy: over(&effects.energy_saved(), mean),
        time: over(&effects.time_lost(), mean),
    };
    let of_cores = |cores: usize| {
        let ours = results
            .iter()
            .map(|by_cores| by_cores[cores - 1].clone())
            .collect();
        Effects {
            base: full.base.clone(),
            ours,
        }
    };
    let fixed: Vec<Effects> = (1..=fewer.len()).map(of_cores).collect();
    let named = |(at, effects)| means(format!("linux, {} of {CORES} cores", at + 1), effects);
    let mut values: Vec<Means> = fixed.iter().enumerate().map(named).collect();
    values.push(means("efs".to_owned(), &full));
    let row = |of: &Means| {
        vec![
            Cell::text(of.name.clone()),
            Cell::signed(&of.energy, 1),
            Cell::signed(&of.time, 1),
        ]
    };
    parts.push(Part::Heading("Figure 9: fewer cores, fixed".to_owned()));
    parts.push(Part::Table(Table {
        id: "efs-figure-9".to_owned(),
        caption: format!(
            "Means over {} programs with four copies each, against `linux` on four cores: `linux` on one, two and three \
             cores, and `efs`.",
            programs.len()
        ),
        columns: ["how", "energy saved, %", "time lost, %"].map(str::to_owned).to_vec(),
        rows: values.iter().map(row).collect(),
    }));
    // The paper says that EFS is better than all of them, and does not order them.
    let energy_of = |at: usize| mean(&values[at].energy).unwrap_or(0.0);
    let best = (0..fewer.len())
        .max_by(|&a, &b| energy_of(a).total_cmp(&energy_of(b)))
        .unwrap_or(0);
    let both = [
        ("efs", values[fewer.len()].energy.clone()),
        ("fewer cores", values[best].energy.clone()),
    ];
    let what = "Figure 9: energy saved, against the best of fewer cores";
    verdicts.push(Verdict::order(what, &["efs", "fewer cores"], &both).resting_on(POWER));
    let time_of = |at: usize| mean(&values[at].time).unwrap_or(0.0);
    let fastest = (0..fewer.len())
        .min_by(|&a, &b| time_of(a).total_cmp(&time_of(b)))
        .unwrap_or(0);
    let both = [
        ("fewer cores", values[fastest].time.clone()),
        ("efs", values[fewer.len()].time.clone()),
    ];
    let what = "Figure 9: time lost, against the fastest of fewer cores";
    verdicts.push(Verdict::order(what, &["fewer cores", "efs"], &both).resting_on(STREAMS));
    Ok(fixed)
}

/// Mixes of high demand.
pub(super) fn figure_10(
    lab: &Lab<'_>,
    machine: &Arc<MachineSpec>,
    parts: &mut Vec<Part>,
    verdicts: &mut Vec<Verdict>,
) -> Result<(), ReproduceError> {
    let mixes = of_folder("efs", lab.work);
    let lists: Vec<Vec<SimJob>> = mixes.iter().map(|mix| mix.jobs.clone()).collect();
    let effects = Effects::simulate(lab, "efs: Figure 10", machine, &lists, &lab.seeds)?;
    let names = mixes
        .iter()
        .map(|mix| format!("{} ({} jobs)", mix.short(), mix.jobs.len()))
        .collect();
    parts.push(Part::Heading("Figure 10: mixes of high demand".to_owned()));
    let caption =
        "What `efs` changes for mixes of programs that ask for much of the bus, against `linux`.";
    parts.push(effects.figure("efs-figure-10", caption, "mix", names));
    let savings = over(&effects.energy_saved(), mean);
    let faster: Vec<f64> = over(&effects.time_lost(), mean)
        .iter()
        .map(|lost| -lost)
        .collect();
    let what = "Figure 10: energy saved, mean over the mixes, %";
    verdicts.push(Verdict::gain(what, paper::FIGURE_10.0, 1, &savings).resting_on(POWER));
    verdicts.push(
        Verdict::gain(
            "Figure 10: speed-up, mean, %",
            paper::FIGURE_10.1,
            1,
            &faster,
        )
        .resting_on(STREAMS),
    );
    Ok(())
}

/// Which programs EFS leaves as they are, and what fewer cores would have brought them. `effects` are the runs of Figure 8,
/// `fixed` those of Figure 9.
pub(super) fn left_alone(
    machine: &Arc<MachineSpec>,
    programs: &[Arc<ProgramSpec>],
    effects: &Effects,
    fixed: &[Effects],
) -> [Part; 2] {
    let (savings, lost) = (effects.energy_saved(), effects.time_lost());
    let (fixed_savings, fixed_lost): (Vec<_>, Vec<_>) = fixed
        .iter()
        .map(|effects| (effects.energy_saved(), effects.time_lost()))
        .unzip();
    let (mut rows, mut missed, mut hopeless) = (Vec::new(), Vec::new(), 0);
    for (at, program) in programs.iter().enumerate() {
        let saved = |cores: usize| mean(&fixed_savings[cores][at]).unwrap_or(0.0);
        let best = (0..fixed.len())
            .max_by(|&a, &b| saved(a).total_cmp(&saved(b)))
            .unwrap_or(0);
        let ours = mean(&savings[at]).unwrap_or(0.0);
        if saved(best) <= AFFECTED {
            hopeless += 1;
        } else if ours <= AFFECTED {
            missed.push(program.name.clone());
        }
        rows.push(vec![
            Cell::text(program.name.clone()),
            Cell::number(100.0 * solo_utilisation(machine, program), 0),
            Cell::signed(&savings[at], 1),
            Cell::signed(&lost[at], 1),
            Cell::number(best as f64 + 1.0, 0),
            Cell::signed(&fixed_savings[best][at], 1),
            Cell::signed(&fixed_lost[best][at], 1),
        ]);
    }
    let missed = if missed.is_empty() {
        "There is no program that fewer cores would help as much and that `efs` leaves alone."
            .to_owned()
    } else {
        format!(
            "Fewer cores would save more than 3 %, and `efs` does not, with {}.",
            missed.join(", ")
        )
    };
    [
        Part::Text(format!(
            "**Where EFS can't gain.** Of {hopeless} of the {} programs no number of cores saves more than 3 % of the energy: they \
             hardly disturb each other, and a core that is left idle saves less than the time that it costs. {missed}",
            programs.len()
        )),
        Part::Table(Table {
            id: "efs-left-alone".to_owned(),
            caption: "Four copies of each program: what one uses of the bus alone, what `efs` changes, and the fixed number of \
                      cores that saves most energy of one, two and three; all against `linux` on four cores, in per cent."
                .to_owned(),
            columns: [
                "program",
                "bus alone, %",
                "efs saves",
                "efs loses time",
                "best fixed cores",
                "they save",
                "they lose time",
            ]
            .map(str::to_owned)
            .to_vec(),
            rows,
        }),
    ]
}
