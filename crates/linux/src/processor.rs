//! The machine's processors, from `/proc/cpuinfo`: the key to the event encodings.

use crate::root::{ReadError, Root};
use cosched_core::{CpuId, CpuSet};
use std::fmt;

/// A kind of processor, as relevant for counters: on x86 the numbers of CPUID leaf 1, on Arm those of the MIDR
/// register.
#[derive(Debug, PartialEq)]
pub struct Processor {
    /// Vendor, for example `GenuineIntel`; on Arm `Arm` and the implementer, 0x41 for Arm's own cores.
    pub vendor: String,
    /// Family, including the extended family; 0 on Arm.
    pub family: u32,
    /// Model, including the extended model; on Arm the part number.
    pub model: u32,
    /// Stepping; 0 if unknown.
    pub stepping: u32,
}

impl fmt::Display for Processor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Processor {
            vendor,
            family,
            model,
            stepping,
        } = self;
        match family {
            0 => write!(f, "{vendor} part 0x{model:x}"),
            _ => write!(
                f,
                "{vendor} family {family} model 0x{model:x} stepping {stepping}"
            ),
        }
    }
}

/// The content of `/proc/cpuinfo`.
#[derive(Debug, Default)]
pub struct Processors {
    /// The model's name, if known.
    pub model_name: Option<String>,
    /// Each kind of processor with its CPUs, in the order of their first CPUs.
    pub kinds: Vec<(Processor, CpuSet)>,
    /// Whether the processor reports a hypervisor below it.
    pub virtual_machine: bool,
}

const ITEM: &str = "processor";
const CPUINFO: &str = "/proc/cpuinfo";

/// The lines of one CPU in `/proc/cpuinfo`.
struct Block<'a> {
    root: &'a Root,
    text: &'a str,
}

impl<'a> Block<'a> {
    fn field(&self, name: &str) -> Option<&'a str> {
        self.text.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            (key.trim() == name).then(|| value.trim())
        })
    }

    fn number(&self, name: &str) -> Result<Option<u32>, ReadError> {
        let Some(text) = self.field(name) else {
            return Ok(None);
        };
        parse_number(text)
            .map(Some)
            .ok_or_else(|| self.root.malformed(CPUINFO, ITEM, "a number", text))
    }

    /// The kind of this CPU; `None` if the block lacks it.
    fn kind(&self) -> Result<Option<Processor>, ReadError> {
        let (vendor, family, model) = match self.field("vendor_id") {
            Some(vendor) => (
                vendor.to_owned(),
                self.number("cpu family")?,
                self.number("model")?,
            ),
            None => {
                let implementer = self.field("CPU implementer").unwrap_or_default();
                (
                    format!("Arm {implementer}"),
                    Some(0),
                    self.number("CPU part")?,
                )
            }
        };
        let (Some(family), Some(model)) = (family, model) else {
            return Ok(None);
        };
        Ok(Some(Processor {
            vendor,
            family,
            model,
            // A hypervisor may hide the stepping and print `unknown`.
            stepping: self.field("stepping").and_then(parse_number).unwrap_or(0),
        }))
    }
}

impl Processors {
    /// Reads `/proc/cpuinfo`. Without that file the machine has no kinds.
    ///
    /// # Errors
    /// [`ReadError`] when the file can't be read or a number in it is malformed.
    pub fn read(root: &Root) -> Result<Processors, ReadError> {
        let Some(text) = root.text(CPUINFO, ITEM)? else {
            return Ok(Processors::default());
        };
        let mut all = Processors::default();
        for block in text.split("\n\n") {
            let block = Block { root, text: block };
            if all.model_name.is_none() {
                // 32-bit and older Arm kernels name the board in a separate block.
                let name = block
                    .field("model name")
                    .or_else(|| block.field("Model"))
                    .or_else(|| block.field("Hardware"));
                all.model_name = name.filter(|name| !name.is_empty()).map(str::to_owned);
            }
            all.virtual_machine |= block
                .field("flags")
                .is_some_and(|flags| flags.split_whitespace().any(|flag| flag == "hypervisor"));
            let Some(cpu) = block.number("processor")? else {
                continue;
            };
            let Some(kind) = block.kind()? else {
                continue;
            };
            match all.kinds.iter_mut().find(|(known, _)| *known == kind) {
                Some((_, cpus)) => drop(cpus.insert(CpuId(cpu))),
                None => all.kinds.push((kind, CpuSet::from_iter([CpuId(cpu)]))),
            }
        }
        Ok(all)
    }

