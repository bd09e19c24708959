//! The files that come with the simulator are valid, and errors in a file name the place and what would be right.

use super::*;
use crate::program::{Phase, ProgramSpec, Stall};
use crate::{Sim, SimConfig, SimJob, Work};
use cosched_core::{Nanos, find_policy};
use std::sync::Arc;

const MACHINE: &str = include_str!("../../../../machines/big1-small3.toml");
const TWO_SOCKETS: &str = include_str!("../../../../machines/server-2x64.toml");
const PROGRAM: &str = include_str!("../../../../programs/spec-cpu2006/gcc.toml");
const OVERLAP: &str = include_str!("../../../../programs/spec-cpu2006/libquantum.toml");
const CURVE: &str = include_str!("../../../../machines/latency/ddr3-1333.toml");
const MACHINE_PAGE: &str = include_str!("../../../../docs/machine-file.md");
const PROGRAM_PAGE: &str = include_str!("../../../../docs/program-file.md");

type Reader = fn(&str, &str) -> Result<(), SpecError>;

const READ_MACHINE: Reader = |text, file| parse_machine(text, file).map(drop);
const READ_PROGRAM: Reader = |text, file| parse_program(text, file).map(drop);
const READ_CURVE: Reader = |text, file| parse_curve(text, file).map(drop);

/// The number of the first line that has this part.
fn line_of(text: &str, part: &str) -> usize {
    let at = text
        .find(part)
        .unwrap_or_else(|| panic!("`{part}` is not in the text"));
    text[..at].matches('\n').count() + 1
}

