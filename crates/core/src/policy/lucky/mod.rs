//! `lucky`: a lottery for the big cores, with tickets in proportion to a task's gain in efficiency there (lucky,
//! section 3.2).
//!
//! Each quantum: `benefit(k)` is the efficiency, `MIPS^2 / W`, of task k on a big core over that on a small one. One of
//! the two performances is measured, the other is predicted. `tickets(k) = 100 benefit(k)`. One ticket is drawn. If its
//! holder is not on a big core yet, it changes places with the task on the big cores that holds the fewest tickets. So
//! each task is on the big cores in proportion to its tickets, and the load of no core changes.
//!
//! A miss of the last-level cache is a line read from memory, as in the paper. Within the big type the kernel spreads
//! the tasks evenly, so any of its cores is the least loaded, and the task with the fewest tickets is sought on the
//! whole type.
//!
//! Ours:
//!
//! - A task's tickets are multiplied by its weight over the least.
//! - A task not measured yet holds the mean number of tickets of the others.
//! - A free place on the big cores is drawn for. If a task must leave the big cores for the balance, it is the one with
//!   the fewest tickets.
//! - A gang changes places with as many tasks as it needs CPUs.
//! - A prediction is clamped between no gain and the ratio of the two capacities: beyond that the regression has left
//!   the programs that it was fitted to.
//!
//! # What the paper announces
//!
//! Its conclusion names ticket inflation, tickets that count contention, and consolidation. All are off by default:
//! `cosched reproduce lucky` shows what each gains.
//!
//! # The default coefficients
//!
//! They are assumed until a machine's own are fitted (`model::cross_core::fit`) or learnt. On cores that differ only in their
//! clock, f, an instruction takes `cpi / f + m L`: m is the misses per instruction, and a miss costs L whatever the
//! clock. The defaults are the least-squares fit to that over programs with 0.5 to 2 cycles per instruction and 0 to 20
//! misses in 1,000 instructions, at the paper's 3.2 and 0.8 GHz, with L = 20 ns, which leaves room for the paper's 29
//! million misses/s. Capacities are those of 2 instructions per cycle. The small core's power is the paper's; its big
//! core is 4 times as fast and 2.2 times less efficient, hence 18.9 W. The paper does not state the big core's idle
//! power: 3 W is assumed, as in the machine `big1-small3`.

mod consolidation;
mod learning;
mod shared_memory;
mod types;

use super::core_types::{Side, Split, measuring_needs};
use super::params::{BIG_BUSY, BIG_CAPACITY, BIG_IDLE, MU, SMALL_BUSY, SMALL_CAPACITY, SMALL_IDLE};
use super::prelude::*;
use crate::model::cross_core::tickets;
use crate::model::lottery;
use consolidation::most_efficient;
use learning::Learning;
use shared_memory::SharedMemory;
use types::CoreTypes;

const PARAMS: &[ParamSpec] = &[
    QUANTUM_S,
    BIG_CAPACITY,
    BIG_BUSY,
    BIG_IDLE,
    SMALL_CAPACITY,
    SMALL_BUSY,
    SMALL_IDLE,
    number(
        "to_big_alpha",
        3.48,
        -1e6,
        1e6,
        "MIPS on a big core for each MIPS on a small one; assumed, for clocks of 3.2 and 0.8 GHz",
    ),
    number(
        "to_big_beta",
        -105.0,
        -1e6,
        1e6,
        "MIPS on a big core for each million cache misses/s on a small one; assumed, as to_big_alpha",
    ),
    number(
        "to_big_gamma_mips",
        315.0,
        -1e9,
        1e9,
        "constant term of the MIPS on a big core; assumed, as to_big_alpha",
    ),
    number(
        "to_small_alpha",
        0.28,
        -1e6,
        1e6,
        "MIPS on a small core for each MIPS on a big one; assumed, as to_big_alpha",
    ),
    number(
        "to_small_beta",
        14.0,
        -1e6,
        1e6,
        "MIPS on a small core for each million cache misses/s on a big one; assumed, as to_big_alpha",
    ),
    number(
        "to_small_gamma_mips",
        -110.0,
        -1e9,
        1e9,
        "constant term of the MIPS on a small core; assumed, as to_big_alpha",
    ),
    choice(
        "coefficients",
        &["fixed", "learnt"],
        "whether the coefficients are fitted again while jobs change places",
    ),
    number(
        "ticket_inflation",
        1.0,
        1.0,
        1e3,
        "factor for the tickets of a job that is on a big core; above 1 fewer jobs move",
    ),
    choice(
        "memory",
        &["own", "shared"],
        "whether tickets count what a job on a big core loses, and costs the others, at the memory",
    ),
    MU,
    choice(
        "consolidation",
        &["off", "on"],
        "whether cores are left idle while fewer are more efficient",
    ),
];

