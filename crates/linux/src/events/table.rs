//! The event tables: one file of data per microarchitecture, in `tables/`.
//!
//! A file has `name`, `title` and `source`, any number of `[[match]]`, and an entry for each counter. A `[[match]]` has
//! `vendor`, `family` (not on Arm), `models` and optionally `steppings` (numbers or ranges as text) and `pmus`, the
//! kernel's names of the PMUs that it applies to. A counter has either `[events.COUNTER]` with an `encoding`, the
//! vendor's `name` and a `note` on deviations of the count, or a reason under `[absent]`. An event without a public
//! source is absent: it is never guessed.

use super::encoding::Encoding;
use crate::processor::{Processor, parse_number};
use cosched_core::{Absence, Counter};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// One event of a microarchitecture.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableEvent {
    /// Its encoding.
    pub encoding: Encoding,
    /// The vendor's name; `None` for the kernel's own encoding.
    name: Option<String>,
    /// How the count deviates from the counter's meaning; `None` if it does not.
    pub note: Option<String>,
}

impl TableEvent {
    /// The vendor's name, or the encoding.
    pub fn name(&self) -> String {
        let name = self.name.clone();
        name.unwrap_or_else(|| self.encoding.to_string())
    }
}

/// Why a counter has no event.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(from = "String")]
pub struct AbsentEvent {
    /// The reason in its readings.
    pub reason: Absence,
    /// The reason in words, with details.
    pub why: String,
}

impl From<String> for AbsentEvent {
    fn from(why: String) -> AbsentEvent {
        AbsentEvent {
            reason: Absence::NoSuchEvent,
            why,
        }
    }
}

/// The events of one microarchitecture. Each counter has an event, or is absent.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EventTable {
    /// Short name, for example `zen5`.
    pub name: String,
    /// Name in words.
    pub title: String,
    /// Source of the encodings.
    pub source: String,
    #[serde(default, rename = "match")]
    matches: Vec<Match>,
    /// Its events.
    pub events: BTreeMap<Counter, TableEvent>,
    /// The counters without an event.
    #[serde(default)]
    pub absent: BTreeMap<Counter, AbsentEvent>,
}

/// The processors and PMUs of a table.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Match {
    vendor: String,
    #[serde(default)]
    family: u32,
    models: Vec<Range>,
    /// Empty for all.
    #[serde(default)]
    steppings: Vec<Range>,
    /// Empty for a PMU of any name.
    #[serde(default)]
    pmus: Vec<String>,
}

/// First and last number, both included.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(try_from = "String")]
struct Range(u32, u32);

impl TryFrom<String> for Range {
    type Error = String;

    /// Parses `0x1a`, `5` or `0x10-0x1f`.
    fn try_from(text: String) -> Result<Range, String> {
        let (first, last) = text.split_once('-').unwrap_or((&text, &text));
        match (parse_number(first), parse_number(last)) {
            (Some(first), Some(last)) if first <= last => Ok(Range(first, last)),
            _ => Err(format!("`{text}` is not a range of numbers")),
        }
    }
}

impl Range {
    fn contains(&self, number: u32) -> bool {
        (self.0..=self.1).contains(&number)
    }
}

impl EventTable {
    /// Whether the table is for the PMU called `pmu` of this processor.
    pub fn is_for(&self, processor: &Processor, pmu: &str) -> bool {
        self.matches.iter().any(|m| m.fits(processor, pmu))
    }

    /// The counter's event, if there is one.
    pub fn event(&self, counter: Counter) -> Option<&TableEvent> {
        self.events.get(&counter)
    }

    /// Why there is no event for a counter.
    pub fn why_absent(&self, counter: Counter) -> &str {
        self.absent.get(&counter).map_or("", |absent| &absent.why)
    }

    /// A table without any event.
    pub(crate) fn empty(name: &str, title: &str) -> EventTable {
        let absent = AbsentEvent {
            reason: Absence::NoCounters,
            why: "this machine has no core PMU, and no other event was given".to_owned(),
        };
        EventTable {
            name: name.to_owned(),
            title: title.to_owned(),
            source: "given by the user".to_owned(),
            matches: Vec::new(),
            events: BTreeMap::new(),
            absent: Counter::ALL.map(|counter| (counter, absent.clone())).into(),
        }
    }

    /// Replaces or adds an event with a user's own encoding.
    pub(crate) fn replace(&mut self, counter: Counter, encoding: Encoding) {
        let event = TableEvent {
            encoding,
            name: None,
            note: Some("given by the user".to_owned()),
        };
        self.absent.remove(&counter);
        self.events.insert(counter, event);
    }
}

impl Match {
    fn fits(&self, processor: &Processor, pmu: &str) -> bool {
        let is_pmu = self.pmus.is_empty() || self.pmus.iter().any(|name| name == pmu);
        let is_model = self.models.iter().any(|of| of.contains(processor.model));
        let mut steppings = self.steppings.iter();
        let is_stepping =
            self.steppings.is_empty() || steppings.any(|of| of.contains(processor.stepping));
        let is_kind = (&self.vendor, self.family) == (&processor.vendor, processor.family);
        is_kind && is_model && is_stepping && is_pmu
    }
}

