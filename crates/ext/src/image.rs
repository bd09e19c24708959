//! A schedule in the form that the kernel carries out.

use crate::intf::{CPUS, Image, MASKS, NONE, SEAT_FILL, SEAT_SPARE, SLOTS, plan};
use cosched_core::{CpuId, CpuSet, Filler, Nanos, Placement, Schedule, TaskId};
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
    let mut made = PlanImage::empty(generation);
    for seat in &schedule.seats {
        if let Placement::Exclusive { cpus, .. } = &seat.placement {
            let slot = slot(seat.task).ok_or(Misfit::Slots)?;
            let until = seat.until.map_or(0, &at);
            made.put_seat(slot, cpus, until, Schedule::can_be_filled(seat))?;
        }
    }
    // The kernel can't judge yet who fits the memory bus beside the others, so nobody fills in where that matters.
    if schedule.admission.is_none() {
        made.put_list(plan::FILLER, &schedule.fillers, &mut slot)?;
        let count = schedule.fillers.len() as u32;
        made.image.put_u32(plan::FILLERS, count);
    }
    if let Some(spare) = &schedule.spare {
        made.put_list(plan::SPARE, &spare.tasks, &mut slot)?;
        made.image.put_u32(plan::LOOSE, spare.tasks.len() as u32);
        for cpu in spare.cpus.iter() {
            made.image.put_u16(seat_of(cpu)? + plan::FLAGS, SEAT_SPARE);
        }
        for slot in spare.tasks.iter().filter_map(|task| slot(task.task)) {
            made.image.put_u16(place_of(slot) + plan::IS_LOOSE, 1);
        }
    }
    made.put_masks()?;
    Ok(made.image)
}

/// A plan whose bytes are being written.
struct PlanImage {
    image: Image,
    masks: Masks,
}

impl PlanImage {
    /// A plan in which nobody has a CPU.
    fn empty(generation: u64) -> PlanImage {
        let mut image = Image::new(plan::SIZE);
        image.put_u64(plan::GENERATION, generation);
        for cpu in 0..CPUS {
            image.put_u16(plan::SEATS + cpu * plan::SEAT + plan::SLOT, NONE);
        }
        for slot in 0..SLOTS as u16 {
            image.put_u16(place_of(slot) + plan::CPU, NONE);
            image.put_u16(place_of(slot) + plan::MASK, NONE);
        }
        PlanImage {
            image,
            masks: Masks::default(),
        }
    }

    fn put_seat(
        &mut self,
        slot: u16,
        cpus: &CpuSet,
        until: u64,
        can_be_filled: bool,
    ) -> Result<(), Misfit> {
        let place = place_of(slot);
        match cpus.first().filter(|_| cpus.len() == 1) {
            Some(cpu) => self.image.put_u16(place + plan::CPU, number(cpu.0)?),
            None => {
                let mask = self.masks.number(cpus)?;
                self.image.put_u16(place + plan::MASK, mask);
            }
        }
        for cpu in cpus.iter() {
            let seat = seat_of(cpu)?;
            self.image.put_u64(seat + plan::UNTIL, until);
            self.image.put_u16(seat + plan::SLOT, slot);
            let flags = if can_be_filled { SEAT_FILL } else { 0 };
            self.image.put_u16(seat + plan::FLAGS, flags);
        }
        Ok(())
    }

    fn put_list(
        &mut self,
        from: usize,
        fillers: &[Filler],
        slot: &mut impl FnMut(TaskId) -> Option<u16>,
    ) -> Result<(), Misfit> {
        for (ix, filler) in fillers.iter().enumerate() {
            let at = from + ix * plan::OF;
            let slot = slot(filler.task).ok_or(Misfit::Slots)?;
            let mask = match &filler.allowed {
                Some(allowed) => self.masks.number(allowed)?,
                None => NONE,
            };
            self.image.put_u16(at, slot);
            self.image.put_u16(at + 2, mask);
        }
        Ok(())
    }

    fn put_masks(&mut self) -> Result<(), Misfit> {
        for (cpus, &mask) in &self.masks.0 {
            let at_mask = plan::MASK_WORDS + usize::from(mask) * plan::MASK_SIZE;
            for &cpu in cpus {
                let cpu = usize::from(number(cpu)?);
                let at_word = at_mask + cpu / 64 * 8;
                let word = self.image.u64(at_word) | 1 << (cpu % 64);
                self.image.put_u64(at_word, word);
            }
        }
        Ok(())
    }
}

fn place_of(slot: u16) -> usize {
    plan::PLACES + usize::from(slot) * plan::PLACE
}

fn seat_of(cpu: CpuId) -> Result<usize, Misfit> {
    Ok(plan::SEATS + usize::from(number(cpu.0)?) * plan::SEAT)
}

