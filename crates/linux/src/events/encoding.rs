//! How an event is encoded for the kernel, and how a user writes it.

use cosched_core::Counter;
use serde::Deserialize;
use std::fmt;
use std::str::FromStr;

/// The name of a counter in `--event`, besides [`Counter::name`]; shorter where a shorter one exists.
pub fn short_name(counter: Counter) -> &'static str {
    match counter {
        Counter::MmReads => "mm",
        Counter::LlcAccesses => "llc",
        Counter::L1Accesses => "l1",
        Counter::MmWrites => "mm-writes",
        other => other.name(),
    }
}

/// An event that the kernel defines on every processor with a similar event.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KernelEvent {
    /// The name, as in `perf list`.
    pub name: &'static str,
    /// `type` in `perf_event_attr`.
    pub type_id: u32,
    /// `config` in `perf_event_attr`.
    pub config: u64,
}

/// The kernel's events. Numbers: Linux, `include/uapi/linux/perf_event.h`.
const KERNEL_EVENTS: [KernelEvent; 8] = [
    hardware("cpu-cycles", 0),
    hardware("instructions", 1),
    hardware("cache-references", 2),
    hardware("cache-misses", 3),
    loads("L1-dcache-loads", 0, 0),
    loads("LLC-loads", 2, 0),
    loads("LLC-load-misses", 2, 1),
    loads("node-loads", 6, 0),
];

/// An event of `PERF_TYPE_HARDWARE`.
const fn hardware(name: &'static str, config: u64) -> KernelEvent {
    KernelEvent {
        name,
        type_id: 0,
        config,
    }
}

/// An event of `PERF_TYPE_HW_CACHE`: cache | operation << 8 | result << 16. Loads are operation 0, misses result 1.
const fn loads(name: &'static str, cache: u64, result: u64) -> KernelEvent {
    KernelEvent {
        name,
        type_id: 3,
        config: cache | result << 16,
    }
}

/// An encoding of an event for the kernel.
///
/// ```
/// use cosched_linux::events::Encoding;
/// let raw: Encoding = "cpu/event=0x44,umask=0x48/".parse().unwrap();
/// assert_eq!(raw.to_string(), "cpu/config=0x4844/");
/// assert_eq!("r4844".parse::<Encoding>().unwrap().to_string(), "0x4844");
/// assert!("cache-references".parse::<Encoding>().is_ok());
/// ```
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "String")]
pub enum Encoding {
    /// By the kernel's own name.
    Kernel(KernelEvent),
    /// By the bits of the core's event-select register.
    Raw {
        /// Its PMU; `None` for every core PMU of the machine.
        pmu: Option<String>,
        /// The event select: on x86 event number | unit mask << 8, on Arm the event number.
        config: u64,
        /// A further register, for example Intel's off-core response.
        config1: u64,
    },
}

impl Encoding {
    /// A raw event without further registers, for every core PMU.
    pub fn raw(config: u64) -> Encoding {
        Encoding::Raw {
            pmu: None,
            config,
            config1: 0,
        }
    }
}

impl fmt::Display for Encoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Encoding::Kernel(event) => f.write_str(event.name),
            Encoding::Raw {
                pmu: None,
                config,
                config1: 0,
            } => write!(f, "0x{config:04x}"),
            Encoding::Raw {
                pmu,
                config,
                config1,
            } => {
                write!(f, "{}/config=0x{config:04x}", pmu.as_deref().unwrap_or(""))?;
                if *config1 != 0 {
                    write!(f, ",config1=0x{config1:x}")?;
                }
                f.write_str("/")
            }
        }
    }
}

/// An invalid event.
#[derive(Debug, PartialEq, thiserror::Error)]
pub enum EventError {
    /// An override has no `=`.
    #[error("`{text}` does not say which event it replaces; write for example `mm=0x4844`")]
    NoEquals {
        /// The given text.
        text: String,
    },
    /// An override names no counter.
    #[error(
        "`{name}` is not an event that is counted; give one of {}, as in `mm=0x4844`",
        names()
    )]
    UnknownCounter {
        /// The given text.
        name: String,
    },
    /// An encoding is invalid.
    #[error(
        "`{text}` is not an event: {why}; write it as in `0x4844`, `r412e`, `cpu/event=0x44,umask=0x48/` or \
         `cache-references`"
    )]
    BadEncoding {
        /// The given text.
        text: String,
        /// The reason.
        why: String,
    },
    /// An override is for a PMU that does not belong to the machine's cores.
    #[error("`{pmu}` is not a core PMU of this machine; it has {known}")]
    UnknownPmu {
        /// The given PMU.
        pmu: String,
        /// The machine's core PMUs, or `none`.
        known: String,
    },
}

