//! Digests of what was read.

use sha2::{Digest as _, Sha256};

/// SHA-256 in hexadecimal digits, as `sha256sum` prints it.
pub fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}
