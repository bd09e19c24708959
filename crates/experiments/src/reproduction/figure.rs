//! Figures and the numbers that they show, from one set of data.

use crate::reproduction::findings::{Cell, Figure, Part, Table};
use crate::reproduction::trial::Stay;
use crate::statistics::Estimate;
pub(crate) use cosched_report::chart::Curve;
use cosched_report::chart::{
    Axis, BarSeries, Bars, Chart, Estimate as Drawable, Plot, Span, Timeline,
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

/// Rows of a table that can still be read beside a figure.
const FEW: usize = 31;

/// Bars in groups, one of each series, and perhaps a further column of the table.
pub(crate) fn bars(
    id: String,
    caption: String,
    axes: Axes,
    groups: Vec<String>,
    series: Vec<(String, Vec<Option<Estimate>>)>,
    column: Option<(String, Vec<f64>)>,
) -> Part {
    let mut columns = vec![axes.x.to_owned()];
    columns.extend(series.iter().map(|(name, _)| name.clone()));
    columns.extend(column.iter().map(|(name, _)| name.clone()));
    let rows = groups.iter().enumerate().map(|(at, group)| {
        let mut row = vec![Cell::text(group.clone())];
        row.extend(series.iter().map(|(_, values)| {
            Cell::estimate(values.get(at).copied().flatten(), axes.decimals, false)
        }));
        row.extend(
            column
                .iter()
                .map(|(_, values)| Cell::number(values.get(at).copied().unwrap_or(f64::NAN), 0)),
        );
        row
    });
    let table = Table {
        id,
        caption: caption.clone(),
        columns,
        rows: rows.collect(),
    };
    let drawable = |estimate: &Option<Estimate>| {
        estimate.map(|estimate| Drawable {
            value: estimate.mean,
            interval: estimate.half_width.is_some().then(|| estimate.interval()),
        })
    };
    let plot = Plot::Bars(Bars {
        groups,
        series: (series.iter())
            .map(|(name, values)| BarSeries {
                name: name.clone(),
                values: values.iter().map(drawable).collect(),
            })
            .collect(),
    });
    part(table, chart(&caption, axes, plot))
}

/// Curves over a number.
pub(crate) fn curves(id: String, caption: String, axes: Axes, curves: Vec<Curve>) -> Part {
    let rows = curves.iter().flat_map(|curve| {
        curve.points.iter().map(|&(x, y)| {
            vec![
                Cell::text(curve.name.clone()),
                Cell::number(x, axes.decimals),
                Cell::number(y, axes.decimals),
            ]
        })
    });
    let columns = vec!["curve".to_owned(), axes.x.to_owned(), axes.y.to_owned()];
    let table = Table {
        id,
        caption: caption.clone(),
        columns,
        rows: rows.collect(),
    };
    part(table, chart(&caption, axes, Plot::Curves(curves)))
}

/// Who had which of so many CPUs.
pub(crate) fn timeline(id: String, caption: String, cpus: usize, stays: &[Stay]) -> Part {
    let axes = Axes {
        x: "time, s",
        y: "CPU",
        decimals: 2,
    };
    let s = |ns: u64| ns as f64 / 1e9;
    // A stay that goes on after a decision is one.
    let mut joined: Vec<Stay> = Vec::new();
    for stay in stays {
        match joined
            .iter_mut()
            .find(|one| one.cpu == stay.cpu && one.task == stay.task && one.to == stay.from)
        {
            Some(one) => one.to = stay.to,
            None => joined.push(*stay),
        }
    }
    let rows = joined.iter().map(|stay| {
        let (cpu, task) = (f64::from(stay.cpu), f64::from(stay.task));
        vec![
            Cell::number(cpu, 0),
            Cell::number(task, 0),
            Cell::number(s(stay.from), 3),
            Cell::number(s(stay.to), 3),
        ]
    });
    let columns = ["CPU", "job", "from, s", "to, s"]
        .map(str::to_owned)
        .to_vec();
    let table = Table {
        id,
        caption: caption.clone(),
        columns,
        rows: rows.collect(),
    };
    let tasks = joined
        .iter()
        .map(|stay| stay.task as usize + 1)
        .max()
        .unwrap_or(0);
    let plot = Plot::Timeline(Timeline {
        rows: (0..cpus).map(|cpu| format!("CPU {cpu}")).collect(),
        series: (0..tasks).map(|task| format!("job {task}")).collect(),
        spans: (joined.iter())
            .map(|stay| Span {
                row: stay.cpu as usize,
                series: stay.task as usize,
                from: s(stay.from),
                to: s(stay.to),
            })
            .collect(),
    });
    part(table, chart(&caption, axes, plot))
}

fn chart(caption: &str, axes: Axes, plot: Plot) -> Chart {
    // What stands behind a colon or in brackets is for the caption.
    let words = caption.replace('`', "");
    let end = [": ", " ("]
        .iter()
        .filter_map(|mark| words.find(mark))
        .min()
        .unwrap_or(words.len());
    let title = words[..end].trim_end_matches('.').to_owned();
    Chart {
        title,
        subtitle: None,
        x: axis(axes.x),
        y: axis(axes.y),
        plot,
    }
}

fn part(table: Table, chart: Chart) -> Part {
    let few = table.rows.len() <= FEW;
    Part::Figure(Box::new(Figure { table, few, chart }))
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
        let Part::Figure(figure) = timeline("t".into(), "Who".into(), 2, &stays) else {
            panic!("a figure")
        };
        assert_eq!(figure.table.rows.len(), 3);
        let Plot::Timeline(drawn) = figure.chart.plot else {
            panic!("a timeline")
        };
        assert_eq!(drawn.spans.len(), 3);
        assert_eq!((drawn.spans[0].from, drawn.spans[0].to), (0.0, 400e-9));
    }

    #[test]
    fn units_stand_behind_a_comma() {
        assert_eq!(axis("time, s"), Axis::new("time", "s"));
        assert_eq!(axis("mix"), Axis::new("mix", ""));
    }
}
