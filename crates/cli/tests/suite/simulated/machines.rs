//! Machines, programs and mixes.

use crate::common::simulated::{MACHINE, with_mix};
use crate::common::{cosched, err, json, out, read, write};
use serde_json::Value;
use std::path::Path;
use tempfile::{TempDir, tempdir};

/// The names that a list has, but for this machine.
fn names(folder: &TempDir, what: &str) -> Vec<String> {
    let brief = out(&cosched(folder, &["list", what]));
    let lines = brief.lines().take_while(|line| !line.is_empty());
    let names = lines.filter_map(|line| line.split(' ').next());
    let is_file = |name: &&str| !name.is_empty() && !["host", "mine"].contains(name);
    names.filter(is_file).map(str::to_owned).collect()
}

fn file(folder: &TempDir, what: &str, name: &str) -> Value {
    let text = out(&cosched(folder, &["list", what, name]));
    toml::from_str(&text).expect("TOML")
}

/// Every machine by its name, and whether it has the counter or meter.
fn machines_with(folder: &TempDir, what: &str) -> Vec<(String, bool)> {
    let has = |name: String| {
        let entry = file(folder, "machines", &name);
        let has = entry["counters"][what].as_bool().unwrap_or(false);
        (name, has)
    };
    names(folder, "machines").into_iter().map(has).collect()
}

#[test]
fn every_machine_tells_what_it_can_and_no_more() {
    let folder = tempdir().expect("a folder");
    write(
        &folder,
        "mix.toml",
        "[[job]]\nprogram = \"lbm\"\ncopies = 2\nwork_instructions = 500_000_000\n",
    );
    let words = |machine: &str| {
        ["run", "mix.toml", "--format", "json", "-q", "--on", machine].map(str::to_owned)
    };
    let run = |words: &[String]| {
        cosched(
            &folder,
            &words.iter().map(String::as_str).collect::<Vec<_>>(),
        )
    };
    for (machine, _) in machines_with(&folder, "energy") {
        let energy = json(&run(&words(&machine)))["energy"].clone();
        // Energy is modelled in any case; a meter is something that a policy can read.
        assert!(
            energy["joules"].as_f64().is_some_and(|joules| joules > 0.0),
            "{machine}: {energy}"
        );
        assert_eq!(energy["source"], "modelled", "{machine}");
    }
    for (machine, has) in machines_with(&folder, "mm_reads") {
        let record = json(&run(&words(&machine)));
        assert_eq!(
            record["jobs"][1]["counts"]["mm_reads"].is_u64(),
            has,
            "{machine}: {record}"
        );
    }
}

#[test]
fn policies_for_two_types_of_core_run_where_there_are_two() {
    let folder = tempdir().expect("a folder");
    let job = |program: &str, work: &str| {
        format!("[[job]]\nprogram = \"{program}\"\nwork_instructions = {work}\n")
    };
    let jobs = [
        job("mcf", "1_000_000_000"),
        job("hmmer", "9_000_000_000"),
        job("namd", "3_000_000_000"),
    ]
    .concat();
    write(
        &folder,
        "mix.toml",
        &format!(
            "restart = \"until-last\"\n{jobs}{}",
            job("lbm", "1_000_000_000")
        ),
    );
    for policy in ["bias", "big-fair", "lucky"] {
        let words = [
            "run",
            "mix.toml",
            "--on",
            "big1-small3",
            "-q",
            "--policy",
            policy,
            "--format",
            "json",
        ];
        let record = json(&cosched(&folder, &words));
        let jobs = record["jobs"].as_array().expect("jobs");
        assert!(
            jobs.iter().all(|job| job["exit"].as_i64() == Some(0)),
            "{policy}: {record}"
        );
        assert!(
            jobs.iter().any(|job| job["runs"].as_u64() > Some(1)),
            "{policy}: {record}"
        );
        assert_eq!(record["overhead"]["policy_faults"].as_u64(), Some(0));
        let output = cosched(
            &folder,
            &["run", "mix.toml", "--on", MACHINE, "-q", "--policy", policy],
        );
        assert_eq!(output.status.code(), Some(3), "{policy}: {}", err(&output));
        let told = err(&output);
        assert!(
            told.contains(MACHINE) && told.contains("cosched list policies"),
            "{told}"
        );
    }
}

