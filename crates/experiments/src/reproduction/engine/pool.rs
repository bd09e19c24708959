//! Independent trials on all CPUs.

use super::error::{ReproduceError, Result};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Threads that run trials, with progress and cancellation.
#[derive(Clone, Copy)]
pub struct Pool<'a> {
    /// Threads; at least one is used.
    pub threads: usize,
    /// Called after each trial, from any thread: the name of the experiment, the trials done and all trials.
    pub progress: &'a (dyn Fn(&str, usize, usize) + Sync),
    /// Set from outside: no further trial begins.
    pub stop: &'a AtomicBool,
}

impl Pool<'_> {
    /// The results of `trial` for each of `inputs`, in their order.
    ///
    /// # Errors
    /// The error of the first failed input, in their order; or [`ReproduceError::Interrupted`].
    pub fn map<I: Sync, O: Send>(
        &self,
        what: &str,
        inputs: &[I],
        trial: impl Fn(&I) -> Result<O> + Sync,
    ) -> Result<Vec<O>> {
        let next = AtomicUsize::new(0);
        let done = AtomicUsize::new(0);
        let failed = AtomicBool::new(false);
        let results: Vec<Mutex<Option<Result<O>>>> =
            inputs.iter().map(|_| Mutex::new(None)).collect();
        std::thread::scope(|scope| {
            for _ in 0..self.threads.clamp(1, inputs.len().max(1)) {
                scope.spawn(|| {
                    while !self.stop.load(Ordering::Relaxed) && !failed.load(Ordering::Relaxed) {
                        let at = next.fetch_add(1, Ordering::Relaxed);
                        let Some(input) = inputs.get(at) else { return };
                        let result = trial(input);
                        failed.fetch_or(result.is_err(), Ordering::Relaxed);
                        if let Ok(mut slot) = results[at].lock() {
                            *slot = Some(result);
                        }
                        let done = done.fetch_add(1, Ordering::Relaxed) + 1;
                        (self.progress)(what, done, inputs.len());
                    }
                });
            }
        });
        // After a failure some inputs have no result; the failure itself counts, not the gap.
        let mut ended = Vec::with_capacity(inputs.len());
        for slot in results {
            ended.extend(slot.into_inner().ok().flatten().transpose()?);
        }
        if ended.len() < inputs.len() {
            return Err(ReproduceError::Interrupted);
        }
        Ok(ended)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool<'a>(
        threads: usize,
        stop: &'a AtomicBool,
        progress: &'a (dyn Fn(&str, usize, usize) + Sync),
    ) -> Pool<'a> {
        Pool {
            threads,
            progress,
            stop,
        }
    }

    #[test]
    fn results_come_in_the_order_of_the_inputs() {
        let stop = AtomicBool::new(false);
        let most = AtomicUsize::new(0);
        let progress = |_: &str, done: usize, all: usize| {
            assert_eq!(all, 100);
            most.fetch_max(done, Ordering::Relaxed);
        };
        let inputs: Vec<u64> = (0..100).collect();
        for threads in [0, 1, 7, 1_000] {
            let squares = pool(threads, &stop, &progress)
                .map("squares", &inputs, |&x| Ok(x * x))
                .unwrap();
            assert_eq!(squares, inputs.iter().map(|x| x * x).collect::<Vec<_>>());
        }
        assert_eq!(most.into_inner(), 100);
        assert_eq!(
            pool(2, &stop, &|_, _, _| ())
                .map("none", &[], |&(): &()| Ok(()))
                .unwrap(),
            []
        );
    }

    #[test]
    fn the_first_error_is_told_and_a_stop_is_obeyed() {
        let stop = AtomicBool::new(false);
        let inputs: Vec<usize> = (0..50).collect();
        let failing = |&at: &usize| {
            if at >= 20 {
                Err(ReproduceError::trial(&at.to_string(), "it failed"))
            } else {
                Ok(at)
            }
        };
        let error = pool(1, &stop, &|_, _, _| ())
            .map("failing", &inputs, failing)
            .unwrap_err();
        assert_eq!(error.to_string(), "20: it failed");
        let stopping = |_: &str, done: usize, _: usize| stop.store(done >= 10, Ordering::Relaxed);
        let error = pool(2, &stop, &stopping)
            .map("stopped", &inputs, |&at| Ok(at))
            .unwrap_err();
        assert!(matches!(error, ReproduceError::Interrupted));
    }
}
