//! Which CPU went to which slot: the ring `switches` of `bpf/presence.h`.

use crate::intf::{Image, switch};
use libbpf_rs::{MapCore, RingBuffer, RingBufferBuilder};
use std::fmt;
use std::sync::{Arc, Mutex};

/// What the kernel has told and nobody has asked for.
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
                keep.lock()
                    .unwrap_or_else(|broken| broken.into_inner())
                    .push(Image(bytes.to_vec()));
            }
            0
        })?;
        Ok(Switches {
            ring: builder.build()?,
            told,
        })
    }

    /// Tells all that came since this was last called, in the order of time: when, which CPU, which slot. With `lost`, some are
    /// missing, and nothing is told.
    pub(crate) fn take(&self, lost: bool, mut tell: impl FnMut(u64, u32, u32)) {
        // What can't be read now is there the next time.
        let _ = self.ring.consume();
        let mut told = std::mem::take(
            &mut *self
                .told
                .lock()
                .unwrap_or_else(|broken| broken.into_inner()),
        );
        if lost {
            return;
        }
        // Each CPU tells for itself.
        told.sort_by_key(|image| image.u64(switch::AT));
        for image in told {
            tell(
                image.u64(switch::AT),
                image.u32(switch::CPU),
                image.u32(switch::SLOT),
            );
        }
    }
}
