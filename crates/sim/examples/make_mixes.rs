//! Writes the folder `mixes`: which programs run together in the experiments of the papers. A rule decides where the
//! papers do not say. `cargo run --release -p cosched-sim --features examples --example make_mixes` in the repository's root
//! writes the same files each time; mixes/README.md explains the rules.
#![allow(clippy::disallowed_methods, clippy::disallowed_macros)] // The rules are the library's.

#[allow(dead_code)]
mod shared;

use cosched_core::*;
use cosched_sim::data::{PROGRAMS, builtin_machine, builtin_program};
use cosched_sim::*;
use shared::lab::policy_on;
use shared::shuffle;
use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

type Programs = Vec<Arc<ProgramSpec>>;
type Outcome = Result<(), Box<dyn Error>>;

fn main() -> Outcome {
    let mut spec = Programs::new();
    for file in PROGRAMS {
        if file.file.contains("spec-cpu2006/") {
            spec.push(program(file.name)?);
        }
    }
    perf_fair(&spec)?;
    poster(&spec)?;
    lucky(&spec)?;
    efs(&spec)
}

fn program(name: &str) -> Result<Arc<ProgramSpec>, Box<dyn Error>> {
    let program = builtin_program(name).ok_or("no such program")?;
    Ok(Arc::new(program))
}

fn machine(name: &str) -> Result<MachineSpec, Box<dyn Error>> {
    Ok(builtin_machine(name).ok_or("no such machine")?)
}

fn job(program: &Arc<ProgramSpec>) -> SimJob {
    // A tenth of the papers' 100 s: the means agree to a few per cent.
    let work = JobWork::SoloTime(Nanos::from_ms(10_000));
    SimJob {
        program: program.clone(),
        work,
        cpus: 1,
        nice: 0,
    }
}

/// Lines per microsecond that each program reads when alone, with a part of the last-level cache.
fn solo_reads(name: &str, part: f64, programs: &Programs) -> Result<Vec<f64>, Box<dyn Error>> {
    let mut machine = machine(name)?;
    machine.llc.mb *= part;
    let jobs = programs.iter().map(job).collect();
    let mut config = SimConfig::new(Arc::new(machine), jobs, 1);
    config.variation = 0.0;
    let mut reads = Vec::new();
    for run in Sim::new(config)?.solo_runs() {
        reads.push(run.mm_reads.per_us());
    }
    Ok(reads)
}

/// The programs whose solo reads pass the test.
fn chosen(spec: &Programs, reads: &[f64], is_chosen: impl Fn(f64) -> bool) -> Programs {
    let mut chosen = Programs::new();
    for (program, reads) in spec.iter().zip(reads) {
        if is_chosen(*reads) {
            chosen.push(program.clone());
        }
    }
    chosen
}

/// Mean bandwidth of reads in lines per microsecond over a run under `linux`.
fn mean_under_linux(
    machine: &Arc<MachineSpec>,
    programs: &Programs,
) -> Result<f64, Box<dyn Error>> {
    let (mut policy, config) = policy_on(machine, "linux", &[]);
    let jobs = programs.iter().map(job).collect();
    let mut sim = Sim::new(SimConfig::new(machine.clone(), jobs, 1))?;
    let mut tasks = Vec::new();
    for (program, id) in programs.iter().zip(0..) {
        tasks.push(TaskSpec::new(id, &program.name));
    }
    let result = run(&mut sim, &mut *policy, &mut NullRecorder, tasks, &config)?;
    let mut reads = 0;
    for task in &result.tasks {
        reads += task.counts[Counter::MmReads].value().unwrap_or(0);
    }
    Ok(reads as f64 / result.turnaround.as_us())
}

/// A random order of `copies` of each program.
fn shuffled(programs: &[Arc<ProgramSpec>], copies: usize, rng: &mut Rng) -> Programs {
    let mut all = vec![programs; copies].concat();
    shuffle(&mut all, rng);
    all
}

/// Writes a mix of whole programs.
fn write(path: &str, about: &str, programs: &Programs) -> Outcome {
    write_parts(path, about, programs, "", None)
}

