//! What programs that run already do, and who probably disturbs whom: [`now`] makes the answer, [`text`] renders it.

mod now;
#[cfg(test)]
mod tests;
mod text;

pub use now::{ATTACHED_SCHEMA, AttachedNow, DisturbanceNow, LeftOutNow, SubjectNow, SubjectState};
pub use text::attached_text;
