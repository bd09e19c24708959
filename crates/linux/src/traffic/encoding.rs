//! Translates the kernel's description of an event into the numbers for `perf_event_open`.
//!
//! A description is a list of terms, `event=0x04,umask=0x03`. The PMU's folder `format` defines the bits of each term.
//! Linux, `Documentation/ABI/testing/sysfs-bus-event_source-devices-events` and `-format`.

use super::ITEM;
use crate::events::parse_value;
use crate::root::{ReadError, Root};

/// The registers `config`, `config1` and `config2` of an event.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Registers(pub [u64; 3]);

/// The registers for an event of the PMU with the folder `pmu`. `None`: the text is not a list of terms.
///
/// # Errors
/// A file under `format` that is missing, can't be read, or gives a term fewer bits than its value needs.
pub(crate) fn encode(root: &Root, pmu: &str, terms: &str) -> Result<Option<Registers>, ReadError> {
    let mut registers = Registers::default();
    for term in terms.split(',') {
        // A term without a value stands for 1.
        let (name, value) = term
            .split_once('=')
            .map_or((term, Some(1)), |(name, value)| (name, parse_value(value)));
        let Some(value) = value else { return Ok(None) };
        if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
            return Ok(None);
        }
        const FIELD: &str = "the bits of a field, as in `config:0-7,32-35`";
        let file = format!("{pmu}/format/{name}");
        let text = root
            .text(&file, ITEM)?
            .ok_or_else(|| root.missing(&file, ITEM, FIELD))?;
        let field =
            Field::parse(&text).ok_or_else(|| root.malformed(&file, ITEM, FIELD, text.clone()))?;
        let bits = field.spread(value).ok_or_else(|| {
            let wide = "a field that is wide enough for the value of the event";
            root.malformed(&file, ITEM, wide, text)
        })?;
        registers.0[field.register] |= bits;
    }
    Ok(Some(registers))
}

/// The bits of a register for a value; the first range holds the lowest bits.
struct Field {
    register: usize,
    /// First and last bit of each range.
    ranges: Vec<(u32, u32)>,
}

/// Parses `7` or `0-7`: the first and the last bit of a register.
fn parse_bits(text: &str) -> Option<(u32, u32)> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
    (first <= last && last < 64).then_some((first, last))
}

impl Field {
    fn parse(text: &str) -> Option<Field> {
        let (register, ranges) = text.split_once(':')?;
        let register = ["config", "config1", "config2"]
            .iter()
            .position(|&name| name == register)?;
        Some(Field {
            register,
            ranges: ranges.split(',').map(parse_bits).collect::<Option<_>>()?,
        })
    }

    /// The bits of the field for this value. `None`: it is too large.
    fn spread(&self, value: u64) -> Option<u64> {
        let (mut set, mut rest) = (0, value);
        for bit in self.ranges.iter().flat_map(|&(first, last)| first..=last) {
            set |= (rest & 1) << bit;
            rest >>= 1;
        }
        (rest == 0).then_some(set)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PMU: &str = "/sys/bus/event_source/devices/p";

    fn tree(fields: &[(&str, &str)]) -> (tempfile::TempDir, Root) {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::new(dir.path());
        std::fs::create_dir_all(root.path(&format!("{PMU}/format"))).unwrap();
        for (name, bits) in fields {
            std::fs::write(
                root.path(&format!("{PMU}/format/{name}")),
                format!("{bits}\n"),
            )
            .unwrap();
        }
        (dir, root)
    }

    #[test]
    fn fields_lie_where_their_files_say() {
        let (_dir, root) = tree(&[
            ("event", "config:0-7,32-35"),
            ("umask", "config:16-23"),
            ("edge", "config:40"),
            ("match", "config2:0-63"),
            ("filter", "config1:4-5,2"),
        ]);
        let of = |terms| encode(&root, PMU, terms).unwrap().unwrap().0;
        assert_eq!(of("event=0x04,umask=0x03"), [0x3_0004, 0, 0]);
        assert_eq!(of("event=0xa0b,edge"), [1 << 40 | 0xa << 32 | 0x0b, 0, 0]);
        assert_eq!(
            of("filter=0x5,match=0xffffffffffffffff"),
            [0, 0b01_0100, u64::MAX]
        );
    }

    #[test]
    fn what_is_no_list_of_terms_is_told_from_a_bad_field() {
        let (_dir, root) = tree(&[
            ("event", "config:0-7"),
            ("far", "config9:0"),
            ("odd", "config:9-8"),
        ]);
        for terms in [
            "",
            "event=",
            "event=x",
            "event=?",
            "event=-1",
            "event=1,",
            "../event=1",
        ] {
            assert_eq!(encode(&root, PMU, terms).unwrap(), None, "{terms}");
        }
        for (terms, file, why) in [
            (
                "umask=1",
                "format/umask",
                "does not exist; expected the bits of a field",
            ),
            (
                "far=1",
                "format/far",
                "says `config9:0`; expected the bits of a field",
            ),
            (
                "odd=1",
                "format/odd",
                "says `config:9-8`; expected the bits of a field",
            ),
            (
                "event=0x100",
                "format/event",
                "says `config:0-7`; expected a field that is wide enough",
            ),
        ] {
            let error = encode(&root, PMU, terms).unwrap_err().to_string();
            assert!(
                error.contains(file) && error.contains(why),
                "{terms}: {error}"
            );
        }
    }
}