/// Writes a mix with these lines at its top. Where `part` is given, each job does that part of its program's instructions.
fn write_parts(
    path: &str,
    about: &str,
    programs: &Programs,
    top: &str,
    part: Option<f64>,
) -> Outcome {
    let mut copies: BTreeMap<&str, u32> = BTreeMap::new();
    for program in programs {
        *copies.entry(&program.name).or_default() += 1;
    }
    let mut text = String::new();
    for line in about.lines() {
        writeln!(text, "# {line}")?;
    }
    writeln!(text, "schema = \"cosched.mix/1\"")?;
    text.push_str(top);
    for (name, copies) in copies {
        writeln!(text, "\n[[job]]\nname = \"{name}\"\nprogram = \"{name}\"")?;
        if copies > 1 {
            writeln!(text, "copies = {copies}")?;
        }
        let whole = program(name)?.instructions;
        if let (Some(part), Some(whole)) = (part, whole) {
            writeln!(text, "work_instructions = {:.2e}", part * whole)?;
        }
    }
    let path = Path::new("mixes").join(path);
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    println!("{}", path.display());
    Ok(std::fs::write(path, text)?)
}

/// A candidate for a mix of Perf&Fair.
struct Candidate {
    programs: Programs,
    /// Number of heavy programs.
    heavy: usize,
    /// Distance from the target.
    off: f64,
}

/// Thirteen mixes of 24 in ascending order of mean bandwidth under linux, from 60 to 140 lines per microsecond.
fn perf_fair(spec: &Programs) -> Outcome {
    let reads = solo_reads("xeon-e5645", 1.0 / 12.0, spec)?;
    let heavy = chosen(spec, &reads, |reads| reads >= 15.0);
    let light = chosen(spec, &reads, |reads| reads < 15.0);
    for mix in 1..=13u64 {
        let target = 60.0 + 80.0 * (mix - 1) as f64 / 12.0;
        let Candidate {
            programs, heavy, ..
        } = closest(&heavy, &light, mix, target)?;
        let about = format!(
            "Perf&Fair, mix {mix} of 13: 24 programs, {heavy} of them heavy (15 or more lines read per microsecond when\n\
             alone with a twelfth of the last-level cache).\n\
             Chosen to read about {target:.0} lines per microsecond on average, under linux on xeon-e5645 (simulated)."
        );
        write(&format!("perf-fair/mix{mix:02}.toml"), &about, &programs)?;
    }
    Ok(())
}

/// The mix of heavy and light programs whose mean bandwidth is closest to the target.
fn closest(
    heavy: &Programs,
    light: &Programs,
    mix: u64,
    target: f64,
) -> Result<Candidate, Box<dyn Error>> {
    let machine = Arc::new(machine("xeon-e5645")?);
    let mut best: Option<Candidate> = None;
    for draw in 0..3 {
        let mut rng = Rng::new(10 * mix + draw);
        let heavy = shuffled(heavy, 2, &mut rng);
        let light = shuffled(light, 2, &mut rng);
        for n in 0..=24 {
            let programs = [&heavy[..n], &light[..24 - n]].concat();
            let mean = mean_under_linux(&machine, &programs)?;
            let off = (mean - target).abs();
            if best.as_ref().is_none_or(|best| off < best.off) {
                best = Some(Candidate {
                    programs,
                    heavy: n,
                    off,
                });
            }
            if mean > target + 30.0 {
                break;
            }
        }
    }
    Ok(best.ok_or("no mix")?)
}

/// Ten mixes of 24, drawn from two of each program.
fn poster(spec: &Programs) -> Outcome {
    for mix in 1..=10 {
        let drawn = drawn(spec, 2, 100 + mix, 24);
        let about = format!(
            "The poster on bandwidth-aware scheduling, mix {mix} of 10: 24 programs drawn from two of each."
        );
        write(&format!("bandwidth/mix{mix:02}.toml"), &about, &drawn)?;
    }
    Ok(())
}

