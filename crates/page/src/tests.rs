//! Whole pages: they are well-formed, nothing from outside becomes markup, and nothing is fetched.

use crate::testing::{placed, record_of};
use crate::{
    ComparisonView, RunView, comparison_page, comparison_pictures, run_page, run_pictures,
};
use cosched_core::Nanos;
use cosched_experiments::comparison::{
    COMPARE_SCHEMA, CandidateRun, ComparedCandidate, ComparedMix, ComparisonDesign,
    ComparisonMeans, ComparisonResult, Manifest, RunFigures,
};
use cosched_report::{CpuMode, RunRecord, Timeline};
use std::collections::BTreeSet;

/// Elements without an end.
const VOID: [&str; 4] = ["meta", "link", "input", "br"];

/// Checks that every element ends where it must, that each id is used once, and that nothing is fetched.
fn check(page: &str) {
    assert!(page.starts_with("<!DOCTYPE html>"));
    let mut open: Vec<String> = Vec::new();
    let mut ids = BTreeSet::new();
    let mut rest = page.strip_prefix("<!DOCTYPE html>").unwrap();
    while let Some(at) = rest.find('<') {
        rest = &rest[at + 1..];
        let end = rest.find('>').expect("a tag ends");
        let (tag, after) = (&rest[..end], &rest[end + 1..]);
        let name: String = tag
            .trim_start_matches('/')
            .chars()
            .take_while(|c| c.is_ascii_alphanumeric())
            .collect();
        assert!(!name.is_empty(), "`<{tag}>` is no tag");
        rest = after;
        if let Some(ended) = tag.strip_prefix('/') {
            assert_eq!(open.pop().as_deref(), Some(ended.trim()), "</{ended}>");
            continue;
        }
        if let Some((_, id)) = tag.split_once(" id=\"") {
            let id = id.split('"').next().unwrap();
            assert!(ids.insert(id.to_owned()), "the id {id} is used twice");
        }
        for word in ["src=", "href=\"http", "@import"] {
            assert!(!tag.contains(word), "<{tag}> fetches something");
        }
        if tag.ends_with('/') || VOID.contains(&name.as_str()) {
            continue;
        }
        assert_ne!(name, "script");
        if name == "style" {
            rest = &rest[rest.find(&format!("</{name}>")).expect("it ends")..];
        }
        open.push(name);
    }
    assert_eq!(open, Vec::<String>::new());
    for link in page.split("href=\"#").skip(1) {
        let id = link.split('"').next().unwrap();
        assert!(ids.contains(id), "there is nothing at #{id}");
    }
}

fn timeline() -> Timeline {
    let mut timeline = Timeline {
        cpus: "0-1".parse().unwrap(),
        until: Nanos(2_000_000_000),
        ..Timeline::default()
    };
    timeline.stays = vec![
        vec![placed(0, 1_000, "0-1", CpuMode::Exclusive)],
        vec![placed(1_000, 2_000, "1", CpuMode::WholeCore)],
    ];
    timeline
}

fn view<'a>(label: &str, record: &'a RunRecord, timeline: Option<&'a Timeline>) -> RunView<'a> {
    RunView {
        label: label.to_owned(),
        record,
        timeline,
        notes: vec!["a <note>".to_owned()],
    }
}

#[test]
fn the_page_of_a_run_shows_what_happened() {
    let (record, timeline) = (record_of(&["</script>", "b\u{1b}"]), timeline());
    let page = run_page(&[view("x<y", &record, Some(&timeline))]);
    check(&page);
    for told in [
        "x&lt;y",
        "a &lt;note&gt;",
        "others &amp; &lt;more&gt;",
        "./&lt;/script&gt; &lt;in&gt;",
        "no energy meter",
    ] {
        assert!(page.contains(told), "{told}");
    }
    assert!(!page.contains('\u{1b}') && page.contains("Who ran where: x&lt;y"));
    assert!(page.contains("<code>cosched trace RUN --perfetto FILE</code>"));
    // The job that was slowed down most comes first.
    let jobs = page.split("id=\"jobs\"").nth(1).unwrap();
    assert!(jobs.find("b\\x1b").unwrap() < jobs.find("&lt;/script&gt;").unwrap());
    let names: Vec<String> = run_pictures(&view("r", &record, Some(&timeline)))
        .into_iter()
        .map(|picture| picture.name)
        .collect();
    assert_eq!(names, ["timeline", "completion", "slowdowns"]);
}

#[test]
fn a_run_without_a_series_has_no_timeline() {
    let record = record_of(&["a"]);
    let page = run_page(&[view("r", &record, None)]);
    check(&page);
    assert!(page.contains("a &lt;note&gt;") && !page.contains("id=\"timeline\""));
}

