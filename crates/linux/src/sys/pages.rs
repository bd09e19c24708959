//! Advice to the kernel about memory.
#![allow(unsafe_code)]

use std::mem::MaybeUninit;

/// The unit of advice: the kernel's page size on x86 and most Arm systems, or a multiple of it.
const UNIT: usize = 1 << 16;

/// Asks for huge pages, so that reads seldom wait for the translation of their address. The memory must not have been
/// touched yet. The kernel may ignore it.
///
/// ```c
/// int madvise(void addr[.length], size_t length, int advice);
/// ```
pub fn prefer_huge_pages<T>(memory: &mut [MaybeUninit<T>]) {
    let start = memory.as_mut_ptr().cast::<u8>();
    let skipped = start.align_offset(UNIT);
    let length = size_of_val(memory).saturating_sub(skipped) / UNIT * UNIT;
    if length > 0 {
        // SAFETY: the range is within the slice, and this advice changes no content.
        unsafe { libc::madvise(start.add(skipped).cast(), length, libc::MADV_HUGEPAGE) };
    }
}
