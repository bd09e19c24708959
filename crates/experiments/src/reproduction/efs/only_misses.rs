//! Four copies of a program that only misses: who has a core, and what it costs (section 5.2, Figure 7 and Table 1).

use super::{Bench, CORES, EFS, LINUX, POWER, STREAMS, linux_and_efs, serial};
use crate::reproduction::engine::{
    Candidate, Cell, Chapter, Figure, Grid, Measured, Result, Verdict, program, saved, share,
    timeline,
};
use crate::reproduction::paper::efs as paper;
use cosched_core::Nanos;

/// Time that Figure 7 shows: the paper's 300 ms, scaled from its periods of 18 ms to quanta of 200 ms.
const FIGURE_7: Nanos = Nanos::from_ms(3_300);

fn simulate(bench: &Bench<'_>, what: &str, candidates: &[Candidate]) -> Result<Grid> {
    let mixes = [bench.four_of(&program("bus-100"))];
    Grid::few(bench.lab, what, &bench.full, &mixes, candidates)
}

/// Who has which core.
pub(super) fn figure_7(chapter: &mut Chapter, bench: &Bench<'_>) -> Result<()> {
    let mut both = linux_and_efs();
    both.iter_mut().for_each(|one| one.noted = FIGURE_7);
    let grid = simulate(bench, "efs: Figure 7", &both)?;
    chapter.heading("Figure 7: which cores are in use");
    let of_linux =
        " The kernel does not tell which core a job has, so each job has a row of its own.";
    for (at, name, paper, more) in [(LINUX, "linux", 4.0, of_linux), (EFS, "efs", 1.0, "")] {
        chapter.figure(timeline(
            format!("efs-figure-7-{name}"),
            format!(
                "Cores in use under `{name}` with four copies of a program that only misses, in the first {} s. (The paper's \
                 300 ms, by the length of the quantum; it shows a section from the middle.{more})",
                FIGURE_7.as_s(),
            ),
            CORES,
            &grid.runs(0, at)[0].watch.stays,
        ));
        let busy = grid.values(0, at, |run| Some(run.busy_s / run.turnaround_s));
        let what = format!("Figure 7: cores in use on average under `{name}`");
        chapter.judge(Verdict::size(what, paper, 1, &busy));
    }
    Ok(())
}

/// A figure of Table 1.
struct Compared {
    name: &'static str,
    figure: Figure,
    /// The paper's, by row.
    paper: [f64; 3],
    rests_on: &'static str,
}

const COMPARED: [Compared; 3] = [
    Compared {
        name: "time",
        figure: Measured::time,
        paper: paper::TABLE_1_S,
        rests_on: STREAMS,
    },
    Compared {
        name: "energy",
        figure: Measured::energy,
        paper: paper::TABLE_1_J,
        rests_on: POWER,
    },
    Compared {
        name: "energy of the CPU",
        figure: Measured::chip_energy,
        paper: paper::TABLE_1_CPU_J,
        rests_on: POWER,
    },
];

/// Four copies of a program that only misses: one after the other, together, and together under EFS.
pub(super) fn table_1(chapter: &mut Chapter, bench: &Bench<'_>) -> Result<()> {
    const PARALLEL: usize = 1;
    let three = [serial(), Candidate::new("linux"), Candidate::new("efs")];
    let grid = simulate(bench, "efs: Table 1", &three)?;
    let names = ["serial, `linux`", "parallel, `linux`", "parallel, `efs`"];
    let mut rows = Vec::new();
    for (at, name) in names.iter().enumerate() {
        let watts = paper::TABLE_1_J[at] / paper::TABLE_1_S[at];
        let power = grid.values(0, at, Measured::power);
        let mut row = vec![Cell::text(*name)];
        for one in &COMPARED {
            let paper = one.paper[at] / one.paper[PARALLEL];
            let shares = grid.compared(at, PARALLEL, one.figure, share);
            row.extend([Cell::mean(&shares[0], 3), Cell::number(paper, 3)]);
            // A ratio near 1 would agree with any other; the savings are the result.
            if at != PARALLEL {
                let what = format!("Table 1: {} saved by {name} against parallel, %", one.name);
                let saved = grid.compared(at, PARALLEL, one.figure, saved);
                chapter.judge(
                    Verdict::gain(what, 100.0 * (1.0 - paper), 1, &saved[0])
                        .resting_on(one.rests_on),
                );
            }
        }
        row.extend([Cell::mean(&power, 1), Cell::number(watts, 1)]);
        rows.push(row);
        let what = format!("Table 1: power of {name}, W");
        chapter.judge(Verdict::size(what, watts, 1, &power).resting_on(POWER));
    }
    chapter.heading("Table 1: four copies that only miss");
    chapter.table(
        "efs-table-1",
        "Time, energy of the system and energy of the CPU as shares of those in parallel under `linux`, and power of the system. \
         The paper's figures contradict each other: by its Eq. 25 one core in use takes 49.2 W, and by this table 41.4 W when it \
         runs one copy after the other.",
        [
            "how",
            "time",
            "paper's time",
            "energy",
            "paper's energy",
            "energy of the CPU",
            "paper's energy of the CPU",
            "power, W",
            "paper's power",
        ],
        rows,
    );
    Ok(())
}
