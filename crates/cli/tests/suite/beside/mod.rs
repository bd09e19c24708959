//! Runs beside others.

mod idle;
mod neighbours;
mod polite;
