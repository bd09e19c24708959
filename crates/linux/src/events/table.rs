//! The event tables: one file of data per microarchitecture, in `tables/`.
//!
//! A file has `name`, `title` and `source`, any number of `[[match]]`, and something for each counter. A `[[match]]`
//! has `vendor`, `family`, `models` and perhaps `steppings` (numbers or ranges as text) for x86, or `implementer` and
//! `parts` for Arm; it may have `pmus`, the kernel's names of the PMUs that it is for. A counter has either
//! `[events.COUNTER]` with an `encoding`, the vendor's `name` and a `note` on what the event counts in addition or
//! leaves out, or a reason under `[absent]`. An event that no public source gives is absent: it is never guessed.

use super::encoding::Encoding;
use crate::processor::Processor;
use cosched_core::{Absence, Counter};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// One event of a microarchitecture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The counter that it is for.
    pub counter: Counter,
    /// The vendor's name, or the kernel's where its own encoding is used.
    pub name: String,
    /// How it is described to the kernel.
    pub encoding: Encoding,
    /// What it counts in addition to what is meant, or leaves out; `None` if nothing.
    pub note: Option<String>,
}

/// A counter without an event, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AbsentEvent {
    /// The counter that has no event.
    pub counter: Counter,
    /// The reason in its readings.
    pub reason: Absence,
    /// The reason in words, with details.
    pub why: String,
}

/// The events of one microarchitecture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventTable {
    /// Short name, for example `zen5`.
    pub name: String,
    /// Name in words.
    pub title: String,
    /// Where the encodings come from.
    pub source: String,
    /// Its events, the most needed first.
    pub events: Vec<Event>,
    /// The counters without an event.
    pub absent: Vec<AbsentEvent>,
    matches: Vec<Match>,
}

/// The processors, and their PMUs, that a table is for.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Match {
    id: MatchId,
    /// Empty for a PMU of any name.
    pmus: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum MatchId {
    X86 {
        vendor: String,
        family: u32,
        models: Vec<Range>,
        steppings: Vec<Range>,
    },
    Arm {
        implementer: u32,
        parts: Vec<u32>,
    },
}

/// First and last number, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Range(u32, u32);

/// Why a table can't be read.
#[derive(Debug, thiserror::Error)]
pub enum TableError {
    /// The text is not TOML, or not of the table's form.
    #[error("event table: {0}")]
    Toml(#[from] toml::de::Error),
    /// A value has no meaning.
    #[error("event table `{table}`: {what}")]
    Value {
        /// The table's name.
        table: String,
        /// What is wrong.
        what: String,
    },
}

impl EventTable {
    /// Reads a table from its file's text.
    ///
    /// # Errors
    /// [`TableError`] when the text is not a table, or lacks an entry for some counter.
    pub fn parse(text: &str) -> Result<EventTable, TableError> {
        let file: File = toml::from_str(text)?;
        let bad = |what: String| TableError::Value {
            table: file.name.clone(),
            what,
        };
        let mut events = Vec::new();
        let mut absent = Vec::new();
        for counter in Counter::BY_NEED {
            match (file.events.get(&counter), file.absent.get(&counter)) {
                (Some(event), None) => {
                    let encoding = event
                        .encoding
                        .parse()
                        .map_err(|error| bad(format!("{counter}: {error}")))?;
                    let name = event.name.clone().unwrap_or_else(|| event.encoding.clone());
                    events.push(Event {
                        counter,
                        name,
                        encoding,
                        note: event.note.clone(),
                    });
                }
                (None, Some(why)) => {
                    absent.push(AbsentEvent {
                        counter,
                        reason: Absence::NoSuchEvent,
                        why: why.clone(),
                    });
                }
                _ => {
                    return Err(bad(format!(
                        "{counter} must be under [events] or under [absent]"
                    )));
                }
            }
        }
        let matches = file
            .matches
            .iter()
            .map(|m| m.check().map_err(bad))
            .collect::<Result<_, _>>()?;
        Ok(EventTable {
            name: file.name.clone(),
            title: file.title,
            source: file.source,
            events,
            absent,
            matches,
        })
    }

