//! Draws the figures of docs/models.md as SVG into a folder:
//!
//! ```text
//! cargo run -p cosched-core --example model_figures -- docs/img
//! ```
#![allow(clippy::disallowed_methods, clippy::disallowed_macros)] // The rules are the library's.

use cosched_core::model::ModelError;
use cosched_core::model::bus::{self, Equilibrium};
use cosched_core::model::power::PowerModel;
use cosched_core::model::threshold::{Objective, threshold};
use std::error::Error;
use std::fmt::Write as _;
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args_os()
        .nth(1)
        .map(PathBuf::from)
        .ok_or("expected a folder to write the figures into")?;
    for (name, svg) in [
        ("model-throughput.svg", throughput()?),
        ("model-threshold.svg", admission()?),
    ] {
        std::fs::write(folder.join(name), svg)?;
    }
    Ok(())
}

/// Colours that remain different to colour-blind eyes (Okabe and Ito, 2008).
const BLUE: &str = "#0072b2";
const ORANGE: &str = "#d55e00";
const GREEN: &str = "#009e73";
const GREY: &str = "#666666";

/// Every half per cent from 0 to 100.
fn demands() -> impl Iterator<Item = f64> {
    (0..=200).map(|half| f64::from(half) / 200.0)
}

/// The model's curve in EFS, Figure 4, with those of fewer tasks for comparison.
fn throughput() -> Result<String, ModelError> {
    let curve = |tasks: usize| -> Result<Vec<(f64, f64)>, ModelError> {
        demands()
            .map(|b| Ok((b, bus::throughput(&vec![b; tasks])?)))
            .collect()
    };
    let mut panel = Panel {
        left: 70.0,
        title: "Identical tasks side by side",
        x: Axis {
            label: "solo bus utilisation of each task (%)",
            from: 0.0,
            to: 1.0,
            tick: 0.2,
            per_cent: true,
        },
        y: Axis {
            label: "throughput (tasks' worth of solo progress)",
            from: 0.0,
            to: 4.0,
            tick: 1.0,
            per_cent: false,
        },
        ..Panel::default()
    };
    panel.line("4 tasks", BLUE, "", &curve(4)?);
    panel.line("3 tasks", ORANGE, "7 4", &curve(3)?);
    panel.line("2 tasks", GREEN, "2 3", &curve(2)?);
    Ok(document(520.0, &[panel]))
}

/// The admission threshold on the machine of EFS, Eq. 25, by the demand of the running tasks and by the load they make.
fn admission() -> Result<String, ModelError> {
    let power = PowerModel::new(&[26.6, 22.6, 12.0, 12.3, 12.3])?;
    let y = Axis {
        label: "threshold: solo bus utilisation of a further task (%)",
        from: 0.0,
        to: 1.0,
        tick: 0.2,
        per_cent: true,
    };
    let mut by_demand = Panel {
        left: 70.0,
        title: "by the demand of the running tasks",
        x: Axis {
            label: "solo bus utilisation of each running task (%)",
            from: 0.0,
            to: 1.0,
            tick: 0.2,
            per_cent: true,
        },
        y,
        ..Panel::default()
    };
    let mut by_load = Panel {
        left: 560.0,
        title: "by the load they make",
        x: Axis {
            label: "total bus utilisation U of the running tasks (%)",
            from: 0.0,
            to: 1.0,
            tick: 0.2,
            per_cent: true,
        },
        y,
        ..Panel::default()
    };
    for (tasks, label, colour, dashes) in [
        (1, "1 task runs", BLUE, ""),
        (2, "2 tasks run", ORANGE, "7 4"),
        (3, "3 tasks run", GREEN, "2 3"),
    ] {
        let (mut demand, mut load) = (Vec::new(), Vec::new());
        // At 100 % nothing is gained by any task that uses the bus at all: the curves fall to 0 there.
        for b in demands() {
            let running = vec![b; tasks];
            let admitted = threshold(&running, &power, Objective::Energy)?.threshold();
            demand.push((b, admitted));
            load.push((Equilibrium::of(&running)?.total(), admitted));
        }
        by_demand.line(label, colour, dashes, &demand);
        by_load.line(label, colour, dashes, &load);
    }
    by_demand.line(
        "a task like those running",
        GREY,
        "1 4",
        &[(0.0, 0.0), (1.0, 1.0)],
    );
    Ok(document(1000.0, &[by_demand, by_load]))
}

#[derive(Clone, Copy, Default)]
struct Axis {
    label: &'static str,
    from: f64,
    to: f64,
    tick: f64,
    per_cent: bool,
}

impl Axis {
    fn ticks(&self) -> impl Iterator<Item = (f64, String)> + '_ {
        let steps = ((self.to - self.from) / self.tick).round() as u32;
        (0..=steps).map(|step| {
            let value = self.from + f64::from(step) * self.tick;
            (
                value,
                format!("{:.0}", if self.per_cent { 100.0 * value } else { value }),
            )
        })
    }
}

