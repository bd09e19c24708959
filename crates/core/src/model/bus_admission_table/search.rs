//! A search with a bounded number of steps.

/// The first number from `from` to `end - 1` for which `holds` is true, or `end` if there is none. `holds` must stay
/// true from there on. Takes one step per binary digit of the range, without a data-dependent branch.
#[inline]
pub(super) fn first(from: usize, end: usize, holds: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut size) = (from, end - from);
    while size > 1 {
        let half = size / 2;
        low = if holds(low + half - 1) {
            low
        } else {
            low + half
        };
        size -= half;
    }
    if size == 1 && !holds(low) {
        low + 1
    } else {
        low
    }
}