/// Every table, in listing order; the last one is the fallback.
const FILES: [&str; 30] = [
    include_str!("tables/nehalem.toml"),
    include_str!("tables/westmere.toml"),
    include_str!("tables/westmere-ep.toml"),
    include_str!("tables/sandybridge.toml"),
    include_str!("tables/sandybridge-ep.toml"),
    include_str!("tables/ivybridge.toml"),
    include_str!("tables/ivybridge-ep.toml"),
    include_str!("tables/haswell.toml"),
    include_str!("tables/haswell-ep.toml"),
    include_str!("tables/broadwell.toml"),
    include_str!("tables/broadwell-ep.toml"),
    include_str!("tables/skylake.toml"),
    include_str!("tables/skylake-sp.toml"),
    include_str!("tables/cascadelake.toml"),
    include_str!("tables/icelake.toml"),
    include_str!("tables/icelake-sp.toml"),
    include_str!("tables/sapphirerapids.toml"),
    include_str!("tables/goldencove.toml"),
    include_str!("tables/lioncove.toml"),
    include_str!("tables/gracemont.toml"),
    include_str!("tables/zen1.toml"),
    include_str!("tables/zen2.toml"),
    include_str!("tables/zen3.toml"),
    include_str!("tables/zen4.toml"),
    include_str!("tables/zen5.toml"),
    include_str!("tables/neoverse-n1.toml"),
    include_str!("tables/neoverse-v1.toml"),
    include_str!("tables/neoverse-n2.toml"),
    include_str!("tables/neoverse-v2.toml"),
    include_str!("tables/generic.toml"),
];

fn parsed(text: &str) -> EventTable {
    toml::from_str(text).expect("a bundled table is valid")
}

/// All event tables. The last one, `generic`, is for processors without a table.
pub fn tables() -> &'static [EventTable] {
    static TABLES: OnceLock<Vec<EventTable>> = OnceLock::new();
    // The files are part of the program, and a test parses each of them. So this cannot fail in a tested build.
    TABLES.get_or_init(|| FILES.map(parsed).into())
}

