//! The simulated machines, and changes of them.

use super::error::{ReproduceError, Result};
use cosched_sim::{FIT_LENGTH, MachineFit, MachineSpec, builtin_machine, fit};
use std::sync::Arc;

/// The built-in machine of this name.
pub(crate) fn machine(name: &str) -> Arc<MachineSpec> {
    Arc::new(builtin_machine(name).expect("experiments name built-in machines"))
}

/// The machine with this change.
pub(crate) fn changed(spec: &MachineSpec, change: impl FnOnce(&mut MachineSpec)) -> MachineSpec {
    let mut changed = spec.clone();
    change(&mut changed);
    changed
}

/// The machine with slices of 200 ms: its kernel model keeps threads in the cache for as long as policies do.
pub(crate) fn with_long_slices(spec: &MachineSpec) -> Arc<MachineSpec> {
    // In this period each of two threads on a CPU has a slice as long as a quantum.
    Arc::new(changed(spec, |machine| machine.kernel.period_ms = 400.0))
}

/// What policies are to know of a machine, from runs on it.
pub(crate) fn fitted(spec: &Arc<MachineSpec>) -> Result<MachineFit> {
    fit(spec, FIT_LENGTH).map_err(|error| ReproduceError::trial(&spec.name, error))
}

/// A changed machine, with its policies' parameters fitted to it as those of the built-in machines were.
pub(crate) fn refitted(mut spec: MachineSpec) -> Result<Arc<MachineSpec>> {
    let as_it_is = Arc::new(spec.clone());
    let fit = fitted(&as_it_is)?;
    for (name, value) in fit.params() {
        for (known, param) in &mut spec.params {
            if known == name {
                *param = value.to_string();
            }
        }
    }
    Ok(Arc::new(spec))
}
