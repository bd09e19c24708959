//! What the service says to who started it.

use std::fmt;
use std::path::PathBuf;

/// What the service says to who started it.
#[derive(Clone, Debug, PartialEq)]
pub enum ServiceNotice {
    /// It listens.
    Serving {
        /// Its socket.
        socket: PathBuf,
    },
    /// Jobs of a database that was moved away still run.
    OldJobs {
        /// The folder of that database.
        folder: PathBuf,
        /// Their reapers.
        reapers: Vec<i32>,
    },
}

impl fmt::Display for ServiceNotice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ServiceNotice::Serving { socket } => write!(
                f,
                "serving the queue at {}; jobs go on if this process is stopped",
                socket.display()
            ),
            ServiceNotice::OldJobs { folder, reapers } => {
                let [first, others @ ..] = &reapers[..] else {
                    return Ok(());
                };
                write!(f, "jobs of an earlier queue still run: processes {first}")?;
                for reaper in others {
                    write!(f, ", {reaper}")?;
                }
                write!(
                    f,
                    "; this queue does not know them. Their output is in {}, and `kill -- -{first}` ends one",
                    folder.join("logs").display()
                )
            }
        }
    }
}
