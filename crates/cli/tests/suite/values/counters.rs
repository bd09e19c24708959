//! `--event`: events that stand in for counters.

use super::support::run;
use crate::common::err;
use tempfile::tempdir;

#[test]
fn events_that_stand_in_for_counters_are_told() {
    let pmus = std::path::Path::new("/sys/bus/event_source/devices");
    if ["cpu", "cpu_core", "cpum_cf"]
        .iter()
        .any(|pmu| pmus.join(pmu).exists())
        || !pmus.join("software").exists()
    {
        return println!(
            "skipped, because this machine has counters of its own, or no events of the kernel"
        );
    }
    let folder = tempdir().expect("a folder");
    let told = |events: &[&str]| {
        let words: Vec<&str> = events.iter().flat_map(|event| ["--event", event]).collect();
        let done = run(
            &folder,
            &[&words[..], &["--no-logs", "-p", "fifo", "true", ":::", "a"]].concat(),
        );
        assert!(done.status.success(), "{}", err(&done));
        err(&done)
    };
    let both = told(&["mm=software/event=2/", "llc=software/event=99/"]);
    assert!(
        both.contains("stand in for counters of the hardware"),
        "{both}"
    );
    assert!(
        both.contains("(mm_reads: software/config=0x0002/)")
            && both.contains("--event: llc_accesses (software/"),
        "{both}"
    );
    let none = told(&["mm=0x4844"]);
    assert!(
        !none.contains("stand in") && none.contains("--event: mm_reads: "),
        "{none}"
    );
}