/// Many jobs in turn on shared CPUs, one of which failed.
#[test]
fn many_jobs_share_rows_and_the_failed_one_comes_first() {
    let names: Vec<String> = (1..=1_000).map(|number| format!("gzip#{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut record = record_of(&names);
    record.jobs[499].end.exit = Some(3);
    record.jobs[499].end.exit_text = "exit 3".to_owned();
    let mut timeline = timeline();
    timeline.stays = (0..1_000)
        .map(|job| vec![placed(2 * job, 2 * job + 4, "0-1", CpuMode::Shared)])
        .collect();
    let page = run_page(&[view("r", &record, Some(&timeline))]);
    check(&page);
    assert!(page.len() < 500_000, "{}", page.len());
    assert!(page.contains("a row holds several jobs"));
    let spans = page.matches("<title>gzip#").count();
    assert!((300..=800).contains(&spans), "{spans}");
    let jobs = page.split("id=\"jobs\"").nth(1).unwrap();
    let first = jobs.split("<tr>").nth(2).unwrap();
    assert!(
        first.starts_with("<td>gzip#500</td><td class=\"n\">8 min 20 s</td><td><span class=\"bad\">failed: exit 3</span></td>"),
        "{first}"
    );
}

#[test]
fn runs_stand_side_by_side() {
    let (one, two, timeline) = (record_of(&["a", "b"]), record_of(&["c"]), timeline());
    let last = view("two", &two, None);
    let page = run_page(&[view("one", &one, Some(&timeline)), last]);
    check(&page);
    assert!(page.contains("2 runs") && page.contains("cosched compare"));
}

/// Two policies and another program, with so many mixes, in five blocks. The second policy is a tenth faster.
fn answer(mixes: usize) -> ComparisonResult {
    let mix = |at: usize| ComparedMix {
        name: format!("mix<{at}>"),
        file: Some(format!("{at}.toml")),
        is_list: false,
    };
    let program = ComparedCandidate {
        name: "by hand".to_owned(),
        means: ComparisonMeans::Command("make <all>".to_owned()),
    };
    let manifest = Manifest {
        schema: COMPARE_SCHEMA.to_owned(),
        cosched_version: "0".to_owned(),
        design: ComparisonDesign {
            mixes: (0..mixes).map(mix).collect(),
            candidates: vec![
                ComparedCandidate::policy("linux"),
                ComparedCandidate::policy("fair"),
                program,
            ],
            baseline: 0,
            on: "host".to_owned(),
            seed: 1,
            options: Vec::new(),
        },
        metrics: Vec::new(),
        command_line: vec![
            "cosched".to_owned(),
            "compare".to_owned(),
            "'a<b'".to_owned(),
        ],
    };
    let mut outcomes = Vec::new();
    for block in 1..=5u32 {
        for mix in 0..mixes {
            for candidate in 0..3 {
                let mut outcome = RunFigures {
                    trial: CandidateRun {
                        block,
                        mix,
                        candidate,
                    },
                    ..RunFigures::default()
                };
                let time = [10.0, 9.0, 11.0][candidate]
                    + 0.01 * f64::from(block * (candidate as u32 + 1) % 5);
                outcome.figures.insert("turnaround_s".to_owned(), time);
                if candidate < 2 {
                    outcome.policy = Some("p".to_owned());
                    outcome.figures.insert(
                        "unfairness".to_owned(),
                        1.5 - 0.1 * candidate as f64 + 0.01 * f64::from(block % 2),
                    );
                }
                outcomes.push(outcome);
            }
        }
    }
    outcomes[0].doubts.push("others <ran>".to_owned());
    ComparisonResult::new(manifest, outcomes)
}

#[test]
fn the_page_of_a_comparison_begins_with_the_verdicts() {
    let record = record_of(&["a", "b"]);
    for mixes in [1, 2] {
        let answer = answer(mixes);
        let whole = [0, 1].map(|candidate| {
            (
                CandidateRun {
                    block: 1,
                    mix: 0,
                    candidate,
                },
                record.clone(),
                Some(timeline()),
            )
        });
        let view = ComparisonView {
            answer: &answer,
            whole: whole.to_vec(),
        };
        let page = comparison_page(&view);
        check(&page);
        let (verdicts, rest) = page.split_once("id=\"charts\"").unwrap();
        assert!(
            verdicts.contains("<span class=\"good\">better</span>")
                && rest.contains("make &lt;all&gt;")
        );
        assert!(
            page.contains("others &lt;ran&gt;")
                && page.contains("a&lt;b")
                && page.matches("--perfetto FILE").count() == 2
        );
        let names: BTreeSet<String> = comparison_pictures(&view)
            .into_iter()
            .map(|picture| picture.name)
            .collect();
        assert!(
            names.contains("turnaround_s") && names.contains("fair-and-fast"),
            "{names:?}"
        );
        assert!(names.contains("completion-mix<0>"));
    }
}
