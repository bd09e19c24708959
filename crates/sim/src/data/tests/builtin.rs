//! The built-in machines, programs and curves.

use crate::data::{
    CURVES, MACHINES, PROGRAMS, builtin_machine, builtin_program, parse_curve, parse_machine,
    parse_program,
};
use crate::program::{ProgramPhase, ProgramSpec, Stall};
use crate::{JobWork, Sim, SimConfig, SimJob};
use cosched_core::Nanos;
use std::sync::Arc;

#[test]
fn every_machine_is_sound_and_called_as_its_file() {
    let cpus = |name: &str| builtin_machine(name).expect(name).machine().cpus.len();
    for file in MACHINES {
        let spec = parse_machine(file.text, file.file).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(spec.name, file.name);
        spec.machine()
            .validate()
            .unwrap_or_else(|error| panic!("{error}"));
    }
    let expected = [
        ("big1-small3", 4),
        ("epyc-2cpu", 2),
        ("epyc-7502-2s", 128),
        ("i5-2500", 4),
        ("i5-2500-1.6ghz", 4),
        ("server-2x64", 256),
        ("xeon-8480", 112),
        ("xeon-e5645", 12),
        ("xeon-e5645-1ch", 12),
        ("xeon-e5645-2ch", 12),
    ];
    assert_eq!(
        MACHINES
            .iter()
            .map(|file| (file.name, cpus(file.name)))
            .collect::<Vec<_>>(),
        expected
    );
    let server = builtin_machine("server-2x64").expect("built in").machine();
    assert_eq!(
        (
            server.llcs.len(),
            server.memory_domains.len(),
            server.cores.len()
        ),
        (16, 2, 128)
    );
    assert!(builtin_machine("i5-2501").is_none());
}

#[test]
fn the_machines_with_fewer_channels_differ_in_nothing_else() {
    let three = builtin_machine("xeon-e5645").expect("built in");
    for (name, channels) in [("xeon-e5645-1ch", 1), ("xeon-e5645-2ch", 2)] {
        let mut fewer = builtin_machine(name).expect(name);
        assert_eq!(fewer.memory.channels, channels);
        fewer.memory.channels = three.memory.channels;
        (fewer.name, fewer.title) = (three.name.clone(), three.title.clone());
        // The parameters were fitted to each machine.
        fewer.params = three.params.clone();
        assert_eq!(fewer, three);
    }
}

#[test]
fn every_program_is_sound_and_called_as_its_file() {
    for file in PROGRAMS {
        let spec = parse_program(file.text, file.file).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(spec.name, file.name);
        let length: f64 = spec.phases.iter().map(|phase| phase.instructions).sum();
        for factor in [
            |phase: &ProgramPhase| phase.cpi,
            |phase: &ProgramPhase| phase.memory,
        ] {
            let mean: f64 = spec
                .phases
                .iter()
                .map(|phase| factor(phase) * phase.instructions / length)
                .sum();
            assert!(
                spec.phases.is_empty() || (mean - 1.0).abs() < 1e-3,
                "{}: mean {mean}",
                spec.name
            );
        }
    }
    let in_folder = |folder: &str| {
        PROGRAMS
            .iter()
            .filter(|file| file.file.starts_with(folder))
            .count()
    };
    let kinds = [
        "programs/spec-cpu2006/",
        "programs/workloads/",
        "programs/synthetic/",
    ]
    .map(in_folder);
    assert_eq!((kinds, PROGRAMS.len()), ([29, 5, 10], 44));
    assert!(builtin_program("mfc").is_none());
}

#[test]
fn names_of_programs_are_unique() {
    let mut names: Vec<&str> = PROGRAMS.iter().map(|file| file.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), PROGRAMS.len());
}