    /// Whether the table is for the PMU called `pmu` of this processor.
    pub fn is_for(&self, processor: &Processor, pmu: &str) -> bool {
        self.matches.iter().any(|m| {
            (m.pmus.is_empty() || m.pmus.iter().any(|name| name == pmu)) && m.fits(processor)
        })
    }

    /// The counter's event, if there is one.
    pub fn event(&self, counter: Counter) -> Option<&Event> {
        self.events.iter().find(|event| event.counter == counter)
    }

    /// Why there is no event for a counter.
    pub(crate) fn why_absent(&self, counter: Counter) -> &str {
        self.absent
            .iter()
            .find(|absent| absent.counter == counter)
            .map_or("", |absent| &absent.why)
    }

    /// A table without any event.
    pub(crate) fn empty(name: &str, title: &str) -> EventTable {
        EventTable {
            name: name.to_owned(),
            title: title.to_owned(),
            source: "given by the user".to_owned(),
            events: Vec::new(),
            absent: Counter::BY_NEED
                .map(|counter| AbsentEvent {
                    counter,
                    reason: Absence::NoCounters,
                    why: "this machine has no core PMU, and no other event was given".to_owned(),
                })
                .to_vec(),
            matches: Vec::new(),
        }
    }

    /// Replaces or adds an event with a user's own encoding.
    pub(crate) fn replace(&mut self, counter: Counter, encoding: Encoding) {
        self.absent.retain(|absent| absent.counter != counter);
        self.events.retain(|event| event.counter != counter);
        let note = Some("given by the user".to_owned());
        self.events.push(Event {
            counter,
            name: encoding.to_string(),
            encoding,
            note,
        });
        self.events.sort_by_key(|event| event.counter.need());
    }
}

impl Match {
    fn fits(&self, processor: &Processor) -> bool {
        let within =
            |ranges: &[Range], n: u32| ranges.iter().any(|range| (range.0..=range.1).contains(&n));
        match (&self.id, processor) {
            (
                MatchId::X86 {
                    vendor,
                    family,
                    models,
                    steppings,
                },
                Processor::X86 {
                    vendor: v,
                    family: f,
                    model,
                    stepping,
                },
            ) => {
                vendor == v
                    && family == f
                    && within(models, *model)
                    && (steppings.is_empty() || within(steppings, *stepping))
            }
            (
                MatchId::Arm { implementer, parts },
                Processor::Arm {
                    implementer: i,
                    part,
                },
            ) => implementer == i && parts.contains(part),
            _ => false,
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: String,
    title: String,
    source: String,
    #[serde(default, rename = "match")]
    matches: Vec<FileMatch>,
    events: BTreeMap<Counter, FileEvent>,
    #[serde(default)]
    absent: BTreeMap<Counter, String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileEvent {
    encoding: String,
    name: Option<String>,
    note: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileMatch {
    vendor: Option<String>,
    family: Option<u32>,
    #[serde(default)]
    models: Vec<String>,
    #[serde(default)]
    steppings: Vec<String>,
    implementer: Option<u32>,
    #[serde(default)]
    parts: Vec<u32>,
    #[serde(default)]
    pmus: Vec<String>,
}

impl FileMatch {
    fn check(&self) -> Result<Match, String> {
        let id = match (&self.vendor, self.family, self.implementer) {
            (Some(vendor), Some(family), None) if !self.models.is_empty() => MatchId::X86 {
                vendor: vendor.clone(),
                family,
                models: parse_ranges(&self.models)?,
                steppings: parse_ranges(&self.steppings)?,
            },
            (None, None, Some(implementer)) if !self.parts.is_empty() => MatchId::Arm {
                implementer,
                parts: self.parts.clone(),
            },
            _ => {
                return Err(
                    "a match needs vendor, family and models, or implementer and parts".to_owned(),
                );
            }
        };
        Ok(Match {
            id,
            pmus: self.pmus.clone(),
        })
    }
}

fn parse_ranges(list: &[String]) -> Result<Vec<Range>, String> {
    list.iter()
        .map(|text| parse_range(text).ok_or_else(|| format!("`{text}` is not a range of numbers")))
        .collect()
}

/// Parses `0x1a`, `5` or `0x10-0x1f`.
fn parse_range(text: &str) -> Option<Range> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let range = Range(parse_number(first)?, parse_number(last)?);
    (range.0 <= range.1).then_some(range)
}

fn parse_number(text: &str) -> Option<u32> {
    match text.strip_prefix("0x") {
        Some(hex) => u32::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

/// Every table, in the order in which they are listed; the last one is the fallback.
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

/// All event tables. The last one, `generic`, is for processors that no other table knows.
pub fn tables() -> &'static [EventTable] {
    static TABLES: OnceLock<Vec<EventTable>> = OnceLock::new();
    // The files are part of the program, and a test reads each of them. So this can't fail in a tested build.
    TABLES.get_or_init(|| {
        FILES
            .iter()
            .map(|text| EventTable::parse(text).expect("a bundled table is valid"))
            .collect()
    })
}

/// The table for the PMU called `pmu` of a processor; `generic` if no other table is for it.
pub fn table_for(processor: Option<&Processor>, pmu: &str) -> &'static EventTable {
    let all = tables();
    processor
        .and_then(|processor| all.iter().find(|table| table.is_for(processor, pmu)))
        .unwrap_or(&all[all.len() - 1])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn x86(vendor: &str, family: u32, model: u32, stepping: u32) -> Processor {
        Processor::X86 {
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
            Encoding::Kernel(event) => (event.type_and_config().1, 0),
        }
    }

    #[test]
    fn every_bundled_table_is_whole() {
        let mut names: Vec<&str> = tables().iter().map(|table| table.name.as_str()).collect();
        for (table, file) in tables().iter().zip(FILES) {
            assert_eq!(EventTable::parse(file).unwrap(), *table);
            assert!(
                table.source.len() > 10 && !table.title.is_empty(),
                "{}",
                table.name
            );
            assert_eq!(
                table.events.len() + table.absent.len(),
                Counter::COUNT,
                "{}",
                table.name
            );
            assert!(
                table.events.is_sorted_by_key(|event| event.counter.need()),
                "{}",
                table.name
            );
            assert_eq!(table.matches.is_empty(), table.name == "generic");
            for event in &table.events {
                assert!(
                    !matches!(event.encoding, Encoding::Raw { pmu: Some(_), .. }),
                    "{}",
                    table.name
                );
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
            (
                Processor::Arm {
                    implementer: 0x41,
                    part: 0xd0c,
                },
                "armv8_pmuv3_0",
                "neoverse-n1",
            ),
            (
                Processor::Arm {
                    implementer: 0x41,
                    part: 0xd4f,
                },
                "armv8_pmuv3_0",
                "neoverse-v2",
            ),
            (
                Processor::Arm {
                    implementer: 0x48,
                    part: 0xd0c,
                },
                "armv8_pmuv3_0",
                "generic",
            ),
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
                "llc_accesses: `LLC-lots` is not an event",
            ),
            (good.replace("mm_writes =", "mm_rites ="), "mm_rites"),
            (
                good.replace("[absent]\n", "[absent]\ncycles = \"no\"\n"),
                "cycles must be under",
            ),
            (
                format!("{good}\n[[match]]\nvendor = \"x\"\n"),
                "a match needs",
            ),
            (
                format!("{good}\n[[match]]\nvendor = \"x\"\nfamily = 1\nmodels = [\"9-3\"]\n"),
                "`9-3` is not a range",
            ),
        ];
        for (text, what) in cases {
            let error = EventTable::parse(&text).unwrap_err().to_string();
            assert!(error.contains(what), "{error}");
        }
    }
}
