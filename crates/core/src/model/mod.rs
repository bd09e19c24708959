//! wip
pub mod admission_table;
pub mod bus;
mod error;
mod fixed;
pub mod power;
pub mod starvation;
pub mod threshold;
pub mod window;
pub use error::ModelError;
