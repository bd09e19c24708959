//! The structures of `bpf/intf.h`, byte by byte. They are exchanged with the programs in the kernel.

/// CPUs have numbers below this.
pub(crate) const CPUS: usize = 512;
/// Jobs that have processes at once.
pub(crate) const SLOTS: usize = 1024;
/// Different sets of CPUs in one plan.
pub(crate) const MASKS: usize = 128;
/// Memory domains, at most.
pub(crate) const DOMAINS: usize = 64;
/// CPUs of one core, at most.
pub(crate) const SIBLINGS: usize = 8;
/// No slot, no CPU, or no mask.
pub(crate) const NONE: u16 = 0xffff;
/// Others may take the CPU while its slot does not need it.
pub(crate) const SEAT_FILL: u16 = 1;
/// No slot has the CPU, and loose slots may use it.
pub(crate) const SEAT_SPARE: u16 = 2;

/// A structure as bytes, in the order of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Image(pub(crate) Vec<u8>);

impl Image {
    pub(crate) fn new(size: usize) -> Image {
        Image(vec![0; size])
    }

    pub(crate) fn put_u16(&mut self, at: usize, value: u16) {
        self.0[at..at + 2].copy_from_slice(&value.to_ne_bytes());
    }

    pub(crate) fn put_u32(&mut self, at: usize, value: u32) {
        self.0[at..at + 4].copy_from_slice(&value.to_ne_bytes());
    }

    pub(crate) fn put_u64(&mut self, at: usize, value: u64) {
        self.0[at..at + 8].copy_from_slice(&value.to_ne_bytes());
    }

    pub(crate) fn u16(&self, at: usize) -> u16 {
        u16::from_ne_bytes(self.0[at..at + 2].try_into().expect("two bytes"))
    }

    pub(crate) fn u32(&self, at: usize) -> u32 {
        u32::from_ne_bytes(self.0[at..at + 4].try_into().expect("four bytes"))
    }

    pub(crate) fn u64(&self, at: usize) -> u64 {
        u64::from_ne_bytes(self.0[at..at + 8].try_into().expect("eight bytes"))
    }

    /// A text that ends with a zero byte.
    pub(crate) fn text(&self, at: usize, most: usize) -> String {
        let bytes = &self.0[at..at + most];
        let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(most);
        String::from_utf8_lossy(&bytes[..end]).trim().to_owned()
    }
}

/// `struct cosched_config`.
pub(crate) mod config {
    use super::{CPUS, SIBLINGS};
    pub(crate) const NR_CPUS: usize = 0;
    pub(crate) const NR_SLOTS: usize = 4;
    pub(crate) const TAKES_ALL: usize = 8;
    pub(crate) const SIBLING: usize = 16;
    pub(crate) const SIZE: usize = SIBLING + 2 * CPUS * SIBLINGS;
}

/// `struct cosched_plan`.
pub(crate) mod plan {
    use super::{CPUS, MASKS, SLOTS};
    pub(crate) const GENERATION: usize = 0;
    pub(crate) const FILLERS: usize = 8;
    pub(crate) const LOOSE: usize = 12;
    pub(crate) const SEATS: usize = 16;
    /// Of a seat.
    pub(crate) const UNTIL: usize = 0;
    pub(crate) const SLOT: usize = 8;
    pub(crate) const FLAGS: usize = 10;
    pub(crate) const SEAT: usize = 16;
    pub(crate) const PLACES: usize = SEATS + CPUS * SEAT;
    /// Of a place.
    pub(crate) const CPU: usize = 0;
    pub(crate) const MASK: usize = 2;
    pub(crate) const IS_LOOSE: usize = 4;
    pub(crate) const PLACE: usize = 8;
    pub(crate) const FILLER: usize = PLACES + SLOTS * PLACE;
    /// Of a filler: its slot, and its mask.
    pub(crate) const OF: usize = 4;
    pub(crate) const SPARE: usize = FILLER + SLOTS * OF;
    pub(crate) const MASK_WORDS: usize = SPARE + SLOTS * OF;
    pub(crate) const MASK_SIZE: usize = CPUS / 8;
    pub(crate) const SIZE: usize = MASK_WORDS + MASKS * MASK_SIZE;
}

/// `struct cosched_task`.
pub(crate) mod task {
    pub(crate) const SLOT: usize = 16;
    pub(crate) const SIZE: usize = 32;
}

/// `struct cosched_total`.
pub(crate) mod total {
    use cosched_core::Counter;
    /// Of a counter.
    pub(crate) const ENABLED: usize = 0;
    pub(crate) const RUNNING: usize = 8;
    pub(crate) const VALUE: usize = 16;
    pub(crate) const COUNT: usize = 24;
    pub(crate) const SIZE: usize = COUNT * Counter::COUNT;
}

