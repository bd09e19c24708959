//! Charts as SVG: bars, curves and timelines.
//!
//! [`Chart::svg`] writes one document that needs nothing beside it: no script, no font, no link. The same chart gives
//! the same bytes on every machine: floats go through + - x / and through decimal text only, and coordinates have at
//! most two decimals.
//!
//! A chart is as wide as the page, up to 600 px, and can be read at 360 px. It follows the reader's light or dark
//! colours. Each bar, span and marked point has its numbers as a `<title>`, which browsers show under the pointer.
//! Texts never overlap: they are wrapped, turned, thinned out or cut with an ellipsis, by widths estimated for a wide
//! font. A number that is not finite is shown as absent. A chart without anything to show says so.
//!
//! ```
//! use cosched_report::chart::{Axis, BarSeries, Bars, Chart, Estimate, Plot};
//!
//! let chart = Chart {
//!     title: "Turnaround under the policy fair".to_owned(),
//!     subtitle: None,
//!     x: Axis::new("mix", ""),
//!     y: Axis::new("turnaround", "s"),
//!     plot: Plot::Bars(Bars {
//!         groups: vec!["A".to_owned(), "B".to_owned()],
//!         series: vec![BarSeries {
//!             name: "fair".to_owned(),
//!             values: vec![Some(Estimate { value: 11.0, interval: Some((10.5, 11.4)) }), None],
//!         }],
//!     }),
//! };
//! assert!(chart.svg().contains("<title>fair, A: 11 s (10.5 to 11.4)</title>"));
//! assert!(chart.svg().contains("<title>fair, B: no value</title>"));
//! ```

mod area;
mod bars;
mod curves;
mod mark;
mod model;
mod scale;
mod sheet;
#[cfg(test)]
mod tests;
mod text;
mod timeline;

pub use model::{Axis, BarSeries, Bars, Chart, Curve, CurveStyle, Estimate, Plot, Span, Timeline};

use crate::text::escaped;
use sheet::{MARGIN, Sheet};

impl Chart {
    /// Render the chart as one SVG document, to stand alone, in an `<img>`, or within an HTML page.
    pub fn svg(&self) -> String {
        let mut sheet = Sheet::new(self);
        match &self.plot {
            Plot::Bars(bars) => bars::draw(self, bars, &mut sheet),
            Plot::Curves(curves) => curves::draw(self, curves, &mut sheet),
            Plot::Timeline(timeline) => timeline::draw(self, timeline, &mut sheet),
        }
        format!(
            include_str!("chart.svg"),
            height = area::px(sheet.y + MARGIN),
            title = escaped(&self.title),
            style = include_str!("chart.css"),
            drawing = sheet.svg,
        )
    }
}
