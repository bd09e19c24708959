//! A batch for a simulated machine.

use super::write;
use tempfile::{TempDir, tempdir};

/// The simulated machine of most tests.
pub(crate) const MACHINE: &str = "xeon-e5645";

/// A few jobs that arrive at two times, more than the six cores of the machine.
const MIX: &str = "\
[[job]]
name = \"memory\"
program = \"mcf\"
copies = 5
work_instructions = 2_000_000_000
[[job]]
program = \"lbm\"
copies = 4
start_s = 0.5
work_instructions = 2_000_000_000
[[job]]
name = \"wide\"
command = [\"no-such-program\"]
program = \"mcf\"
cpus = 2
work_instructions = 1_000_000_000
";

/// A folder with the mix in it.
pub(crate) fn with_mix() -> TempDir {
    let folder = tempdir().expect("a folder");
    write(&folder, "mix.toml", MIX);
    folder
}
