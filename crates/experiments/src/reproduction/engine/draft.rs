//! A chapter while it is written: the code computes, and the chapter's file has the words and the published results.

use super::figure::{Series, bars, curves, timeline};
use super::findings::{
    ByName, Chapter, ChapterFigure, ChapterPart, FindingCell, FindingTable, Published,
};
use super::lab::{Lab, in_words};
use super::trial::TrialCandidate;
use super::watch::Stay;
use super::words::{Values, Words, fill};
use cosched_report::chart::Curve;
use std::collections::BTreeMap;

/// The content of a chapter's file.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct ChapterFile {
    title: String,
    /// Lists of policies that are compared.
    #[serde(default)]
    candidates: BTreeMap<String, Vec<TrialCandidate>>,
    published: BTreeMap<String, Published>,
    words: BTreeMap<String, Words>,
}

/// A chapter while it is written.
pub(crate) struct Draft {
    file: ChapterFile,
    values: Values,
    chapter: Chapter,
}

/// Tests write every chapter.
const SOUND: &str = "the file of a chapter is sound";

impl Draft {
    /// The chapter of this name with its introduction.
    pub(crate) fn new(id: &'static str, file: &str, lab: &Lab<'_>) -> Draft {
        let mut file: ChapterFile = toml::from_str(file).expect(SOUND);
        for (key, published) in &mut file.published {
            published.key.clone_from(key);
        }
        let chapter = Chapter {
            id,
            title: file.title.clone(),
            parts: Vec::new(),
            verdicts: Vec::new(),
        };
        let mut draft = Draft {
            file,
            values: Values::new(),
            chapter,
        };
        draft.value("solo_s", lab.solo.as_s());
        draft.value("seeds", in_words(&lab.seeds));
        draft.value("fewer_seeds", in_words(lab.fewer_seeds()));
        draft.value("few_seeds", in_words(lab.few_seeds()));
        draft.text("introduction");
        draft
    }

    /// The whole chapter. What was not judged is among its verdicts too.
    pub(crate) fn finish(mut self) -> Chapter {
        for (key, published) in &self.file.published {
            let mut verdicts = self.chapter.verdicts.iter();
            if !verdicts.any(|verdict| verdict.key == *key) {
                self.chapter.verdicts.push(published.not_measured());
            }
        }
        self.chapter
    }

    /// From here on `{name}` has this value.
    pub(crate) fn value(&mut self, name: &'static str, value: impl ToString) {
        self.values.insert(name, value.to_string());
    }

    /// From here on tables and figures are of this one of several machines.
    pub(crate) fn machine(&mut self, name: &str, channels: &'static str) {
        self.value("machine", name);
        self.value("channels", channels);
    }

    /// Writes the heading and the paragraph of these words.
    pub(crate) fn text(&mut self, key: &str) {
        let words = &self.file.words[key];
        let heading = words.heading(&self.values).map(ChapterPart::Heading);
        let text = words.text(&self.values).map(ChapterPart::Text);
        self.chapter.parts.extend(heading);
        self.chapter.parts.extend(text);
    }

    /// The table of these words, without rows; heading and paragraph are written.
    fn begin(&mut self, key: &str) -> (FindingTable, Words) {
        self.text(key);
        let words = self.file.words[key].clone();
        let name = fill(key, &self.values);
        let table = FindingTable {
            id: format!("{}-{name}", self.chapter.id),
            caption: fill(&words.caption, &self.values),
            columns: words.columns.clone(),
            rows: Vec::new(),
        };
        (table, words)
    }

    /// Writes a table.
    pub(crate) fn table(&mut self, key: &str, rows: Vec<Vec<FindingCell>>) {
        let (mut table, _) = self.begin(key);
        table.rows = rows;
        self.chapter.parts.push(ChapterPart::Table(table));
    }

    fn figure(&mut self, figure: ChapterFigure) {
        let figure = Box::new(figure);
        self.chapter.parts.push(ChapterPart::Figure(figure));
    }

    /// Draws bars in groups, one of each series.
    pub(crate) fn bars(&mut self, key: &str, groups: Vec<String>, series: Vec<Series>) {
        let (table, words) = self.begin(key);
        self.figure(bars(table, &words, groups, series));
    }

    /// Adds a column of numbers to the figure that was drawn last.
    pub(crate) fn column(&mut self, name: &str, values: &[f64]) {
        let Some(ChapterPart::Figure(figure)) = self.chapter.parts.last_mut() else {
            return;
        };
        figure.table.columns.push(name.to_owned());
        for (row, value) in figure.table.rows.iter_mut().zip(values) {
            row.push(FindingCell::number(*value, 0));
        }
    }

    /// Draws curves over a number.
    pub(crate) fn curves(&mut self, key: &str, lines: Vec<Curve>) {
        let (table, words) = self.begin(key);
        self.figure(curves(table, &words, lines));
    }

    /// Draws who had which of so many CPUs.
    pub(crate) fn timeline(&mut self, key: &str, cpus: usize, stays: &[Stay]) {
        let (table, words) = self.begin(key);
        self.figure(timeline(table, &words, cpus, stays));
    }

    /// Ends the experiments of the paper: the verdicts follow, and then experiments on causes.
    pub(crate) fn causes(&mut self) {
        self.chapter.parts.push(ChapterPart::Verdicts);
        self.text("causes");
    }

    /// The policies that are compared.
    pub(crate) fn candidates(&self, key: &str) -> Vec<TrialCandidate> {
        self.file.candidates[key].clone()
    }

    /// The published figure.
    pub(crate) fn published(&self, key: &str) -> f64 {
        self.file.published[key].figure()
    }

    /// The published figure as a cell.
    pub(crate) fn cell(&self, key: &str, decimals: usize) -> FindingCell {
        let found = self.file.published.get(key);
        let figure = found.map_or(f64::NAN, Published::figure);
        FindingCell::number(figure, decimals)
    }

    /// Holds a published figure against ours, by seed or draw.
    pub(crate) fn judge(&mut self, key: &str, ours: &[f64]) {
        let verdict = self.file.published[key].judge(ours);
        self.chapter.verdicts.push(verdict);
    }

    /// Holds a published order against ours. `ours` has a figure of each name, by seed; without one nothing is judged.
    pub(crate) fn judge_order(&mut self, key: &str, ours: impl Fn(&str) -> Vec<f64>) {
        let published = &self.file.published[key];
        if let Some(ours) = by_name(published, ours) {
            let verdict = published.judge_order(&ours);
            self.chapter.verdicts.push(verdict);
        }
    }

    /// Holds the order of something that was drawn once against so many draws. `ours` has a figure of each draw and name, by
    /// seed.
    pub(crate) fn judge_drawn_order(
        &mut self,
        key: &str,
        draws: usize,
        ours: impl Fn(usize, &str) -> Vec<f64>,
    ) {
        let published = &self.file.published[key];
        let draws = (0..draws).filter_map(|draw| by_name(published, |name| ours(draw, name)));
        let verdict = published.judge_drawn_order(&draws.collect::<Vec<_>>());
        self.chapter.verdicts.push(verdict);
    }
}

/// A figure of each name of an order; `None` if one is missing.
fn by_name<'a>(published: &'a Published, ours: impl Fn(&str) -> Vec<f64>) -> Option<ByName<'a>> {
    let mut values = ByName::new();
    for name in published.names() {
        values.insert(name, ours(name));
    }
    let is_missing = values.values().any(Vec::is_empty);
    (!is_missing).then_some(values)
}