/// Replaces `from` by `to` in a valid file. The reader's error must name the line of `at` and contain the parts.
fn check(read: Reader, good: &str, (from, to): (&str, &str), at: &str, parts: &[&str]) {
    assert!(good.contains(from), "`{from}` is not in the file");
    let bad = good.replacen(from, to, 1);
    let error = read(&bad, "my.toml").expect_err(to).to_string();
    let place = format!("my.toml:{}: ", line_of(&bad, at));
    assert!(error.starts_with(&place), "{error}\nexpected {place}");
    for part in parts {
        assert!(error.contains(part), "{error}\nexpected `{part}`");
    }
}

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
        ("i5-2500", 4),
        ("i5-2500-1.6ghz", 4),
        ("server-2x64", 256),
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
        for factor in [|phase: &Phase| phase.cpi, |phase: &Phase| phase.memory] {
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
        work: Work::SoloTime(Nanos::from_ms(1_000)),
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
fn curves_ascend_from_idle_to_the_cap() {
    for file in CURVES {
        let (name, curve) =
            parse_curve(file.text, file.file).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(name, file.name);
        let reads: Vec<f64> = curve.lines.iter().map(|line| line.reads).collect();
        assert_eq!(reads, [0.5, 0.6, 0.7, 0.8, 0.9, 1.0]);
        for line in &curve.lines {
            assert_eq!(line.points[0], (0.0, 1.0));
            let ascends = |pair: &[(f64, f64)]| pair[0].0 < pair[1].0 && pair[0].1 < pair[1].1;
            assert!(line.points.windows(2).all(ascends), "{line:?}");
            // The authors' cap: 82 of 85.3 GB/s and 1,500 of 228 cycles.
            assert_eq!(line.points[line.points.len() - 1], (0.9613, 6.579));
        }
    }
}

#[test]
fn wrong_machine_files_are_refused_with_line_and_remedy() {
    let check = |change, at: &str, parts: &[&str]| check(READ_MACHINE, MACHINE, change, at, parts);
    check(
        ("channels = 2", "channels = 0"),
        "channels =",
        &["[memory] channels is 0; expected 1 to 64; see `cosched man machine-file`"],
    );
    check(
        ("channels = 2", "channels = 2.5"),
        "channels =",
        &["2.5", "whole number"],
    );
    check(
        ("channels = 2", "channels = \"two\""),
        "channels =",
        &["is \"two\"; expected 1 to 64"],
    );
    check(
        ("channels = 2", "channel = 2"),
        "channel =",
        &["`channel`", "`channels`", "cosched man machine-file"],
    );
    check(
        ("channels = 2\n", ""),
        "[memory]",
        &["[memory] channels is missing; expected 1 to 64"],
    );
    check(
        (
            "cores_per_llc = 1\n",
            "cores_per_llc = 99999999999999999999\n",
        ),
        "cores_per_llc = 9",
        &["[core_type] cores_per_llc is 99999999999999999999; expected 1 to 512"],
    );
    check(
        ("ghz = 3.2", "ghz = nan"),
        "ghz = nan",
        &["[core_type] ghz is nan"],
    );
    check(
        ("ghz = 3.2", "ghz = -3.2"),
        "ghz = -3.2",
        &["-3.2", "0.1 to 10"],
    );
    check(("mb = 6", "mb = inf"), "mb = inf", &["[llc] mb is inf"]);
    check(
        ("noise = 0.01", "noise = 0.01\n[cache]"),
        "[cache]",
        &["`cache`", "`llc`"],
    );
    check(
        ("[llc]\nsource", "[llc]\n#"),
        "[llc]",
        &["[llc] source is missing; expected exactly one of `source`"],
    );
    check(
        ("mb = 6", "mb = 6\nassumed = \"x\""),
        "assumed = \"x\"",
        &["[llc] assumed is \"x\"; expected exactly one"],
    );
    check(
        ("source = \"lucky, section 2: 6 MB", "source = \" \" # "),
        "source = \" \"",
        &["[llc] source is \" \"; expected text"],
    );
    check(
        ("cosched.machine/1", "cosched.machine/9"),
        "schema",
        &["\"cosched.machine/9\"", "\"cosched.machine/1\""],
    );
    check(
        ("schema = \"cosched.machine/1\"\n", ""),
        "#",
        &["schema is missing"],
    );
    check(
        ("name = \"big1-small3\"", "name = \"a b\""),
        "name",
        &["\"a b\"", "letters"],
    );
}

#[test]
fn wrong_machines_are_refused_although_each_number_is_right() {
    let check = |change, at: &str, parts: &[&str]| check(READ_MACHINE, MACHINE, change, at, parts);
    check(
        ("name = \"small\"", "name = \"big\" # again"),
        "# again",
        &["[core_type] name is \"big\"; expected a name that no other"],
    );
    check(
        ("capacity = 1024\n", ""),
        "[[core_type]]",
        &["capacity is missing"],
    );
    check(
        ("capacity = 1024", "capacity = 1000"),
        "capacity = 1000",
        &["1024 for the first"],
    );
    let told = "min_slice_ms is 20; expected at most period_ms, 18";
    check(
        ("min_slice_ms = 4", "min_slice_ms = 20"),
        "min_slice_ms",
        &[told],
    );
    check(
        ("\"ddr3-1333\"", "\"ddr9\""),
        "curve =",
        &["curve is \"ddr9\"; expected \"ddr3-1333\""],
    );
    check(
        ("[core_type.power]", "[power_of_core]"),
        "[power_of_core]",
        &["`power_of_core`"],
    );
    check(("[kernel.switching]", "[other]"), "[other]", &["`other`"]);
    check(
        ("threads_per_core = 1", "threads_per_core = 2"),
        "#",
        &["smt is missing", "threads_per_core"],
    );
    check(
        ("sockets = 1", "sockets = 2"),
        "[latency]",
        &["remote_ns is missing"],
    );
    let all = |text: &str| {
        text.replacen("sockets = 2", "sockets = 64", 1)
            .replacen("= 8", "= 64", 1)
    };
    let error = READ_MACHINE(&all(TWO_SOCKETS), "my.toml")
        .expect_err("too many CPUs")
        .to_string();
    assert!(
        error.contains("number of CPUs is 65536; expected at most 8192"),
        "{error}"
    );
    let cut = &MACHINE[..MACHINE.find("[counters]").expect("there")];
    let error = READ_MACHINE(cut, "my.toml")
        .expect_err("no counters")
        .to_string();
    assert!(
        error.contains("my.toml:1: counters is missing; expected a table"),
        "{error}"
    );
}

#[test]
fn parameters_are_checked_against_those_of_the_policies() {
    let check = |change, at: &str, parts: &[&str]| check(READ_MACHINE, MACHINE, change, at, parts);
    check(
        ("mu_trans_per_us", "mu"),
        "mu =",
        &[
            "[params] mu is not a parameter of any policy",
            "cosched list policies",
        ],
    );
    let value = "mu_trans_per_us = 307.1";
    let range = "`mu_trans_per_us` of policy `efs` is `0`; expected a number from 0.001 to 1000000";
    check((value, "mu_trans_per_us = 0"), "mu_trans_per_us", &[range]);
    check(
        (value, "mu_trans_per_us = nan"),
        "mu_trans_per_us",
        &["is `nan`; expected a number from 0.001"],
    );
    check(
        (value, "c_local = 1e308"),
        "c_local",
        &["is `1e308`; expected a number from 0 to 1000000"],
    );
    check(
        (value, "mu_trans_per_us = [1]"),
        "mu_trans_per_us",
        &["is `[1]`; expected a number from 0.001"],
    );
    check(
        (value, "objective = \"speed\""),
        "objective",
        &["`objective` of policy `even` is `speed`; expected time or energy or"],
    );
    check(
        ("source = \"fitted", "source = 3 # \"fitted"),
        "source = 3",
        &["source is 3; expected text"],
    );
    check(
        ("source = \"fitted", "# \"fitted"),
        "[params]",
        &["[params] source is missing"],
    );
}

#[test]
fn a_policy_takes_what_it_has_of_the_machine_s_parameters() {
    let words = MACHINE.replacen(
        "mu_trans_per_us",
        "objective = \"edp\"\nquantum_s = 1\nmu_trans_per_us",
        1,
    );
    let machine = parse_machine(&words, "my.toml").expect("right");
    let params = |name: &str| {
        machine
            .params_for(find_policy(name).expect("there"))
            .expect("checked")
    };
    let efs = params("efs");
    assert_eq!(
        (
            efs.number("mu_trans_per_us"),
            efs.number("quantum_s"),
            efs.word("objective")
        ),
        (307.1, 1.0, "edp")
    );
    assert_eq!(efs.number("c_local"), 20.0, "as without the machine");
    let lucky = params("lucky");
    assert_eq!(
        (lucky.number("big_capacity_mips"), lucky.number("quantum_s")),
        (7686.0, 1.0)
    );
    assert_eq!(params("linux").number("quantum_s"), 1.0);
    let without = &MACHINE[..MACHINE.find("[params]").expect("there")];
    assert_eq!(parse_machine(without, "my.toml").expect("right").params, []);
}

#[test]
fn more_cpus_than_can_be_counted_are_still_too_many() {
    let start = MACHINE.find("[[core_type]]").unwrap();
    let end = MACHINE.find("[llc]").unwrap();
    let first = MACHINE[start..MACHINE[start + 1..].find("[[core_type]]").unwrap() + start + 1]
        .replace("cores_per_llc = 1", "cores_per_llc = 512")
        .replace("threads_per_core = 1", "threads_per_core = 8");
    // 64 x 64 caches of 256 types of 512 cores of 8 threads: 2^32.
    let types: String = (0..256)
        .map(|n| first.replace("\"big\"", &format!("\"type{n}\"")))
        .collect();
    let smt = "[smt]\nassumed = \"two\"\nissue_share = 0.4\nl1_wait_cycles = 1\n\n";
    let text = format!("{}{types}{smt}{}", &MACHINE[..start], &MACHINE[end..]).replace(
        "sockets = 1\nllcs_per_socket = 1",
        "sockets = 64\nllcs_per_socket = 64",
    );
    let text = text.replace("idle_latency_ns", "remote_ns = 80\nidle_latency_ns");
    let error = parse_machine(&text, "my.toml").unwrap_err().to_string();
    assert!(
        error.contains("the number of CPUs is 4294967296"),
        "{error}"
    );
}

#[test]
fn wrong_program_files_are_refused_with_line_and_remedy() {
    let check = |change, at: &str, parts: &[&str]| check(READ_PROGRAM, PROGRAM, change, at, parts);
    check(
        ("cpi = 0.52", "cpi = 0"),
        "cpi = 0\n",
        &["[core] cpi is 0; expected 0.05 to 100"],
    );
    check(("at_mb = 2.5", "at_mb = true"), "at_mb", &["at_mb is true"]);
    check(
        ("[7, 3.1]", "[1, 3.1]"),
        "[1, 3.1]",
        &["[1, 3.1]", "ascending"],
    );
    check(
        ("[7, 3.1]", "[7, 7.1]"),
        "[7, 7.1]",
        &["[7, 7.1]", "never ascending"],
    );
    check(
        ("[1.75, 6.7]", "[1.75, 13]"),
        "[1.75, 13]",
        &["[1.75, 13]", "0 to llc_accesses_per_ki"],
    );
    check(
        ("[7, 3.1]", "[7, -3.1]"),
        "[7, -3.1]",
        &["[7, -3.1]", "0 to llc_accesses_per_ki"],
    );
    check(
        ("[7, 3.1]", "[7]"),
        "[7]",
        &["llc_misses_per_ki is [7]; expected pairs of MB"],
    );
    check(
        ("[7, 3.1]", "[7, 3.1, 2]"),
        "[7, 3.1, 2]",
        &["[7, 3.1, 2]", "pairs of MB"],
    );
    check(
        ("[7, 3.1]", "[\"7\", 3.1]"),
        "3.1",
        &["pairs of MB", "cosched man program-file"],
    );
    check(
        ("[[1.75, 6.7], [7, 3.1], [19.25, 1.5]]", "[]"),
        "llc_misses",
        &["llc_misses_per_ki is []"],
    );
    check(
        ("from_cycles = 228\n", ""),
        "[memory]",
        &["from_cycles is missing"],
    );
    check(
        ("from_cycles = 228", "from_cycles = 228\nmlp = 2"),
        "mlp",
        &["mlp is 2", "either mlp"],
    );
    check(
        ("cpi_fixed = 0.52", "cpi_fixed = -5"),
        "cpi_fixed",
        &["is -5; expected at least 0.04"],
    );
    check(
        ("instructions = 6e9", "instructions = 10"),
        "instructions = 10,",
        &["10", "1000 to 1e15"],
    );
    check(
        ("memory = 2.0", "memory = -2.0"),
        "memory = -2.0",
        &["[phases.parts] memory is -2"],
    );
    check(
        ("memory = 2.0", "mem = 2.0"),
        "mem = 2.0",
        &["`mem`", "`memory`"],
    );
    check(
        ("[phases]\nassumed", "[phases]\n#"),
        "[phases]",
        &["source is missing"],
    );
    check(("[cache]", "[cash]"), "[cash]", &["`cash`", "`cache`"]);
    check(
        ("title = \"SPEC CPU2006 gcc: C compiler\"\n", ""),
        "schema",
        &["title is missing"],
    );
}

#[test]
fn wrong_stalls_are_refused() {
    let check = |change, at: &str, parts: &[&str]| check(READ_PROGRAM, OVERLAP, change, at, parts);
    check(
        ("mlp = 17\n", ""),
        "[memory]",
        &["mlp is missing; expected either mlp, or cpi_fixed"],
    );
    check(("mlp = 17", "mlp = 0.5"), "mlp = 0.5", &["1 to 64"]);
}

#[test]
fn use_of_memory_without_misses_is_refused() {
    let bad = OVERLAP.replace("[[1.75, 30.5], [7, 25.4], [19.25, 14.6]]", "[[1.75, 0]]");
    let error = READ_PROGRAM(&bad, "my.toml")
        .expect_err("reads without misses")
        .to_string();
    assert!(
        error.contains("reads_per_ki is 22.3; expected 0, since with at_mb of cache"),
        "{error}"
    );
}

/// 100 times 4.9 is 490.00000000000006.
#[test]
fn writes_may_be_a_hundred_times_the_reads() {
    let written = |writes: &str| {
        let text = OVERLAP.replace("reads_per_ki = 22.3", "reads_per_ki = 4.9");
        READ_PROGRAM(
            &text.replace("writes_per_ki = 9.3", &format!("writes_per_ki = {writes}")),
            "my.toml",
        )
    };
    let error = written("491").expect_err("too many").to_string();
    assert!(
        error.contains("writes_per_ki is 491; expected at most 100 for each line read"),
        "{error}"
    );
    assert!(written("490").is_ok());
}

#[test]
fn writes_without_reads_are_refused() {
    for reads in ["0", "1e-308", "0.023"] {
        let bad = OVERLAP.replace("reads_per_ki = 22.3", &format!("reads_per_ki = {reads}"));
        let error = READ_PROGRAM(&bad, "my.toml")
            .expect_err("writes follow reads")
            .to_string();
        assert!(
            error.contains("writes_per_ki is 9.3; expected at most") && error.contains("my.toml:"),
            "{error}"
        );
    }
}

#[test]
fn wrong_latency_files_are_refused_with_line_and_remedy() {
    let check = |change, at: &str, parts: &[&str]| check(READ_CURVE, CURVE, change, at, parts);
    check(("    [0, 1], ", "    "), "    [0.", &["from [0, 1]"]);
    check(("    [0, 1]", "    [0, 1.1]"), "[0, 1.1]", &["from [0, 1]"]);
    check(
        ("[0.9613, 6.579]", "[0.9613, 1.001]"),
        "[0.9613, 1.001]",
        &["ascending"],
    );
    check(
        ("[0.9613, 6.579]", "[1.9, 6.579]"),
        "[1.9, 6.579]",
        &["0 to 1"],
    );
    check(
        ("reads = 0.6", "reads = 0.4"),
        "reads = 0.4",
        &["is 0.4; expected more than in the line before"],
    );
    check(("reads = 0.5", "reads = 0"), "reads = 0\n", &["0.01 to 1"]);
    let cut = &CURVE[..CURVE.find("[[line]]").expect("there")];
    let error = READ_CURVE(cut, "my.toml").expect_err("no line").to_string();
    assert!(
        error.contains("line is missing; expected a list of tables"),
        "{error}"
    );
}

#[test]
fn a_file_with_any_line_missing_is_read_or_refused_at_a_line() {
    let files = [
        (READ_MACHINE, MACHINE),
        (READ_MACHINE, TWO_SOCKETS),
        (READ_PROGRAM, PROGRAM),
        (READ_CURVE, CURVE),
    ];
    let mut refused = 0;
    for (read, good) in files {
        let lines: Vec<&str> = good.lines().collect();
        for ix in 0..lines.len() {
            let rest = [&lines[..ix], &lines[ix + 1..]].concat().join("\n");
            let Err(error) = read(&rest, "my.toml") else {
                continue;
            };
            refused += 1;
            let error = error.to_string();
            let line: usize = error
                .strip_prefix("my.toml:")
                .and_then(|rest| rest.split_once(": "))
                .and_then(|(line, _)| line.parse().ok())
                .unwrap_or_else(|| panic!("no line in: {error}"));
            assert!((1..=lines.len()).contains(&line), "{error}");
        }
    }
    assert!(refused > 100, "{refused}");
}

/// Whether a table of the page has a row that begins with the key and contains the text.
fn has_row(page: &str, key: &str, text: &str) -> bool {
    page.lines()
        .any(|line| line.starts_with(&format!("| `{key}` |")) && line.contains(text))
}

/// Replaces each number of a valid file by an impossible one; returns each key and the range that the error names.
fn ranges(read: Reader, good: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for (ix, line) in good.lines().enumerate() {
        let Some((key, value)) = line.split_once(" = ") else {
            continue;
        };
        if value.parse::<f64>().is_err() {
            continue;
        }
        let mut lines: Vec<&str> = good.lines().collect();
        let bad = format!("{key} = -1e18");
        lines[ix] = &bad;
        let error = read(&lines.join("\n"), "my.toml")
            .expect_err(&bad)
            .to_string();
        assert!(
            error.starts_with(&format!("my.toml:{}: ", ix + 1)),
            "{error}"
        );
        let (_, range) = error
            .split_once("; expected ")
            .unwrap_or_else(|| panic!("no range in: {error}"));
        let range = range.split(';').next().unwrap_or_default();
        let range = range.trim_start_matches("a number from ");
        let short = range.replace("1000000000", "1e9").replace("1000000", "1e6");
        found.push((key.to_owned(), short));
    }
    found
}

#[test]
fn every_number_has_a_documented_range() {
    let files: [(Reader, &str, &str, usize); 4] = [
        (READ_MACHINE, MACHINE, MACHINE_PAGE, 31),
        (READ_MACHINE, TWO_SOCKETS, MACHINE_PAGE, 24),
        (READ_PROGRAM, PROGRAM, PROGRAM_PAGE, 9),
        (READ_PROGRAM, OVERLAP, PROGRAM_PAGE, 7),
    ];
    for (read, good, page, least) in files {
        let ranges = ranges(read, good);
        assert!(ranges.len() >= least, "{}: {ranges:?}", ranges.len());
        for (key, range) in ranges {
            assert!(has_row(page, &key, &range), "no row for {key} with {range}");
        }
    }
}

/// The keys that the reader expects in place of an unknown one, which is put after `place`.
fn expected_keys(read: Reader, good: &str, place: &str) -> Vec<String> {
    assert!(good.contains(place), "`{place}` is not in the file");
    let text = good.replacen(place, &format!("{place}no_such_key = 1\n"), 1);
    let error = read(&text, "my.toml").expect_err(&text).to_string();
    let (_, keys) = error
        .split_once("the key `no_such_key` is unknown; expected ")
        .unwrap_or_else(|| panic!("no keys in: {error}"));
    let keys = keys.split(';').next().unwrap_or_default();
    keys.split('`')
        .skip(1)
        .step_by(2)
        .map(str::to_owned)
        .collect()
}

#[test]
fn every_key_is_documented() {
    let check = |read: Reader, good: &str, page: &str, places: &[&str], least: usize| {
        let mut keys = Vec::new();
        for place in places {
            keys.extend(expected_keys(read, good, place));
        }
        assert!(keys.len() >= least, "{keys:?}");
        for key in keys {
            let is_table = page.contains(&format!("[{key}]")) || page.contains(&format!(".{key}]"));
            assert!(
                has_row(page, &key, "") || is_table,
                "{key} is not documented"
            );
        }
    };
    let machine = [
        "2x64\"\n",
        "[topology]\n",
        "[[core_type]]\n",
        "[core_type.pipeline]\n",
        "[core_type.power]\n",
        "[smt]\n",
        "[llc]\n",
        "[llc.latency]\n",
        "[llc.replacement]\n",
        "[memory]\n",
        "[memory.banks]\n",
        "[latency]\n",
        "[power]\n",
        "[kernel]\n",
        "[kernel.switching]\n",
        "[counters]\n",
    ];
    check(READ_MACHINE, TWO_SOCKETS, MACHINE_PAGE, &machine, 90);
    check(
        READ_CURVE,
        CURVE,
        MACHINE_PAGE,
        &["ddr3-1333\"\n", "[[line]]\n"],
        8,
    );
    let program = [
        "gcc\"\n",
        "[length]\n",
        "[core]\n",
        "[core.hits]\n",
        "[cache]\n",
        "[memory]\n",
        "[phases]\n",
    ];
    check(READ_PROGRAM, PROGRAM, PROGRAM_PAGE, &program, 36);
    let end = PROGRAM.find("parts = ").expect("there");
    let part = format!("{}[[phases.parts]]\n", &PROGRAM[..end]);
    check(
        READ_PROGRAM,
        &part,
        PROGRAM_PAGE,
        &["[[phases.parts]]\n"],
        4,
    );
}

#[test]
fn the_examples_of_the_pages_are_right() {
    for (read, page) in [
        (READ_MACHINE, MACHINE_PAGE),
        (READ_CURVE, MACHINE_PAGE),
        (READ_PROGRAM, PROGRAM_PAGE),
    ] {
        let indented = |line: &&str| line.starts_with("    ") || line.is_empty();
        let lines: Vec<&str> = page.lines().collect();
        let examples: Vec<String> = lines
            .split(|line| !indented(line))
            .map(|block| {
                block
                    .iter()
                    .map(|line| line.get(4..).unwrap_or(""))
                    .collect::<Vec<_>>()
                    .join("\n")
            })
            .filter(|block| block.contains("schema = "))
            .collect();
        assert!(
            examples
                .iter()
                .any(|example| read(example, "example").is_ok()),
            "{examples:?}"
        );
    }
}

#[test]
fn machines_are_listed_in_the_page() {
    for file in MACHINES {
        assert!(
            has_row(MACHINE_PAGE, file.name, ""),
            "docs/machine-file.md does not list {}",
            file.name
        );
    }
}

/// Pieces of files are cut out, doubled, moved and replaced. Each result is read, or refused at one of its lines.
#[test]
fn mutilated_files_are_read_or_refused_at_a_line() {
    let mut rng = cosched_core::Rng::new(1);
    let odd = [
        "\u{e9}",
        "\"",
        "[",
        "]]",
        "=",
        "-",
        "nan",
        "inf",
        "1e308",
        "0",
        "9",
        "\n",
        "\r",
        "\0",
        "#",
        "{",
        "true",
        "\u{1f600}",
    ];
    for (read, good) in [
        (READ_MACHINE, MACHINE),
        (READ_PROGRAM, PROGRAM),
        (READ_PROGRAM, OVERLAP),
        (READ_CURVE, CURVE),
    ] {
        for _ in 0..1_500 {
            let mut chars: Vec<char> = good.chars().collect();
            for _ in 0..=rng.below(3) {
                let at = rng.below(chars.len() as u64) as usize;
                let end = (at + rng.below(12) as usize).min(chars.len());
                let piece: Vec<char> = chars[at..end].to_vec();
                let put = match rng.below(4) {
                    0 => Vec::new(),
                    1 => [piece.clone(), piece].concat(),
                    _ => odd[rng.below(odd.len() as u64) as usize].chars().collect(),
                };
                chars.splice(at..end, put);
            }
            let text: String = chars.into_iter().collect();
            if let Err(error) = read(&text, "my.toml") {
                let said = error.to_string();
                let line = said
                    .strip_prefix("my.toml:")
                    .and_then(|rest| rest.split(':').next()?.parse::<usize>().ok());
                let lines = text.matches('\n').count() + 1;
                assert!(
                    line.is_some_and(|line| (1..=lines).contains(&line)),
                    "{said}\n{text}"
                );
            }
        }
    }
}

#[test]
fn no_simulated_machine_is_called_like_the_real_one() {
    let (from, to) = ("name = \"big1-small3\"", "name = \"host\"");
    check(
        READ_MACHINE,
        MACHINE,
        (from, to),
        to,
        &["name is \"host\"", "another name"],
    );
}
