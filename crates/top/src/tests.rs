use crate::{KeyEffect, Panel, Sort, TopScene, TopView, draw, page, rows};
use cosched_core::JobEnd;
use cosched_report::{
    Absences, CpuNow, EnergyRecord, EnergySource, Figures, JobNow, JobState, LeftFrom, LeftOut,
    LiveTotals, OwnUse, ReasonNow, RunFacts, RunStatus, STATUS_SCHEMA,
};
use proptest::prelude::*;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use termina::event::{KeyCode, KeyEvent, Modifiers};

fn job(number: u32, name: &str, state: JobState) -> JobNow {
    let mut figures = Figures::default();
    let mut end = JobEnd::default();
    if state != JobState::Queued {
        end.start_s = Some(1.0);
        end.ran_s = Some(100.0 + f64::from(number));
        end.cpu_s = Some(99.0);
        figures.push("ipc", Ok(1.25));
        figures.push("read_bytes_per_s", Ok(2.5e9));
        figures.push("slowdown", Ok(1.5 + f64::from(number) / 10.0));
        figures.push(
            "share",
            if number == 0 {
                Err("not known")
            } else {
                Ok(0.25)
            },
        );
        figures.push("resident_bytes", Ok(1.5e8 * f64::from(number + 1)));
    }
    if state == JobState::Ended {
        let is_seven = number == 7;
        end.exit = Some(if is_seven { 139 } else { 0 });
        end.exit_text = if is_seven { "SIGSEGV" } else { "exit 0" }.to_owned();
    }
    let waits = state == JobState::Waiting;
    if waits {
        figures.push("waiting_since_s", Ok(120.0 - f64::from(number)));
        figures.push("latest_s", Ok(150.0));
        figures.push("left_s", Ok(61.0));
    }
    JobNow {
        job: number,
        name: name.to_owned(),
        command: Some(format!("./{name} --input data")),
        state,
        cpus: (state == JobState::Running).then(|| number.to_string()),
        reason: waits.then(|| ReasonNow {
            why: "bus-full".to_owned(),
            text: "It does not fit the memory bus beside what runs: alone it would keep the bus busy 60.0 % of the time, where \
                   39.9 % would still fit."
                .to_owned(),
        }),
        end,
        progress_from: (number == 2).then(|| "cpu-time".to_owned()),
        share_from: None,
        figures,
    }
}

/// Two CPUs, nine jobs of all kinds.
pub(crate) fn status() -> RunStatus {
    let states = [
        ("mcf", JobState::Running),
        ("GemsFDTD", JobState::Running),
        ("sort a.txt", JobState::Waiting),
        ("milc", JobState::Waiting),
        ("naps", JobState::Sleeping),
        ("last words", JobState::Ending),
        ("later", JobState::Queued),
        ("check", JobState::Ended),
        ("first", JobState::Ended),
    ];
    let mut own = Figures::default();
    own.push("cpu_s", Ok(0.5));
    own.push("cpu_share", Ok(0.004));
    RunStatus {
        schema: STATUS_SCHEMA.to_owned(),
        cosched_version: "0.1.0".to_owned(),
        run: RunFacts {
            run_id: "1234-5-6".to_owned(),
            pid: 1234,
            policy: "efs".to_owned(),
            phase: "together".to_owned(),
            machine: "two cores".to_owned(),
            cpus: "0-1".to_owned(),
            folder: Some("/home/u/cosched-logs/1".to_owned()),
            ..RunFacts::default()
        },
        elapsed_s: 125.0,
        age_s: None,
        suspended: false,
        paused: false,
        totals: LiveTotals {
            jobs: 9,
            done: 2,
            failed: 1,
            running: 2,
            waiting: 2,
            sleeping: 1,
            ending: 1,
            queued: 1,
            left_s: Some(3_723.0),
            left_from: Some(LeftFrom::History),
            ..LiveTotals::default()
        },
        energy: EnergyRecord {
            joules: Some(812.0),
            source: EnergySource::Measured,
            absent: Absences::default(),
        },
        own: OwnUse {
            figures: own,
            decisions: 625,
        },
        cpus: vec![
            CpuNow {
                cpu: 0,
                job: Some(0),
                since_s: Some(25.0),
                shared: false,
                jobs: 1,
            },
            CpuNow {
                cpu: 1,
                job: Some(1),
                since_s: Some(100.0),
                shared: false,
                jobs: 1,
            },
        ],
        jobs: (0..)
            .zip(states)
            .map(|(number, (name, state))| job(number, name, state))
            .collect(),
        left_out: LeftOut::default(),
    }
}

