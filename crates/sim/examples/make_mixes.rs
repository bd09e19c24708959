//! Writes the folder `mixes`: which programs run together in the experiments of the papers. A rule decides where the
//! papers do not say. `cargo run --release -p cosched-sim --example make_mixes` in the repository's root writes the
//! same files each time; mixes/README.md explains the rules.
#![allow(clippy::disallowed_methods, clippy::disallowed_macros)] // The rules are the library's.

use cosched_core::*;
use cosched_sim::data::{PROGRAMS, builtin_machine, builtin_program};
use cosched_sim::*;
use std::error::Error;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

type Programs = Vec<Arc<ProgramSpec>>;

fn main() -> Result<(), Box<dyn Error>> {
    let spec: Programs = PROGRAMS
        .iter()
        .filter(|program| program.file.contains("spec-cpu2006/"))
        .filter_map(|program| builtin_program(program.name))
        .map(Arc::new)
        .collect();
    perf_fair(&spec)?;
    poster(&spec)?;
    lucky(&spec)?;
    efs(&spec)
}

fn job(program: &Arc<ProgramSpec>) -> SimJob {
    // A tenth of the papers' 100 s: the means agree to a few per cent.
    let work = Work::SoloTime(Nanos::from_ms(10_000));
    SimJob {
        program: program.clone(),
        work,
        cpus: 1,
        nice: 0,
    }
}

/// Lines per microsecond that each program reads when alone, with a part of the last-level cache.
fn solo_reads(machine: &str, part: f64, programs: &Programs) -> Result<Vec<f64>, Box<dyn Error>> {
    let mut machine = builtin_machine(machine).ok_or("no such machine")?;
    machine.llc.mb *= part;
    let jobs = programs.iter().map(job).collect();
    let sim = Sim::new(SimConfig {
        variation: 0.0,
        ..SimConfig::new(Arc::new(machine), jobs, 1)
    })?;
    Ok(sim
        .solo_runs()
        .iter()
        .map(|run| run.mm_reads.per_us())
        .collect())
}

/// Mean bandwidth of reads in lines per microsecond over a run under `linux`.
fn mean_under_linux(
    machine: &Arc<MachineSpec>,
    programs: &Programs,
) -> Result<f64, Box<dyn Error>> {
    let entry = find_policy("linux").ok_or("no linux")?;
    let params = machine.params_for(entry)?;
    let mut sim = Sim::new(SimConfig::new(
        machine.clone(),
        programs.iter().map(job).collect(),
        1,
    ))?;
    let tasks = programs
        .iter()
        .zip(0..)
        .map(|(program, id)| TaskSpec::new(id, &program.name))
        .collect();
    let result = run(
        &mut sim,
        &mut *(entry.build)(&params),
        &mut NullRecorder,
        tasks,
        &RunConfig::default(),
    )?;
    let reads: u64 = result
        .tasks
        .iter()
        .filter_map(|task| task.counts[Counter::MmReads].value())
        .sum();
    Ok(reads as f64 / result.turnaround.as_us())
}

/// A random order of `copies` of each program.
fn shuffled(programs: &[Arc<ProgramSpec>], copies: usize, rng: &mut Rng) -> Programs {
    let mut all: Programs = (0..copies).flat_map(|_| programs.iter().cloned()).collect();
    for last in (1..all.len()).rev() {
        all.swap(last, rng.below(last as u64 + 1) as usize);
    }
    all
}

