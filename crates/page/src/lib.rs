//! Reports as one HTML page: of runs, or of a comparison. A page needs nothing beside it: no script, font or picture is
//! fetched, so it can be mailed, kept and opened offline.
//!
//! What is most important comes first: the verdicts of a comparison, or how a run ended. Colours follow the reader's light
//! or dark setting and are never the only difference. Everything can be reached by keyboard.
//!
//! `view` holds the content of a page. `charts` and `timeline` draw it, and `pictures` names the charts that are files of
//! their own. `run` and `comparison` are the two kinds of page. `frame` and `html` are the markup, and `template`
//! fills in their files.

mod charts;
mod comparison;
mod frame;
mod html;
mod pictures;
mod run;
mod template;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod timeline;
mod view;

pub use comparison::comparison_page;
pub use pictures::{Picture, comparison_pictures, run_pictures};
pub use run::run_page;
pub use view::{ComparisonView, RunView};
