//! What a process inherits from its parent besides folder, environment and signals: umask, niceness, limits.

use rustix::fs::Mode;
use rustix::process::{
    Resource, Rlimit, getpriority_process, getrlimit, setpriority_process, setrlimit, umask,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The umask, the niceness and the limits of a process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InheritedAttributes {
    umask: u32,
    nice: i32,
    limits: BTreeMap<Limit, Bounds>,
}

/// A limit; its name is that of prlimit(1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Limit {
    As,
    Core,
    Cpu,
    Data,
    Fsize,
    Locks,
    Memlock,
    Msgqueue,
    Nice,
    Nofile,
    Nproc,
    Rss,
    Rtprio,
    Rttime,
    Sigpending,
    Stack,
}

const LIMITS: [Limit; 16] = [
    Limit::As,
    Limit::Core,
    Limit::Cpu,
    Limit::Data,
    Limit::Fsize,
    Limit::Locks,
    Limit::Memlock,
    Limit::Msgqueue,
    Limit::Nice,
    Limit::Nofile,
    Limit::Nproc,
    Limit::Rss,
    Limit::Rtprio,
    Limit::Rttime,
    Limit::Sigpending,
    Limit::Stack,
];

/// A soft and a hard limit; `None` is none.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Bounds(Option<u64>, Option<u64>);

impl InheritedAttributes {
    /// What a child of this process would inherit. No other thread may make files meanwhile.
    pub fn own() -> InheritedAttributes {
        // It can only be read by setting it.
        let mask = umask(Mode::RWXG | Mode::RWXO);
        umask(mask);
        let mut limits = BTreeMap::new();
        for limit in LIMITS {
            let Rlimit { current, maximum } = getrlimit(limit.resource());
            limits.insert(limit, Bounds(current, maximum));
        }
        InheritedAttributes {
            umask: mask.bits(),
            nice: getpriority_process(None).unwrap_or(0),
            limits,
        }
    }

    /// Gives it to this process, as far as its hard limits and its privileges permit. Allocates nothing.
    pub(crate) fn apply(&self) {
        umask(Mode::from_bits_truncate(self.umask));
        let _ = setpriority_process(None, self.nice);
        for (limit, &Bounds(soft, hard)) in &self.limits {
            let most = getrlimit(limit.resource()).maximum;
            let maximum = lower(hard, most);
            let current = lower(soft, maximum);
            let _ = setrlimit(limit.resource(), Rlimit { current, maximum });
        }
    }
}

/// The lower of two limits.
fn lower(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

impl Limit {
    fn resource(self) -> Resource {
        match self {
            Limit::As => Resource::As,
            Limit::Core => Resource::Core,
            Limit::Cpu => Resource::Cpu,
            Limit::Data => Resource::Data,
            Limit::Fsize => Resource::Fsize,
            Limit::Locks => Resource::Locks,
            Limit::Memlock => Resource::Memlock,
            Limit::Msgqueue => Resource::Msgqueue,
            Limit::Nice => Resource::Nice,
            Limit::Nofile => Resource::Nofile,
            Limit::Nproc => Resource::Nproc,
            Limit::Rss => Resource::Rss,
            Limit::Rtprio => Resource::Rtprio,
            Limit::Rttime => Resource::Rttime,
            Limit::Sigpending => Resource::Sigpending,
            Limit::Stack => Resource::Stack,
        }
    }
}
