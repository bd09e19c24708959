//! The tables of admission as the kernel keeps them: `struct cosched_tables` of `bpf/bus.h`.

use crate::intf::Image;
use cosched_core::model::bus_admission_table::{BusAdmissionTable, DemandClass};

/// The length of a row in the kernel, with padding.
const COLUMNS: usize = 192;

/// The kernel's tables, in the order of the structure.
pub(crate) fn image(table: &BusAdmissionTable) -> Image {
    let mut bytes = Vec::new();
    for row in table.computing.iter() {
        let padding = vec![0_u32; COLUMNS - row.len()];
        for number in row.iter().chain(&padding) {
            bytes.extend(number.to_ne_bytes());
        }
    }
    bytes.extend(table.octave.iter().flat_map(|power| power.to_ne_bytes()));
    bytes.extend(table.free.iter().flat_map(|free| free.to_ne_bytes()));
    let log = &table.logarithms.log;
    bytes.extend(log.iter().flat_map(|log| log.to_ne_bytes()));
    for class in (0..=DemandClass::HIGHEST.number()).filter_map(DemandClass::from_number) {
        bytes.extend(table.demand_share(class).to_ne_bytes());
    }
    Image(bytes)
}

/// `bpf/bus.h`, compiled for this machine, beside the model that it follows.
#[cfg(test)]
mod tests {
    use super::*;
    use cosched_core::Rng;
    use cosched_core::model::bus::solo_utilisation;
    use cosched_core::model::bus_admission_table::{BusLoad, Gain};
    use cosched_core::model::starvation::{Starvation, Wait};
    use std::io::{Read as _, Write as _};
    use std::path::Path;
    use std::process::{Command, Stdio};

    /// Reads the tables and then pairs of a command and a number, and answers each with a number.
    const PROGRAM: &str = r#"
        #include <stdio.h>
        #ifndef __always_inline
        #define __always_inline inline __attribute__((always_inline))
        #endif
        #include "bus.h"
        #include "rules.h"

        static struct cosched_tables tables;
        static struct cosched_bus bus;

        int main(void)
        {
            unsigned int asked[4];

            if (fread(&tables, sizeof(tables), 1, stdin) != 1)
                return 2;
            while (fread(asked, sizeof(asked), 1, stdin) == 1) {
                int answer = 0;

                switch (asked[0]) {
                case 'a': answer = bus_add(&tables, &bus, asked[1]); break;
                case 'r': bus_remove(&tables, &bus, asked[1]); break;
                case 'c': answer = bus_ceiling(&tables, &bus, asked[1], 0); break;
                case 's': answer = bus_class_of_share(&tables, asked[1]); break;
                case 'd': answer = tables.demand[asked[1]]; break;
                case 'p': answer = bus_predict(asked[1], asked[2], asked[3]); break;
                case 'b': answer = bus_busy(asked[1], asked[2]); break;
                case 'u': answer = bus_solo(&tables, asked[1], asked[2], asked[3]); break;
                case 'l': answer = starves(asked[1], asked[2], 1, 20 * period(asked[3] & 255), 5 * period(asked[3] >> 8)); break;
                case 't': answer = starved_slice(asked[1], asked[2]); break;
                default: return 3;
                }
                fwrite(&answer, sizeof(answer), 1, stdout);
            }
            return 0;
        }
    "#;

    /// A question, and the model's answer.
    type Case = ([u32; 4], i32);

