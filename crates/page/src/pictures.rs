//! The charts of a report as single pictures.

use crate::charts::{against, completion, estimates, fair_and_fast, memory, slowdowns};
use crate::facts::RunFacts;
use crate::timeline::timeline_chart;
use crate::view::{ComparisonView, RunView};
use cosched_core::Nanos;
use cosched_report::Timeline;
use cosched_report::chart::Chart;

/// A chart with a name for its file.
#[derive(Clone, Debug)]
pub struct Picture {
    /// The name, without an ending.
    pub name: String,
    /// The chart.
    pub chart: Chart,
}

/// Every picture of a run; the timeline of it all, and of the section between two times if that is given.
pub fn run_pictures(view: &RunView<'_>, section: Option<(Nanos, Nanos)>) -> Vec<Picture> {
    let timeline = |shown: &Timeline| timeline_chart(&view.label, shown, view.record);
    let section = view.timeline.zip(section).and_then(|(whole, (from, to))| {
        let name = format!("timeline-{}-{}", from.as_s(), to.as_s());
        Some(Picture {
            name,
            chart: timeline(&whole.section(from, to))?,
        })
    });
    let facts = RunFacts::of(view.record);
    let named = [(view.record.policy.clone(), &facts)];
    let all = [
        ("timeline", view.timeline.and_then(timeline)),
        ("completion", completion(&named, "Jobs ended over time")),
        ("slowdowns", slowdowns(&named, "Slowdown of each job")),
        (
            "estimates",
            estimates(&named, "Estimated against true slowdown"),
        ),
        (
            "memory",
            view.timeline
                .and_then(|timeline| memory(timeline.traffic.as_ref()?)),
        ),
    ];
    let named = |(name, chart): (&str, Option<Chart>)| {
        Some(Picture {
            name: name.to_owned(),
            chart: chart?,
        })
    };
    all.into_iter().filter_map(named).chain(section).collect()
}

/// Every picture of a comparison.
pub fn comparison_pictures(view: &ComparisonView<'_>) -> Vec<Picture> {
    let mut all = Vec::new();
    let mut add =
        |name: String, chart: Option<Chart>| all.extend(chart.map(|chart| Picture { name, chart }));
    for judged in &view.answer.judged {
        add(judged.metric.name.to_owned(), against(view, judged));
    }
    add("fair-and-fast".to_owned(), fair_and_fast(view));
    for (at, mix) in view.answer.manifest.design.mixes.iter().enumerate() {
        let runs = view.shown_runs(at);
        add(
            format!("completion-{}", mix.name),
            completion(&runs, &format!("Jobs of {} ended over time", mix.name)),
        );
        add(
            format!("slowdowns-{}", mix.name),
            slowdowns(&runs, &format!("Slowdown of each job of {}", mix.name)),
        );
        add(
            format!("estimates-{}", mix.name),
            estimates(
                &runs,
                &format!("Estimated against true slowdown, {}", mix.name),
            ),
        );
    }
    all
}
