//! Which CPU went to which slot: the ring `switches` of `bpf/presence.h`.

use crate::intf::{Image, switch};
use libbpf_rs::{MapCore, RingBuffer, RingBufferBuilder};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};

/// A CPU went to a slot.
pub(crate) struct Switch {
    /// By the kernel's clock.
    pub(crate) at: u64,
    pub(crate) cpu: u32,
    pub(crate) slot: u32,
}

/// The switches that the kernel has reported and nobody has read.
pub(crate) struct Switches {
    ring: RingBuffer<'static>,
    told: Arc<Mutex<Vec<Image>>>,
}

impl fmt::Debug for Switches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Switches")
    }
}

impl Switches {
    pub(crate) fn of(map: &dyn MapCore) -> libbpf_rs::Result<Switches> {
        let told = Arc::new(Mutex::new(Vec::new()));
        let keep = told.clone();
        let mut builder = RingBufferBuilder::new();
        builder.add(map, move |bytes| {
            if bytes.len() >= switch::SIZE {
                lock(&keep).push(Image(bytes.to_vec()));
            }
            0
        })?;
        Ok(Switches {
            ring: builder.build()?,
            told,
        })
    }

    /// What came since this was last called, in the order of time. With `lost`, some are missing, and there is nothing.
    pub(crate) fn take(&self, lost: bool) -> Vec<Switch> {
        // What can't be read now is there the next time.
        let _ = self.ring.consume();
        let told = std::mem::take(&mut *lock(&self.told));
        let mut switches = Vec::new();
        if lost {
            return switches;
        }
        for image in told {
            switches.push(Switch {
                at: image.u64(switch::AT),
                cpu: image.u32(switch::CPU),
                slot: image.u32(switch::SLOT),
            });
        }
        // Each CPU reports for itself.
        switches.sort_by_key(|switch| switch.at);
        switches
    }
}

fn lock(told: &Mutex<Vec<Image>>) -> MutexGuard<'_, Vec<Image>> {
    told.lock().unwrap_or_else(|broken| broken.into_inner())
}