/// A screen as text, a line for each of its lines.
fn text(buffer: &Buffer) -> String {
    let lines = (buffer.area.top()..buffer.area.bottom()).map(|y| {
        let line: String = (buffer.area.left()..buffer.area.right())
            .map(|x| buffer[(x, y)].symbol())
            .collect();
        format!("|{line}|\n")
    });
    lines.collect()
}

fn screen(status: &RunStatus, view: &mut TopView, size: (u16, u16), told: Option<&str>) -> Buffer {
    let rows = rows(status, view.sort, &view.filter);
    view.settle(status, &rows, page(size.0, size.1, status, view));
    let mut buffer = Buffer::empty(Rect::new(0, 0, size.0, size.1));
    draw(
        &mut buffer,
        &TopScene {
            status,
            told,
            view,
            rows: &rows,
        },
    );
    buffer
}

#[test]
fn screens_of_all_sizes() {
    for size in [(80, 24), (40, 20), (120, 40)] {
        let buffer = screen(&status(), &mut TopView::new(true), size, None);
        insta::assert_snapshot!(format!("{}x{}", size.0, size.1), text(&buffer));
    }
}

#[test]
fn a_paused_run_is_told_to_be_so_and_its_state_is_never_old() {
    let mut status = status();
    status.paused = true;
    status.age_s = Some(100.0);
    let buffer = screen(&status, &mut TopView::new(false), (80, 24), None);
    assert!(text(&buffer).starts_with("|THE RUN IS PAUSED, "));
}

#[test]
fn panels() {
    for size in [(80, 24), (40, 20)] {
        for panel in [Panel::Why, Panel::Help] {
            let mut view = TopView {
                panel,
                selected: Some(2),
                ..TopView::new(true)
            };
            let buffer = screen(&status(), &mut view, size, None);
            insta::assert_snapshot!(format!("{panel:?} {}x{}", size.0, size.1), text(&buffer));
        }
    }
}

#[test]
fn many_cpus_and_an_end() {
    let mut status = status();
    let cpu = |cpu| CpuNow {
        cpu,
        job: None,
        since_s: None,
        shared: cpu % 2 == 0,
        jobs: if cpu % 3 == 0 { 0 } else { 5 },
    };
    status.cpus = (0..64).map(cpu).collect();
    let buffer = screen(
        &status,
        &mut TopView::new(false),
        (80, 24),
        Some("THE RUN HAS ENDED"),
    );
    insta::assert_snapshot!(text(&buffer));
}

/// Whoever wants no colours gets none, and everything is told all the same.
#[test]
fn without_colours_the_text_is_the_same() {
    let (with, without) = (TopView::new(true), TopView::new(false));
    let [with, without] =
        [with, without].map(|mut view| screen(&status(), &mut view, (80, 24), None));
    assert_eq!(text(&with), text(&without));
    let coloured = |buffer: &Buffer| {
        buffer
            .content
            .iter()
            .any(|cell| cell.fg != ratatui::style::Color::Reset)
    };
    assert!(coloured(&with) && !coloured(&without));
}

fn key(code: KeyCode) -> KeyEvent {
    code.into()
}

fn ctrl(letter: char) -> KeyEvent {
    KeyEvent::new(KeyCode::Char(letter), Modifiers::CONTROL)
}