/// `struct cosched_efs`.
pub(crate) mod efs {
    use super::CPUS;
    pub(crate) const C_LOCAL: usize = 0;
    pub(crate) const C_GLOBAL: usize = 8;
    pub(crate) const DOMAIN: usize = 16;
    pub(crate) const IS_OURS: usize = DOMAIN + 2 * CPUS;
    pub(crate) const SIZE: usize = IS_OURS + CPUS;
}

/// `struct cosched_traffic`.
pub(crate) mod traffic {
    use super::DOMAINS;
    pub(crate) const LINE_TIME: usize = 0;
    pub(crate) const OTHERS: usize = 8 * DOMAINS;
    pub(crate) const SIZE: usize = OTHERS + 4 * DOMAINS;
}

/// `struct cosched_demands`.
pub(crate) mod demands {
    use super::{CPUS, SLOTS};
    pub(crate) const NR_GAINS: usize = 0;
    pub(crate) const GAINS: usize = 4;
    pub(crate) const CLASS: usize = GAINS + 4 * CPUS;
    pub(crate) const SIZE: usize = CLASS + 2 * SLOTS + 4;
}

/// `struct cosched_measured`.
pub(crate) mod measured {
    pub(crate) const WORD: usize = 0;
    #[cfg(test)]
    pub(crate) const SIZE: usize = 2 * super::SLOTS;
}

/// `struct cosched_wish`.
pub(crate) mod wish {
    pub(crate) const FREE: usize = 0;
    pub(crate) const SIZE: usize = 8;
}

/// `struct cosched_residency`.
pub(crate) mod residency {
    pub(crate) const ON_CPU: usize = 8;
    pub(crate) const SHARED: usize = 16;
    pub(crate) const AWAKE: usize = 24;
    pub(crate) const LAST_ON_CPU: usize = 32;
    pub(crate) const BESIDE: usize = 40;
}

/// `struct cosched_occupation`.
pub(crate) mod occupation {
    pub(crate) const LONGEST: usize = 16;
    pub(crate) const LOST: usize = 24;
    pub(crate) const TIMES: usize = 32;
    #[cfg(all(test, feature = "bpf"))]
    pub(crate) const SIZE: usize = TIMES + 8 * 17;
}

/// `struct cosched_switch`.
pub(crate) mod switch {
    pub(crate) const AT: usize = 0;
    pub(crate) const CPU: usize = 8;
    pub(crate) const SLOT: usize = 12;
    pub(crate) const SIZE: usize = 16;
}

/// `struct cosched_exit`.
pub(crate) mod exit {
    pub(crate) const KIND: usize = 0;
    pub(crate) const REASON: usize = 16;
    pub(crate) const MESSAGE: usize = REASON + REASON_SIZE;
    pub(crate) const REASON_SIZE: usize = 128;
    pub(crate) const MESSAGE_SIZE: usize = 384;
}

/// `struct cosched_install`.
pub(crate) mod install {
    pub(crate) const WHICH: usize = 0;
    pub(crate) const SIZE: usize = 8;
}

/// `struct cosched_call`.
pub(crate) mod call {
    pub(crate) const SLOT: usize = 0;
    pub(crate) const ANSWER: usize = 4;
    pub(crate) const SPAN: usize = 8;
    pub(crate) const SIZE: usize = 16;
}

#[cfg(all(test, feature = "bpf"))]
mod tests {
    use super::*;
    use cosched_core::Counter;
    use libbpf_rs::btf::types::{MemberAttr, Struct};
    use libbpf_rs::btf::{Btf, HasSize as _};

    /// Compares offsets, and the size, with those in the compiled program.
    fn check(btf: &Btf<'_>, name: &str, size: Option<usize>, members: &[(&str, usize)]) {
        let found: Struct<'_> = btf
            .type_by_name(name)
            .unwrap_or_else(|| panic!("no {name} in the program"));
        assert!(
            size.is_none_or(|size| found.size() == size),
            "{name} has {} bytes",
            found.size()
        );
        for (member, offset) in members {
            let its = found
                .iter()
                .find(|its| its.name.is_some_and(|its| its == *member));
            let its = its.unwrap_or_else(|| panic!("{name} has no {member}"));
            let MemberAttr::Normal { offset: bits } = its.attr else {
                panic!("{name}.{member} is a bit field")
            };
            assert_eq!(bits as usize, 8 * offset, "{name}.{member}");
        }
    }

