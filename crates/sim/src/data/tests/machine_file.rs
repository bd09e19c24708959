//! Machine files: errors, and parameters of policies.

use super::{MACHINE, READ_MACHINE, TWO_SOCKETS, check};
use crate::data::parse_machine;
use cosched_core::find_policy;

#[test]
fn wrong_machine_files_are_refused_with_line_and_remedy() {
    let check = |change, at: &str, parts: &[&str]| check(READ_MACHINE, MACHINE, change, at, parts);
    check(
        ("channels = 2", "channels = 0"),
        "channels =",
        &["[memory] channels is 0; expected 1 to 64; see `cosched help machine-file`"],
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
        &["`channel`", "`channels`", "cosched help machine-file"],
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
        &[
            "curve is \"ddr9\"; expected \"ddr3-1333\", \"ddr4-2666\", \"ddr4-3200-zen2\", \"ddr5-4800-spr\", or a latency file",
        ],
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
