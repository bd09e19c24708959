//! Charts as SVG.
mod model;
pub use model::{
    Axis, BarSeries, Bars, Chart, Curve, CurveStyle, Estimate, GroupLine, Mark, MarkAxis, Plot, Span, Timeline,
};
impl Chart {
    /// stub
    pub fn svg(&self) -> String {
        String::new()
    }
}
