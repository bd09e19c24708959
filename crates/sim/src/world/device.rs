//! A device that all threads share, as a disk or the network. Threads wait in it for their bytes, side by side and at
//! equal rates; their CPUs are free meanwhile.

use super::SimWorld;
use super::physics::after;
use super::thread::{Thread, ThreadState};
use crate::machine::DeviceSpec;
use cosched_core::Device;

/// Fewer bytes are an error of rounding.
const ROUNDING: f64 = 0.5;

pub(crate) struct DeviceQueue {
    spec: DeviceSpec,
    /// The waiting threads, with the bytes that each still waits for.
    waiting: Vec<(usize, f64)>,
    /// The instant of these figures, in ns.
    at: u64,
}

impl DeviceQueue {
    pub(crate) fn new(spec: DeviceSpec) -> DeviceQueue {
        let waiting = Vec::new();
        DeviceQueue {
            spec,
            waiting,
            at: 0,
        }
    }

    /// Bytes per ns that each of the waiting threads gets.
    fn rate_of_each(&self) -> f64 {
        let others = self.waiting.len() as f64 - 1.0;
        let all = self.spec.bytes_per_ns() / (1.0 + self.spec.stream_cost * others);
        all / self.waiting.len() as f64
    }

    /// When the first thread has its bytes; `u64::MAX` if none waits.
    fn next(&self) -> u64 {
        if self.waiting.is_empty() {
            return u64::MAX;
        }
        let left = self.waiting.iter().map(|&(_, left)| left);
        let least = left.fold(f64::INFINITY, f64::min);
        after(self.at, least.max(0.0) / self.rate_of_each())
    }

    /// Serves the threads up to `now`.
    fn advance(&mut self, now: u64, device: Device, threads: &mut [Thread]) {
        let bytes = (now - self.at) as f64 * self.rate_of_each();
        let time_of_each = (now - self.at) as f64 / self.waiting.len() as f64;
        self.at = now;
        for (thread, left) in &mut self.waiting {
            *left -= bytes;
            threads[*thread].tally.device_ns[device] += time_of_each;
        }
    }
}

impl SimWorld {
    /// Lets a running thread wait for its bytes after a phase. Returns `false` if it has none to move.
    pub(crate) fn wait_for_device(&mut self, thread: usize, phase: usize) -> bool {
        let program = self.threads[thread].program;
        let mb = self.behaviours[program][0].phases[phase].then_mb;
        for device in Device::ALL {
            if mb[device] > 0.0 && self.devices[device].is_some() {
                self.serve(device);
                self.dequeue(thread, ThreadState::Waiting);
                let served = self.devices[device].as_mut();
                served
                    .into_iter()
                    .for_each(|served| served.waiting.push((thread, mb[device] * 1e6)));
                return true;
            }
        }
        false
    }

    /// Takes a thread that ends from the devices.
    pub(crate) fn leave_devices(&mut self, thread: usize) {
        for device in Device::ALL {
            self.serve(device);
            if let Some(served) = &mut self.devices[device] {
                served.waiting.retain(|&(other, _)| other != thread);
            }
        }
    }

    /// When the next thread has its bytes.
    pub(crate) fn next_served(&self) -> u64 {
        let devices = Device::ALL
            .iter()
            .filter_map(|&of| self.devices[of].as_ref());
        devices.map(DeviceQueue::next).min().unwrap_or(u64::MAX)
    }

    /// Serves all waiting threads of a device up to now.
    pub(crate) fn serve(&mut self, device: Device) {
        if let Some(served) = &mut self.devices[device] {
            served.advance(self.now, device, &mut self.threads);
        }
    }

    /// Wakes the threads that have their bytes.
    pub(crate) fn wake_served(&mut self) {
        for device in Device::ALL {
            self.serve(device);
            let Some(served) = &mut self.devices[device] else {
                continue;
            };
            for (thread, _) in served.waiting.extract_if(.., |(_, left)| *left < ROUNDING) {
                self.threads[thread].state = ThreadState::Off;
                if self.threads[thread].placed {
                    self.to_place.push(thread);
                }
            }
        }
    }
}