    /// The kind of the first CPU of `cpus`, or of the machine's first CPU when `cpus` is `None`.
    pub fn kind_of(&self, cpus: Option<&CpuSet>) -> Option<&Processor> {
        let Some(first) = cpus.and_then(CpuSet::first) else {
            return self.kinds.first().map(|(kind, _)| kind);
        };
        self.kinds
            .iter()
            .find(|(_, of)| of.contains(first))
            .map(|(kind, _)| kind)
    }

    /// A name for reports: the model's name, otherwise the first kind's numbers, otherwise `unknown processor`.
    pub fn name(&self) -> String {
        match (&self.model_name, self.kinds.first()) {
            (Some(name), _) => name.clone(),
            (None, Some((kind, _))) => kind.to_string(),
            (None, None) => "unknown processor".to_owned(),
        }
    }
}

/// Decimal, or hexadecimal with `0x`.
pub(crate) fn parse_number(text: &str) -> Option<u32> {
    match text.strip_prefix("0x") {
        Some(hex) => u32::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Processors, ReadError> {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("proc")).unwrap();
        std::fs::write(dir.path().join("proc/cpuinfo"), text).unwrap();
        Processors::read(&Root::new(dir.path()))
    }

    #[test]
    fn x86_is_told_by_vendor_family_model() {
        let block = |cpu| {
            format!(
                "processor\t: {cpu}\nvendor_id\t: AuthenticAMD\ncpu family\t: 26\nmodel\t\t: 2\n\
                 model name\t: AMD EPYC\nstepping\t: 1\nflags\t\t: fpu hypervisor lm\n"
            )
        };
        let found = read(&format!("{}\n{}", block(0), block(1))).unwrap();
        assert_eq!(found.name(), "AMD EPYC");
        assert!(found.virtual_machine);
        let kind = Processor {
            vendor: "AuthenticAMD".into(),
            family: 26,
            model: 2,
            stepping: 1,
        };
        assert_eq!(found.kinds, [(kind, "0-1".parse().unwrap())]);
    }

    #[test]
    fn arm_is_told_by_part_and_can_be_mixed() {
        let block =
            |cpu, part| format!("processor : {cpu}\nCPU implementer : 0x41\nCPU part : {part}\n");
        let found =
            read(&[block(0, "0xd03"), block(1, "0xd03"), block(2, "0xd09")].join("\n")).unwrap();
        assert_eq!(found.kinds.len(), 2);
        assert_eq!(
            found.kind_of(Some(&"2".parse().unwrap())),
            Some(&found.kinds[1].0)
        );
        assert_eq!(found.kind_of(None), Some(&found.kinds[0].0));
        assert_eq!(found.name(), "Arm 0x41 part 0xd03");
        assert!(!found.virtual_machine);
    }

    #[test]
    fn unusual_files_do_no_harm_and_bad_numbers_are_named() {
        assert_eq!(read("").unwrap().name(), "unknown processor");
        assert_eq!(read("Hardware : BCM2835\n").unwrap().name(), "BCM2835");
        let hidden =
            "processor : 0\nvendor_id : X\ncpu family : 6\nmodel : 1\nstepping : unknown\n";
        assert_eq!(read(hidden).unwrap().kinds.len(), 1);
        let error = read("processor : zero\n").unwrap_err().to_string();
        assert!(
            error.contains("`zero`") && error.contains("expected a number"),
            "{error}"
        );
    }
}
