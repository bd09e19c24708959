//! How headline figures move when an assumed number of the simulated world is another.
//!
//! One number is changed at a time. Jobs are short and seeds few, so that it takes minutes: what counts is the difference
//! from the first row.

use crate::efs::Effects;
use crate::error::ReproduceError;
use crate::findings::{Cell, Chapter, Part, Table};
use crate::grid::{Candidate, Grid};
use crate::lab::Lab;
use crate::lucky::saved;
use crate::mixes::{Mix, copies, of_folder, program};
use crate::stats::mean;
use crate::trial::{machine, refitted};
use cosched_core::Nanos;
use cosched_sim::machine::Replacement;
use cosched_sim::{MachineSpec, SimJob, Work};
use std::sync::Arc;

/// Work of each job.
const WORK: Work = Work::SoloTime(Nanos::from_ms(10_000));

/// A change of a machine, and its name.
type Change = (&'static str, fn(&mut MachineSpec));

/// Each assumed number halved and doubled, or as far as it makes sense.
const CHANGES: &[Change] = &[
    ("as it is", |_| ()),
    ("idle latency x 0.8", |m| m.memory.idle_latency_ns *= 0.8),
    ("idle latency x 1.25", |m| m.memory.idle_latency_ns *= 1.25),
    ("price of a hit x 0.5", |m| m.llc.hit_ns *= 0.5),
    ("price of a hit x 2", |m| m.llc.hit_ns *= 2.0),
    ("any line is replaced", |m| m.llc.replacement = Replacement::Random),
    ("streams cost nothing", |m| m.memory.stream_loss = 0.0),
    ("streams cost x 2", |m| m.memory.stream_loss *= 2.0),
    ("last level x 0.67", |m| m.llc.mb *= 0.67),
    ("last level x 1.5", |m| m.llc.mb *= 1.5),
    ("SMT issue share x 0.5", |m| m.smt.issue_share *= 0.5),
    ("SMT issue share x 1.5", |m| m.smt.issue_share *= 1.5),
    ("wait for L1 0", |m| m.smt.l1_wait_cycles = 0.0),
    ("wait for L1 x 2", |m| m.smt.l1_wait_cycles *= 2.0),
    ("period x 0.33", |m| m.kernel.period_ms *= 0.33),
    ("period x 3", |m| m.kernel.period_ms *= 3.0),
    ("balancing x 0.25", |m| m.kernel.balance_ms *= 0.25),
    ("balancing x 4", |m| m.kernel.balance_ms *= 4.0),
    ("switch x 0.5", |m| m.kernel.switch_us *= 0.5),
    ("switch x 3", |m| m.kernel.switch_us *= 3.0),
    ("cold private caches x 0.5", |m| m.kernel.migration_us *= 0.5),
    ("cold private caches x 5", |m| m.kernel.migration_us *= 5.0),
    ("energy of a line x 0.5", |m| m.power.nj_per_line *= 0.5),
    ("energy of a line x 2", |m| m.power.nj_per_line *= 2.0),
    ("big core idle x 0.5", |m| idle_power(m, 0.5)),
    ("big core idle x 2", |m| idle_power(m, 2.0)),
    ("counters without noise", |m| m.counters.noise = 0.0),
    ("noise of counters x 5", |m| m.counters.noise *= 5.0),
];

/// Where there are two types of core, the idle power of the big one is assumed.
fn idle_power(machine: &mut MachineSpec, factor: f64) {
    if machine.core_types.len() > 1 {
        machine.core_types[0].idle_w *= factor;
    }
}

/// What is simulated for each change.
struct Scenes {
    mixes: Vec<Mix>,
    fours: Vec<Vec<SimJob>>,
    lucky: Vec<Mix>,
}

/// Programs whose energy depends most on the bus, and two that hardly use it.
const FOURS: [&str; 8] = ["libquantum", "lbm", "soplex", "mcf", "GemsFDTD", "milc", "gcc", "povray"];

/// The chapter.
pub(crate) fn chapter(lab: &Lab<'_>) -> Result<Chapter, ReproduceError> {
    let scenes = Scenes {
        mixes: of_folder("perf-fair", WORK),
        fours: FOURS.iter().map(|name| copies(&program(name), 4, WORK)).collect(),
        lucky: of_folder("lucky", WORK),
    };
    let mut rows = Vec::new();
    for (name, change) in CHANGES {
        let cells = vec![Cell::text(*name)];
        let mut row = Row { lab, scenes: &scenes, name, change: *change, cells };
        row.perf_fair("xeon-e5645")?;
        row.perf_fair("xeon-e5645-1ch")?;
        row.efs()?;
        row.lucky()?;
        rows.push(row.cells);
    }
    let columns = [
        "changed",
        "3 ch., linux unf.",
        "bandwidth",
        "fair",
        "perf-fair",
        "perf-fair unf.",
        "round-robin",
        "1 ch., linux unf.",
        "bandwidth",
        "fair",
        "perf-fair",
        "perf-fair unf.",
        "round-robin",
        "efs, energy",
        "efs, time",
        "lucky, bias",
        "lucky, big-fair",
    ];
    let text = "One assumed number of the world is changed at a time, by as much as can be doubted or more. The parameters \
                that policies take from a machine's file are fitted again. Perf&Fair's 13 mixes with three channels and with \
                one: unfairness in per cent (geometric means), and speed-up over `linux` in per cent. EFS: four copies of \
                eight programs, energy saved and time lost against `linux` in per cent. Lucky: energy-delay product that it \
                saves over `bias` and over `big-fair` in per cent. Jobs of 10 s and few seeds, so compare with the first row and not with \
                the chapters above; a few tenths of a per cent are chance.";
    let table = Table {
        id: "sensitivity".to_owned(),
        caption: "Headline figures by what is changed.".to_owned(),
        columns: columns.map(str::to_owned).to_vec(),
        rows,
    };
    let title = "How sensitive the figures are".to_owned();
    let parts = vec![Part::Text(text.to_owned()), Part::Table(table)];
    Ok(Chapter { id: "sensitivity", title, parts, verdicts: Vec::new(), causes: Vec::new() })
}

/// A row of the table: one change, and the cells so far.
struct Row<'a> {
    lab: &'a Lab<'a>,
    scenes: &'a Scenes,
    name: &'static str,
    change: fn(&mut MachineSpec),
    cells: Vec<Cell>,
}

