//! Energy of active parts by time, of instructions executed, and of lines moved.

use super::SimWorld;

/// Energy since the start, by its parts, in joules.
#[derive(Clone, Copy, Default)]
pub(crate) struct Energy {
    /// Idle power of the machine and its cores, all the time.
    pub idle: f64,
    /// Sockets while any of their cores runs.
    pub uncore: f64,
    /// Cores while they run, whatever they run.
    pub active: f64,
    /// Instructions executed.
    pub instructions: f64,
    /// Lines moved from and to memory.
    pub lines: f64,
}

impl Energy {
    pub(crate) fn total(&self) -> f64 {
        self.idle + self.uncore + self.active + self.instructions + self.lines
    }
}

impl SimWorld {
    /// Updates which cores and sockets are active. The caller has synced every core that changes.
    pub(crate) fn note_activity(&mut self) {
        let mut has_changed = false;
        for at in 0..self.dirty.len() {
            let core = self.dirty[at];
            let active = self.cores[core]
                .cpus
                .iter()
                .any(|&cpu| self.cpus[cpu].current.is_some());
            if std::mem::replace(&mut self.cores[core].active, active) == active {
                continue;
            }
            has_changed = true;
            let (cores, since, total) = &mut self.active_since[self.cores[core].domain];
            if *cores > 0 {
                *total += self.now - *since;
            }
            *since = self.now;
            *cores = if active { *cores + 1 } else { *cores - 1 };
        }
        if has_changed && self.has_turbo {
            self.set_clocks();
        }
    }

    /// Sets the clocks of cores whose socket has more or fewer active cores than before.
    fn set_clocks(&mut self) {
        for core in 0..self.cores.len() {
            let active = self.active_since[self.cores[core].domain].0;
            let ghz = self.spec.core_types[self.cores[core].core_type].clock_ghz(active as u64);
            if self.cores[core].ghz != ghz {
                self.touch(core);
                self.cores[core].ghz = ghz;
            }
        }
    }

    /// The energy up to now.
    pub(crate) fn energy(&mut self) -> Energy {
        for core in 0..self.cores.len() {
            self.sync(core);
        }
        let mut energy = Energy {
            idle: self.spec.power.static_w * f64::from(self.spec.nodes) * seconds(self.now),
            ..Energy::default()
        };
        for core in &self.cores {
            let kind = &self.spec.core_types[core.core_type];
            energy.idle += kind.idle_w * seconds(self.now);
            energy.active += kind.active_w * core.active_ns / 1e9;
            energy.instructions += kind.nj_per_instruction * core.instructions / 1e9;
            energy.lines += self.spec.power.nj_per_line * core.lines / 1e9;
        }
        for &(cores, since, total) in &self.active_since {
            let open = if cores > 0 { self.now - since } else { 0 };
            energy.uncore += self.spec.power.uncore_w * seconds(total + open);
        }
        energy
    }
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}
