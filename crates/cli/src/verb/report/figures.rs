//! Charts as files: SVG, and PNG for those who can't show it.

use crate::exit::usage;
use crate::input::told;
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
pub(super) fn write(pictures: &[Picture], folder: &Path) -> anyhow::Result<(usize, Option<String>)> {
    std::fs::create_dir_all(folder).map_err(|error| usage(format!("--figures {}: {error}", told(folder))))?;
    let mut options = Options { font_family: "sans-serif".to_owned(), ..Options::default() };
    options.fontdb_mut().load_system_fonts();
    let family = options.fontdb.faces().next().and_then(|face| face.families.first().map(|family| family.0.clone()));
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
    let mut files = 0;
    for picture in pictures {
        let svg = picture.chart.svg();
        let name: String = picture
            .name
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' })
            .collect();
        write_whole(&folder.join(format!("{name}.svg")), svg.as_bytes())?;
        files += 1;
        if why_none.is_none() {
            let png = png(&svg, &options).with_context(|| format!("drawing {name}.png"))?;
            write_whole(&folder.join(format!("{name}.png")), &png)?;
            files += 1;
        }
    }
    Ok((files, why_none))
}

/// A chart as PNG.
fn png(svg: &str, options: &Options<'_>) -> anyhow::Result<Vec<u8>> {
    let tree = Tree::from_str(svg, options)?;
    let size = tree.size().to_int_size().scale_by(SCALE).context("a chart without a size")?;
    let mut pixels = Pixmap::new(size.width(), size.height()).context("a chart that is too large")?;
    resvg::render(&tree, Transform::from_scale(SCALE, SCALE), &mut pixels.as_mut());
    Ok(pixels.encode_png()?)
}
