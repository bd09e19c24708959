//! The binary `cosched`.
fn main() {}
