//! The frame of a page: its head, the way to its sections, what it looks like.

use crate::html::esc;
use std::fmt::Write as _;

/// A part of a page with a heading.
pub(crate) struct Section {
    pub(crate) id: &'static str,
    pub(crate) title: String,
    pub(crate) body: String,
}

impl Section {
    /// A section; `None` if there is nothing to show.
    pub(crate) fn of(id: &'static str, title: &str, body: String) -> Option<Section> {
        (!body.is_empty()).then(|| Section {
            id,
            title: title.to_owned(),
            body,
        })
    }
}

/// What stands above the sections.
pub(crate) struct Head {
    pub(crate) title: String,
    /// HTML below the title.
    pub(crate) intro: String,
    pub(crate) is_simulated: bool,
}

/// A whole document that needs nothing beside it.
pub(crate) fn document(head: &Head, sections: &[Section]) -> String {
    let mut out =
        String::from("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    let _ = writeln!(out, "<title>{}</title>", esc(&head.title));
    out.push_str("<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n");
    // Nothing is fetched, not even an icon.
    out.push_str("<link rel=\"icon\" href=\"data:,\">\n");
    let _ = writeln!(
        out,
        "<meta name=\"generator\" content=\"cosched {}\">",
        env!("CARGO_PKG_VERSION")
    );
    let _ = writeln!(
        out,
        "<style>\n{}</style>\n</head>\n<body>\n<header>",
        include_str!("page.css")
    );
    if head.is_simulated {
        out.push_str("<p class=\"simulated\">SIMULATED</p>\n");
    }
    let _ = writeln!(out, "<h1>{}</h1>\n{}", esc(&head.title), head.intro);
    out.push_str("<nav aria-label=\"sections\">\n");
    for section in sections {
        let _ = writeln!(
            out,
            "<a href=\"#{}\">{}</a>",
            section.id,
            esc(&section.title)
        );
    }
    out.push_str("</nav>\n</header>\n<main>\n");
    for Section { id, title, body } in sections {
        let _ = writeln!(
            out,
            "<section aria-labelledby=\"{id}\">\n<h2 id=\"{id}\">{}</h2>\n{body}</section>",
            esc(title)
        );
    }
    let _ = writeln!(
        out,
        "</main>\n<footer><p class=\"dim\">Made by cosched {} from the records of the runs. This page needs nothing beside it.</p></footer>",
        env!("CARGO_PKG_VERSION")
    );
    let _ = writeln!(out, "<script>{{\n{}}}</script>", include_str!("page.js"));
    out.push_str("</body>\n</html>\n");
    out
}