#[test]
fn parameters_come_from_the_machine_unless_the_user_says_otherwise() {
    let folder = with_mix();
    write(&folder, "profile.toml", "[params]\np1_w = 20\np2_w = 10\n");
    let run = [
        "run",
        "mix.toml",
        "--on",
        "i5-2500",
        "--policy",
        "efs",
        "--dry-run",
    ];
    let user = [
        "--profile",
        "profile.toml",
        "--param",
        "p2_w=11",
        "--param",
        "c_local=7",
    ];
    let text = out(&cosched(&folder, &[&run[..], &user[..]].concat()));
    for line in [
        "mu_trans_per_us = 149.3 (the machine's)",
        "p0_w = 26.6 (the machine's)",
        "p1_w = 20.0 (from --profile)",
        "p2_w = 11.0 (from --param)",
        "c_local = 7.0 (from --param)",
        "c_global = 5.0\n",
    ] {
        assert!(
            text.contains(&format!("          {line}")),
            "{line}: {text}"
        );
    }
    let object = json(&cosched(
        &folder,
        &[&run[..], &user[..], &["--format", "json"]].concat(),
    ));
    assert_eq!(object["params"]["mu_trans_per_us"], 149.3);
    let origins = &object["param_origins"];
    assert_eq!(
        (&origins["p0_w"], &origins["p1_w"]),
        (&"machine".into(), &"profile".into())
    );
    assert_eq!(
        (&origins["p2_w"], &origins["c_global"]),
        (&"param".into(), &Value::Null)
    );
    // A policy without these parameters is the same on every machine.
    let words = [
        "run",
        "mix.toml",
        "--on",
        "i5-2500",
        "--policy",
        "linux",
        "--dry-run",
        "--format",
        "json",
    ];
    assert_eq!(
        json(&cosched(&folder, &words))["param_origins"],
        serde_json::json!({})
    );
    let machine = file(&folder, "machines", "i5-2500");
    assert_eq!(machine["params"]["mu_trans_per_us"], 149.3);
}

/// A machine counts each set of events: the plan takes the policy of the row, and says what is missing and what that costs.
#[test]
fn auto_takes_what_the_counted_events_allow_and_says_so() {
    let folder = with_mix();
    let built_in = out(&cosched(&folder, &["list", "machines", MACHINE]));
    let events = ["ipc", "mm_reads", "llc_accesses", "l1_accesses"];
    let plan = |missing: &[&str]| {
        let withhold = |text: String, event: &&str| text.replace(&format!("{event} = true"), "");
        let machine = missing.iter().fold(built_in.clone(), withhold);
        write(&folder, "part.toml", &machine);
        out(&cosched(
            &folder,
            &["run", "mix.toml", "--on", "part.toml", "--dry-run"],
        ))
    };
    for bits in 0..1 << events.len() {
        let missing = events
            .iter()
            .enumerate()
            .filter(|(at, _)| bits >> at & 1 == 1);
        let missing: Vec<&str> = missing.map(|(_, event)| *event).collect();
        let counts = |event: &str| !missing.contains(&event);
        let policy = match events.map(counts) {
            [true, _, true, _] => "even",
            [_, true, ..] => "perf-fair",
            _ => "fifo",
        };
        let why = match &missing[..] {
            [] => "the machine has all that it needs",
            all if *all == events => {
                "this machine has no hardware counters; with them simulated mixes take "
            }
            _ => ": the counter hardware cannot count this event; with them simulated mixes take ",
        };
        let text = plan(&missing);
        let name = format!("policy    {policy} - ");
        assert!(
            text.contains(&name) && text.contains(why),
            "{missing:?}: {name}: {why}: {text}"
        );
    }
}

#[test]
fn as_paper_counts_for_more_than_the_machine_and_less_than_what_is_given_beside_it() {
    let folder = with_mix();
    let words = "run mix.toml --on xeon-e5645 --policy fair --dry-run --param valid_quanta=10 --param as=paper";
    let words: Vec<&str> = words.split(' ').collect();
    let text = out(&cosched(&folder, &words));
    for line in [
        "light_mm_trans_per_us = 3.5 (from --param)",
        "estimation_share_max = 1.0 (from --param)",
        "valid_quanta = 10.0 (from --param)",
    ] {
        assert!(
            text.contains(&format!("          {line}")),
            "{line}: {text}"
        );
    }
}

