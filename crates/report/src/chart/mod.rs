//! Charts as SVG: bars, curves and timelines.
//!
//! [`Chart::svg`] writes one document that needs nothing beside it: no script, no font, no link. The same chart gives
//! the same bytes on every machine: floats go through + - x / and through decimal text only, and coordinates have at
//! most two decimals.
//!
//! A chart is as wide as the page, up to 600 px, and can be read at 360 px. It follows the reader's light or dark
//! colours. Series differ by colour, and by hatch, dash or marker for readers without colours. A sentence in `<desc>`
//! describes the chart; each bar, span and marker has its numbers as a `<title>`, which browsers show under the pointer.
//! Texts never overlap: they are wrapped, turned, thinned out or cut with an ellipsis, by widths estimated for a wide
//! font.
//!
//! Any input can be drawn. A number that is not finite is shown as absent; control characters are left out; a chart
//! without anything to show says so.
//!
//! Several charts can stand in one HTML page: every id and every style rule begins with a name made of the chart's
//! texts, so charts of one page need different titles, or other labels or names of series.
//!
//! ```
//! use cosched_report::chart::{Axis, BarSeries, Bars, Chart, Estimate, Plot};
//!
//! let chart = Chart {
//!     title: "Turnaround under two policies".to_owned(),
//!     subtitle: None,
//!     x: Axis { label: "mix".to_owned(), ..Axis::default() },
//!     y: Axis { label: "turnaround".to_owned(), unit: Some("s".to_owned()), ..Axis::default() },
//!     plot: Plot::Bars(Bars {
//!         groups: vec!["A".to_owned(), "B".to_owned()],
//!         series: vec![
//!             BarSeries { name: "linux".to_owned(), values: vec![Some(12.5.into()), Some(20.0.into())] },
//!             BarSeries {
//!                 name: "fair".to_owned(),
//!                 values: vec![Some(Estimate { value: 11.0, interval: Some((10.5, 11.4)) }), None],
//!             },
//!         ],
//!         line: None,
//!     }),
//! };
//! assert!(chart.svg().contains("<title>fair, A: 11 s (10.5 to 11.4)</title>"));
//! assert!(chart.svg().contains("<title>fair, B: no value</title>"));
//! ```

mod bars;
mod curves;
mod describe;
mod geometry;
mod groups;
mod measure;
mod model;
mod number;
mod placing;
mod scale;
mod sheet;
mod style;
#[cfg(test)]
mod tests;
mod timeline;
mod xml;

pub use model::{
    Axis, BarSeries, Bars, Chart, Curve, CurveStyle, Estimate, GroupLine, Plot, Span, Timeline,
};

use sheet::{Sheet, WIDTH};
use xml::Xml;

/// Maximum width of a chart, in CSS pixels.
const MAX_WIDTH_PX: u32 = 600;

impl Chart {
    /// Render the chart as one SVG document, to stand alone, in an `<img>`, or within an HTML page.
    pub fn svg(&self) -> String {
        let id = style::id(self);
        let mut sheet = Sheet::new();
        sheet.heading(self);
        match &self.plot {
            Plot::Bars(bars) => bars::draw(self, bars, &mut sheet),
            Plot::Curves(curves) => curves::draw(self, curves, &mut sheet),
            Plot::Timeline(timeline) => timeline::draw(self, timeline, &mut sheet),
        }
        let (body, height) = sheet.end();
        let (width, height) = (number::px(WIDTH), number::px(height));
        let (title, desc) = (format!("{id}-title"), format!("{id}-desc"));
        let attributes = [
            ("xmlns", "http://www.w3.org/2000/svg"),
            ("id", &id),
            ("viewBox", &format!("0 0 {width} {height}")),
            ("width", "100%"),
            ("style", &format!("max-width:{MAX_WIDTH_PX}px")),
            ("role", "img"),
            ("aria-labelledby", &title),
            ("aria-describedby", &desc),
        ];
        let paper = [("class", "paper"), ("width", &*width), ("height", &*height)];

        let mut xml = Xml::default();
        xml.open("svg", &attributes);
        xml.line_end();
        xml.with_text("title", &[("id", &title)], &self.title);
        xml.line_end();
        xml.with_text("desc", &[("id", &desc)], &describe::sentence(self));
        xml.open("style", &[]);
        xml.append(&style::css(self, &id));
        xml.close();
        style::patterns(self, &id, &mut xml);
        xml.empty("rect", &paper);
        xml.append(&body);
        xml.close();
        xml.into_text()
    }
}