/// The number of a CPU, if there can be one with it.
fn number(cpu: u32) -> Result<u16, Misfit> {
    if (cpu as usize) < CPUS {
        Ok(cpu as u16)
    } else {
        Err(Misfit::Cpu(cpu))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cosched_core::{BusAdmission, CpuId, Seat, Spare};

    fn cpus(list: &str) -> CpuSet {
        list.parse().unwrap()
    }

    fn seat(task: u32, list: &str, whole_core: bool, until: Option<u64>) -> Seat {
        let placement = Placement::Exclusive {
            cpus: cpus(list),
            whole_core,
        };
        Seat {
            task: TaskId(task),
            placement,
            until: until.map(Nanos),
        }
    }

    fn made(schedule: &Schedule) -> Result<Image, Misfit> {
        // Task 10 has slot 0, and so on.
        image(
            7,
            schedule,
            |task| Some(task.0 as u16 - 10),
            |at| at.0 + 1000,
        )
    }

    /// Slot, flags and end of a CPU's seat.
    fn seat_of(image: &Image, cpu: usize) -> (u16, u16, u64) {
        let at = plan::SEATS + cpu * plan::SEAT;
        (
            image.u16(at + plan::SLOT),
            image.u16(at + plan::FLAGS),
            image.u64(at + plan::UNTIL),
        )
    }

    /// The CPUs of a mask.
    fn mask(image: &Image, number: u16) -> CpuSet {
        let at = plan::MASK_WORDS + usize::from(number) * plan::MASK_SIZE;
        let has = |cpu: &u32| image.u64(at + *cpu as usize / 64 * 8) >> (cpu % 64) & 1 == 1;
        (0..CPUS as u32).filter(has).map(CpuId).collect()
    }

    #[test]
    fn each_cpu_has_its_seat_and_each_slot_its_place() {
        let schedule = Schedule {
            seats: vec![
                seat(10, "3", false, Some(50)),
                seat(11, "4-5,300", false, None),
                seat(12, "8", true, None),
            ],
            fillers: vec![
                Filler {
                    task: TaskId(14),
                    allowed: Some(cpus("4-5,300")),
                },
                Filler {
                    task: TaskId(13),
                    allowed: None,
                },
            ],
            ..Schedule::default()
        };
        let image = made(&schedule).unwrap();
        assert_eq!(image.u64(plan::GENERATION), 7);
        assert_eq!(seat_of(&image, 3), (0, SEAT_FILL, 1050));
        for cpu in [4, 5, 300] {
            assert_eq!(seat_of(&image, cpu), (1, SEAT_FILL, 0));
        }
        assert_eq!(seat_of(&image, 8), (2, 0, 0), "nobody fills a whole core");
        assert_eq!(
            seat_of(&image, 9),
            (NONE, 0, 0),
            "a CPU that nobody was given stays idle"
        );
        let place = |slot: usize| {
            let at = plan::PLACES + slot * plan::PLACE;
            (image.u16(at + plan::CPU), image.u16(at + plan::MASK))
        };
        assert_eq!(
            (place(0), place(2), place(3)),
            ((3, NONE), (8, NONE), (NONE, NONE))
        );
        let (cpu, its) = place(1);
        assert_eq!((cpu, mask(&image, its)), (NONE, cpus("4-5,300")));
        let filler = |ix: usize| {
            let at = plan::FILLER + ix * plan::OF;
            (image.u16(at), image.u16(at + 2))
        };
        assert_eq!(image.u32(plan::FILLERS), 2);
        assert_eq!(
            (filler(0), filler(1)),
            ((4, its), (3, NONE)),
            "in their order; a mask stands once"
        );
    }

    #[test]
    fn spare_cpus_are_for_loose_slots() {
        let spare = Spare {
            cpus: cpus("1,2"),
            tasks: vec![Filler {
                task: TaskId(10),
                allowed: Some(cpus("0-1")),
            }],
        };
        let schedule = Schedule {
            seats: vec![seat(10, "0", false, None)],
            spare: Some(spare),
            ..Schedule::default()
        };
        let image = made(&schedule).unwrap();
        assert_eq!(
            [0, 1, 2, 3].map(|cpu| seat_of(&image, cpu).1),
            [SEAT_FILL, SEAT_SPARE, SEAT_SPARE, 0]
        );
        assert_eq!((image.u32(plan::LOOSE), image.u16(plan::SPARE)), (1, 0));
        assert_eq!(mask(&image, image.u16(plan::SPARE + 2)), cpus("0-1"));
        assert_eq!(image.u16(plan::PLACES + plan::IS_LOOSE), 1);
    }

    #[test]
    fn nobody_fills_in_where_the_memory_bus_decides() {
        let fillers = vec![Filler {
            task: TaskId(10),
            allowed: None,
        }];
        let admission = BusAdmission {
            demands: Vec::new(),
            gains: Vec::new(),
        };
        let count = |admission| {
            let schedule = Schedule {
                fillers: fillers.clone(),
                admission,
                ..Schedule::default()
            };
            made(&schedule).unwrap().u32(plan::FILLERS)
        };
        assert_eq!((count(None), count(Some(admission))), (1, 0));
    }

    #[test]
    fn shared_seats_are_left_out() {
        let placement = Placement::Shared { mask: cpus("0-3") };
        let shared = Seat {
            task: TaskId(10),
            placement,
            until: None,
        };
        let schedule = Schedule {
            seats: vec![shared],
            ..Schedule::default()
        };
        assert_eq!(made(&schedule), made(&Schedule::default()));
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let with = |seats: Vec<Seat>| {
            made(&Schedule {
                seats,
                ..Schedule::default()
            })
        };
        assert_eq!(
            with(vec![seat(10, "512", false, None)]),
            Err(Misfit::Cpu(512))
        );
        let many = |count: u32| {
            (0..count).map(|ix| seat(10 + ix, &format!("{},{}", 2 * ix, 2 * ix + 1), false, None))
        };
        assert!(with(many(MASKS as u32).collect()).is_ok());
        assert_eq!(with(many(MASKS as u32 + 1).collect()), Err(Misfit::Masks));
        let full = image(
            1,
            &Schedule {
                seats: vec![seat(10, "0", false, None)],
                ..Schedule::default()
            },
            |_| None,
            |at| at.0,
        );
        assert_eq!(full, Err(Misfit::Slots));
    }
}
