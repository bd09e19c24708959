//! Charts as SVG files.

use crate::exit::OrUsage as _;
use crate::input::told;
use crate::output::{Made, check_output};
use crate::whole_file::write_whole;
use anyhow::Result;
use cosched_page::Picture;
use std::path::{Path, PathBuf};

/// Write each picture into a folder as `NAME.svg`; check all names before writing any.
///
/// # Errors
/// The folder or a file cannot be written, or a file there is no figure of cosched.
pub fn write(pictures: &[Picture], folder: &Path) -> Result<()> {
    std::fs::create_dir_all(folder).or_usage_in(format!("--figures {}", told(folder)))?;
    for picture in pictures {
        check_output("--figures", &file_of(picture, folder), Made::Svg)?;
    }
    for picture in pictures {
        write_whole(&file_of(picture, folder), picture.chart.svg().as_bytes())?;
    }
    Ok(())
}

/// Return the file of a picture, without characters that are special to a shell or a path.
fn file_of(picture: &Picture, folder: &Path) -> PathBuf {
    let mut name: String = picture.name.chars().map(safe_in_name).collect();
    name.push_str(".svg");
    folder.join(name)
}

fn safe_in_name(c: char) -> char {
    if c.is_ascii_alphanumeric() || "._-".contains(c) {
        c
    } else {
        '-'
    }
}
