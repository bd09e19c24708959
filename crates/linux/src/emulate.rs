//! Emulates small cores, to try policies for two types of core on a machine that has one type.
//!
//! Jobs that are bound to chosen CPUs are frozen for a part of each 20 ms, so that they get as much done as on cores of
//! a slower clock. Every report names the emulation, because it is not exact: while a job is not paused, its core has
//! its whole cache, its full speed to memory and its full power. CPU time is stretched, so that rates per CPU time are
//! those of the slow clock. Cycles and instructions are reported as counted.

use cosched_core::{CoreType, CpuSet, Machine, Nanos};
use std::str::FromStr;

/// Length of one running and one paused part together: short against a quantum of 200 ms, long against the time in
/// which the kernel freezes a group.
const PERIOD: Nanos = Nanos::from_ms(20);

/// CPUs that stand for small cores.
#[derive(Clone, Debug, PartialEq)]
pub struct SmallCores {
    /// The CPUs to slow down.
    pub cpus: CpuSet,
    /// Their emulated speed as a share of their real speed, between 0.05 and 0.95.
    pub share: f64,
}

/// Why small cores can't be emulated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EmulationError {
    /// The text is not of the form `CPUS:SHARE`.
    #[error("`{0}` is not CPUS:SHARE with a share from 0.05 to 0.95, as in 2-3:0.25")]
    Form(String),
    /// The machine already has cores of several types.
    #[error("this machine already has {0} types of core")]
    HasTypes(usize),
    /// Some of the CPUs can't be used.
    #[error("the CPUs {0} can't be used; {1} can")]
    Unusable(CpuSet, CpuSet),
    /// All CPUs are named, so none stays big, or none is named.
    #[error("some CPUs must be small and some must stay big; {0} can be used")]
    OneSide(CpuSet),
}

impl FromStr for SmallCores {
    type Err = EmulationError;

    fn from_str(text: &str) -> Result<SmallCores, EmulationError> {
        parse_small_cores(text).ok_or_else(|| EmulationError::Form(text.to_owned()))
    }
}

fn parse_small_cores(text: &str) -> Option<SmallCores> {
    let (cpus, share) = text.rsplit_once(':')?;
    let cpus = cpus.parse().ok()?;
    let share = share.parse().ok()?;
    (0.05..=0.95)
        .contains(&share)
        .then_some(SmallCores { cpus, share })
}

impl SmallCores {
    /// The machine with these small cores: it has two types of core, and its name says that one is emulated.
    ///
    /// # Errors
    /// The machine can't have these small cores.
    pub fn on(&self, machine: &Machine) -> Result<Machine, EmulationError> {
        let all = machine.all_cpus();
        if machine.core_types.len() > 1 {
            return Err(EmulationError::HasTypes(machine.core_types.len()));
        }
        if !self.cpus.is_subset(&all) {
            let unusable = self.cpus.iter().filter(|&cpu| !all.contains(cpu)).collect();
            return Err(EmulationError::Unusable(unusable, all));
        }
        if self.cpus.is_empty() || self.cpus == all {
            return Err(EmulationError::OneSide(all));
        }
        let mut machine = machine.clone();
        for cpu in &mut machine.cpus {
            cpu.core_type = usize::from(self.cpus.contains(cpu.id));
        }
        let max_khz = machine.core_types.first().and_then(|kind| kind.max_khz);
        let kind = |name: &str, share: f64| CoreType {
            name: name.to_owned(),
            capacity: Some((1_024.0 * share + 0.5) as u32),
            max_khz: max_khz.map(|khz| (khz as f64 * share) as u64),
        };
        machine.core_types = vec![kind("big", 1.0), kind("small (emulated)", self.share)];
        machine.name = format!(
            "{}, small cores emulated: CPUs {} at {}",
            machine.name, self.cpus, self.share
        );
        Ok(machine)
    }

