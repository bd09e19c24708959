//! The events that the hardware can count for a task. Everything else that names counters derives from this list.
//!
//! Add a new counter here and in its sources: the event tables of crates/linux, and the simulation's counts (`TrueCounts`).
//! Tests report the tables and schemas that lack it.

use crate::listed::listed_enum;
use serde::{Deserialize, Serialize, Serializer};
use std::fmt;
use std::ops::{Index, IndexMut};

listed_enum! {
    /// A kind of event, counted per task in user mode.
    ///
    /// Formats and the columns of a series use the order of declaration, so a new counter comes last.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Counter {
        /// Core clock cycles.
        Cycles,
        /// Instructions retired.
        Instructions,
        /// Accesses to the first-level data cache.
        L1Accesses,
        /// Accesses to the last-level cache.
        LlcAccesses,
        /// Lines of 64 bytes read from main memory.
        MmReads,
        /// Lines of 64 bytes written to main memory.
        MmWrites,
    }
}

struct About {
    name: &'static str,
    text: &'static str,
    unit: &'static str,
}

const fn about(name: &'static str, text: &'static str, unit: &'static str) -> About {
    About { name, text, unit }
}

impl Counter {
    /// Number of counters.
    pub const COUNT: usize = Counter::ALL.len();

    /// All counters, the most needed first: if the hardware cannot count all of them at once, the last ones are dropped
    /// first. Progress needs instructions and cycles, every bandwidth policy the reads from memory, Perf&Fair also the
    /// accesses to the last-level cache, and only EFS the rest.
    pub const BY_NEED: [Counter; Counter::COUNT] = [
        Counter::Instructions,
        Counter::Cycles,
        Counter::MmReads,
        Counter::LlcAccesses,
        Counter::L1Accesses,
        Counter::MmWrites,
    ];

    const fn about(self) -> About {
        match self {
            Counter::Cycles => about("cycles", "cycles", "cycles"),
            Counter::Instructions => about("instructions", "instructions", "instructions"),
            Counter::L1Accesses => about("l1_accesses", "L1 cache accesses", "accesses"),
            Counter::LlcAccesses => about("llc_accesses", "last-level cache accesses", "accesses"),
            Counter::MmReads => about("mm_reads", "reads from memory", "lines of 64 bytes"),
            Counter::MmWrites => about("mm_writes", "writes to memory", "lines of 64 bytes"),
        }
    }

    /// The name in all formats, for example `mm_reads`.
    pub const fn name(self) -> &'static str {
        self.about().name
    }

    /// The counted events in words, in the plural.
    pub const fn text(self) -> &'static str {
        self.about().text
    }

    /// The unit of a count, in the plural.
    pub const fn unit(self) -> &'static str {
        self.about().unit
    }

    /// Its place in [`Counter::BY_NEED`]: 0 is the most needed.
    pub const fn need(self) -> usize {
        let mut place = 0;
        while Counter::BY_NEED[place] as usize != self as usize {
            place += 1;
        }
        place
    }
}

/// Does not compile while `BY_NEED` lacks a counter.
const _: () = {
    let mut ix = 0;
    while ix < Counter::COUNT {
        assert!(Counter::ALL[ix].need() < Counter::COUNT);
        ix += 1;
    }
};

impl fmt::Display for Counter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One value for each counter. In JSON it is an object with the counters' names as keys; all are required. Other keys
/// are ignored, because a later version may have more counters.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(from = "Object<T>")]
pub struct PerCounter<T>([T; Counter::COUNT]);

impl<T> PerCounter<T> {
    /// The results of `value`, called in the order of [`Counter::ALL`].
    pub fn from_fn(value: impl FnMut(Counter) -> T) -> PerCounter<T> {
        PerCounter(Counter::ALL.map(value))
    }

    /// Applies `f` to each value, in the order of [`Counter::ALL`].
    pub fn map<U>(self, f: impl FnMut(T) -> U) -> PerCounter<U> {
        PerCounter(self.0.map(f))
    }

    /// The values with their counters, in the order of [`Counter::ALL`].
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (Counter, &T)> {
        Counter::ALL.into_iter().zip(&self.0)
    }
}

impl<T> Index<Counter> for PerCounter<T> {
    type Output = T;
    fn index(&self, counter: Counter) -> &T {
        &self.0[counter as usize]
    }
}

impl<T> IndexMut<Counter> for PerCounter<T> {
    fn index_mut(&mut self, counter: Counter) -> &mut T {
        &mut self.0[counter as usize]
    }
}

impl<T: Default> Default for PerCounter<T> {
    fn default() -> PerCounter<T> {
        PerCounter::from_fn(|_| T::default())
    }
}

impl<T: fmt::Debug> fmt::Debug for PerCounter<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map()
            .entries(self.iter().map(|(counter, value)| (counter.name(), value)))
            .finish()
    }
}

impl<T: Serialize> Serialize for PerCounter<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

/// The form of [`PerCounter`] in JSON.
#[derive(Deserialize)]
struct Object<T> {
    cycles: T,
    instructions: T,
    l1_accesses: T,
    llc_accesses: T,
    mm_reads: T,
    mm_writes: T,
}

impl<T> From<Object<T>> for PerCounter<T> {
    fn from(object: Object<T>) -> PerCounter<T> {
        PerCounter([
            object.cycles,
            object.instructions,
            object.l1_accesses,
            object.llc_accesses,
            object.mm_reads,
            object.mm_writes,
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_formats() {
        for counter in Counter::ALL {
            assert_eq!(serde_json::to_value(counter).unwrap(), counter.name());
            assert!(!counter.text().is_empty() && !counter.unit().is_empty());
        }
    }

    #[test]
    fn an_object_holds_every_counter_in_the_order_of_the_formats() {
        let numbers = PerCounter::from_fn(|counter| counter as u32);
        let text = serde_json::to_string(&numbers).unwrap();
        let expected = r#"{"cycles":0,"instructions":1,"l1_accesses":2,"llc_accesses":3,"mm_reads":4,"mm_writes":5"#;
        assert!(text.starts_with(expected), "{text}");
        assert_eq!(
            serde_json::from_str::<PerCounter<u32>>(&text).unwrap(),
            numbers
        );
        let error = |text: &str| {
            serde_json::from_str::<PerCounter<u32>>(text)
                .unwrap_err()
                .to_string()
        };
        for counter in Counter::ALL {
            let (here, elsewhere) = (format!("\"{counter}\""), "\"elsewhere\"");
            let without = text.replace(&here, elsewhere);
            assert!(
                error(&without).starts_with(&format!("missing field `{counter}`")),
                "{without}"
            );
            let twice = text.replace('{', &format!("{{{here}:7,"));
            assert!(
                error(&twice).starts_with(&format!("duplicate field `{counter}`")),
                "{twice}"
            );
        }
        let more = text.replace('{', "{\"of a later version\":[],");
        assert_eq!(
            serde_json::from_str::<PerCounter<u32>>(&more).unwrap(),
            numbers
        );
    }
}
