//! The frame of a page: its head, the links to its sections, and its style.

use cosched_report::escaped;
use std::fmt::Write as _;

/// A part of a page with a heading. It is left out if its body is empty.
pub(crate) struct Section {
    id: &'static str,
    title: &'static str,
    body: String,
}

impl Section {
    pub(crate) fn of(id: &'static str, title: &'static str, body: String) -> Section {
        Section { id, title, body }
    }
}

/// The part above the sections.
pub(crate) struct Head {
    pub(crate) title: String,
    /// HTML below the title.
    pub(crate) intro: String,
    pub(crate) is_simulated: bool,
}

/// Return the whole document.
pub(crate) fn document(head: &Head, sections: &[Section]) -> String {
    let title = escaped(&head.title);
    let version = env!("CARGO_PKG_VERSION");
    let css = include_str!("page.css");
    let simulated = if head.is_simulated {
        "<p class=\"simulated\">SIMULATED</p>\n"
    } else {
        ""
    };
    let (mut links, mut body) = (String::new(), String::new());
    for section in sections.iter().filter(|section| !section.body.is_empty()) {
        let Section {
            id,
            title,
            body: part,
        } = section;
        let _ = writeln!(links, "<a href=\"#{id}\">{title}</a>");
        let _ = writeln!(
            body,
            "<section aria-labelledby=\"{id}\">\n<h2 id=\"{id}\">{title}</h2>\n{part}</section>"
        );
    }
    // Nothing is fetched, not even an icon.
    format!(
        "<!DOCTYPE html>
<html lang=\"en\">
<head>
<meta charset=\"utf-8\">
<title>{title}</title>
<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">
<link rel=\"icon\" href=\"data:,\">
<meta name=\"generator\" content=\"cosched {version}\">
<style>
{css}</style>
</head>
<body>
<header>
{simulated}<h1>{title}</h1>
{intro}<nav aria-label=\"sections\">
{links}</nav>
</header>
<main>
{body}</main>
<footer><p class=\"dim\">Made by cosched {version} from the records of the runs. This page needs nothing beside it.</p></footer>
</body>
</html>
",
        intro = head.intro
    )
}