#[test]
fn keys_choose_sort_and_filter() {
    let status = status();
    let mut view = TopView::new(true);
    let press = |view: &mut TopView, keys: &[KeyEvent]| {
        let mut effect = KeyEffect::None;
        for key in keys {
            let rows = rows(&status, view.sort, &view.filter);
            effect = view.press(*key, &status, &rows, 4);
            let rows = crate::rows(&status, view.sort, &view.filter);
            view.settle(&status, &rows, 4);
        }
        effect
    };
    press(
        &mut view,
        &[
            key(KeyCode::Down),
            key(KeyCode::Char('j')),
            key(KeyCode::Up),
        ],
    );
    assert_eq!((view.selected, view.offset), (Some(1), 0));
    press(&mut view, &[key(KeyCode::PageDown)]);
    assert_eq!((view.selected, view.offset), (Some(5), 2));
    press(&mut view, &[key(KeyCode::End)]);
    assert_eq!((view.selected, view.offset), (Some(8), 5));
    press(&mut view, &[key(KeyCode::PageUp), key(KeyCode::Home)]);
    assert_eq!((view.selected, view.offset), (Some(0), 0));
    press(
        &mut view,
        &[
            key(KeyCode::Char('/')),
            key(KeyCode::Char('m')),
            key(KeyCode::Char('c')),
            key(KeyCode::Char('q')),
            key(KeyCode::Backspace),
            key(KeyCode::Enter),
        ],
    );
    assert_eq!(rows(&status, view.sort, &view.filter), [0]);
    press(&mut view, &[key(KeyCode::Escape), key(KeyCode::Char('/'))]);
    press(
        &mut view,
        &"wait"
            .chars()
            .map(KeyCode::Char)
            .map(key)
            .collect::<Vec<_>>(),
    );
    assert_eq!(
        (rows(&status, view.sort, &view.filter), view.selected),
        (vec![2, 3], Some(2))
    );
    press(&mut view, &[key(KeyCode::Escape)]);
    assert!(view.filter.is_empty() && !view.is_typing);
    press(&mut view, &[key(KeyCode::Char('w'))]);
    assert_eq!(view.panel, Panel::Why);
    press(
        &mut view,
        &[
            key(KeyCode::Char('?')),
            key(KeyCode::Escape),
            key(KeyCode::Char(' ')),
        ],
    );
    assert!(view.panel == Panel::None && view.is_paused);
    assert_eq!(press(&mut view, &[ctrl('z')]), KeyEffect::Suspend);
    assert_eq!(
        press(&mut view, &[key(KeyCode::Char('q'))]),
        KeyEffect::Quit
    );
    press(
        &mut view,
        &[
            key(KeyCode::Home),
            key(KeyCode::Down),
            key(KeyCode::Char('e')),
        ],
    );
    assert_eq!(view.asks_to_end, Some(1));
    insta::assert_snapshot!(text(&screen(&status, &mut view.clone(), (80, 6), None)));
    assert_eq!(
        (
            press(&mut view, &[key(KeyCode::Char('n'))]),
            view.asks_to_end
        ),
        (KeyEffect::None, None)
    );
    assert_eq!(
        press(
            &mut view,
            &[key(KeyCode::Char('e')), key(KeyCode::Char('y'))]
        ),
        KeyEffect::End(1)
    );
    press(&mut view, &[key(KeyCode::End), key(KeyCode::Char('e'))]);
    assert_eq!(view.asks_to_end, None, "it has ended already");
    view.is_typing = true;
    assert_eq!(
        press(&mut view, &[key(KeyCode::Char('q'))]),
        KeyEffect::None
    );
    assert_eq!(press(&mut view, &[ctrl('c')]), KeyEffect::Quit);
}

#[test]
fn orders() {
    let status = status();
    let mut sort = Sort::default();
    let mut told = Vec::new();
    for _ in 0..5 {
        told.push((sort.text(), rows(&status, sort, "")));
        sort = sort.next();
    }
    assert_eq!(sort, Sort::default());
    let of = |name: &str| &told.iter().find(|(text, _)| *text == name).unwrap().1;
    assert_eq!(of("wait")[..2], [3, 2], "the longest wait first");
    assert_eq!(of("memory")[..2], [8, 7]);
    assert_eq!(of("memory")[8], 6, "what is not known comes last");
    for (_, rows) in &told {
        assert_eq!(rows.len(), 9);
    }
}

proptest! {
    #[test]
    fn no_size_is_too_small_or_too_large(width in 1u16..250, height in 1u16..120, panel in 0usize..3, selected in 0u32..12) {
        let panel = [Panel::None, Panel::Why, Panel::Help][panel];
        let mut view = TopView { panel, selected: Some(selected), ..TopView::new(true) };
        screen(&status(), &mut view, (width, height), None);
    }
}
