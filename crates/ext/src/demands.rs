//! The input of EFS in the kernel: the machine before it is loaded, and the demands of jobs while it runs.

use crate::intf::{CPUS, DOMAINS, Image, demands, efs, measured};
use cosched_core::{BusAdmission, Demand, Machine, TaskId};

/// What it knows of a machine, with the factors of Eqs. 22 and 23. Memory domains beyond the last that there can be count
/// as the last one.
pub(crate) fn settings(machine: &Machine, local: u64, global: u64) -> Image {
    let mut image = Image::new(efs::SIZE);
    image.put_u64(efs::C_LOCAL, local);
    image.put_u64(efs::C_GLOBAL, global);
    for cpu in machine.cpus.iter().filter(|cpu| (cpu.id.0 as usize) < CPUS) {
        let at = cpu.id.0 as usize;
        image.put_u16(
            efs::DOMAIN + 2 * at,
            cpu.memory_domain.min(DOMAINS - 1) as u16,
        );
        image.0[efs::IS_OURS + at] = 1;
    }
    image
}

/// The demands in the form in which it admits by them. `slot` is the slot of a task; tasks without one have no processes.
pub(crate) fn image(admission: &BusAdmission, slot: impl Fn(TaskId) -> Option<u16>) -> Image {
    let mut image = Image::new(demands::SIZE);
    let gains = &admission.gains[..admission.gains.len().min(CPUS)];
    image.put_u32(demands::NR_GAINS, gains.len() as u32);
    for (at, &gain) in gains.iter().enumerate() {
        image.put_u32(demands::GAINS + 4 * at, gain);
    }
    for demand in &admission.demands {
        if let Some(slot) = slot(demand.task) {
            image.put_u16(demands::CLASS + 2 * usize::from(slot), demand.class);
        }
    }
    image
}

/// The demands that were measured, of the tasks in these slots, in ascending order of the tasks.
pub(crate) fn measured(told: &Image, slots: impl Iterator<Item = (TaskId, u16)>) -> Vec<Demand> {
    let mut demands = Vec::new();
    for (task, slot) in slots {
        let word = told.u16(measured::WORD + 2 * usize::from(slot));
        demands.extend(word.checked_sub(1).map(|class| Demand { task, class }));
    }
    demands.sort_unstable_by_key(|demand| demand.task);
    demands
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_measured_is_told_for_those_that_were() {
        let mut told = Image::new(measured::SIZE);
        told.put_u16(measured::WORD + 2 * 3, 1);
        told.put_u16(measured::WORD + 2, 3_001);
        let slots = [(TaskId(9), 1), (TaskId(4), 2), (TaskId(2), 3)];
        let expected = [
            Demand {
                task: TaskId(2),
                class: 0,
            },
            Demand {
                task: TaskId(9),
                class: 3_000,
            },
        ];
        assert_eq!(measured(&told, slots.into_iter()), expected);
    }

    #[test]
    fn each_slot_has_its_class() {
        let demand = |task: u32, class: u16| Demand {
            task: TaskId(task),
            class,
        };
        let admission = BusAdmission {
            demands: vec![demand(3, 2_700), demand(4, 0), demand(9, 3_329)],
            gains: vec![1_300_000, 1_250_000],
        };
        let image = image(&admission, |task| {
            (task.0 != 4).then_some(task.0 as u16 - 3)
        });
        assert_eq!(
            (image.u32(demands::NR_GAINS), image.u32(demands::GAINS + 4)),
            (2, 1_250_000)
        );
        let class = |slot: usize| image.u16(demands::CLASS + 2 * slot);
        assert_eq!([0, 1, 6].map(class), [2_700, 0, 3_329]);
    }
}
