//! All that running tasks share: the memory buses, and the devices that the user wants to count. A task joins only if it
//! fits each of them.

use super::domains::{Domains, Joining};
use super::known::EfsTask;
use super::settings::EfsSettings;
use crate::decision::WaitReason;
use crate::model::bus_admission_table::BusAdmissionTable;
use crate::topology::Machine;

/// The buses and the devices, with the tasks settled so far.
pub(super) struct SharedResources<'a> {
    pub(super) buses: Domains<'a>,
    /// In the order of the settings.
    devices: Vec<Domains<'a>>,
}

/// A memory domain, and what a task would add there.
#[derive(Clone, Copy)]
pub(super) struct DomainPlace {
    pub(super) domain: usize,
    pub(super) joining: Joining,
}

/// What a task does not fit.
#[derive(Clone, Copy)]
pub(super) enum Obstacle {
    Bus,
    /// Its position in the settings.
    Device(usize),
}

impl<'a> SharedResources<'a> {
    /// Starts from an idle machine.
    pub(super) fn new(
        settings: &'a EfsSettings,
        table: &'a BusAdmissionTable,
        machine: &'a Machine,
    ) -> SharedResources<'a> {
        let devices = settings.devices.iter();
        SharedResources {
            buses: Domains::new(settings, table, machine, None),
            devices: devices
                .map(|&device| Domains::new(settings, table, machine, Some(device)))
                .collect(),
        }
    }

    /// Adds a task on these CPUs, whether it fits or not.
    pub(super) fn add(&mut self, known: &EfsTask, cpus: &[usize]) {
        self.buses.add(known.bus.class(), cpus);
        for (device, on_it) in self.devices.iter_mut().zip(&known.devices) {
            device.add(on_it.class(), cpus);
        }
    }

    /// Removes a task from these CPUs. Its demands must be those it was added with.
    pub(super) fn remove(&mut self, known: &EfsTask, cpus: &[usize]) {
        self.buses.remove(known.bus.class(), cpus);
        for (device, on_it) in self.devices.iter_mut().zip(&known.devices) {
            device.remove(on_it.class(), cpus);
        }
    }

    /// The first that a task does not fit if it joins here while `waiting` tasks wait, itself included; `None` if it may
    /// join. See [`Domains::admits`].
    pub(super) fn obstacle(
        &mut self,
        known: &EfsTask,
        place: DomainPlace,
        waiting: usize,
    ) -> Option<Obstacle> {
        let DomainPlace { domain, joining } = place;
        let class = known.bus.class();
        if !self.buses.admits(domain, joining, class, waiting) {
            return Some(Obstacle::Bus);
        }
        let devices = self.devices.iter_mut().zip(&known.devices);
        for (at, (device, on_it)) in devices.enumerate() {
            if !device.admits(0, joining, on_it.class(), waiting) {
                return Some(Obstacle::Device(at));
            }
        }
        None
    }

    /// Why a task may not join here.
    pub(super) fn refusal(
        &mut self,
        known: &EfsTask,
        place: DomainPlace,
        obstacle: Obstacle,
    ) -> WaitReason {
        let DomainPlace { domain, joining } = place;
        match obstacle {
            Obstacle::Bus => self.buses.refusal(domain, joining, &known.bus),
            Obstacle::Device(at) => self.devices[at].refusal(0, joining, &known.devices[at]),
        }
    }
}
