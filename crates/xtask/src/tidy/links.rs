//! Links between the documents: each leads to a file that is there, and to a heading of it.

use super::files_below;
use anyhow::Result;
use std::ffi::OsStr;
use std::fs;
use std::path::Path;

/// Prints links that lead nowhere, and returns their number.
///
/// # Errors
/// A document cannot be read.
pub fn broken(root: &Path) -> Result<usize> {
    let mut pages = files_below(root, OsStr::new("md"))?;
    pages.extend(files_below(&root.join("results"), OsStr::new("md"))?);
    let mut broken = 0;
    for page in pages {
        let folder = page.parent().unwrap_or(root);
        for link in links(&fs::read_to_string(&page)?) {
            if !leads_somewhere(&page, folder, &link) {
                println!("{}: {link} leads nowhere", page.display());
                broken += 1;
            }
        }
    }
    Ok(broken)
}

/// The targets of links and pictures that are not addresses.
fn links(text: &str) -> Vec<String> {
    let targets = text.split("](").skip(1);
    let targets = targets.filter_map(|rest| rest.split_once(')'));
    let targets = targets.map(|(target, _)| target.to_owned());
    targets.filter(|target| !target.contains("://")).collect()
}

fn leads_somewhere(page: &Path, folder: &Path, link: &str) -> bool {
    let (file, heading) = link.split_once('#').unwrap_or((link, ""));
    let target = match file {
        "" => page.to_owned(),
        _ => folder.join(file),
    };
    if heading.is_empty() {
        return target.exists();
    }
    let text = fs::read_to_string(target).unwrap_or_default();
    let headings = text.lines().filter(|line| line.starts_with('#'));
    let mut anchors = headings.map(anchor);
    anchors.any(|anchor| anchor == heading)
}

/// What a link calls a heading: lower case, with hyphens for spaces, and without other marks.
fn anchor(heading: &str) -> String {
    let words = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = |mark: &char| mark.is_alphanumeric() || matches!(mark, ' ' | '-' | '_');
    let kept = words.chars().filter(kept);
    kept.map(|mark| if mark == ' ' { '-' } else { mark })
        .collect()
}