/// Every short name, for messages.
fn names() -> String {
    Counter::BY_NEED
        .map(|counter| format!("`{}`", short_name(counter)))
        .join(", ")
}

impl TryFrom<String> for Encoding {
    type Error = EventError;

    fn try_from(text: String) -> Result<Encoding, EventError> {
        text.parse()
    }
}

impl FromStr for Encoding {
    type Err = EventError;

    fn from_str(text: &str) -> Result<Encoding, EventError> {
        let text = text.trim();
        parse_encoding(text).map_err(|why| EventError::BadEncoding {
            text: text.to_owned(),
            why,
        })
    }
}

/// Parses an encoding, or explains the error.
fn parse_encoding(text: &str) -> Result<Encoding, String> {
    if let Some(event) = KERNEL_EVENTS.iter().find(|event| event.name == text) {
        return Ok(Encoding::Kernel(*event));
    }
    if let Some((pmu, rest)) = text.split_once('/') {
        let terms = rest.strip_suffix('/').ok_or("the closing `/` is missing")?;
        let pmu = (!pmu.is_empty()).then(|| pmu.to_owned());
        return parse_terms(pmu, terms);
    }
    let hex = text.strip_prefix("0x").or_else(|| text.strip_prefix('r'));
    let hex = hex.ok_or("no such name")?;
    match parse_hex(hex) {
        Some(config) => Ok(Encoding::raw(config)),
        None => Err(format!("`{hex}` is not a hexadecimal number of 64 bits")),
    }
}

/// Without this check `from_str_radix` would accept a sign.
fn parse_hex(text: &str) -> Option<u64> {
    if !text.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    u64::from_str_radix(text, 16).ok()
}

/// A whole number as the kernel and perf write it: decimal, or hexadecimal after `0x`.
pub(crate) fn parse_value(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(hex) => parse_hex(hex),
        None if text.bytes().all(|b| b.is_ascii_digit()) => text.parse().ok(),
        None => None,
    }
}

const TERMS: [&str; 4] = ["config", "config1", "event", "umask"];

fn parse_terms(pmu: Option<String>, terms: &str) -> Result<Encoding, String> {
    let mut values = [None; TERMS.len()];
    for term in terms.split(',') {
        let (name, value) = term
            .split_once('=')
            .ok_or_else(|| format!("`{term}` has no value"))?;
        let value = parse_value(value).ok_or_else(|| format!("`{value}` is not a number"))?;
        let Some(at) = TERMS.iter().position(|known| *known == name) else {
            return Err(format!("`{name}` is none of {}", TERMS.join(", ")));
        };
        if values[at].replace(value).is_some() {
            return Err(format!("`{name}` occurs twice"));
        }
    }
    let [config, config1, event, umask] = values;
    let config = match (config, event, umask) {
        (Some(config), None, None) => config,
        (None, Some(event), None) if event <= 0xffff => event,
        // Only x86 has unit masks, and there larger event numbers are elsewhere in the register.
        (None, Some(event), Some(umask)) if event <= 0xff && umask <= 0xff => event | umask << 8,
        (None, Some(_), _) => {
            return Err("event or umask is too large; give the bits as config".to_owned());
        }
        _ => return Err("it takes either config, or event with or without umask".to_owned()),
    };
    Ok(Encoding::Raw {
        pmu,
        config,
        config1: config1.unwrap_or(0),
    })
}

