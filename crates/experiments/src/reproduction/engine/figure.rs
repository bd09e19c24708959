//! Figures and the numbers that they show, from one set of data.

use super::findings::{ChapterFigure, FindingCell, FindingTable};
use super::watch::Stay;
use super::words::Words;
use crate::statistics::MeanEstimate;
use cosched_report::chart::{
    Axis, BarSeries, Bars, Chart, Curve, Estimate as Drawable, Plot, Span, Timeline,
};

/// A label such as `time, s` without its unit, and the unit.
fn axis(label: &str) -> Axis {
    let (label, unit) = label.rsplit_once(", ").unwrap_or((label, ""));
    Axis::new(label, unit)
}

/// Bars of one colour: a name, and the values of each group by repetition.
pub(crate) type Series = (String, Vec<Vec<f64>>);

/// Bars in groups, one of each series.
pub(crate) fn bars(
    mut table: FindingTable,
    words: &Words,
    groups: Vec<String>,
    series: Vec<Series>,
) -> ChapterFigure {
    table.columns.push(words.x.clone());
    for group in &groups {
        table.rows.push(vec![FindingCell::text(group)]);
    }
    let mut drawn = Vec::new();
    for (name, by_group) in series {
        let mut values = Vec::new();
        for (row, group) in table.rows.iter_mut().zip(by_group) {
            let estimate = MeanEstimate::of(&group);
            row.push(FindingCell::estimate(estimate, words.decimals));
            values.push(drawable(estimate));
        }
        table.columns.push(name.clone());
        drawn.push(BarSeries { name, values });
    }
    let bars = Bars {
        groups,
        series: drawn,
    };
    figure(table, words, Plot::Bars(bars))
}

fn drawable(estimate: Option<MeanEstimate>) -> Option<Drawable> {
    let estimate = estimate?;
    Some(Drawable {
        value: estimate.mean,
        interval: estimate.half_width.map(|_| estimate.interval()),
    })
}

/// Curves over a number.
pub(crate) fn curves(mut table: FindingTable, words: &Words, curves: Vec<Curve>) -> ChapterFigure {
    let columns = ["curve", &words.x, &words.y];
    table.columns = columns.map(str::to_owned).to_vec();
    for curve in &curves {
        for (x, y) in &curve.points {
            table.rows.push(vec![
                FindingCell::text(&curve.name),
                FindingCell::number(*x, words.decimals),
                FindingCell::number(*y, words.decimals),
            ]);
        }
    }
    figure(table, words, Plot::Curves(curves))
}

/// Who had which of so many CPUs.
pub(crate) fn timeline(
    mut table: FindingTable,
    words: &Words,
    cpus: usize,
    stays: &[Stay],
) -> ChapterFigure {
    let columns = ["CPU", "job", "from, s", "to, s"];
    table.columns = columns.map(str::to_owned).to_vec();
    let mut spans = Vec::new();
    let mut jobs = 0;
    for stay in joined(stays) {
        let from = stay.from as f64 / 1e9;
        let to = stay.to as f64 / 1e9;
        table.rows.push(vec![
            FindingCell::number(f64::from(stay.cpu), 0),
            FindingCell::number(f64::from(stay.task), 0),
            FindingCell::number(from, 3),
            FindingCell::number(to, 3),
        ]);
        spans.push(Span {
            name: String::new(),
            row: stay.cpu as usize,
            series: stay.task as usize,
            from,
            to,
        });
        jobs = jobs.max(stay.task + 1);
    }
    let plot = Plot::Timeline(Timeline {
        rows: (0..cpus).map(|cpu| format!("CPU {cpu}")).collect(),
        series: (0..jobs).map(|job| format!("job {job}")).collect(),
        spans,
    });
    figure(table, words, plot)
}

/// The stays, with those in one that go on after a decision.
fn joined(stays: &[Stay]) -> Vec<Stay> {
    let mut joined: Vec<Stay> = Vec::new();
    for stay in stays {
        let end = (stay.cpu, stay.task, stay.from);
        let mut before = joined.iter_mut();
        match before.find(|one| (one.cpu, one.task, one.to) == end) {
            Some(before) => before.to = stay.to,
            None => joined.push(*stay),
        }
    }
    joined
}

fn figure(table: FindingTable, words: &Words, plot: Plot) -> ChapterFigure {
    let chart = Chart {
        title: title(&table.caption),
        subtitle: None,
        x: axis(&words.x),
        y: axis(&words.y),
        plot,
    };
    ChapterFigure { table, chart }
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
        let table = FindingTable {
            id: "t".into(),
            caption: "Who".into(),
            columns: Vec::new(),
            rows: Vec::new(),
        };
        let figure = timeline(table, &Words::default(), 2, &stays);
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
