//! A schedule in the form that the kernel carries out.

use crate::intf::{CPUS, Image, MASKS, NONE, SEAT_FILL, SEAT_SPARE, SLOTS, plan};
use cosched_core::{CpuSet, Filler, Nanos, Placement, Schedule, TaskId};
use std::collections::BTreeMap;
use thiserror::Error;

/// Why a schedule can't be carried out in the kernel.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum Misfit {
    #[error("there is a CPU with the number {0}, and numbers are below {CPUS} here")]
    Cpu(u32),
    #[error("the plan has more than {MASKS} different sets of CPUs")]
    Masks,
    #[error("more than {SLOTS} jobs have processes at once; --jobs N lets fewer in")]
    Slots,
}

/// The sets of CPUs of a plan, each once.
#[derive(Default)]
struct Masks(BTreeMap<Vec<u32>, u16>);

impl Masks {
    fn number(&mut self, cpus: &CpuSet) -> Result<u16, Misfit> {
        let list: Vec<u32> = cpus.iter().map(|cpu| cpu.0).collect();
        if let Some(&known) = self.0.get(&list) {
            return Ok(known);
        }
        if self.0.len() == MASKS {
            return Err(Misfit::Masks);
        }
        let number = self.0.len() as u16;
        self.0.insert(list, number);
        Ok(number)
    }
}

/// The bytes of a plan. `slot` is the slot of a task, and `at` turns an instant of the run into one of the kernel's clock.
///
/// Shared seats are not in it: the kernel's own scheduler has those tasks.
pub(crate) fn image(
    generation: u64,
    schedule: &Schedule,
    mut slot: impl FnMut(TaskId) -> Option<u16>,
    at: impl Fn(Nanos) -> u64,
) -> Result<Image, Misfit> {
    let mut image = Image::new(plan::SIZE);
    let mut masks = Masks::default();
    image.put_u64(plan::GENERATION, generation);
    for cpu in 0..CPUS {
        image.put_u16(plan::SEATS + cpu * plan::SEAT + plan::SLOT, NONE);
    }
    for slot in 0..SLOTS {
        image.put_u16(plan::PLACES + slot * plan::PLACE + plan::CPU, NONE);
        image.put_u16(plan::PLACES + slot * plan::PLACE + plan::MASK, NONE);
    }
    for seat in &schedule.seats {
        let Placement::Exclusive { cpus, .. } = &seat.placement else { continue };
        let slot = slot(seat.task).ok_or(Misfit::Slots)?;
        let place = plan::PLACES + usize::from(slot) * plan::PLACE;
        match cpus.iter().next().filter(|_| cpus.len() == 1) {
            Some(cpu) => image.put_u16(place + plan::CPU, number(cpu.0)?),
            None => image.put_u16(place + plan::MASK, masks.number(cpus)?),
        }
        for cpu in cpus.iter() {
            let at_cpu = plan::SEATS + usize::from(number(cpu.0)?) * plan::SEAT;
            image.put_u64(at_cpu + plan::UNTIL, seat.until.map_or(0, &at));
            image.put_u16(at_cpu + plan::SLOT, slot);
            image.put_u16(at_cpu + plan::FLAGS, if Schedule::can_be_filled(seat) { SEAT_FILL } else { 0 });
        }
    }
    let mut list = |from: usize, fillers: &[Filler], image: &mut Image| {
        for (ix, filler) in fillers.iter().enumerate() {
            let at = from + ix * plan::OF;
            image.put_u16(at, slot(filler.task).ok_or(Misfit::Slots)?);
            let mask = filler.allowed.as_ref().map_or(Ok(NONE), |allowed| masks.number(allowed))?;
            image.put_u16(at + 2, mask);
        }
        Ok(fillers.len() as u32)
    };
    let fillers = list(plan::FILLER, &schedule.fillers, &mut image)?;
    image.put_u32(plan::FILLERS, fillers);
    if let Some(spare) = &schedule.spare {
        let loose = list(plan::SPARE, &spare.tasks, &mut image)?;
        image.put_u32(plan::LOOSE, loose);
        for cpu in spare.cpus.iter() {
            let at_cpu = plan::SEATS + usize::from(number(cpu.0)?) * plan::SEAT;
            image.put_u16(at_cpu + plan::FLAGS, SEAT_SPARE);
        }
        for task in &spare.tasks {
            if let Some(slot) = slot(task.task) {
                image.put_u16(plan::PLACES + usize::from(slot) * plan::PLACE + plan::IS_LOOSE, 1);
            }
        }
    }
    for (cpus, &mask) in &masks.0 {
        let at_mask = plan::MASK_WORDS + usize::from(mask) * plan::MASK_SIZE;
        for &cpu in cpus {
            let cpu = usize::from(number(cpu)?);
            let at_word = at_mask + cpu / 64 * 8;
            let word = image.u64(at_word) | 1 << (cpu % 64);
            image.put_u64(at_word, word);
        }
    }
    Ok(image)
}

/// The number of a CPU, if there can be one with it.
fn number(cpu: u32) -> Result<u16, Misfit> {
    if (cpu as usize) < CPUS { Ok(cpu as u16) } else { Err(Misfit::Cpu(cpu)) }
}
