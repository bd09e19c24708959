//! The processors that packages are built for.

use anyhow::{Result, anyhow};
use clap::ValueEnum;

/// A processor to build for.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Target {
    #[value(name = "x86_64")]
    X86,
    #[value(name = "aarch64")]
    Arm,
}

impl Target {
    /// This machine's.
    ///
    /// # Errors
    /// It is neither.
    pub fn own() -> Result<Target> {
        let name = std::env::consts::ARCH;
        Target::from_str(name, false).map_err(|_| anyhow!("no package is built on {name}"))
    }

    /// The processor's name, as in the names of archives and wheels.
    pub fn name(self) -> &'static str {
        match self {
            Target::X86 => "x86_64",
            Target::Arm => "aarch64",
        }
    }

    /// Debian's name of the processor.
    pub fn debian(self) -> &'static str {
        match self {
            Target::X86 => "amd64",
            Target::Arm => "arm64",
        }
    }

    /// Rust's name of the processor with musl, which is linked statically.
    pub fn triple(self) -> String {
        format!("{}-unknown-linux-musl", self.name())
    }
}