pub(super) const ENTRY: PolicyEntry = PolicyEntry {
    name: "lucky",
    gist: "a lottery for the big cores, with tickets by how much more efficient a job is there",
    source: "lucky scheduling, section 3",
    for_research: true,
    time_shares: true,
    kernel_shares: true,
    weighs: true,
    can_hand_over: false,
    for_nodes: false,
    params: PARAMS,
    needs: &|_| measuring_needs(),
    build: &|params| {
        Box::new(Lucky {
            quantum: Nanos::from_s(params.number("quantum_s")),
            types: CoreTypes::new(params),
            inflation: params.number("ticket_inflation"),
            memory_per_ms: params.number("mu_trans_per_us") * 1e3,
            shares_memory: params.word("memory") == "shared",
            consolidates: params.word("consolidation") == "on",
            learns: params.word("coefficients") == "learnt",
            state: State::default(),
        })
    },
};

struct Lucky {
    quantum: Nanos,
    types: CoreTypes,
    /// Tickets of a task on a big core over those that it would have elsewhere.
    inflation: f64,
    /// Lines that the bus of a memory domain serves per ms.
    memory_per_ms: f64,
    /// Whether tickets count contention there.
    shares_memory: bool,
    consolidates: bool,
    learns: bool,
    state: State,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct State {
    quantum: QuantumEnd,
    /// Numbers of big and small CPUs in use; `None` for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    used: Option<(usize, usize)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    learning: Option<Learning>,
}

impl Policy for Lucky {
    fn decide(&mut self, snap: &Snapshot, rng: &mut Rng) -> Decision {
        let mut split = self.split(snap);
        let end = self.state.quantum.after(snap.now, split.full, self.quantum);
        if split.full {
            // On all cores: where one type is left idle, no task of `split` is free.
            let whole = Split::new(snap);
            let types = self.types_now(&whole);
            if self.consolidates {
                let memory = SharedMemory::of(&whole, self.memory_per_ms);
                self.state.used = most_efficient(&types, &whole, &memory);
                split = self.split(snap);
            }
            self.play(&types, &mut split, rng);
        }
        split.finish(end)
    }

    state_is_a_field!();
}

impl Lucky {
    fn split<'a>(&self, snap: &'a Snapshot) -> Split<'a> {
        let used = self.state.used.unwrap_or((usize::MAX, usize::MAX));
        Split::within(snap, used)
    }

    /// The types of core with the coefficients that count now.
    fn types_now(&mut self, split: &Split<'_>) -> CoreTypes {
        if !self.learns {
            return self.types;
        }
        let learning = self.state.learning.get_or_insert_default();
        learning.see(split);
        learning.improved(self.types)
    }

    /// Restores the balance, then draws once and exchanges tasks.
    fn play(&self, types: &CoreTypes, split: &mut Split<'_>, rng: &mut Rng) {
        let known = self.known_tickets(types, split);
        let measured = known.iter().flatten().count() as u64;
        let sum: u64 = known.iter().flatten().copied().map(u64::from).sum();
        let mean = sum.checked_div(measured).unwrap_or(100) as u32;
        let weights = Weights::of(split.snap);
        let tickets: Vec<u32> = known
            .into_iter()
            .zip(&split.free)
            .map(|(tickets, &ix)| {
                let weight = weights.over_least(split.task(ix));
                let stays = if split.is_big(ix) {
                    self.inflation
                } else {
                    1.0
                };
                (f64::from(tickets.unwrap_or(mean)) * weight * stays) as u32
            })
            .collect();
        mend(split, &tickets, rng);
        if measured == 0 {
            return;
        }
        if let Some(winner) = lottery::draw(&tickets, rng.next_u64()) {
            change_places(split, &tickets, winner);
        }
    }

    /// The tickets of each free task by its benefit; `None` if it was not measured yet.
    fn known_tickets(&self, types: &CoreTypes, split: &Split<'_>) -> Vec<Option<u32>> {
        let memory = SharedMemory::of(split, self.memory_per_ms);
        let tickets_of = |&ix: &u32| {
            let speeds = types.speeds(split, ix)?;
            let gain = if self.shares_memory {
                memory.gain(ix, &speeds)
            } else {
                1.0
            };
            tickets(types.benefit(&speeds)? * gain).ok()
        };
        split.free.iter().map(tickets_of).collect()
    }
}