/// A user's own encoding for one event, in the syntax of `--event`: `mm=0x4844`.
///
/// ```
/// use cosched_core::Counter;
/// use cosched_linux::events::EventOverride;
/// let own: EventOverride = "llc=r412e".parse().unwrap();
/// assert_eq!((own.counter, own.encoding.to_string().as_str()), (Counter::LlcAccesses, "0x412e"));
/// ```
#[derive(Debug)]
pub struct EventOverride {
    /// The counter whose event is replaced.
    pub counter: Counter,
    /// The event that counts instead.
    pub encoding: Encoding,
}

impl FromStr for EventOverride {
    type Err = EventError;

    fn from_str(text: &str) -> Result<EventOverride, EventError> {
        let Some((name, encoding)) = text.split_once('=') else {
            let text = text.to_owned();
            return Err(EventError::NoEquals { text });
        };
        let name = name.trim();
        for counter in Counter::ALL {
            if name == short_name(counter) || name == counter.name() {
                let encoding = encoding.parse()?;
                return Ok(EventOverride { counter, encoding });
            }
        }
        let name = name.to_owned();
        Err(EventError::UnknownCounter { name })
    }
}

impl fmt::Display for EventOverride {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", short_name(self.counter), self.encoding)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> (Option<String>, u64, u64) {
        match text.parse().unwrap() {
            Encoding::Raw {
                pmu,
                config,
                config1,
            } => (pmu, config, config1),
            Encoding::Kernel(event) => panic!("{event:?}"),
        }
    }

    #[test]
    fn every_form_is_read_and_printed_alike() {
        assert_eq!(raw("0x4844"), (None, 0x4844, 0));
        assert_eq!(raw(" r412e "), (None, 0x412e, 0));
        assert_eq!(
            raw("cpu/event=0x44,umask=0x48/"),
            (Some("cpu".into()), 0x4844, 0)
        );
        assert_eq!(raw("/event=55/"), (None, 55, 0));
        assert_eq!(
            raw("cpu_core/config=0x1b7,config1=0x3004003f7/").2,
            0x3_0040_03f7
        );
        assert_eq!(
            raw("cpu/event=0xb7,umask=1,config1=0x10/"),
            (Some("cpu".into()), 0x1b7, 0x10)
        );
        for text in [
            "0x0040",
            "/config=0x01b7,config1=0x7033/",
            "a/config=0x0001,config1=0x2/",
            "LLC-loads",
        ] {
            assert_eq!(text.parse::<Encoding>().unwrap().to_string(), text);
        }
        for event in KERNEL_EVENTS {
            assert_eq!(event.name.parse(), Ok(Encoding::Kernel(event)));
        }
    }

    #[test]
    fn mistakes_are_explained_with_an_example() {
        let cases = [
            ("4844", "no such name"),
            ("0x", "not a hexadecimal number"),
            ("r+12", "not a hexadecimal number"),
            ("0x11223344556677889", "of 64 bits"),
            ("cpu/event=0x44", "closing"),
            ("cpu/event=q/", "`q` is not a number"),
            ("cpu/event=+1/", "`+1` is not a number"),
            ("cpu/edge/", "no value"),
            ("cpu/cmask=1/", "`cmask` is none of"),
            ("cpu/event=1,event=2/", "twice"),
            ("cpu/event=0x144,umask=1/", "too large"),
            ("cpu/umask=1/", "either config"),
            ("cpu/config=1,event=1/", "either config"),
        ];
        for (text, why) in cases {
            let error = text.parse::<Encoding>().unwrap_err().to_string();
            assert!(
                error.contains(why) && error.contains("as in `0x4844`"),
                "{text}: {error}"
            );
        }
        for text in ["mm", "mmm=0x1", "mm=zero"] {
            let error = text.parse::<EventOverride>().unwrap_err().to_string();
            assert!(error.contains("0x4844"), "{text}: {error}");
        }
    }

    #[test]
    fn overrides_take_short_and_long_names() {
        for counter in Counter::ALL {
            for name in [short_name(counter), counter.name()] {
                let own: EventOverride = format!("{name}=0x4844").parse().unwrap();
                assert_eq!(
                    (own.counter, &own.encoding),
                    (counter, &Encoding::raw(0x4844))
                );
            }
        }
        let own: EventOverride = "mm=/config=0x01b7,config1=0x7033/".parse().unwrap();
        assert_eq!(own.to_string(), "mm=/config=0x01b7,config1=0x7033/");
    }
}
