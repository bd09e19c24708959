//! Figures and the numbers that they show, from one set of data.

use super::findings::{Cell, Figure, Table};
use super::watch::Stay;
use crate::statistics::Estimate;
use cosched_report::chart::{
    Axis, BarSeries, Bars, Chart, Curve, Estimate as Drawable, Plot, Span, Timeline,
};

/// What the axes mean.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Axes {
    pub(crate) x: &'static str,
    /// With its unit.
    pub(crate) y: &'static str,
    /// Decimals of the numbers.
    pub(crate) decimals: usize,
}

/// A label such as `time, s` without its unit, and the unit.
fn axis(label: &str) -> Axis {
    let (label, unit) = label.rsplit_once(", ").unwrap_or((label, ""));
    Axis::new(label, unit)
}

/// Bars of one colour: a name, and the values of each group by repetition.
pub(crate) type Series = (String, Vec<Vec<f64>>);

/// Bars in groups, one of each series, and perhaps a further column of the table.
pub(crate) fn bars(
    id: String,
    caption: String,
    axes: Axes,
    groups: Vec<String>,
    series: Vec<Series>,
    column: Option<(&str, Vec<f64>)>,
) -> Figure {
    let mut columns = vec![axes.x.to_owned()];
    let mut rows: Vec<Vec<Cell>> = groups.iter().map(|group| vec![Cell::text(group)]).collect();
    let mut drawn = Vec::new();
    for (name, by_group) in series {
        let estimates: Vec<_> = by_group.iter().map(|values| Estimate::of(values)).collect();
        for (row, estimate) in rows.iter_mut().zip(&estimates) {
            row.push(Cell::estimate(*estimate, axes.decimals));
        }
        columns.push(name.clone());
        drawn.push(BarSeries {
            name,
            values: estimates.into_iter().map(drawable).collect(),
        });
    }
    if let Some((name, values)) = column {
        columns.push(name.to_owned());
        for (row, value) in rows.iter_mut().zip(values) {
            row.push(Cell::number(value, 0));
        }
    }
    let plot = Plot::Bars(Bars {
        groups,
        series: drawn,
    });
    figure(id, caption, axes, columns, rows, plot)
}

fn drawable(estimate: Option<Estimate>) -> Option<Drawable> {
    let estimate = estimate?;
    Some(Drawable {
        value: estimate.mean,
        interval: estimate.half_width.map(|_| estimate.interval()),
    })
}

/// Curves over a number.
pub(crate) fn curves(id: String, caption: String, axes: Axes, curves: Vec<Curve>) -> Figure {
    let mut rows = Vec::new();
    for curve in &curves {
        for (x, y) in &curve.points {
            rows.push(vec![
                Cell::text(curve.name.clone()),
                Cell::number(*x, axes.decimals),
                Cell::number(*y, axes.decimals),
            ]);
        }
    }
    let columns = ["curve", axes.x, axes.y].map(str::to_owned).to_vec();
    figure(id, caption, axes, columns, rows, Plot::Curves(curves))
}

/// Who had which of so many CPUs.
pub(crate) fn timeline(id: String, caption: String, cpus: usize, stays: &[Stay]) -> Figure {
    let axes = Axes {
        x: "time, s",
        y: "CPU",
        decimals: 2,
    };
    let mut rows = Vec::new();
    let mut spans = Vec::new();
    for stay in joined(stays) {
        let [from, to] = [stay.from, stay.to].map(|ns| ns as f64 / 1e9);
        rows.push(vec![
            Cell::number(f64::from(stay.cpu), 0),
            Cell::number(f64::from(stay.task), 0),
            Cell::number(from, 3),
            Cell::number(to, 3),
        ]);
        spans.push(Span {
            row: stay.cpu as usize,
            series: stay.task as usize,
            from,
            to,
        });
    }
    let jobs = spans.iter().map(|span| span.series + 1).max().unwrap_or(0);
    let plot = Plot::Timeline(Timeline {
        rows: (0..cpus).map(|cpu| format!("CPU {cpu}")).collect(),
        series: (0..jobs).map(|job| format!("job {job}")).collect(),
        spans,
    });
    let columns = ["CPU", "job", "from, s", "to, s"].map(str::to_owned);
    figure(id, caption, axes, columns.to_vec(), rows, plot)
}

/// The stays, with those in one that go on after a decision.
fn joined(stays: &[Stay]) -> Vec<Stay> {
    let mut joined: Vec<Stay> = Vec::new();
    for stay in stays {
        let before = joined
            .iter_mut()
            .find(|one| one.cpu == stay.cpu && one.task == stay.task && one.to == stay.from);
        match before {
            Some(before) => before.to = stay.to,
            None => joined.push(*stay),
        }
    }
    joined
}

fn figure(
    id: String,
    caption: String,
    axes: Axes,
    columns: Vec<String>,
    rows: Vec<Vec<Cell>>,
    plot: Plot,
) -> Figure {
    let chart = Chart {
        title: title(&caption),
        subtitle: None,
        x: axis(axes.x),
        y: axis(axes.y),
        plot,
    };
    let table = Table {
        id,
        caption,
        columns,
        rows,
    };
    Figure { table, chart }
}

/// The caption as far as a colon or bracket.
fn title(caption: &str) -> String {
    let words = caption.replace('`', "");
    let ends = [": ", " ("].iter().filter_map(|mark| words.find(mark));
    let end = ends.min().unwrap_or(words.len());
    words[..end].trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeline_joins_what_goes_on() {
        let stay = |cpu, task, from, to| Stay {
            cpu,
            task,
            from,
            to,
        };
        let stays = [
            stay(0, 1, 0, 200),
            stay(1, 2, 0, 200),
            stay(0, 1, 200, 400),
            stay(1, 3, 200, 400),
        ];
        let figure = timeline("t".into(), "Who".into(), 2, &stays);
        assert_eq!(figure.table.rows.len(), 3);
        let Plot::Timeline(drawn) = figure.chart.plot else {
            panic!("a timeline")
        };
        assert_eq!(drawn.spans.len(), 3);
        assert_eq!((drawn.spans[0].from, drawn.spans[0].to), (0.0, 400e-9));
    }

    #[test]
    fn units_stand_behind_a_comma() {
        assert_eq!(axis("time, s").unit, "s");
        assert_eq!(axis("mix").unit, "");
    }
}
