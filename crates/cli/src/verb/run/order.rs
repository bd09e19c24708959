//! Output in the order of the jobs, whatever order they end in (`--keep-order`).

/// Holds back jobs that have ended until all jobs before them have.
#[derive(Debug)]
pub(crate) struct InOrder {
    ended: Vec<bool>,
    /// The first job whose turn has not come.
    next: usize,
}

impl InOrder {
    /// An order of so many jobs.
    pub(crate) fn new(jobs: usize) -> InOrder {
        InOrder { ended: vec![false; jobs], next: 0 }
    }

    /// A job has ended. Returns the jobs whose turn has come.
    pub(crate) fn ended(&mut self, ix: usize) -> std::ops::Range<usize> {
        if let Some(ended) = self.ended.get_mut(ix) {
            *ended = true;
        }
        let from = self.next;
        while self.ended.get(self.next) == Some(&true) {
            self.next += 1;
        }
        from..self.next
    }

    /// No other job will end. Returns those that ended and whose turn has not come, because one before them never
    /// ended.
    pub(crate) fn rest(&mut self) -> Vec<usize> {
        let from = std::mem::replace(&mut self.next, self.ended.len());
        (from..self.ended.len()).filter(|&ix| self.ended[ix]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_wait_for_those_before_them() {
        let mut order = InOrder::new(5);
        assert_eq!(order.ended(2), 0..0);
        assert_eq!(order.ended(0), 0..1);
        assert_eq!(order.ended(1), 1..3);
        assert_eq!(order.ended(4), 3..3);
        assert_eq!(order.rest(), [4]);
        assert!(order.rest().is_empty());
    }
}
