//! The mean frequency of the CPUs while they executed the jobs of a run, and when it makes a run's figures doubtful.

use cosched_report::Record;

/// Its name beside the metrics.
pub const MEAN_GHZ: &str = "mean_ghz";

/// A run whose mean frequency is further from the median of its like is doubtful. It is three times [`MOST_ERROR`], and
/// jobs that compute take as much longer.
pub(crate) const MOST_OFF: f64 = 0.03;

/// Among fewer runs the median does not say which of them is the odd one.
pub(crate) const LEAST_RUNS: usize = 3;

/// The kernel may divide CPU time into that of user mode and its own by samples, of which the slowest take so many a
/// second.
const SAMPLES_PER_S: f64 = 100.0;

/// The standard error that this may bring into the frequency.
const MOST_ERROR: f64 = 0.01;

/// With less time in user mode, in seconds, nothing is said.
const LEAST_S: f64 = 1.0;

/// The mean frequency of a run of real processes in GHz: cycles / CPU time of all jobs. Cycles are counted in user mode, so
/// the time is that in user mode.
///
/// # Errors
/// Why it is not known, in words.
pub(crate) fn mean_ghz(record: &Record) -> Result<f64, &'static str> {
    if record.machine_details.core_types.len() > 1 {
        return Err("it would depend on the types of the cores that jobs ran on");
    }
    let (mut cycles, mut user_s, mut system_s) = (0.0, 0.0, 0.0);
    for job in record.jobs.iter().filter(|job| job.start_s.is_some()) {
        if job.multiplexed {
            return Err("the kernel multiplexed the counters");
        }
        let (Some(&counted), Some(user), Some(system)) =
            (job.counts.get("cycles"), job.user_s, job.system_s)
        else {
            return Err("some jobs lack counted cycles or CPU time in user mode");
        };
        cycles += counted as f64;
        user_s += user;
        system_s += system;
    }
    // The square of the relative error of a share user_s / (user_s + system_s) that was found by samples.
    let error = system_s / (user_s * SAMPLES_PER_S * (user_s + system_s));
    if user_s < LEAST_S || error > MOST_ERROR * MOST_ERROR {
        return Err("too little CPU time in user mode to tell");
    }
    Ok(cycles / user_s / 1e9)
}

