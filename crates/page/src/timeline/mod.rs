//! Who ran where: as a box of the page that can be zoomed, and as a picture.
//!
//! [`data`] is what the script in `timeline.js` draws, [`picture`] stands in its place where there are no scripts.

mod data;
mod picture;

use crate::html::{esc, json_in_script};
use cosched_report::{Record, Timeline};
pub(crate) use picture::picture;

/// The box for a run; `None` if nobody was placed anywhere.
pub(crate) fn timeline_box(
    id: &str,
    what: &str,
    timeline: &Timeline,
    record: &Record,
) -> Option<String> {
    let data = data::Data::of(timeline, record)?;
    let by_job = if data.is_best_by_job {
        ("", " checked")
    } else {
        (" checked", "")
    };
    let note = data
        .note
        .as_deref()
        .map(|note| format!("<p class=\"dim\">{}</p>\n", esc(note)))
        .unwrap_or_default();
    let still = picture(what, timeline, record)
        .map(|chart| format!("<noscript>\n{}</noscript>\n", chart.svg()));
    Some(format!(
        "<div data-timeline=\"{id}\" hidden>
<div class=\"tl-bar\" role=\"group\" aria-label=\"view of the timeline\">
<label><input type=\"radio\" name=\"{id}-rows\"{}> by CPU</label>
<label><input type=\"radio\" name=\"{id}-rows\" class=\"tl-by-job\"{}> by job</label>
<button type=\"button\" data-do=\"in\" aria-label=\"zoom in\">+</button>
<button type=\"button\" data-do=\"out\" aria-label=\"zoom out\">&minus;</button>
<button type=\"button\" data-do=\"left\" aria-label=\"earlier\">&larr;</button>
<button type=\"button\" data-do=\"right\" aria-label=\"later\">&rarr;</button>
<button type=\"button\" data-do=\"all\">all</button>
</div>
<div class=\"tl-view\" tabindex=\"0\" role=\"application\" aria-label=\"{}\"><canvas></canvas><div class=\"tl-room\"></div></div>
<p class=\"tl-told\" aria-live=\"polite\"></p>
<p class=\"dim\">Point at something to see what it is; drag to move; Ctrl and wheel, or double click, to zoom. Keys: arrows go from one to the next, + and - zoom, a and d move, 0 shows all.</p>
</div>
{note}{}<script type=\"application/json\" id=\"{id}\">{}</script>
",
        by_job.0,
        by_job.1,
        esc(&format!("timeline of {what}; the arrow keys go through it")),
        still.unwrap_or_default(),
        json_in_script(&data.json),
    ))
}
