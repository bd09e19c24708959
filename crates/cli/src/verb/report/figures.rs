//! Charts as files: SVG, and PNG for those who can't show it.

use crate::exit::usage;
use crate::input::told;
use crate::output::{Made, PNG_MAKER, PNG_MAKER_AT, check_output};
use crate::whole_file::write_whole;
use anyhow::Context as _;
use cosched_page::Picture;
use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree};
use std::path::Path;

/// Pixels of a PNG for each of a chart.
const SCALE: f32 = 2.0;

/// Writes each picture into a folder, as `NAME.svg` and `NAME.png`. Returns the number of files, and why there are no PNG
/// files if there are none.
///
/// # Errors
/// The folder or a file can't be written.
pub(super) fn write(
    pictures: &[Picture],
    folder: &Path,
) -> anyhow::Result<(usize, Option<String>)> {
    std::fs::create_dir_all(folder)
        .map_err(|error| usage(format!("--figures {}: {error}", told(folder))))?;
    let mut options = Options {
        font_family: "sans-serif".to_owned(),
        ..Options::default()
    };
    options.fontdb_mut().load_system_fonts();
    let family = options
        .fontdb
        .faces()
        .next()
        .and_then(|face| face.families.first().map(|family| family.0.clone()));
    let why_none = match family {
        None => Some(
            "no fonts are installed, so texts could not be drawn; install some, as the package fonts-dejavu-core"
                .to_owned(),
        ),
        Some(family) => {
            // Whatever there is stands in for families that are not there.
            let known = ["DejaVu Sans", "Liberation Sans", "Noto Sans"];
            let has =
                |name: &&&str| options.fontdb.faces().any(|face| face.families.iter().any(|one| one.0 == ***name));
            let chosen = known.iter().find(has).map_or(family, |name| (*name).to_owned());
            options.fontdb_mut().set_sans_serif_family(chosen);
            None
        }
    };
    let is_safe = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let files_of = |picture: &Picture| {
        let name: String = picture
            .name
            .chars()
            .map(|c| if is_safe(c) { c } else { '-' })
            .collect();
        let png = why_none
            .is_none()
            .then(|| folder.join(format!("{name}.png")));
        (folder.join(format!("{name}.svg")), png)
    };
    // All of them or none.
    for (svg, png) in pictures.iter().map(files_of) {
        check_output("--figures", &svg, Made::Svg)?;
        png.map_or(Ok(()), |png| check_output("--figures", &png, Made::Png))?;
    }
    let mut files = 0;
    for picture in pictures {
        let content = picture.chart.svg();
        let (svg, png) = files_of(picture);
        write_whole(&svg, content.as_bytes())?;
        files += 1;
        if let Some(file) = png {
            let png =
                drawn(&content, &options).with_context(|| format!("drawing {}", told(&file)))?;
            write_whole(&file, &png)?;
            files += 1;
        }
    }
    Ok((files, why_none))
}

/// A chart as PNG.
fn drawn(svg: &str, options: &Options<'_>) -> anyhow::Result<Vec<u8>> {
    let tree = Tree::from_str(svg, options)?;
    let size = tree
        .size()
        .to_int_size()
        .scale_by(SCALE)
        .context("a chart without a size")?;
    let mut pixels =
        Pixmap::new(size.width(), size.height()).context("a chart that is too large")?;
    resvg::render(
        &tree,
        Transform::from_scale(SCALE, SCALE),
        &mut pixels.as_mut(),
    );
    Ok(with_maker(pixels.encode_png()?))
}

/// A PNG that says who made it, so that it is known to be replaceable.
fn with_maker(mut png: Vec<u8>) -> Vec<u8> {
    // A chunk is the length of its content, a kind of four letters, the content, and a check sum over kind and content.
    let mut chunk = (PNG_MAKER.len() as u32 - 4).to_be_bytes().to_vec();
    let at = PNG_MAKER_AT - chunk.len();
    chunk.extend_from_slice(PNG_MAKER);
    chunk.extend_from_slice(&crc32fast::hash(PNG_MAKER).to_be_bytes());
    png.splice(at..at, chunk);
    png
}
