//! Publishes demands and gains for a backend that admits tasks by itself.

use super::known::EfsState;
use super::queues::cores_of_domains;
use super::settings::EfsSettings;
use crate::bus_admission::{BusAdmission, Demand};
use crate::model::bus_admission_table::{BusAdmissionTable, DemandClass, Gain};
use crate::snapshot::Snapshot;
use crate::topology::Machine;

/// Least change of a demand that is worth publishing, as a share of the bus.
const NOTICEABLE: f64 = 1.0 / 16.0;

/// New demands, if a task is new or a demand changed noticeably since it was published.
pub(super) fn changed(
    settings: &EfsSettings,
    table: &BusAdmissionTable,
    snap: &Snapshot,
    state: &mut EfsState,
) -> Option<BusAdmission> {
    let moved = state
        .tasks
        .iter()
        .any(|known| match DemandClass::from_number(known.published) {
            Some(last) => {
                last != known.bus.class()
                    && (table.demand(last) - table.demand(known.bus.class())).abs() >= NOTICEABLE
            }
            None => true,
        });
    if !moved {
        return None;
    }
    let publish = |known: &mut super::known::EfsTask| {
        known.published = known.bus.class().number();
        Demand {
            task: known.id,
            class: known.published,
        }
    };
    let demands = state.tasks.iter_mut().map(publish).collect();
    Some(BusAdmission {
        demands,
        gains: gains(settings, &snap.machine),
    })
}

/// Required growth of throughput for each further core, up to the size of the largest memory domain.
fn gains(settings: &EfsSettings, machine: &Machine) -> Vec<u32> {
    let most = cores_of_domains(machine).into_iter().max().unwrap_or(0);
    let gains = Gain::for_cores(&settings.power, settings.objective, most);
    gains
        .unwrap_or_default()
        .into_iter()
        .map(Gain::number)
        .collect()
}
