//! What calibration can find, and what it found.

use super::figure::{Disturbance, Figure};
use serde::{Deserialize, Serialize};

/// Figures that a calibration can find. Others are named by [`cores_key`].
pub const ABOUT: &[About] = &[
    about("cache.l1_kb", "reach of the L1 cache", "KB"),
    about("cache.l1_ns", "time of an L1 hit", "ns"),
    about("core_type.0.l2_kb", "reach of the L2 cache", "KB"),
    about("cache.l2_ns", "time of an L2 hit", "ns"),
    about("llc.mb", "reach of the last-level cache", "MB"),
    about("llc.latency.hit_ns", "time of a last-level hit", "ns"),
    about(
        "latency.idle_latency_ns",
        "time of a read from idle memory",
        "ns",
    ),
    about(
        "params.mu_trans_per_us",
        "greatest rate of memory (mu)",
        "lines/us",
    ),
    about("memory.gb_per_s_per_channel", "the same in bytes", "GB/s"),
    about(
        "latency.curve",
        "points of latency against bandwidth",
        "points",
    ),
    about(
        "params.light_mm_trans_per_us",
        "most reads of a light job",
        "lines/us",
    ),
    about(
        "params.light_llc_trans_per_us",
        "most cache accesses of a light job",
        "lines/us",
    ),
    about("smt.issue_share", "slowdown by a busy sibling", ""),
    about("kernel.switching.switch_us", "a switch on a CPU", "us"),
    about(
        "move_us",
        "a move to another core, without refilling caches",
        "us",
    ),
    about("params.p0_w", "power with no core active (P_0)", "W"),
    about("params.p1_w", "added by the first core (P_1)", "W"),
    about("params.p2_w", "added by the second core (P_2)", "W"),
    about("params.p_more_w", "added by each further core", "W"),
];

/// A figure in words.
pub struct About {
    /// Its place in the machine file, if that has one.
    pub key: &'static str,
    pub text: &'static str,
    pub unit: &'static str,
}

const fn about(key: &'static str, text: &'static str, unit: &'static str) -> About {
    About { key, text, unit }
}

/// The key of the bandwidth that so many cores reach together.
pub fn cores_key(cores: usize) -> String {
    format!("bandwidth.{cores:03}_cores")
}

/// A key in words, and its unit.
pub fn words(key: &str) -> (String, &'static str) {
    if let Some(known) = ABOUT.iter().find(|about| about.key == key) {
        return (known.text.to_owned(), known.unit);
    }
    let cores = key
        .trim_start_matches("bandwidth.")
        .trim_end_matches("_cores");
    let cores = cores.trim_start_matches('0');
    (
        format!("rate of memory with cores in use: {cores}"),
        "lines/us",
    )
}

/// Whether a figure is shown; others only fill the machine file.
pub fn has_words(key: &str) -> bool {
    key.starts_with("bandwidth.") || ABOUT.iter().any(|about| about.key == key)
}

/// The result of one measurement, as the machine file keeps it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Found {
    /// A measured figure, and the day.
    Figure { value: f64, spread: f64, on: String },
    /// Why there is none.
    Absent { absent: String },
}

/// The result of a measurement, by its key.
pub type Finding = (String, Result<Figure, String>);

/// How the reason begins if a measurement was disturbed: it may succeed another time.
pub const DISTURBED: &str = "disturbed: ";

/// The reason in words.
pub fn disturbed(why: Disturbance) -> String {
    format!("{DISTURBED}{why}")
}

/// A finding from a measurement that may have been disturbed.
pub fn finding(key: &str, outcome: Result<Figure, Disturbance>) -> Finding {
    (key.to_owned(), outcome.map_err(disturbed))
}

/// The same reason for several absent figures.
pub fn absent(keys: &[&str], why: &str) -> Vec<Finding> {
    let keys = keys.iter();
    keys.map(|key| ((*key).to_owned(), Err(why.to_owned())))
        .collect()
}
