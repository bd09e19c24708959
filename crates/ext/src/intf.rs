//! What is exchanged with the programs in the kernel, byte by byte: the structures of `bpf/intf.h`.

/// CPUs have numbers below this.
pub(crate) const CPUS: usize = 512;
/// Jobs that have processes at once.
pub(crate) const SLOTS: usize = 1024;
/// Different sets of CPUs in one plan.
pub(crate) const MASKS: usize = 128;
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
    pub(crate) const SIZE: usize = 24;
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
    pub(crate) const SPAN: usize = 8;
    pub(crate) const SIZE: usize = 16;
}