/// One plot: its frame, and lines with their legend as SVG.
#[derive(Default)]
struct Panel {
    left: f64,
    title: &'static str,
    x: Axis,
    y: Axis,
    lines: String,
    legend: Vec<(&'static str, &'static str, &'static str)>,
}

const TOP: f64 = 44.0;
const WIDTH: f64 = 400.0;
const HEIGHT: f64 = 300.0;

impl Panel {
    fn at(&self, x: f64, y: f64) -> (f64, f64) {
        let right = (x - self.x.from) / (self.x.to - self.x.from);
        let up = (y - self.y.from) / (self.y.to - self.y.from);
        (self.left + WIDTH * right, TOP + HEIGHT * (1.0 - up))
    }

    fn line(
        &mut self,
        label: &'static str,
        colour: &'static str,
        dashes: &'static str,
        points: &[(f64, f64)],
    ) {
        let mut path = String::new();
        for (index, &(x, y)) in points.iter().enumerate() {
            let (x, y) = self.at(x, y);
            let _ = write!(path, "{}{x:.1} {y:.1}", if index == 0 { "M" } else { "L" });
        }
        let _ = writeln!(
            self.lines,
            r#"<path d="{path}" {}/>"#,
            stroke(colour, dashes)
        );
        self.legend.push((label, colour, dashes));
    }

    fn draw(&self) -> String {
        let mut svg = String::new();
        let (right, bottom) = (self.left + WIDTH, TOP + HEIGHT);
        for (value, text) in self.x.ticks() {
            let (x, _) = self.at(value, self.y.from);
            let _ = writeln!(
                svg,
                r##"<path d="M{x:.1} {TOP}V{bottom}" stroke="#e4e4e4"/>"##
            );
            let _ = writeln!(
                svg,
                r#"<text x="{x:.1}" y="{:.1}" text-anchor="middle">{text}</text>"#,
                bottom + 18.0
            );
        }
        for (value, text) in self.y.ticks() {
            let (_, y) = self.at(self.x.from, value);
            let _ = writeln!(
                svg,
                r##"<path d="M{} {y:.1}H{right}" stroke="#e4e4e4"/>"##,
                self.left
            );
            let _ = writeln!(
                svg,
                r#"<text x="{:.1}" y="{:.1}" text-anchor="end">{text}</text>"#,
                self.left - 8.0,
                y + 4.5
            );
        }
        svg.push_str(&self.lines);
        let _ = writeln!(
            svg,
            r##"<path d="M{} {TOP}V{bottom}H{right}" stroke="#333" fill="none"/>"##,
            self.left
        );
        let middle = self.left + WIDTH / 2.0;
        let _ = writeln!(
            svg,
            r#"<text x="{middle}" y="{}" text-anchor="middle" font-weight="bold">{}</text>"#,
            TOP - 16.0,
            self.title
        );
        let _ = writeln!(
            svg,
            r#"<text x="{middle}" y="{}" text-anchor="middle">{}</text>"#,
            bottom + 42.0,
            self.x.label
        );
        let (x, y) = (self.left - 42.0, TOP + HEIGHT / 2.0);
        let _ = writeln!(
            svg,
            r#"<text x="{x}" y="{y}" text-anchor="middle" transform="rotate(-90 {x} {y})">{}</text>"#,
            self.y.label
        );
        svg
    }
}

/// One row below the panels, centred.
fn legend(width: f64, y: f64, entries: &[(&str, &str, &str)]) -> String {
    let room = |label: &str| 66.0 + 6.8 * label.len() as f64;
    let total: f64 = entries.iter().map(|(label, ..)| room(label)).sum();
    let mut x = (width - total) / 2.0 + 12.0;
    let mut svg = String::new();
    for (label, colour, dashes) in entries {
        let _ = writeln!(
            svg,
            r#"<path d="M{x:.1} {y:.1}h32" {}/>"#,
            stroke(colour, dashes)
        );
        let _ = writeln!(
            svg,
            r#"<text x="{:.1}" y="{:.1}">{label}</text>"#,
            x + 40.0,
            y + 4.5
        );
        x += room(label);
    }
    svg
}

fn stroke(colour: &str, dashes: &str) -> String {
    format!(r#"stroke="{colour}" stroke-width="2.2" fill="none" stroke-dasharray="{dashes}""#)
}

fn document(width: f64, panels: &[Panel]) -> String {
    let height = TOP + HEIGHT + 90.0;
    let mut body: String = panels.iter().map(Panel::draw).collect();
    // The first panel has all kinds of lines.
    body.push_str(&legend(width, height - 22.0, &panels[0].legend));
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
         font-family=\"Helvetica, Arial, sans-serif\" font-size=\"13\" fill=\"#222\">\n<rect width=\"100%\" height=\"100%\" \
         fill=\"#fff\"/>\n{body}</svg>\n"
    )
}
