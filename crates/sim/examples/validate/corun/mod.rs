//! Real co-runs on a server (dcslab-snu/experiment-data, 2018): one program of eight threads beside another, both counted. Their
//! series are replayed as intervals of a run, and each of cosched's estimators says how much the neighbour slowed each program.
//!
//! - `trace`: the program's run alone is known, instruction by instruction.
//! - `Eq. 1, mean`: Perf&Fair, with the mean speed of the run alone.
//! - `even`, `history`: the learner of `even`, after a run of each program alone.
//! - `even`, `nothing`: the learner, which sees this run only. The longer program of a co-run is alone at the end.
//! - `windows`: one program is frozen now and then, and the other one measured alone. These windows are not in the co-runs: the
//!   program goes on as in its run alone meanwhile. What a thaw costs is not in the data, nor are measurements shorter than
//!   their intervals of 0.1 s. `Eq. 1` is what Perf&Fair decides by, and `record` what the record of a run has at its end.
//!
//! The data have no CPU time. So everything is done twice: without it, and with the cycles at the clock of a busy machine. Only the
//! second is what a real run has. Programs alone are replayed as well: nothing slows them.

mod replay;
mod series;
mod table;
mod windows;

use crate::backend::{CpuTime, Tape};
use crate::recording::Recording;
use replay::{even, replay};
use series::{Corun, CorunProgram, WallTimes};
use std::collections::BTreeMap;
use std::path::Path;
use table::{EstimatorTable, Row};
use windows::Windows;

/// The clock with all CPUs busy, as counted in programs that never wait.
const BUSY_GHZ: f64 = 2.58;

/// The estimators of co-runs, and of programs alone, in the order of the columns.
const BESIDE: [&str; 7] = [
    "trace",
    "Eq. 1, mean",
    "Eq. 1, windows",
    "record, windows",
    "`even`, history",
    "`even`, nothing",
    "`even`, windows",
];
const ALONE: [&str; 5] = [
    "trace",
    "Eq. 1",
    "record",
    "`even`, history",
    "`even`, nothing",
];

/// Replays all recordings in a folder, and returns the tables.
pub(crate) fn report(folder: &Path) -> Result<String, String> {
    let data = series::read(folder)?;
    let busy = CpuTime::OfCycles { ghz: BUSY_GHZ };
    let mut report = table::legend();
    if !data.left_out.is_empty() {
        let names = data.left_out.join(", ");
        report += &format!(
            "Left out, since a series is missing or covers too little of its run: {names}.\n"
        );
    }
    for (source, cpu_time) in [
        ("CPU time of cycles", busy),
        ("no CPU time", CpuTime::Absent),
    ] {
        let mut coruns = EstimatorTable::new(&format!("Co-runs, {source}"), &BESIDE);
        for corun in &data.coruns {
            for row in judge(corun, cpu_time)? {
                coruns.add(row);
            }
        }
        let mut alone = EstimatorTable::new(&format!("Programs alone, {source}"), &ALONE);
        for (name, recording) in &data.alone {
            alone.add(judge_alone(&undisturbed(name, recording), cpu_time)?);
        }
        report += &coruns.to_string();
        report += &alone.to_string();
    }
    Ok(report)
}

fn judge(corun: &Corun, cpu_time: CpuTime) -> Result<Vec<Row>, String> {
    let programs = || corun.programs.iter().enumerate();
    let tapes = || {
        programs()
            .map(|(at, program)| beside(program, 1 - at))
            .collect()
    };
    let mut histories = Vec::new();
    for program in &corun.programs {
        let runs = replay(vec![alone(program)], &[None], cpu_time, &mut *even()?)?;
        histories.push(runs[0].kept());
    }
    let nothing = vec![None; corun.programs.len()];
    let knowing = replay(tapes(), &histories, cpu_time, &mut *even()?)?;
    let fresh = replay(tapes(), &nothing, cpu_time, &mut *even()?)?;
    let measured = replay(tapes(), &nothing, cpu_time, &mut Windows::default())?;
    let mut rows = Vec::new();
    for (at, program) in corun.programs.iter().enumerate() {
        rows.push(Row {
            run: corun.name.clone(),
            program: program.name.clone(),
            by_wall_time: program.wall.slowdown(),
            as_recorded: program.slowdown(),
            judged: vec![
                fresh[at].with_trace(program),
                fresh[at].with_mean_speed(program, cpu_time),
                measured[at].ratio(program),
                measured[at].record(program),
                knowing[at].learner(program),
                fresh[at].learner(program),
                measured[at].learner(program),
            ],
        });
    }
    Ok(rows)
}

fn judge_alone(program: &CorunProgram, cpu_time: CpuTime) -> Result<Row, String> {
    let tape = || vec![alone(program)];
    let fresh = replay(tape(), &[None], cpu_time, &mut *even()?)?;
    let knowing = replay(tape(), &[fresh[0].kept()], cpu_time, &mut *even()?)?;
    Ok(Row {
        run: "alone".to_owned(),
        program: program.name.clone(),
        by_wall_time: program.wall.slowdown(),
        as_recorded: program.slowdown(),
        judged: vec![
            fresh[0].with_trace(program),
            fresh[0].ratio(program),
            fresh[0].record(program),
            knowing[0].learner(program),
            fresh[0].learner(program),
        ],
    })
}

/// A program that runs as it does alone.
fn undisturbed(name: &str, recording: &Recording) -> CorunProgram {
    let time_s = recording.length_s();
    CorunProgram {
        name: name.to_owned(),
        wall: WallTimes {
            alone_s: time_s,
            beside_s: time_s,
        },
        alone: recording.clone(),
        beside: recording.clone(),
    }
}

fn alone(program: &CorunProgram) -> Tape {
    Tape {
        alone: program.alone.clone(),
        beside: BTreeMap::new(),
    }
}

/// A program beside the other one, whose number this is.
fn beside(program: &CorunProgram, other: usize) -> Tape {
    Tape {
        alone: program.alone.clone(),
        beside: BTreeMap::from([(other, program.beside.clone())]),
    }
}