    /// The answers of the C program; `None` where nothing compiles it.
    fn answers(cases: &[Case]) -> Option<Vec<i32>> {
        let dir = tempfile::tempdir().unwrap();
        let (source, program) = (dir.path().join("bus.c"), dir.path().join("bus"));
        std::fs::write(&source, PROGRAM).unwrap();
        let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
        let headers = Path::new(env!("CARGO_MANIFEST_DIR")).join("bpf");
        // Whatever is undefined in C ends the program.
        let strict = ["-O1", "-Wall", "-Wextra", "-fsanitize=undefined,bounds"];
        let strict =
            strict
                .into_iter()
                .chain(["-fsanitize-undefined-trap-on-error", "-std=gnu11", "-I"]);
        let status = Command::new(&compiler)
            .args(strict)
            .arg(headers)
            .arg(&source)
            .arg("-o")
            .arg(&program)
            .status();
        match status {
            Ok(status) => assert!(status.success(), "bus.h does not compile"),
            Err(error) => {
                println!("skipped, because there is no C compiler: {error}");
                return None;
            }
        }
        let mut child = Command::new(&program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut told = image(&BusAdmissionTable::new()).0;
        cases
            .iter()
            .flat_map(|case| case.0)
            .for_each(|word| told.extend(word.to_ne_bytes()));
        let mut to = child.stdin.take().unwrap();
        let writer = std::thread::spawn(move || to.write_all(&told));
        let mut answered = Vec::new();
        child
            .stdout
            .take()
            .unwrap()
            .read_to_end(&mut answered)
            .unwrap();
        let status = child.wait().unwrap();
        assert!(
            status.success(),
            "{status} after {} answers",
            answered.len() / 4
        );
        writer.join().unwrap().unwrap();
        Some(
            answered
                .chunks_exact(4)
                .map(|four| i32::from_ne_bytes(four.try_into().unwrap()))
                .collect(),
        )
    }

    fn check(cases: &[Case]) {
        check_within(cases, 0);
    }

    /// Checks that no answer differs by more than this.
    fn check_within(cases: &[Case], most: u32) {
        let Some(answers) = answers(cases) else {
            return;
        };
        assert_eq!(answers.len(), cases.len());
        for (nth, ((asked, expected), got)) in cases.iter().zip(&answers).enumerate() {
            let [command, ..] = asked;
            assert!(
                got.abs_diff(*expected) <= most,
                "question {nth}: {} {asked:?}: {got}, not {expected}",
                char::from(*command as u8)
            );
        }
    }

    fn number(class: Option<DemandClass>) -> i32 {
        class.map_or(-1, |class| i32::from(class.number()))
    }

    #[test]
    fn the_kernel_s_threshold_is_the_model_s() {
        let table = BusAdmissionTable::new();
        let mut rng = Rng::new(7);
        let mut cases: Vec<Case> = Vec::new();
        // Loads of up to a few and up to many tasks, of all demands and of small and great ones.
        for round in 0..60 {
            let mut load = BusLoad::new();
            let mut there: Vec<u16> = Vec::new();
            let most = [3, 20, 300, 2_500][round % 4];
            let classes = [(0, 3_330), (0, 2), (2_400, 400), (3_000, 330)][round / 4 % 4];
            for _ in 0..most.min(600) + 40 {
                let adds = there.is_empty() || (rng.below(3) > 0 && there.len() < most);
                if adds {
                    let class = classes.0 + rng.below(classes.1) as u16;
                    let added = load.add(&table, DemandClass::from_number(class).unwrap());
                    cases.push((['a' as u32, class.into(), 0, 0], i32::from(added)));
                    there.push(class);
                } else {
                    let class = there.swap_remove(rng.below(there.len() as u64) as usize);
                    assert!(load.remove(&table, DemandClass::from_number(class).unwrap()));
                    cases.push((['r' as u32, class.into(), 0, 0], 0));
                }
                for gain in [0.0, 0.9, 1.0, 1.02, 1.2, 1.5, 2.0, 4_096.0] {
                    let gain = Gain::of(gain + rng.below(1_000) as f64 * 1e-4).unwrap();
                    cases.push((
                        ['c' as u32, gain.number(), 0, 0],
                        number(table.ceiling(&load, gain)),
                    ));
                }
            }
            for class in there {
                cases.push((['r' as u32, class.into(), 0, 0], 0));
            }
        }
        check(&cases);
    }

    #[test]
    fn the_kernel_s_load_has_an_end() {
        let class = DemandClass::from_number(3_000).unwrap();
        let table = BusAdmissionTable::new();
        let mut load = BusLoad::new();
        let cases: Vec<Case> = (0..2_100)
            .map(|_| {
                (
                    ['a' as u32, class.number().into(), 0, 0],
                    i32::from(load.add(&table, class)),
                )
            })
            .collect();
        assert!(cases.iter().any(|case| case.1 == 0));
        check(&cases);
    }

    #[test]
    fn the_kernel_measures_demands_as_the_model_does() {
        let table = BusAdmissionTable::new();
        let mut rng = Rng::new(9);
        let mut cases: Vec<Case> = Vec::new();
        for _ in 0..3_000 {
            // A millisecond or so, of which the bus was busy for a part: for this task, and for all.
            let span = 300_000 + rng.below(4_000_000) as u32;
            let total = 1 + rng.below(4_092) as u32;
            let used = 1 + rng.below(u64::from(total)) as u32;
            let busy = (u64::from(span) * u64::from(used) / 4_096) as u32;
            let share = f64::from(busy) / f64::from(span);
            let demand = solo_utilisation(share, 1.0 - f64::from(total) / 4_096.0).unwrap();
            let class = number(table.class_of(demand).ok());
            cases.push((['u' as u32, busy, span, total], class));
        }
        // In integers it rounds four logarithms.
        check_within(&cases, 1);
        // A bus that is full leaves 1/1024, and a task that does not use it has no demand.
        let full = solo_utilisation(0.5, 1.0 / 1024.0).unwrap();
        let full = number(table.class_of(full).ok());
        let full =
            [4_092, 4_096, 9_000].map(|total| (['u' as u32, 500_000, 1_000_000, total], full));
        check_within(&full, 1);
        check(&[(['u' as u32, 0, 1_000_000, 2_000], 0)]);
    }

    #[test]
    fn the_kernel_s_line_takes_its_part_of_the_writes() {
        let mut rng = Rng::new(10);
        let mut cases: Vec<Case> = Vec::new();
        for _ in 0..1_000 {
            let (per_us, factor) = (
                10.0 + rng.below(300) as f64,
                1.0 + rng.below(1_500) as f64 / 100.0,
            );
            let time = (1e3 / per_us * factor * f64::from(1 << 20)).round();
            let lines = rng.below(1_000_000) as u32;
            let busy = f64::from(lines) * 1e3 / per_us * factor;
            cases.push((['b' as u32, lines, time as u32, 0], busy as i32));
        }
        check_within(&cases, 1);
    }

    #[test]
    fn four_jobs_that_write_are_seen_to_fill_the_bus() {
        // libquantum reads 22.3 lines and writes 9.3 for each 1,000 instructions; four copies have all of the bus.
        let reads = 22.3 / (22.3 + 9.3);
        let span = 4_000_000.0;
        let measured = [1.0, 1.0 / reads].map(|lines_per_read| {
            let used = reads * lines_per_read;
            let (busy, total) = (span / 4.0 * used, 4_096.0 * used);
            (['u' as u32, busy as u32, span as u32, total as u32], 0)
        });
        let Some(classes) = answers(&measured) else {
            return;
        };
        // On the paper's machine four equal tasks are worth their power up to 0.28, and two up to 0.73.
        let table = BusAdmissionTable::new();
        let [four, two] = [0.28, 0.73].map(|demand| number(table.class_of(demand).ok()));
        assert!(classes[0] < four, "by its reads alone: {classes:?}");
        assert!(classes[1] > two, "with its writes: {classes:?}");
    }

    #[test]
    fn the_kernel_s_starvation_is_the_model_s() {
        let rule = Starvation::KERNEL;
        let mut rng = Rng::new(11);
        let mut cases: Vec<Case> = Vec::new();
        for nth in 0..3_000_u32 {
            let (own, all) = (1 + rng.below(12), 1 + rng.below(40));
            let (local, global) = (rule.local_ns(own), rule.global_ns(all));
            // At the limits, and anywhere up to somewhat more than these.
            let near = |limit: u64, edge: u32, any: u64| match edge {
                0 => limit,
                1 => limit + 1,
                _ => any % (2 * limit),
            };
            let wait = Wait {
                lag_ns: near(local, nth % 4, rng.below(u64::MAX)),
                not_run_ns: near(global, nth / 4 % 4, rng.below(u64::MAX)),
            };
            let [waits, lag] = [wait.not_run_ns, wait.lag_ns].map(|ns| ns as u32);
            let tasks = (own | all << 8) as u32;
            let starves = i32::from(rule.is_starved(wait, own, all));
            cases.push((['l' as u32, waits, lag, tasks], starves));
            let slice = rule.slice_ns(wait.lag_ns, own) as i32;
            cases.push((['t' as u32, lag, own as u32, 0], slice));
        }
        check(&cases);
    }

    /// EFS, Eq. 20, with a window of 2^20 ns.
    fn next(before: u32, now: u32, span: u32) -> u32 {
        let window = 1 << 20;
        let span = u64::from(span).min(window);
        let sum = u64::from(now) * span + u64::from(before) * (window - span);
        (sum >> 20) as u32
    }

    #[test]
    fn the_kernel_s_demands_are_the_model_s() {
        let table = BusAdmissionTable::new();
        let mut rng = Rng::new(8);
        let (mut cases, mut classes): (Vec<Case>, Vec<Case>) = Default::default();
        let edges = [0, 1, 2, 1 << 30, (1 << 31) - 1, 1 << 31];
        let mut share = |edge: usize| {
            edges
                .get(edge)
                .copied()
                .unwrap_or_else(|| rng.below(1 << 31) as u32 >> rng.below(31))
        };
        for nth in 0..5_000 {
            let (before, now) = (share(nth % 20), share(nth / 20 % 20));
            let class = table.class_of(f64::from(before) / f64::from(1_u32 << 31));
            classes.push((['s' as u32, before, 0, 0], class.unwrap().number().into()));
            let span = (nth as u32 * 499) % (1 << 21);
            cases.push((
                ['p' as u32, before, now, span],
                next(before, now, span) as i32,
            ));
        }
        for number in 0..=DemandClass::HIGHEST.number() {
            let share = table.demand_share(DemandClass::from_number(number).unwrap());
            cases.push((['d' as u32, number.into(), 0, 0], share as i32));
        }
        check(&cases);
        // In integers it rounds twice.
        check_within(&classes, 1);
    }
}
