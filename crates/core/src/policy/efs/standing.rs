//! The form in which a kernel could admit tasks by itself: demands, weights and one threshold for each total.

use super::known::State;
use super::settings::Settings;
use crate::decision::{Standing, StandingTask};
use crate::model::admission_table::{AdmissionTable, DemandClass};
use crate::model::bus::solo_utilisation;
use crate::model::threshold::{Objective, threshold};
use crate::snapshot::Snapshot;

/// A change of a demand by less than this, in 1/1024 of the bus, is not worth telling.
const NOTICEABLE: u16 = 64;
/// Steps of the total for which the threshold is computed; those between lie on straight lines.
const STEPS: usize = 32;
/// The whole bus, in 1/1024.
const WHOLE: usize = 1024;

/// The thresholds, which depend on the parameters and the number of cores alone: computed once.
#[derive(Default)]
pub(super) struct Thresholds {
    of: Option<(usize, Vec<u16>)>,
}

/// New standing parameters, if they differ noticeably from those published last: a task is new, or a demand moved.
pub(super) fn changed(
    thresholds: &mut Thresholds,
    settings: &Settings,
    table: &AdmissionTable,
    snap: &Snapshot,
    state: &mut State,
) -> Option<Standing> {
    let of = |class: DemandClass| (table.demand(class) * WHOLE as f64 + 0.5) as u16;
    let moved = state.tasks.iter().any(|known| match DemandClass::from_number(known.published) {
        Some(last) => last != known.class() && of(last).abs_diff(of(known.class())) >= NOTICEABLE,
        None => true,
    });
    if !moved {
        return None;
    }
    let mut tasks = Vec::with_capacity(snap.tasks.len());
    for (known, task) in state.tasks.iter_mut().zip(&snap.tasks) {
        known.published = known.class().number();
        let (demand, weight) = (of(known.class()), settings.weight(task.nice));
        tasks.push(StandingTask { task: task.id, demand, weight, class: 0 });
    }
    let cores = snap.machine.cores.len() / snap.machine.memory_domains.len().max(1);
    Some(Standing { threshold: thresholds.get(settings, cores), tasks })
}

impl Thresholds {
    fn get(&mut self, settings: &Settings, cores: usize) -> Vec<u16> {
        match &self.of {
            Some((known, thresholds)) if *known == cores => thresholds.clone(),
            _ => self.of.insert((cores, compute(settings, cores))).1.clone(),
        }
    }
}

/// The threshold for each total utilisation of the bus, in 1/1024, beside as many alike tasks as leave one core of the
/// chip free.
fn compute(settings: &Settings, cores: usize) -> Vec<u16> {
    if settings.objective == Objective::Throughput {
        // Whoever does not fit runs all the same before a CPU idles.
        return vec![WHOLE as u16; WHOLE + 1];
    }
    let running = cores.saturating_sub(1).max(1);
    let at = |step: usize| {
        let total = step as f64 / STEPS as f64;
        let share = total / running as f64;
        let demand = solo_utilisation(share, 1.0 - total).unwrap_or(1.0);
        let fits = threshold(&vec![demand; running], &settings.power, settings.objective);
        fits.map_or(0.0, |fits| fits.threshold()) * WHOLE as f64
    };
    let points: Vec<f64> = (0..=STEPS).map(at).collect();
    let each = WHOLE / STEPS;
    let between = |total: usize| {
        let (step, part) = (total / each, (total % each) as f64 / each as f64);
        let next = points[(step + 1).min(STEPS)];
        (points[step] + (next - points[step]) * part + 0.5) as u16
    };
    (0..=WHOLE).map(between).collect()
}
