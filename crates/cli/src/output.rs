//! Files that the user names for an output, and what may be in their place already.

use crate::exit::OrUsage as _;
use crate::input::told;
use crate::whole_file::open_regular;
use anyhow::Result;
use cosched_experiments::reproduction::findings::markdown::REPRODUCTION_TITLE;
use std::io::Read as _;
use std::path::Path;

/// What an output is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Made {
    /// A page of HTML.
    Page,
    /// A chart as SVG.
    Svg,
    /// A trace for Perfetto.
    Trace,
    /// The document of repeated experiments.
    Reproduction,
}

/// So much of a file tells what it is: the title of a page comes before the name of its maker.
const BEGINNING: u64 = 65_536;

impl Made {
    /// Whether cosched made a file that begins so.
    fn begins(self, begin: &[u8]) -> bool {
        match self {
            Made::Page => {
                let begin = String::from_utf8_lossy(begin);
                begin.starts_with("<!DOCTYPE html>")
                    && begin.contains("<meta name=\"generator\" content=\"cosched ")
            }
            Made::Svg => {
                begin.starts_with(b"<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"chart\"")
            }
            Made::Trace => cosched_report::is_trace(begin),
            Made::Reproduction => begin.starts_with(REPRODUCTION_TITLE.as_bytes()),
        }
    }

    fn what(self) -> &'static str {
        match self {
            Made::Page => "a page",
            Made::Svg => "a figure",
            Made::Trace => "a trace",
            Made::Reproduction => "a reproduction",
        }
    }
}

/// Checks a file that the user names for an output, before it is put there, and before work is done for it where that can
/// be. `write_whole` would put it in the place of a link or device, and so break what others have there, such as
/// /dev/stdout; and a slip of the user would cost a record, a series, or what a job wrote. So nothing is replaced but what
/// is empty, and what cosched made of the same kind. `option` is what named it.
///
/// # Errors
/// There is no folder for it, or something else has the name.
pub fn check_output(option: &str, out: &Path, made: Made) -> Result<()> {
    check(out, made).or_usage_in(format!("{option} {}", told(out)))
}

fn check(out: &Path, made: Made) -> Result<(), String> {
    let folder = match out.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    if !folder.is_dir() {
        return Err(format!("there is no folder {}", told(folder)));
    }
    let Ok(there) = out.symlink_metadata() else {
        return Ok(());
    };
    if there.is_symlink() {
        return Err("it is a link; name the file that it leads to".to_owned());
    }
    if there.is_dir() {
        return Err("it is a folder; name a file in it".to_owned());
    }
    if !there.is_file() {
        return Err("it is no regular file".to_owned());
    }
    let Some(begin) = begin_of(out) else {
        return Err("it can't be read, so it stays as it is; name another".to_owned());
    };
    if begin.is_empty() || made.begins(&begin) {
        return Ok(());
    }
    let what = made.what();
    Err(format!(
        "this file is not {what} that cosched made, and stays as it is; name another"
    ))
}

fn begin_of(file: &Path) -> Option<Vec<u8>> {
    let mut begin = Vec::new();
    open_regular(file)?
        .take(BEGINNING)
        .read_to_end(&mut begin)
        .ok()?;
    Some(begin)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    #[test]
    fn outputs_are_regular_files() {
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str| dir.path().join(name);
        std::fs::write(file("file"), "").unwrap();
        std::os::unix::fs::symlink("file", file("link")).unwrap();
        for fine in ["file", "new"] {
            check_output("--html", &file(fine), Made::Page).unwrap();
        }
        check_output("--html", Path::new("new.html"), Made::Page).unwrap();
        for (wrong, told) in [
            (
                file("link"),
                "link: it is a link; name the file that it leads to",
            ),
            (dir.path().to_owned(), ": it is a folder; name a file in it"),
            (
                PathBuf::from("/dev/null"),
                "--html /dev/null: it is no regular file",
            ),
            (file("none/new"), "there is no folder"),
        ] {
            let error = check_output("--html", &wrong, Made::Page)
                .unwrap_err()
                .to_string();
            assert!(error.contains(told), "{error}");
        }
    }

    #[test]
    fn nothing_is_replaced_but_what_cosched_made() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        let all = [Made::Page, Made::Svg, Made::Trace];
        let html = "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<title>x</title>\n";
        let page = format!("{html}<meta name=\"generator\" content=\"cosched 0.1.0\">\n");
        let svg =
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"chart\" viewBox=\"0 0 480 99\">";
        for (content, is) in [
            (page.as_bytes(), Some(Made::Page)),
            (html.as_bytes(), None),
            (svg.as_bytes(), Some(Made::Svg)),
            (&svg.as_bytes()[..30], None),
            (b"{\"schema\": \"cosched.run/2\"}", None),
            (b"\n", None),
        ] {
            std::fs::write(&file, content).unwrap();
            for made in all {
                let checked = check_output("--to", &file, made);
                assert_eq!(
                    checked.is_ok(),
                    is == Some(made),
                    "{made:?}: {}",
                    String::from_utf8_lossy(content)
                );
                if let Err(error) = checked {
                    let error = error.to_string();
                    assert!(
                        error.contains("that cosched made, and stays as it is; name another"),
                        "{error}"
                    );
                }
            }
        }
        std::fs::write(&file, "").unwrap();
        assert!(
            all.into_iter()
                .all(|made| check_output("--to", &file, made).is_ok()),
            "there is nothing to lose"
        );
    }
}
