//! The frame of a page: its head, the links to its sections, and its style.

use crate::template::fill;
use cosched_report::escaped;
use std::fmt::Write as _;

/// A part of a page with a heading. It is left out if its body is empty.
pub(crate) struct PageSection {
    id: &'static str,
    title: &'static str,
    body: String,
}

impl PageSection {
    pub(crate) fn of(id: &'static str, title: &'static str, body: String) -> PageSection {
        PageSection { id, title, body }
    }
}

/// The part above the sections.
pub(crate) struct Head {
    pub(crate) title: String,
    /// HTML below the title.
    pub(crate) intro: String,
    pub(crate) is_simulated: bool,
}

const SIMULATED: &str = "<p class=\"simulated\">SIMULATED</p>\n";

/// Return the whole document. It fetches nothing, not even an icon.
pub(crate) fn document(head: &Head, sections: &[PageSection]) -> String {
    let mut links = String::new();
    let mut body = String::new();
    for section in sections {
        if section.body.is_empty() {
            continue;
        }
        let PageSection { id, title, .. } = section;
        let _ = writeln!(links, "<a href=\"#{id}\">{title}</a>");
        body.push_str(&fill(
            include_str!("section.html"),
            &[("id", id), ("title", title), ("body", &section.body)],
        ));
    }
    let simulated = if head.is_simulated { SIMULATED } else { "" };
    fill(
        include_str!("page.html"),
        &[
            ("title", &escaped(&head.title)),
            ("version", env!("CARGO_PKG_VERSION")),
            ("css", include_str!("page.css")),
            ("simulated", simulated),
            ("intro", &head.intro),
            ("links", &links),
            ("body", &body),
        ],
    )
}