    #[test]
    fn both_sides_have_the_same_structures() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("plan.bpf.o");
        std::fs::write(&path, crate::scheduler::PLAN).unwrap();
        let btf = Btf::from_path(&path).unwrap();
        let config = [
            ("cpus", config::NR_CPUS),
            ("slots", config::NR_SLOTS),
            ("takes_all", config::TAKES_ALL),
        ];
        check(&btf, "cosched_config", Some(super::config::SIZE), &config);
        check(
            &btf,
            "cosched_config",
            None,
            &[("siblings", super::config::SIBLING)],
        );
        let of_plan = [
            ("generation", plan::GENERATION),
            ("fillers", plan::FILLERS),
            ("loose", plan::LOOSE),
            ("seats", plan::SEATS),
            ("places", plan::PLACES),
            ("filler", plan::FILLER),
            ("spare", plan::SPARE),
            ("masks", plan::MASK_WORDS),
        ];
        check(&btf, "cosched_plan", Some(plan::SIZE), &of_plan);
        let of_seat = [
            ("until", plan::UNTIL),
            ("slot", plan::SLOT),
            ("flags", plan::FLAGS),
        ];
        check(&btf, "cosched_seat", Some(plan::SEAT), &of_seat);
        let of_place = [
            ("cpu", plan::CPU),
            ("mask", plan::MASK),
            ("loose", plan::IS_LOOSE),
        ];
        check(&btf, "cosched_place", Some(plan::PLACE), &of_place);
        check(
            &btf,
            "cosched_filler",
            Some(plan::OF),
            &[("slot", 0), ("mask", 2)],
        );
        check(&btf, "cosched_mask", Some(plan::MASK_SIZE), &[("words", 0)]);
        check(
            &btf,
            "cosched_task",
            Some(task::SIZE),
            &[("slot", task::SLOT)],
        );
        check(
            &btf,
            "cosched_wish",
            Some(wish::SIZE),
            &[("free", wish::FREE)],
        );
        let of_residency = [
            ("on_cpu", residency::ON_CPU),
            ("shared", residency::SHARED),
            ("awake", residency::AWAKE),
            ("last_on_cpu", residency::LAST_ON_CPU),
            ("beside", residency::BESIDE),
        ];
        check(
            &btf,
            "cosched_residency",
            Some(residency::BESIDE + 8 * SLOTS),
            &of_residency,
        );
        let of_exit = [
            ("kind", exit::KIND),
            ("reason", exit::REASON),
            ("message", exit::MESSAGE),
        ];
        check(
            &btf,
            "cosched_exit",
            Some(exit::MESSAGE + exit::MESSAGE_SIZE),
            &of_exit,
        );
        check(
            &btf,
            "cosched_occupation",
            Some(occupation::SIZE),
            &[
                ("longest", occupation::LONGEST),
                ("lost", occupation::LOST),
                ("times", occupation::TIMES),
            ],
        );
        let of_count = [
            ("enabled", total::ENABLED),
            ("running", total::RUNNING),
            ("value", total::VALUE),
        ];
        check(&btf, "cosched_count", Some(total::COUNT), &of_count);
        check(&btf, "cosched_total", Some(total::SIZE), &[("of", 0)]);
        let header = include_str!("../bpf/intf.h");
        for (name, counter) in [("READS", Counter::MmReads), ("WRITES", Counter::MmWrites)] {
            assert!(
                header.contains(&format!("#define COSCHED_{name} {}\n", counter as usize)),
                "{name}"
            );
        }
        let of_switch = [
            ("at", switch::AT),
            ("cpu", switch::CPU),
            ("slot", switch::SLOT),
        ];
        check(&btf, "cosched_switch", Some(switch::SIZE), &of_switch);
        check(
            &btf,
            "cosched_install",
            Some(install::SIZE),
            &[("which", install::WHICH)],
        );
        check(
            &btf,
            "cosched_call",
            Some(call::SIZE),
            &[
                ("slot", call::SLOT),
                ("answer", call::ANSWER),
                ("span", call::SPAN),
            ],
        );
    }

    #[test]
    fn so_has_efs() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("efs.bpf.o");
        std::fs::write(&path, crate::scheduler::EFS).unwrap();
        let btf = Btf::from_path(&path).unwrap();
        let of_efs = [
            ("c_local", efs::C_LOCAL),
            ("c_global", efs::C_GLOBAL),
            ("domain", efs::DOMAIN),
            ("is_ours", efs::IS_OURS),
        ];
        check(&btf, "cosched_efs", Some(efs::SIZE), &of_efs);
        let of_traffic = [
            ("line_time", traffic::LINE_TIME),
            ("others", traffic::OTHERS),
        ];
        check(&btf, "cosched_traffic", Some(traffic::SIZE), &of_traffic);
        let of_demands = [
            ("nr_gains", demands::NR_GAINS),
            ("gains", demands::GAINS),
            ("class", demands::CLASS),
        ];
        check(&btf, "cosched_demands", Some(demands::SIZE), &of_demands);
        check(
            &btf,
            "cosched_task",
            Some(task::SIZE),
            &[("slot", task::SLOT)],
        );
        check(
            &btf,
            "cosched_measured",
            Some(measured::SIZE),
            &[("word", measured::WORD)],
        );
        let tables = crate::tables::image(
            &cosched_core::model::bus_admission_table::BusAdmissionTable::new(),
        );
        check(&btf, "cosched_tables", Some(tables.0.len()), &[]);
    }
}
