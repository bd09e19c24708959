use super::*;
use cosched_core::{
    Absence, Counter, Counts, CpuId, CpuShare, CpuUsed, Machine, Nanos, Observed, Pressure,
    Reading, SubjectSample, disturbances,
};

fn ms(ms: u64) -> Nanos {
    Nanos::from_ms(ms)
}

/// A subject that used and waited for CPU 1, in milliseconds.
fn subject(name: &str, used: u64, waited: u64) -> SubjectSample {
    let on = CpuShare {
        cpu: CpuId(1),
        used: ms(used),
        waited: ms(waited),
    };
    SubjectSample {
        name: name.to_owned(),
        processes: 2,
        threads: 5,
        wants: 1,
        cpu_time: ms(used),
        waited: Reading::Value(ms(waited)),
        on: vec![on],
        resident: Reading::Value(96 << 20),
        grew: Reading::Value(0),
        pressure: Pressure {
            of_machine: false,
            cpu: Reading::Value(43.2),
            memory: Reading::Value(0.0),
            io: Reading::Absent(Absence::NotTold),
        },
        counts: Counts::absent(Absence::NoPermission),
    }
}

/// One that disturbs another, and one that sleeps.
fn interval() -> AttachedNow {
    let mut counted = subject("postgresql.service", 1_940, 20);
    counted.counts[Counter::Cycles] = Reading::Value(4_000);
    counted.counts[Counter::Instructions] = Reading::Value(5_000);
    counted.counts[Counter::MmReads] = Reading::Value(50_000_000);
    let mut alone = subject("sh\u{1b}[2J 77", 0, 0);
    alone.pressure = Pressure::absent(Absence::NotTold);
    let used = CpuUsed {
        cpu: CpuId(1),
        busy: ms(1_900),
        stolen: ms(100),
    };
    let observed = Observed {
        length: ms(2_000),
        subjects: vec![alone, subject("nginx.service", 60, 860), counted],
        cpus: Reading::Value(vec![used]),
    };
    let found = disturbances(&observed, &Machine::uniform("m", 2, 1));
    let left_out = LeftOutNow {
        processes: 7,
        threads: 0,
    };
    let selected = vec!["--unit *.service".to_owned()];
    let mut now = AttachedNow::new(selected, &observed, &found, left_out);
    now.subjects.push(SubjectNow::ended("cron.service"));
    now
}

#[test]
fn an_interval_in_words() {
    insta::assert_snapshot!(attached_text(&interval(), 110, 99));
}

#[test]
fn on_a_low_screen_those_that_used_least_are_left_out() {
    let whole = attached_text(&interval(), 110, 99);
    let height = whole.lines().count() - 1;
    let text = attached_text(&interval(), 110, height);
    assert!(text.lines().count() <= height, "{text}");
    assert!(
        text.contains("and 2 more") && text.contains("probably slows"),
        "{text}"
    );
}

#[test]
fn an_interval_is_read_back_as_it_was_written() {
    let mut now = interval();
    let text = serde_json::to_string(&now).unwrap();
    let read: AttachedNow = serde_json::from_str(&text).unwrap();
    assert_eq!(attached_text(&read, 110, 99), attached_text(&now, 110, 99));
    now.subjects.truncate(1);
    now.disturbances.clear();
    let text = attached_text(&now, 80, 99);
    assert!(text.contains("nothing measured here shows"), "{text}");
}