/// Free tasks on the big cores, as positions in the list, the fewest tickets first.
fn on_big(split: &Split<'_>, tickets: &[u32]) -> Vec<usize> {
    let mut big: Vec<usize> = (0..tickets.len())
        .filter(|&pos| split.is_big(split.free[pos]))
        .collect();
    big.sort_unstable_by_key(|&pos| (tickets[pos], pos));
    big
}

/// Moves tasks until the right number is on the big cores.
fn mend(split: &mut Split<'_>, tickets: &[u32], rng: &mut Rng) {
    if split.excess() > 0 {
        for pos in on_big(split, tickets) {
            let ix = split.free[pos];
            if u64::from(split.task(ix).cpus) <= split.excess() {
                split.put(ix, Side::Small);
            }
        }
    }
    if split.room() == 0 {
        return;
    }
    // One draw for each free place, among the tasks that fit.
    let mut tickets = tickets.to_vec();
    for (pos, tickets) in tickets.iter_mut().enumerate() {
        if split.is_big(split.free[pos]) {
            *tickets = 0;
        }
    }
    while split.room() > 0 && tickets.iter().any(|&held| held > 0) {
        let Some(winner) = lottery::draw(&tickets, rng.next_u64()) else {
            break;
        };
        let ix = split.free[winner];
        if split.fits(ix) {
            split.put(ix, Side::Big);
        }
        tickets[winner] = 0;
    }
}

/// Gives the winner the places of the tasks on the big cores that hold the fewest tickets.
fn change_places(split: &mut Split<'_>, tickets: &[u32], winner: usize) {
    let winner = split.free[winner];
    if split.is_big(winner) {
        return;
    }
    let wanted = u64::from(split.task(winner).cpus);
    let mut leave = Vec::new();
    let mut given = 0;
    for pos in on_big(split, tickets) {
        if given >= wanted {
            break;
        }
        given += u64::from(split.task(split.free[pos]).cpus);
        leave.push(split.free[pos]);
    }
    if given >= wanted {
        leave.into_iter().for_each(|ix| split.put(ix, Side::Small));
        split.put(winner, Side::Big);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::cross_core::{CorePair, CoreSample, CoreType, fit};

    /// Lucky, Table 1.
    #[test]
    fn the_default_big_core_is_4_times_as_fast_and_2_2_times_less_efficient() {
        let params = Params::resolve("lucky", PARAMS, &[]).unwrap();
        let CoreTypes { big, small, .. } = CoreTypes::new(&params);
        assert_eq!(big.capacity_mips(), 4.0 * small.capacity_mips());
        let per_watt = |core: CoreType| core.capacity_mips() / core.busy_w();
        let ratio = per_watt(small) / per_watt(big);
        assert!((ratio - 2.2).abs() < 0.005, "{ratio}");
        assert_eq!((small.idle_w(), small.busy_w()), (0.7, 2.15));
    }

    #[test]
    fn the_default_coefficients_are_those_of_the_clocks() {
        let (big_ghz, small_ghz, miss_ns) = (3.2, 0.8, 20.0);
        let sample = |cpi: f64, misses: f64, ghz: f64| {
            let mips = 1e3 / (cpi / ghz + misses * miss_ns / 1e3);
            CoreSample {
                mips,
                llcms: mips * misses / 1e3,
            }
        };
        let (mut to_big, mut to_small) = (Vec::new(), Vec::new());
        for cpi in [0.5, 0.75, 1.0, 1.5, 2.0] {
            for misses in [0.0, 1.0, 2.0, 5.0, 10.0, 20.0] {
                let (big, small) = (sample(cpi, misses, big_ghz), sample(cpi, misses, small_ghz));
                to_big.push(CorePair {
                    from: small,
                    to_mips: big.mips,
                });
                to_small.push(CorePair {
                    from: big,
                    to_mips: small.mips,
                });
            }
        }
        let params = Params::resolve("lucky", PARAMS, &[]).unwrap();
        for (name, pairs) in [("to_big", to_big), ("to_small", to_small)] {
            let fitted = fit(&pairs).unwrap();
            let close = |what: &str, value: f64, step: f64| {
                let default = params.number(&format!("{name}_{what}"));
                assert!(
                    (default - value).abs() <= step / 2.0,
                    "{name}_{what}: {value}"
                );
            };
            // The paper reports a correlation coefficient of about 98 %, which is the root of R^2.
            assert!(fitted.r2.unwrap() > 0.96);
            close("alpha", fitted.regression.alpha, 0.01);
            close("beta", fitted.regression.beta, 1.0);
            close("gamma_mips", fitted.regression.gamma, 1.0);
        }
    }
}
