//! Cores: what a busy SMT sibling costs, and what the kernel's switches and moves cost.

use super::bench::Bench;
use super::figure::figure;
use super::finding::{Finding, absent, finding};
use crate::workload::compute::{iterate, start};
use cosched_core::{CpuId, CpuSet};
use cosched_linux::pin_thread;
use std::hint::black_box;
use std::io::{PipeReader, PipeWriter, Read as _, Result, Write as _, pipe};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const REPETITIONS: usize = 9;
const REPETITION: Duration = Duration::from_millis(30);

const SIBLING: &str = "smt.issue_share";
const SWITCH: &str = "kernel.switching.switch_us";
const MOVE: &str = "move_us";

/// Measures the share that a sibling of the first CPU takes.
pub fn siblings(bench: &Bench) -> Vec<Finding> {
    let Some(sibling) = bench.sibling else {
        return absent(&[SIBLING], "no core has two CPUs");
    };
    let cpus = CpuSet::from_iter([bench.cpus[0], sibling]);
    vec![finding(
        SIBLING,
        figure(&cpus, REPETITIONS, || issue_share(sibling)),
    )]
}

/// Growth of the time of arithmetic while a sibling does the same: 0 if nothing is shared, 1 if they take turns.
fn issue_share(sibling: CpuId) -> f64 {
    let alone = iterations_per_s();
    let stop = AtomicBool::new(false);
    let beside = std::thread::scope(|scope| {
        scope.spawn(|| {
            let _ = pin_thread(sibling);
            while !stop.load(Ordering::Relaxed) {
                black_box(iterate(start(2), 10_000));
            }
        });
        std::thread::sleep(Duration::from_millis(1));
        let beside = iterations_per_s();
        stop.store(true, Ordering::Relaxed);
        beside
    });
    (alone / beside - 1.0).clamp(0.0, 1.0)
}

fn iterations_per_s() -> f64 {
    let (begin, mut done) = (Instant::now(), 0);
    while begin.elapsed() < REPETITION {
        black_box(iterate(start(1), 10_000));
        done += 10_000;
    }
    f64::from(done) / begin.elapsed().as_secs_f64()
}

/// Measures a switch on the first CPU, and a move from there to another core.
pub fn switches(bench: &Bench) -> Vec<Finding> {
    let here = bench.cpus[0];
    let cpus = CpuSet::from_iter([here]);
    let mut all = Vec::new();
    all.push(match Talk::new() {
        Ok(mut talk) => finding(SWITCH, figure(&cpus, REPETITIONS, || talk.switch_us())),
        Err(why) => (SWITCH.to_owned(), Err(format!("no pipes: {why}"))),
    });
    let Some(&there) = bench.cpus.get(1) else {
        all.extend(absent(&[MOVE], "there is only one core"));
        return all;
    };
    let once = || (moves_us(here, there) - moves_us(here, here)).max(0.0);
    // The kernel moves a thread by a thread of its own, which would count as another program.
    all.push(finding(MOVE, figure(&CpuSet::new(), REPETITIONS, once)));
    all
}

/// Two pipes, through which two threads of one CPU wake each other.
struct Talk {
    ping: (PipeReader, PipeWriter),
    pong: (PipeReader, PipeWriter),
}

/// Rounds of one repetition.
const ROUNDS: u32 = 4000;

impl Talk {
    fn new() -> Result<Talk> {
        Ok(Talk {
            ping: pipe()?,
            pong: pipe()?,
        })
    }

    /// Microseconds of a switch: half a round of two threads, less what writing and reading cost without a switch. New
    /// threads inherit the CPU of this one.
    fn switch_us(&mut self) -> f64 {
        let calls = us_of(|| {
            for _ in 0..2 * ROUNDS {
                send(&mut self.ping.1);
                receive(&mut self.ping.0);
            }
        });
        let (ping, pong) = (&mut self.ping, &mut self.pong);
        let rounds = std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..ROUNDS {
                    receive(&mut ping.0);
                    send(&mut pong.1);
                }
            });
            us_of(|| {
                for _ in 0..ROUNDS {
                    send(&mut ping.1);
                    receive(&mut pong.0);
                }
            })
        });
        ((rounds - calls) / f64::from(2 * ROUNDS)).max(0.0)
    }
}

fn us_of(work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_secs_f64() * 1e6
}

fn send(writer: &mut PipeWriter) {
    // Both ends live as long as the threads.
    let _ = writer.write_all(&[0]);
}

fn receive(reader: &mut PipeReader) {
    let _ = reader.read_exact(&mut [0]);
}

/// Moves timed as one batch, short beside a time slice.
const MOVES: u32 = 10;

/// Batches of one repetition. The quickest counts: whatever disturbs a batch makes it slower.
const BATCHES: u32 = 100;

/// Microseconds of binding this thread to one CPU and then the other, for each time. It ends on the first.
fn moves_us(here: CpuId, there: CpuId) -> f64 {
    let mut quickest = f64::INFINITY;
    for _ in 0..BATCHES {
        let all = us_of(|| {
            for _ in 0..MOVES {
                let _ = pin_thread(there);
                let _ = pin_thread(here);
            }
        });
        quickest = quickest.min(all);
    }
    quickest / f64::from(2 * MOVES)
}
