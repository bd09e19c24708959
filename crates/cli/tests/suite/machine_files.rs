//! Own machines and curves, and the sources of policies.

use crate::common::{cosched, err, out, write};
use tempfile::TempDir;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

fn file(name: &str) -> String {
    std::fs::read_to_string(format!("{ROOT}/{name}")).unwrap()
}

fn simulated(folder: &TempDir) -> (String, String, Option<i32>) {
    let words = ["run", "a.toml", "--on", "my/machine.toml"];
    let more = ["--no-logs", "--quiet", "--format", "json"];
    let output = cosched(folder, &[&words[..], &more].concat());
    (out(&output), err(&output), output.status.code())
}

#[test]
fn a_machine_is_printed_edited_and_given_a_curve() {
    let folder = tempfile::tempdir().unwrap();
    let listed = cosched(&folder, &["list", "machines", "i5-2500"]);
    let machine = out(&listed);
    assert_eq!(
        (&*machine, err(&listed), listed.status.code()),
        (&*file("machines/i5-2500.toml"), String::new(), Some(0))
    );
    let lbm = "[[job]]\nprogram = 'lbm'\ncopies = 4\nwork_instructions = 1e8\n";
    write(&folder, "a.toml", lbm);
    let mut times = Vec::new();
    // The path of the curve counts from the machine file.
    write(
        &folder,
        "my/c.toml",
        &file("machines/latency/ddr4-2666.toml"),
    );
    for curve in ["ddr3-1333", "ddr4-2666", "c.toml", "./c.toml"] {
        let curve = format!("curve = \"{curve}\"");
        write(
            &folder,
            "my/machine.toml",
            &machine.replace("curve = \"ddr3-1333\"", &curve),
        );
        let (text, errors, code) = simulated(&folder);
        assert_eq!((&*errors, code), ("", Some(0)));
        let record: serde_json::Value = serde_json::from_str(&text).unwrap();
        times.push(record["metrics"]["turnaround_s"].as_f64().unwrap());
    }
    assert!(times[0] != times[1] && times[1..].iter().all(|time| *time == times[1]));
}

#[test]
fn slips_in_machine_files_are_told_with_what_was_meant() {
    let folder = tempfile::tempdir().unwrap();
    write(&folder, "a.toml", "[[job]]\nprogram = 'lbm'\n");
    write(
        &folder,
        "my/bad.toml",
        "schema = \"cosched.latency/1\"\nnam = \"c\"\n",
    );
    let machine = file("machines/i5-2500.toml");
    let page = "; see `cosched help machine-file`";
    let cases = [
        (
            "channels = 1",
            "chanels = 1",
            "my/machine.toml:45: [memory] the key `chanels` is unknown (did you mean `channels`?); expected one of `channels`, \
             `gb_per_s_per_channel`, `banks`, `source`, `assumed`",
        ),
        (
            "mu_trans_per_us",
            "mu_tran_per_us",
            "my/machine.toml:88: [params] mu_tran_per_us is not a parameter of any policy (did you mean `mu_trans_per_us`?); \
             `cosched list policies` shows them",
        ),
        (
            "\"ddr3-1333\"",
            "\"none.toml\"",
            "my/machine.toml:55: [latency] curve: my/none.toml: can't be read: No such file or directory (os error 2)",
        ),
        (
            "\"ddr3-1333\"",
            "\"bad.toml\"",
            "bad.toml:2: the key `nam` is unknown (did you mean `name`?); expected one of `schema`, `name`, `title`, `source`, \
             `assumed`, `line`",
        ),
    ];
    for (right, wrong, told) in cases {
        write(&folder, "my/machine.toml", &machine.replace(right, wrong));
        assert_eq!(
            simulated(&folder),
            (String::new(), format!("cosched: {told}{page}\n"), Some(2))
        );
    }
}

#[test]
fn policies_are_listed_with_their_papers() {
    let folder = tempfile::tempdir().unwrap();
    let listed = cosched(&folder, &["list", "policies", "bias"]);
    assert!(listed.status.success() && err(&listed).is_empty());
    let entry = "\n@inproceedings{petrucci2012lucky,\n  author = {Petrucci, Vinicius and Loques, Orlando and Mossé, Daniel},\n  \
                 title = {Lucky Scheduling for Energy-Efficient Heterogeneous Multi-Core Systems},\n  booktitle = {Workshop on \
                 Power-Aware Computing and Systems (HotPower)},\n  year = {2012}\n}\n";
    assert!(
        out(&listed).trim_end().ends_with(entry.trim_end()),
        "{}",
        out(&listed)
    );
    let listed = cosched(&folder, &["list", "policies", "perf-fair"]);
    assert!(
        out(&listed).contains("title = {Perf\\&Fair: "),
        "{}",
        out(&listed)
    );
    let citation = file("CITATION.cff");
    for paper in cosched_core::PAPERS {
        let year = format!("year: {}", paper.year);
        assert!(
            citation.contains(paper.title) && citation.contains(&year),
            "{}",
            paper.key
        );
        for policy in paper.policies {
            assert!(cosched_core::find_policy(policy).is_some(), "{policy}");
        }
    }
}