/// What makes a run with this mean frequency doubtful, if `middle` is the median of the runs that are alike.
pub(crate) fn doubt(ghz: f64, middle: f64) -> Option<String> {
    let off = ghz / middle - 1.0;
    let word = if off < 0.0 { "less" } else { "more" };
    (off.abs() > MOST_OFF).then(|| {
        format!(
            "its CPUs ran at {ghz:.2} GHz on average, {:.1} % {word} than the median of this candidate's runs with this mix \
             ({middle:.2} GHz)",
            100.0 * off.abs()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparison::{Outcome, Trial};
    use cosched_report::{MachineLoad, RunSetting};
    use serde_json::{Value, json};

    /// A run of two jobs at 3 GHz, of 40 s in user mode and 1 s in the kernel in all.
    fn run(backend: &str) -> Value {
        let job = |name: &str, user_s: f64| {
            json!({
                "name": name, "program": null, "command": null, "cpus": 1, "arrival_s": 0.0, "start_s": 0.0,
                "finish_s": 1.0, "exit": 0, "exit_text": "exit 0", "timed_out": false, "cpu_s": user_s + 0.5,
                "user_s": user_s, "system_s": 0.5, "ran_s": 1.0, "waited_max_s": 0.5, "instructions": null, "ipc": null,
                "progress": 5.0, "progress_basis": "ipc", "solo_s": null, "solo_source": null, "slowdown": null,
                "slowdown_estimate": null, "counts": {"cycles": (3e9 * user_s) as u64}, "multiplexed": false, "log": null,
                "log_stderr": null, "given": {"env": {}}, "width_source": "stated", "lost": false, "runs": 1,
            })
        };
        json!({
            "schema": "cosched.run/1", "cosched_version": "0", "policy": "fair", "backend": backend, "machine": "two cores",
            "machine_details": {
                "cpus": 2, "cores": 2, "llcs": 1, "memory_domains": 1, "core_types": ["core"], "llc_bytes": null
            },
            "seed": 1, "started_at": null, "quantum_s": 0.2, "finished_by": "completion", "signal": null, "counters": null,
            "freezing": null, "missing": [],
            "totals": {"jobs": 2, "succeeded": 2, "failed": 0, "timed_out": 0, "unfinished": 0, "earlier": 0, "adopted": 0},
            "setting": RunSetting::default(), "earlier_jobs": [], "metrics_over": "this-run",
            "machine_load": MachineLoad::default(),
            "jobs": [job("a", 10.0), job("b", 30.0)], "metrics": {"turnaround_s": 30.0}, "metrics_estimated": null,
            "energy": {"joules": null, "source": "absent"},
            "overhead": {
                "quanta": 5, "decisions": 6, "policy_faults": 0, "decide_us": {}, "observe_us": {}, "apply_us": {},
                "cpu_share": null
            },
            "warnings": [
                {"code": "disturbed", "text": "others used it"}, {"code": "guardian-replaced", "text": "it was gone"}
            ],
        })
    }

    fn outcome(run: &Value) -> Outcome {
        let record = Record::from_json(&run.to_string()).expect("a record");
        Outcome::of_record(Trial::default(), &record).expect("a whole run")
    }

    #[test]
    fn it_is_cycles_over_time_in_user_mode() {
        let ghz = outcome(&run("host"))
            .figure(MEAN_GHZ)
            .expect("a mean frequency");
        assert!((ghz - 3.0).abs() < 1e-9, "{ghz}");
        let mut unstarted = run("host");
        unstarted["jobs"][0]["start_s"] = Value::Null;
        unstarted["jobs"][0]["user_s"] = Value::Null;
        assert!(
            outcome(&unstarted).figure(MEAN_GHZ).is_some(),
            "such a job used nothing"
        );
    }

    #[test]
    fn what_can_not_be_told_is_absent() {
        let why = |key: &str, value: Value| {
            let mut run = run("host");
            run["jobs"][1][key] = value;
            outcome(&run)
                .absent
                .get(MEAN_GHZ)
                .cloned()
                .unwrap_or_else(|| panic!("{key} leaves a frequency"))
        };
        assert!(
            why(
                "counts",
                json!({"cycles": null, "cycles_absent": "no counters"})
            )
            .contains("some jobs lack")
        );
        assert!(why("counts", json!({})).contains("some jobs lack"));
        assert!(why("user_s", Value::Null).contains("some jobs lack"));
        assert!(why("multiplexed", json!(true)).contains("multiplexed"));
        assert!(
            why("system_s", json!(40.0)).contains("too little"),
            "the kernel's samples are too few for that"
        );
        let mut short = run("host");
        for job in [0, 1] {
            (short["jobs"][job]["user_s"], short["jobs"][job]["system_s"]) =
                (json!(0.4), json!(0.0));
        }
        assert!(outcome(&short).absent[MEAN_GHZ].contains("too little"));
        let mut hybrid = run("host");
        hybrid["machine_details"]["core_types"] = json!(["cpu_core", "cpu_atom"]);
        assert!(outcome(&hybrid).absent[MEAN_GHZ].contains("types"));
    }

    #[test]
    fn simulated_runs_have_no_frequency() {
        let simulated = outcome(&run("sim"));
        assert!(simulated.figure(MEAN_GHZ).is_none() && !simulated.absent.contains_key(MEAN_GHZ));
        assert_eq!(simulated.doubts, [""; 0]);
        assert_eq!(outcome(&run("host")).doubts, ["others used it"]);
    }
}
