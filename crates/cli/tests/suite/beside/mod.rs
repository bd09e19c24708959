//! Runs beside others.

mod idle;
mod neighbours;
mod polite;

/// A process that is killed with the test.
struct Killed(std::process::Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