/// This many of `copies` of each program, drawn at random.
fn drawn(programs: &Programs, copies: usize, seed: u64, size: usize) -> Programs {
    let mut all = shuffled(programs, copies, &mut Rng::new(seed));
    all.truncate(size);
    all
}

/// The lucky paper's mixes of four: compute-intensive (CI), memory-intensive (MI), with phases (P), random (R).
fn lucky(spec: &Programs) -> Outcome {
    let reads = solo_reads("big1-small3", 1.0, spec)?;
    let compute = chosen(spec, &reads, |reads| reads <= 2.0);
    let memory = chosen(spec, &reads, |reads| reads >= 14.0);
    for (n, name) in ["4ci", "3ci-1mi", "2ci-2mi", "1ci-3mi", "4mi"]
        .iter()
        .enumerate()
    {
        let mut rng = Rng::new(200 + n as u64);
        let mut drawn = shuffled(&compute, 1, &mut rng)[..4 - n].to_vec();
        drawn.extend_from_slice(&shuffled(&memory, 1, &mut rng)[..n]);
        let title = name.to_uppercase();
        let others = 4 - n;
        let about = format!(
            "{title}: {others} programs with at most 2, {n} with at least 14 million misses a second when alone on the big core."
        );
        write_lucky(name, &about, &drawn)?;
    }
    let mut phased = spec.clone();
    phased.retain(|program| program.phases.len() > 1);
    let four = drawn(&phased, 1, 210, 4);
    write_lucky("4p", "4P: four programs with strong phases.", &four)?;
    for n in 1..=2 {
        let about = format!("4R{n}: four programs drawn from all.");
        write_lucky(&format!("4r{n}"), &about, &drawn(spec, 1, 210 + n, 4))?;
    }
    Ok(())
}

/// Writes a mix of the lucky paper. Each of its jobs is a whole program. A tenth of it keeps runs short, and the jobs as
/// unequal as they are. Tasks that end start again until the longest has ended once.
fn write_lucky(name: &str, about: &str, programs: &Programs) -> Outcome {
    let path = format!("lucky/{name}.toml");
    let restart = "restart = \"until-last\"\n";
    write_parts(
        &path,
        &format!("Lucky, {about}"),
        programs,
        restart,
        Some(0.1),
    )
}

/// EFS: four copies of each program; the synthetic benchmark; mixes of high demand.
fn efs(spec: &Programs) -> Outcome {
    for program in spec {
        let name = &program.name;
        let about = format!("EFS, Figure 8: four copies of {name}.");
        let four = vec![program.clone(); 4];
        write(&format!("efs/four-{name}.toml"), &about, &four)?;
    }
    let saturating = vec![program("bus-100")?; 4];
    let about = "EFS, Figure 7 and Table 1: four copies of a program that only misses.";
    write("efs/figure-7.toml", about, &saturating)?;
    let reads = solo_reads("i5-2500", 1.0, spec)?;
    // The bus of the paper serves 150 accesses per microsecond: a quarter of it each is as much as four cores can have.
    let pool = chosen(spec, &reads, |reads| reads >= 37.5);
    let mut all: Vec<Programs> = Vec::new();
    for (size, n) in [4, 4, 4, 4, 6, 6, 8, 8].into_iter().zip(1..) {
        let mix = new_mix(&pool, size, 299 + n, &all);
        let about = format!(
            "EFS, Figure 10, mix {n}: {size} programs that read at least 37.5 lines per microsecond alone."
        );
        write(&format!("efs/high-{n}.toml"), &about, &mix)?;
        all.push(mix);
    }
    Ok(())
}

/// A mix that is none of those before.
fn new_mix(pool: &Programs, size: usize, mut seed: u64, before: &[Programs]) -> Programs {
    // Two of each where there are not enough to choose from, so that no two mixes are the same.
    let copies = if pool.len() > size { 1 } else { 2 };
    loop {
        let mut mix = drawn(pool, copies, seed, size);
        mix.sort_by(|a, b| a.name.cmp(&b.name));
        if !before.contains(&mix) {
            return mix;
        }
        seed += 100;
    }
}
