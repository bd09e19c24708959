//! The traffic of the memory in the events of a run, held against the truth.

use crate::run::EndedRun;
use serde_json::Value;

/// Relative errors of lines read and written.
pub(crate) struct Traffic {
    pub(crate) reads_error: f64,
    pub(crate) writes_error: f64,
}

/// What a sample of a job says of the memory in its interval. Rates are lines in a nanosecond.
#[derive(Clone, Copy)]
struct Sample {
    begin_ns: f64,
    end_ns: f64,
    reads: f64,
    writes: f64,
}

impl Traffic {
    /// Sums the samples up, those of jobs that run together only once. What moves while no job has a sample is missing.
    pub(crate) fn of(ended: &EndedRun) -> Traffic {
        let events = std::fs::read_to_string(ended.folder.path().join("run.events"));
        let samples = samples(&events.expect("events"));
        let mut bounds: Vec<f64> = Vec::new();
        for sample in &samples {
            bounds.extend([sample.begin_ns, sample.end_ns]);
        }
        bounds.sort_by(f64::total_cmp);
        let (mut reads, mut writes) = (0.0, 0.0);
        for slot in bounds.windows(2) {
            if let Some(sample) = shortest_over(slot, &samples) {
                let length_ns = slot[1] - slot[0];
                reads += sample.reads * length_ns;
                writes += sample.writes * length_ns;
            }
        }
        Traffic {
            reads_error: reads / ended.machine.reads - 1.0,
            writes_error: writes / ended.machine.writes - 1.0,
        }
    }
}

fn samples(events: &str) -> Vec<Sample> {
    let mut samples = Vec::new();
    for line in events.lines() {
        let event: Value = serde_json::from_str(line).expect("JSON");
        let of_event = event["samples"].as_array();
        samples.extend(of_event.into_iter().flatten().filter_map(sample));
    }
    samples
}

/// None without traffic.
fn sample(sample: &Value) -> Option<Sample> {
    let end_ns = sample["at"].as_f64()?;
    // Rates are written for a millisecond.
    let rate = |of: &str| Some(sample["traffic"][of]["value"].as_f64()? / 1e6);
    Some(Sample {
        begin_ns: end_ns - sample["interval"].as_f64()?,
        end_ns,
        reads: rate("reads")?,
        writes: rate("writes")?,
    })
}

/// The sample that says most precisely what happened from one time to another.
fn shortest_over(slot: &[f64], samples: &[Sample]) -> Option<Sample> {
    let mut shortest: Option<Sample> = None;
    for &sample in samples {
        let covers = sample.begin_ns <= slot[0] && slot[1] <= sample.end_ns;
        let length = |it: Sample| it.end_ns - it.begin_ns;
        if covers && shortest.is_none_or(|best| length(sample) < length(best)) {
            shortest = Some(sample);
        }
    }
    shortest
}
