//! The scheduler that a run has in the kernel with `--actuator sched-ext`.

use crate::exit::{Exit, Failure, incapable};
use crate::policy::PolicyChoice;
use crate::screen::Screen;
use cosched_core::{Actuation, Counter, Machine};
use cosched_linux::KernelScheduler;
use cosched_linux::counters::{CounterSupport, CpuEvents};
use cosched_linux::root::Root;
use cosched_report::RunWarning;

/// The part that a scheduler in the kernel has in a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum KernelPart {
    /// None: decisions are carried out one by one.
    None,
    /// It carries out plans.
    Plans,
    /// It decides at each event, as EFS, by these factors of Eqs. 22 and 23.
    Efs {
        /// `c_l`.
        local: u64,
        /// `c_g`.
        global: u64,
        /// Lines of memory that the bus of a memory domain moves in a microsecond, if demands are measured.
        lines_per_us: Option<f64>,
    },
}

impl KernelPart {
    /// What it does for this policy.
    pub(super) fn of(choice: &PolicyChoice, actuation: Actuation) -> KernelPart {
        let params = &choice.params;
        match actuation {
            Actuation::Decisions => KernelPart::None,
            Actuation::Plans if choice.entry.can_hand_over => {
                let measures = params.word("demand") == "measured";
                KernelPart::Efs {
                    local: params.number("c_local") as u64,
                    global: params.number("c_global") as u64,
                    lines_per_us: measures.then(|| params.number("mu_trans_per_us")),
                }
            }
            Actuation::Plans => KernelPart::Plans,
        }
    }

    /// Whether it measures the demands of jobs.
    fn measures(self) -> bool {
        match self {
            KernelPart::Efs { lines_per_us, .. } => lines_per_us.is_some(),
            KernelPart::None | KernelPart::Plans => false,
        }
    }
}

/// Why a run can't have one here; `None` if it can.
pub(super) fn refused(root: &Root) -> Option<Failure> {
    let lack = cosched_ext::lack(root)?;
    let exit = if lack.is_permission() {
        Exit::Permission
    } else {
        Exit::Incapable
    };
    let remedy = lack.remedy();
    let message = format!("--actuator sched-ext: {lack}; nothing was started; {remedy}");
    Some(Failure { exit, message })
}

/// Loads it. If it can't read the counters, it goes without, and the user is warned: then they are read as everywhere, and
/// EFS, if it was to measure, decides by plans.
pub(super) fn load(
    machine: &Machine,
    counters: &CounterSupport,
    jobs: usize,
    all: bool,
    part: KernelPart,
    screen: &Screen,
) -> anyhow::Result<Box<dyn KernelScheduler>> {
    let measures = part.measures();
    let uncounted = if measures { KernelPart::Plans } else { part };
    let mut why = None;
    let mut loaded = None;
    match CpuEvents::open(machine, &counters.usable) {
        Ok(events) => {
            let has_lines = events.counters().any(|counter| counter == Counter::MmReads);
            let mut part = part;
            if measures && !has_lines {
                why = Some("lines of memory can't be counted on each CPU".to_owned());
                part = uncounted;
            }
            match scheduler(machine, jobs, all, part, Some(events)) {
                Ok(scheduler) => loaded = Some(scheduler),
                Err(problem) => why = Some(problem),
            }
        }
        Err(problem) => why = problem.map(|problem| problem.to_string()),
    }
    let loaded = match loaded {
        Some(loaded) => loaded,
        None => scheduler(machine, jobs, all, uncounted, None).map_err(|why| {
            incapable(format!(
                "--actuator sched-ext: {why}; nothing was started; use --actuator freezer"
            ))
        })?,
    };
    if let Some(why) = why {
        screen.warn(RunWarning::CountedOutside { why });
    }
    Ok(loaded)
}

/// Loads one that does this part, or says why it can't.
#[cfg(feature = "sched-ext")]
fn scheduler(
    machine: &Machine,
    jobs: usize,
    all: bool,
    part: KernelPart,
    events: Option<CpuEvents>,
) -> Result<Box<dyn KernelScheduler>, String> {
    let work = match part {
        KernelPart::Efs {
            local,
            global,
            lines_per_us,
        } => cosched_ext::SchedulerWork::Efs {
            local,
            global,
            lines_per_us,
        },
        _ => cosched_ext::SchedulerWork::Plans,
    };
    match cosched_ext::Scheduler::load(machine, jobs, all, work, events) {
        Ok(loaded) => Ok(Box::new(loaded)),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(not(feature = "sched-ext"))]
fn scheduler(
    _machine: &Machine,
    _jobs: usize,
    _all: bool,
    _part: KernelPart,
    _events: Option<CpuEvents>,
) -> Result<Box<dyn KernelScheduler>, String> {
    Err(cosched_ext::Lack::NotBuilt.to_string())
}