/// Writes a mix. Where `part` is given, each job does that part of its program's instructions.
fn write(
    path: &str,
    about: &str,
    programs: &Programs,
    top: &str,
    part: Option<f64>,
) -> Result<(), Box<dyn Error>> {
    let mut names: Vec<&str> = programs
        .iter()
        .map(|program| program.name.as_str())
        .collect();
    names.sort_unstable();
    let mut text = String::new();
    about
        .lines()
        .for_each(|line| _ = writeln!(text, "# {line}"));
    text.push_str("schema = \"cosched.mix/1\"\n");
    text.push_str(top);
    for group in names.chunk_by(|a, b| a == b) {
        let _ = write!(
            text,
            "\n[[job]]\nname = \"{0}\"\nprogram = \"{0}\"\n",
            group[0]
        );
        if group.len() > 1 {
            let _ = writeln!(text, "copies = {}", group.len());
        }
        let whole = programs
            .iter()
            .find(|program| program.name == group[0])
            .and_then(|program| program.instructions);
        if let Some((part, whole)) = part.zip(whole) {
            let _ = writeln!(text, "work_instructions = {:.2e}", part * whole);
        }
    }
    let path = Path::new("mixes").join(path);
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    println!("{}: {}", path.display(), names.join(" "));
    Ok(std::fs::write(path, text)?)
}

/// Thirteen mixes of 24 in ascending order of mean bandwidth under linux, from 60 to 140 lines per microsecond.
fn perf_fair(spec: &Programs) -> Result<(), Box<dyn Error>> {
    let machine = Arc::new(builtin_machine("xeon-e5645").ok_or("no such machine")?);
    let reads = solo_reads("xeon-e5645", 1.0 / 12.0, spec)?;
    let of = |heavy: bool| -> Programs {
        let fits = spec
            .iter()
            .zip(&reads)
            .filter(|&(_, &reads)| (reads >= 15.0) == heavy);
        fits.map(|(program, _)| program.clone()).collect()
    };
    for mix in 1..=13u64 {
        let target = 60.0 + 80.0 * (mix - 1) as f64 / 12.0;
        let mut best: Option<(f64, usize, f64, Programs)> = None;
        for draw in 0..3 {
            let mut rng = Rng::new(10 * mix + draw);
            let (heavy, light) = (
                shuffled(&of(true), 2, &mut rng),
                shuffled(&of(false), 2, &mut rng),
            );
            for n in 0..=24 {
                let programs: Programs =
                    heavy[..n].iter().chain(&light[..24 - n]).cloned().collect();
                let mean = mean_under_linux(&machine, &programs)?;
                let off = (mean - target).abs();
                if best.as_ref().is_none_or(|(least, ..)| off < *least) {
                    best = Some((off, n, mean, programs));
                }
                if mean > target + 30.0 {
                    break;
                }
            }
        }
        let (_, n, mean, programs) = best.ok_or("no mix")?;
        let about = format!(
            "Perf&Fair, mix {mix} of 13: 24 programs, {n} of them heavy (15 or more lines read per microsecond when\n\
             alone with a twelfth of the last-level cache).\n\
             Under linux on xeon-e5645 (simulated) they read about {mean:.0} lines per microsecond on average; aimed at {target:.0}."
        );
        write(
            &format!("perf-fair/mix{mix:02}.toml"),
            &about,
            &programs,
            "",
            None,
        )?;
    }
    Ok(())
}

/// Ten mixes of 24, drawn from two of each program.
fn poster(spec: &Programs) -> Result<(), Box<dyn Error>> {
    for mix in 1..=10 {
        let drawn = shuffled(spec, 2, &mut Rng::new(100 + mix))[..24].to_vec();
        let about = format!(
            "The poster on bandwidth-aware scheduling, mix {mix} of 10: 24 programs drawn from two of each."
        );
        write(
            &format!("bandwidth/mix{mix:02}.toml"),
            &about,
            &drawn,
            "",
            None,
        )?;
    }
    Ok(())
}

