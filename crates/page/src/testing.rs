//! Runs for tests.

use cosched_core::Nanos;
use cosched_report::{CpuMode, CpuStay, MachineLoad, RunRecord, RunSetting};
use serde_json::json;

/// A stay; times in milliseconds.
pub(crate) fn placed(from: u64, to: u64, cpus: &str, mode: CpuMode) -> CpuStay {
    let [from, to] = [from, to].map(|ms| Nanos(ms * 1_000_000));
    CpuStay {
        from,
        to,
        cpus: cpus.parse().expect("CPUs"),
        mode,
    }
}

/// The record of a run with these jobs. Job n, from 1, ended after n seconds and was slowed down by a factor of n.
pub(crate) fn record_of(names: &[&str]) -> RunRecord {
    let job = |(at, name): (usize, &&str)| {
        let n = (at + 1) as f64;
        json!({
            "name": name, "program": null, "command": format!("./{name} <in>"), "cpus": 1, "arrival_s": 0.0, "start_s": 0.0,
            "end_s": n, "exit": 0, "exit_text": "exit 0", "timed_out": false, "cpu_s": n, "ran_s": n, "waited_max_s": 0.5,
            "ipc": null, "progress": 5.0, "progress_basis": "ipc", "progress_learnt": 4.5,
            "solo_s": 1.0, "solo_source": "measured", "slowdown": n, "slowdown_estimate": null, "log": null, "log_stderr": null,
            "given": {"env": {}}, "width_source": "stated", "lost": false, "runs": 1,
        })
    };
    let jobs: Vec<_> = names.iter().enumerate().map(job).collect();
    let record = json!({
        "schema": "cosched.run/2", "cosched_version": "0", "policy": "fair", "backend": "host", "machine": "two <cores>",
        "machine_details": {
            "cpus": 2, "cores": 2, "llcs": 1, "memory_domains": 1, "core_types": ["core"], "llc_bytes": null
        },
        "seed": 1, "started_at": null, "quantum_s": 0.2, "finished_by": "completion", "signal": null, "counters": null,
        "freezing": null, "missing": [{"capability": "energy", "what": "package energy", "why": "no energy meter"}],
        "totals": {"jobs": names.len(), "succeeded": names.len(), "failed": 0, "timed_out": 0, "unfinished": 0, "earlier": 0},
        "setting": RunSetting::default(), "earlier_jobs": [], "metrics_over": "this-run", "machine_load": MachineLoad::default(),
        "jobs": jobs, "metrics": {"turnaround_s": names.len(), "unfairness": names.len()}, "metrics_estimated": null,
        "energy": {"joules": null, "joules_absent": "no energy meter", "source": "absent"},
        "overhead": {
            "quanta": 5, "decisions": 6, "policy_faults": 0, "decide_us": {}, "observe_us": {}, "apply_us": {}, "cpu_share": null
        },
        "warnings": [{"code": "disturbed", "text": "others & <more> used the CPUs"}],
    });
    RunRecord::from_json(&record.to_string()).expect("a record")
}