/// The table for the PMU called `pmu` of a processor; `generic` if no other table matches.
pub fn table_for(processor: Option<&Processor>, pmu: &str) -> &'static EventTable {
    let all = tables();
    let mut own = all.iter();
    let own = processor.and_then(|processor| own.find(|table| table.is_for(processor, pmu)));
    own.unwrap_or(&all[all.len() - 1])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn x86(vendor: &str, family: u32, model: u32, stepping: u32) -> Processor {
        Processor {
            vendor: vendor.to_owned(),
            family,
            model,
            stepping,
        }
    }

    fn config(table: &str, counter: Counter) -> (u64, u64) {
        let table = tables().iter().find(|t| t.name == table).unwrap();
        match table.event(counter).unwrap().encoding {
            Encoding::Raw {
                config, config1, ..
            } => (config, config1),
            Encoding::Kernel(event) => (event.config, 0),
        }
    }

    #[test]
    fn every_bundled_table_is_whole() {
        let mut names: Vec<&str> = tables().iter().map(|table| table.name.as_str()).collect();
        for table in tables() {
            let name = &table.name;
            assert!(table.source.len() > 10 && !table.title.is_empty(), "{name}");
            for counter in Counter::ALL {
                let has_event = table.event(counter).is_some();
                assert_ne!(has_event, table.absent.contains_key(&counter), "{name}");
            }
            assert_eq!(table.matches.is_empty(), table.name == "generic");
            for event in table.events.values() {
                let is_raw = matches!(event.encoding, Encoding::Raw { pmu: Some(_), .. });
                assert!(!is_raw, "{name}");
            }
        }
        assert_eq!(names.last(), Some(&"generic"));
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), FILES.len());
    }

    #[test]
    fn processors_find_their_table() {
        let cases = [
            (x86("GenuineIntel", 6, 0x1a, 5), "cpu", "nehalem"),
            (x86("GenuineIntel", 6, 0x2c, 2), "cpu", "westmere-ep"),
            (x86("GenuineIntel", 6, 0x25, 2), "cpu", "westmere"),
            (x86("GenuineIntel", 6, 0x9e, 9), "cpu", "skylake"),
            (x86("GenuineIntel", 6, 0x55, 4), "cpu", "skylake-sp"),
            (x86("GenuineIntel", 6, 0x55, 7), "cpu", "cascadelake"),
            (x86("GenuineIntel", 6, 0x6a, 6), "cpu", "icelake-sp"),
            (x86("GenuineIntel", 6, 0x8f, 8), "cpu", "sapphirerapids"),
            (x86("GenuineIntel", 6, 0x97, 2), "cpu_core", "goldencove"),
            (x86("GenuineIntel", 6, 0x97, 2), "cpu_atom", "gracemont"),
            // A guest of a hybrid machine sees one plain PMU, that of the P-cores.
            (x86("GenuineIntel", 6, 0x97, 2), "cpu", "goldencove"),
            (x86("GenuineIntel", 6, 0xaf, 3), "cpu", "gracemont"),
            (x86("GenuineIntel", 6, 0xf0, 0), "cpu", "generic"),
            (x86("GenuineIntel", 15, 0x1a, 0), "cpu", "generic"),
            (x86("AuthenticAMD", 23, 0x01, 2), "cpu", "zen1"),
            (x86("AuthenticAMD", 23, 0x31, 0), "cpu", "zen2"),
            (x86("AuthenticAMD", 25, 0x01, 1), "cpu", "zen3"),
            (x86("AuthenticAMD", 25, 0x50, 0), "cpu", "zen3"),
            (x86("AuthenticAMD", 25, 0x11, 1), "cpu", "zen4"),
            (x86("AuthenticAMD", 25, 0x61, 2), "cpu", "zen4"),
            (x86("AuthenticAMD", 26, 0x02, 1), "cpu", "zen5"),
            (x86("Arm 0x41", 0, 0xd0c, 0), "armv8_pmuv3_0", "neoverse-n1"),
            (x86("Arm 0x41", 0, 0xd4f, 0), "armv8_pmuv3_0", "neoverse-v2"),
            (x86("Arm 0x48", 0, 0xd0c, 0), "armv8_pmuv3_0", "generic"),
        ];
        for (processor, pmu, table) in cases {
            assert_eq!(
                table_for(Some(&processor), pmu).name,
                table,
                "{processor} {pmu}"
            );
            let all = tables()
                .iter()
                .filter(|table| table.is_for(&processor, pmu))
                .count();
            assert!(all <= 1, "{processor} {pmu}: {all} tables");
        }
        assert_eq!(table_for(None, "cpu").name, "generic");
    }

    #[test]
    fn encodings_are_those_of_the_sources() {
        use Counter::{L1Accesses, LlcAccesses, MmReads};
        let cases = [
            ("nehalem", MmReads, (0x01b7, 0x6033)),
            ("nehalem", L1Accesses, (0x0143, 0)),
            ("westmere-ep", MmReads, (0x01b7, 0x3033 | 0x4033)),
            ("westmere-ep", LlcAccesses, (0x4f2e, 0)),
            ("westmere-ep", L1Accesses, (0x010b, 0)),
            ("sandybridge", MmReads, (0x01b7, 0x3_0040_03f7)),
            ("sandybridge-ep", MmReads, (0x01b7, 0x3f7 | 0x6_7fc0_0000)),
            (
                "haswell-ep",
                MmReads,
                (0x01b7, 0x6_0040_07f7 | 0x6_3f80_07f7),
            ),
            (
                "broadwell-ep",
                MmReads,
                (0x01b7, 0x6_0400_07f7 | 0x6_3bc0_07f7),
            ),
            ("skylake", MmReads, (0x412e, 0)),
            ("skylake", LlcAccesses, (0x4f2e, 0)),
            ("skylake", L1Accesses, (0x83d0, 0)),
            (
                "skylake-sp",
                MmReads,
                (0x01b7, 0x6_3fc0_0491 | 0x6_3fc0_0122),
            ),
            (
                "cascadelake",
                MmReads,
                (0x01b7, 0x6_0400_07f7 | 0x6_3b80_07f7),
            ),
            ("icelake-sp", MmReads, (0x01b7, 0x7_3c00_0477)),
            ("sapphirerapids", MmReads, (0x012a, 0x7_3c00_4477)),
            ("lioncove", L1Accesses, (0x87d0, 0)),
            ("gracemont", L1Accesses, (0x83d0, 0)),
            ("zen2", MmReads, (0x4843, 0)),
            ("zen3", LlcAccesses, (0x5e44, 0)),
            ("zen5", MmReads, (0x4844, 0)),
            ("zen5", L1Accesses, (0x0040, 0)),
            ("zen5", LlcAccesses, (0xde44, 0)),
            ("neoverse-n1", MmReads, (0x0037, 0)),
            ("generic", MmReads, (0x1_0002, 0)),
        ];
        for (table, counter, expected) in cases {
            assert_eq!(config(table, counter), expected, "{table} {counter}");
        }
    }

    #[test]
    fn bad_tables_say_what_is_wrong() {
        let good = FILES[FILES.len() - 1];
        let cases = [
            (
                good.replace("LLC-loads", "LLC-lots"),
                "`LLC-lots` is not an event",
            ),
            (good.replace("mm_writes =", "mm_rites ="), "mm_rites"),
            (
                format!("{good}\n[[match]]\nvendor = \"x\"\n"),
                "missing field `models`",
            ),
            (
                format!("{good}\n[[match]]\nvendor = \"x\"\nfamily = 1\nmodels = [\"9-3\"]\n"),
                "`9-3` is not a range",
            ),
        ];
        for (text, what) in cases {
            let error = toml::from_str::<EventTable>(&text).unwrap_err().to_string();
            assert!(error.contains(what), "{error}");
        }
    }
}