impl Row<'_> {
    fn machine(&self, name: &str) -> Result<(Arc<MachineSpec>, String), ReproduceError> {
        let mut spec = (*machine(name)?).clone();
        (self.change)(&mut spec);
        Ok((refitted(spec), format!("{}, {name}", self.name)))
    }

    fn push(&mut self, values: &[f64], decimals: usize) {
        let absent = || Cell::Absent("not measured".to_owned());
        self.cells.push(mean(values).map_or_else(absent, |value| Cell::number(value, decimals)));
    }

    fn grid(&self, name: &str, mixes: &[Mix], policies: &[&'static str]) -> Result<Grid, ReproduceError> {
        let (spec, what) = self.machine(name)?;
        let candidates: Vec<Candidate> = policies.iter().map(|policy| Candidate::new(policy)).collect();
        Grid::simulate(&self.lab.pool, &what, &spec, mixes, &candidates, self.lab.sensitivity_seeds())
    }

    fn perf_fair(&mut self, name: &str) -> Result<(), ReproduceError> {
        let policies = ["linux", "bandwidth", "fair", "perf-fair", "round-robin"];
        let grid = self.grid(name, &self.scenes.mixes, &policies)?;
        self.push(&grid.unfairness(0), 0);
        for at in 1..=3 {
            self.push(&grid.speed_up(at, (&grid, 0)), 1);
        }
        self.push(&grid.unfairness(3), 0);
        self.push(&grid.speed_up(4, (&grid, 0)), 1);
        Ok(())
    }

    fn efs(&mut self) -> Result<(), ReproduceError> {
        let (spec, what) = self.machine("i5-2500")?;
        let seeds = self.lab.sensitivity_seeds();
        let effects = Effects::simulate(self.lab, &what, &spec, &self.scenes.fours, seeds)?;
        self.push(&effects.energy_saved().concat(), 1);
        self.push(&effects.time_lost().concat(), 1);
        Ok(())
    }

    fn lucky(&mut self) -> Result<(), ReproduceError> {
        let grid = self.grid("big1-small3", &self.scenes.lucky, &["lucky", "bias", "big-fair"])?;
        for base in [1, 2] {
            let all: Vec<f64> = (0..grid.mixes).flat_map(|mix| saved(&grid, mix, 0, base)).collect();
            self.push(&all, 0);
        }
        Ok(())
    }
}