#[test]
fn the_record_names_all_that_was_lacking() {
    let folder = with_mix();
    let words = [
        "run",
        "mix.toml",
        "--on",
        MACHINE,
        "-p",
        "round-robin",
        "-v",
        "--logs",
        "L",
        "--events",
        "events",
    ];
    let output = cosched(&folder, &words);
    let record: Value = serde_json::from_str(&read(&folder, "L/run.json")).expect("JSON");
    let event: Value =
        serde_json::from_str(read(&folder, "events").lines().next().expect("a line"))
            .expect("JSON");
    let mut codes: Vec<&str> = record["missing"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|missing| missing["capability"].as_str().expect("a code"))
        .collect();
    codes.sort_unstable();
    let of_event: Vec<&String> = event["missing"]
        .as_object()
        .expect("an object")
        .keys()
        .collect();
    assert_eq!(codes, of_event);
    assert_eq!(codes, ["core-types", "disk", "energy", "mm-writes", "net"]);
    assert!(err(&output).contains("\noff: writes to memory "));
}

#[test]
fn machines_and_programs_are_listed_with_their_sources() {
    let folder = tempdir().expect("a folder");
    for (what, expected) in [("machines", MACHINE), ("programs", "mcf")] {
        let listed = names(&folder, what);
        assert!(listed.iter().any(|name| name == expected), "{what}");
        for name in listed {
            assert_eq!(file(&folder, what, &name)["name"], name.as_str());
        }
    }
    let unknown = cosched(&folder, &["list", "programs", "mcff"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(
        err(&unknown).contains("there is no `mcff` in this list (did you mean `mcf`?)"),
        "{}",
        err(&unknown)
    );
}

#[test]
fn every_mix_of_the_repository_can_be_simulated() {
    let folder = tempdir().expect("a folder");
    let mixes = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../mixes");
    let mut read = 0;
    for (part, machine, least) in [
        ("perf-fair", "xeon-e5645", 13),
        ("bandwidth", "xeon-e5645", 10),
        ("lucky", "big1-small3", 8),
        ("efs", "i5-2500", 30),
    ] {
        let files = std::fs::read_dir(mixes.join(part)).expect("a folder of mixes");
        let files: Vec<_> = files.map(|file| file.expect("a file").path()).collect();
        assert!(files.len() >= least, "{part}: {}", files.len());
        let mut seen = std::collections::HashSet::new();
        for file in files {
            let text = std::fs::read_to_string(&file).expect("a mix");
            let jobs: String = text.lines().filter(|line| !line.starts_with('#')).collect();
            assert!(
                seen.insert(jobs),
                "{}: another mix has the same jobs",
                file.display()
            );
            let has_lengths =
                text.matches("work_instructions").count() == text.matches("[[job]]").count();
            assert_eq!(has_lengths, part == "lucky", "{}", file.display());
            let output = cosched(
                &folder,
                &[
                    "run",
                    &file.display().to_string(),
                    "--on",
                    machine,
                    "--dry-run",
                ],
            );
            assert!(
                output.status.success(),
                "{}: {}",
                file.display(),
                err(&output)
            );
            read += 1;
        }
    }
    assert!(read >= 61);
}

#[test]
fn only_place_decides_for_several_nodes() {
    let folder = with_mix();
    let machine = out(&cosched(&folder, &["list", "machines", MACHINE]));
    let nodes = machine.replacen("sockets = 1", "sockets = 1\nnodes = 2", 1);
    write(&folder, "nodes.toml", &nodes);
    let run = [
        "run",
        "mix.toml",
        "--on",
        "./nodes.toml",
        "--format",
        "json",
        "-q",
    ];
    let record = json(&cosched(&folder, &run));
    assert_eq!(record["policy"], "place");
    assert_eq!(record["machine_details"]["memory_domains"], 2);
    let refused = cosched(&folder, &[&run[..], &["--policy", "fifo"]].concat());
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        err(&refused).contains("not on several nodes; use --policy place"),
        "{}",
        err(&refused)
    );
}
