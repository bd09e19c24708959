//! The guest: its law, its counters and their faults, each a parameter that can change while jobs run.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

const PARAMETERS: &str = "/sys/module/law/parameters";
const PARANOID: &str = "/proc/sys/kernel/perf_event_paranoid";

/// The parameters of the law and what they are without a fault.
const SOUND: [(&str, &str); 6] = [
    ("law", "bus"),
    ("counters", "8"),
    ("zeros", "0"),
    ("dead", "0"),
    ("refused", "0"),
    ("groups", "0"),
];

/// The guest, for one test at a time. It is sound again when it is dropped.
pub(crate) struct Guest {
    _alone: MutexGuard<'static, ()>,
}

impl Guest {
    /// The sound guest; `None`, and a line that says so, on any other machine.
    pub(crate) fn enter() -> Option<Guest> {
        static ALONE: Mutex<()> = Mutex::new(());
        if !Path::new(PARAMETERS).exists() {
            drop(std::io::Write::write_fmt(
                &mut std::io::stderr(),
                format_args!(
                    "skipped, because only the guest of guest/counted.sh has counters that follow a law\n"
                ),
            ));
            return None;
        }
        let guest = Guest {
            _alone: ALONE.lock().unwrap_or_else(PoisonError::into_inner),
        };
        guest.mend();
        Some(guest)
    }

    /// Sets a parameter of the law.
    pub(crate) fn set(&self, parameter: &str, value: &str) {
        let file = format!("{PARAMETERS}/{parameter}");
        fs::write(&file, value).unwrap_or_else(|error| panic!("{file}: {error}"));
    }

    /// Sets who may count.
    pub(crate) fn set_paranoid(&self, level: &str) {
        fs::write(PARANOID, level).expect("root may set it");
    }

    /// Takes a CPU from the machine, or gives it back.
    pub(crate) fn set_online(&self, cpu: u32, online: bool) {
        let file = format!("/sys/devices/system/cpu/cpu{cpu}/online");
        fs::write(&file, if online { "1" } else { "0" })
            .unwrap_or_else(|error| panic!("{file}: {error}"));
    }

    /// Starts another session of perf with so many events on each CPU.
    pub(crate) fn hog(&self, kind: &str, events: u32) -> Hog {
        let mut hog = Command::new("hog");
        hog.args(["cpus", kind, &events.to_string()])
            .stdout(Stdio::piped());
        let mut hog = hog.spawn().expect("the guest has it");
        let mut line = [0; 5];
        let out = hog.stdout.as_mut().expect("a pipe");
        std::io::Read::read_exact(out, &mut line).expect("it holds its events");
        Hog(hog)
    }

    fn mend(&self) {
        for (parameter, value) in SOUND {
            self.set(parameter, value);
        }
        self.set_paranoid("2");
        for cpu in 1..8 {
            self.set_online(cpu, true);
        }
        self.clear();
    }

    /// Makes the law forget the jobs that have ended: it has room for some hundred.
    pub(crate) fn clear(&self) {
        fs::write("/dev/law", "clear").expect("the device is there");
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        self.mend();
    }
}

/// Another session of perf, ended when it is dropped.
pub(crate) struct Hog(Child);

impl Drop for Hog {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// Lets time pass. In the guest it costs nothing while all jobs wait.
pub(crate) fn pass(seconds: f64) {
    std::thread::sleep(Duration::from_secs_f64(seconds));
}
