//! Devices beside processor and memory that all tasks share, and how long they worked for a task.

use crate::units::{Absence, Nanos, Rate, Reading};
use serde::{Deserialize, Serialize};
use std::ops::{Index, IndexMut};

/// A device that all tasks share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Device {
    /// The disk of the working directory.
    Disk,
    /// The network.
    Net,
}

impl Device {
    /// All devices.
    pub const ALL: [Device; 2] = [Device::Disk, Device::Net];

    /// Its name in formats.
    pub fn name(self) -> &'static str {
        match self {
            Device::Disk => "disk",
            Device::Net => "net",
        }
    }
}

/// A value for each device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PerDevice<T> {
    /// For the disk.
    pub disk: T,
    /// For the network.
    pub net: T,
}

/// Time that each device worked for a task, cumulative or of an interval: the task's part of the time in which the device
/// was busy.
pub type DeviceTime = PerDevice<Reading<Nanos>>;

impl<T> PerDevice<T> {
    /// The value of each device.
    pub fn from_fn(mut value: impl FnMut(Device) -> T) -> PerDevice<T> {
        PerDevice {
            disk: value(Device::Disk),
            net: value(Device::Net),
        }
    }
}

impl<T> PerDevice<Reading<T>> {
    /// Absent because the run does not need it.
    pub fn not_requested() -> PerDevice<Reading<T>> {
        PerDevice::from_fn(|_| Reading::Absent(Absence::NotRequested))
    }

    pub(crate) fn is_not_requested(&self) -> bool {
        let absent = |value: &Reading<T>| matches!(value, Reading::Absent(Absence::NotRequested));
        absent(&self.disk) && absent(&self.net)
    }
}

impl DeviceTime {
    /// The time since `earlier`.
    pub fn since(&self, earlier: &DeviceTime) -> DeviceTime {
        DeviceTime::from_fn(|device| {
            self[device].and_then(|now| {
                earlier[device].and_then(|before| {
                    let since = now.0.checked_sub(before.0).map(Nanos);
                    Reading::from_option(since, Absence::WentBackwards)
                })
            })
        })
    }

    /// Rates over an interval of this length, in ns per millisecond.
    pub(crate) fn rates(&self, length: Nanos) -> PerDevice<Reading<Rate>> {
        PerDevice::from_fn(|device| {
            self[device].and_then(|time| {
                Reading::from_option(Rate::from_count(time.0, length), Absence::NotYetMeasured)
            })
        })
    }
}

impl<T> Index<Device> for PerDevice<T> {
    type Output = T;

    fn index(&self, device: Device) -> &T {
        match device {
            Device::Disk => &self.disk,
            Device::Net => &self.net,
        }
    }
}

impl<T> IndexMut<Device> for PerDevice<T> {
    fn index_mut(&mut self, device: Device) -> &mut T {
        match device {
            Device::Disk => &mut self.disk,
            Device::Net => &mut self.net,
        }
    }
}