#[test]
fn a_program_comes_out_as_its_file_says() {
    let mcf = builtin_program("mcf").expect("built in");
    assert_eq!((mcf.core.cpi, mcf.core.l1_accesses_per_ki), (0.5, 410.0));
    assert_eq!(
        mcf.cache.llc_misses_per_ki,
        [(1.75, 59.0), (7.0, 33.9), (19.25, 27.7)]
    );
    assert_eq!(
        (
            mcf.memory.reads_per_ki,
            mcf.memory.writes_per_ki,
            mcf.memory.at_mb
        ),
        (59.8, 9.6, 2.5)
    );
    let fit = Stall::Fitted {
        cpi_fixed: -0.66,
        cpi_per_100_cycles: 1.783,
        from_cycles: 228.0,
    };
    assert_eq!(mcf.memory.stall, fit);
    assert_eq!(mcf.instructions, Some(327e9));
}

#[test]
fn synthetic_programs_use_the_bus_as_their_names_say() {
    let machine = Arc::new(builtin_machine("i5-2500-1.6ghz").expect("built in"));
    let jobs = (10..=100).step_by(10).map(|share| SimJob {
        program: Arc::new(builtin_program(&format!("bus-{share}")).expect("built in")),
        work: JobWork::SoloTime(Nanos::from_ms(1_000)),
        cpus: 1,
        nice: 0,
    });
    let sim = Sim::new(SimConfig {
        variation: 0.0,
        ..SimConfig::new(machine, jobs.collect(), 1)
    })
    .expect("sound");
    for (run, share) in sim.solo_runs().iter().zip((10..=100).step_by(10)) {
        let used = run.mm_reads.per_us() / 150.0;
        assert!(
            (used - f64::from(share) / 100.0).abs() < 2e-3,
            "bus-{share} uses {used}"
        );
    }
}

#[test]
fn the_power_of_lucky_s_big_core_peaks_at_the_highest_solo_ipc() {
    let machine = builtin_machine("big1-small3").expect("built in");
    let big = &machine.core_types[0];
    let cycles = machine.memory.idle_latency_ns * big.ghz;
    let spec = PROGRAMS
        .iter()
        .filter(|file| file.file.starts_with("programs/spec-cpu2006/"));
    let ipc = |program: ProgramSpec| {
        1.0 / match program.memory.stall {
            Stall::Fitted {
                cpi_fixed,
                cpi_per_100_cycles,
                ..
            } => cpi_fixed + cpi_per_100_cycles * cycles / 100.0,
            Stall::OverlapBySize { .. } => f64::NAN,
            Stall::Overlap { mlp } => {
                program.core.cpi + program.memory.reads_per_ki / 1000.0 * cycles / mlp
            }
        }
    };
    let highest = spec
        .map(|file| ipc(builtin_program(file.name).expect(file.name)))
        .fold(0.0, f64::max);
    let peak_w = big.idle_w + big.nj_per_instruction * highest * big.ghz;
    assert!(
        (peak_w - 18.9).abs() < 0.02 * 18.9,
        "IPC {highest}, {peak_w} W"
    );
}

#[test]
fn curves_ascend_from_idle_to_what_was_measured() {
    for file in CURVES {
        let (name, curve) =
            parse_curve(file.text, file.file).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(name, file.name);
        assert_eq!(curve.lines.len(), 6);
        for line in &curve.lines {
            assert_eq!(line.points[0], (0.0, 1.0));
            let ascends = |pair: &[(f64, f64)]| pair[0].0 < pair[1].0 && pair[0].1 < pair[1].1;
            assert!(line.points.windows(2).all(ascends), "{line:?}");
            let (bandwidth, latency) = line.points[line.points.len() - 1];
            match file.name {
                // The authors' cap: 82 of 85.3 GB/s and 1,500 of 228 cycles.
                "ddr3-1333" => assert_eq!((bandwidth, latency), (0.9613, 6.579)),
                // The greatest bandwidth of each line.
                _ => assert!((0.7..0.9).contains(&bandwidth) && latency > 1.9, "{line:?}"),
            }
        }
    }
}