/// The lucky paper's mixes of four: compute-intensive (CI), memory-intensive (MI), with phases (P), random (R).
fn lucky(spec: &Programs) -> Result<(), Box<dyn Error>> {
    let reads = solo_reads("big1-small3", 1.0, spec)?;
    let of = |which: &dyn Fn(f64) -> bool| -> Programs {
        spec.iter()
            .zip(&reads)
            .filter(|&(_, &reads)| which(reads))
            .map(|(program, _)| program.clone())
            .collect()
    };
    let (compute, memory) = (of(&|reads| reads <= 2.0), of(&|reads| reads >= 14.0));
    let phased: Programs = spec
        .iter()
        .filter(|program| program.phases.len() > 1)
        .cloned()
        .collect();
    for (n, name) in ["4ci", "3ci-1mi", "2ci-2mi", "1ci-3mi", "4mi"]
        .iter()
        .enumerate()
    {
        let mut rng = Rng::new(200 + n as u64);
        let mut drawn = shuffled(&compute, 1, &mut rng)[..4 - n].to_vec();
        drawn.extend_from_slice(&shuffled(&memory, 1, &mut rng)[..n]);
        let about = format!(
            "Lucky, {}: {} programs with at most 2, {n} with at least 14 million misses a second when alone on the big core.",
            name.to_uppercase(),
            4 - n
        );
        write(
            &format!("lucky/{name}.toml"),
            &about,
            &drawn,
            RESTART,
            LUCKY_PART,
        )?;
    }
    let drawn = shuffled(&phased, 1, &mut Rng::new(210))[..4].to_vec();
    write(
        "lucky/4p.toml",
        "Lucky, 4P: four programs with strong phases.",
        &drawn,
        RESTART,
        LUCKY_PART,
    )?;
    for n in 1..=2 {
        let drawn = shuffled(spec, 1, &mut Rng::new(210 + n))[..4].to_vec();
        write(
            &format!("lucky/4r{n}.toml"),
            &format!("Lucky, 4R{n}: four programs drawn from all."),
            &drawn,
            RESTART,
            LUCKY_PART,
        )?;
    }
    Ok(())
}

/// Each job of the lucky paper is a whole program. A tenth of it keeps runs short, and the jobs as unequal as they are.
const LUCKY_PART: Option<f64> = Some(0.1);

/// Tasks that end start again until the longest has ended once.
const RESTART: &str = "restart = \"until-last\"\n";

/// EFS: four copies of each program; the synthetic benchmark; mixes of high demand.
fn efs(spec: &Programs) -> Result<(), Box<dyn Error>> {
    for program in spec {
        let about = format!("EFS, Figure 8: four copies of {}.", program.name);
        write(
            &format!("efs/four-{}.toml", program.name),
            &about,
            &vec![program.clone(); 4],
            "",
            None,
        )?;
    }
    let saturating = Arc::new(builtin_program("bus-100").ok_or("no such program")?);
    let about = "EFS, Figure 7 and Table 1: four copies of a program that only misses.";
    write("efs/figure-7.toml", about, &vec![saturating; 4], "", None)?;
    let reads = solo_reads("i5-2500", 1.0, spec)?;
    let high = |least: f64| -> Programs {
        spec.iter()
            .zip(&reads)
            .filter(|&(_, &reads)| reads >= least)
            .map(|(program, _)| program.clone())
            .collect()
    };
    let mut all: Vec<Programs> = Vec::new();
    // The bus of the paper serves 150 accesses per microsecond: a quarter of it each is as much as four cores can have.
    for (n, size) in [4, 4, 4, 4, 6, 6, 8, 8].into_iter().enumerate() {
        // Two of each where there are not enough to choose from, so that no two mixes are the same.
        let pool = high(37.5);
        let copies = if pool.len() > size { 1 } else { 2 };
        let mut seeds = (300 + n as u64..).step_by(100);
        let drawn = loop {
            let seed = seeds.next().ok_or("no mix")?;
            let mut drawn = shuffled(&pool, copies, &mut Rng::new(seed))[..size].to_vec();
            drawn.sort_by(|a, b| a.name.cmp(&b.name));
            if !all.contains(&drawn) {
                all.push(drawn.clone());
                break drawn;
            }
        };
        let about = format!(
            "EFS, Figure 10, mix {}: {size} programs that read at least 37.5 lines per microsecond alone.",
            n + 1
        );
        write(
            &format!("efs/high-{}.toml", n + 1),
            &about,
            &drawn,
            "",
            None,
        )?;
    }
    Ok(())
}