    /// Whether a job on these CPUs is slowed: if it may run on no others.
    pub(crate) fn slows(&self, cpus: &CpuSet) -> bool {
        !cpus.is_empty() && cpus.is_subset(&self.cpus)
    }

    /// Whether slowed jobs run at this moment, and when the part that holds now ends.
    pub(crate) fn phase(&self, now: Nanos) -> (bool, Nanos) {
        let begin = now.0 - now.0 % PERIOD.0;
        let pause = begin + (PERIOD.0 as f64 * self.share) as u64;
        if now.0 < pause {
            (true, Nanos(pause))
        } else {
            (false, Nanos(begin + PERIOD.0))
        }
    }
}

/// CPU time of one job as its emulated cores would count it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SlowClock {
    seen: Nanos,
    extra: Nanos,
}

impl SlowClock {
    /// The CPU time to report for `real`, when the CPU time added since the last call was used at this share of the
    /// speed.
    pub(crate) fn stretch(&mut self, real: Nanos, share: f64) -> Nanos {
        let new = real - self.seen;
        self.seen = self.seen.max(real);
        self.extra += Nanos((new.0 as f64 * (1.0 / share - 1.0)) as u64);
        real + self.extra
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_form_is_read() {
        let small: SmallCores = "2-3:0.25".parse().unwrap();
        assert_eq!(
            (small.cpus.to_string().as_str(), small.share),
            ("2-3", 0.25)
        );
        for text in [
            "", "1", "1:", "1:0", "1:1", "1:x", "x:0.5", "1:-0.5", "1:NaN",
        ] {
            assert!(text.parse::<SmallCores>().is_err(), "{text}");
        }
    }

    #[test]
    fn the_machine_has_two_types_and_says_so() {
        let small = |text: &str| text.parse::<SmallCores>().unwrap();
        let four = Machine::uniform("four", 4, 1);
        let machine = small("1-3:0.25").on(&four).unwrap();
        assert_eq!(machine.validate(), Ok(()));
        assert_eq!(machine.name, "four, small cores emulated: CPUs 1-3 at 0.25");
        let types: Vec<usize> = machine.cpus.iter().map(|cpu| cpu.core_type).collect();
        assert_eq!(
            (types, machine.core_types[1].capacity),
            (vec![0, 1, 1, 1], Some(256))
        );
        assert!(matches!(
            small("3-4:0.5").on(&four),
            Err(EmulationError::Unusable(..))
        ));
        assert!(matches!(
            small("0-3:0.5").on(&four),
            Err(EmulationError::OneSide(_))
        ));
        assert!(matches!(
            small(":0.5").on(&four),
            Err(EmulationError::OneSide(_))
        ));
        assert_eq!(
            small("1:0.5").on(&machine),
            Err(EmulationError::HasTypes(2))
        );
    }

    #[test]
    fn slowed_jobs_run_for_their_share_of_each_period() {
        let small: SmallCores = "1:0.25".parse().unwrap();
        assert_eq!(small.phase(Nanos::ZERO), (true, Nanos::from_ms(5)));
        assert_eq!(small.phase(Nanos::from_ms(5)), (false, Nanos::from_ms(20)));
        assert_eq!(small.phase(Nanos::from_ms(43)), (true, Nanos::from_ms(45)));
        let cpus = |text: &str| text.parse::<CpuSet>().unwrap();
        assert!(small.slows(&cpus("1")) && !small.slows(&cpus("0-1")) && !small.slows(&cpus("")));
    }

    #[test]
    fn cpu_time_is_that_of_the_slow_clock() {
        let mut clock = SlowClock::default();
        let ms = Nanos::from_ms;
        assert_eq!(clock.stretch(ms(100), 1.0), ms(100));
        assert_eq!(clock.stretch(ms(150), 0.25), ms(300));
        assert_eq!(clock.stretch(ms(150), 0.25), ms(300));
        assert_eq!(clock.stretch(ms(250), 1.0), ms(400));
    }
}
