//! The rules that turn measurements into findings.

use super::observed::{CpuShare, Observed, SubjectSample};
use super::{Disturbance, Disturber, Evidence, MIB};
use crate::counter::Counter;
use crate::topology::{CpuId, CpuSet, Machine};
use crate::units::{Nanos, Rate, Reading};
use std::cmp::Reverse;

/// An interval below this shows nothing: one turn on a CPU fills much of it.
const SHORTEST: Nanos = Nanos::from_ms(200);
/// A wait, a use or an overlap below this share of the interval is no evidence, in per cent. Kernel threads and short
/// wake-ups cause a few per cent everywhere.
const MATTERS_PERCENT: u64 = 10;
/// A thread that waits while its CPU is idle for more than the rest waits for a quota, not for others, in per cent.
const BUSY_PERCENT: u64 = 80;
/// Reads of a heavy mover: 1.3 GB/s, of which a few saturate a memory channel.
const HEAVY: Rate = Rate(20_000);
/// Reads of a program that needs memory: 0.13 GB/s.
const NEEDS: Rate = Rate(2_000);
/// Growth that can cause another's memory pressure: more than a program's start.
const GREW: u64 = 16 * MIB;
/// Memory pressure that matters, in per cent of the last 10 seconds.
const STALLED_PERCENT: f64 = 10.0;
/// Maximum number of disturbers of a subject on one CPU, the heaviest first.
const MOST_ON_CPU: usize = 3;

/// Who probably disturbs whom, by what was observed in an interval.
///
/// ```
/// use cosched_core::{Absence, Counts, CpuId, CpuShare, Machine, Nanos, Observed, Pressure, Reading, SubjectSample};
/// let unknown = Absence::NotTold;
/// let subject = |name: &str, used: u64, waited: u64| SubjectSample {
///     name: name.to_owned(),
///     processes: 1,
///     threads: 1,
///     wants: 1,
///     cpu_time: Nanos::from_ms(used),
///     waited: Reading::Value(Nanos::from_ms(waited)),
///     on: vec![CpuShare { cpu: CpuId(3), used: Nanos::from_ms(used), waited: Nanos::from_ms(waited) }],
///     resident: Reading::Absent(unknown),
///     grew: Reading::Absent(unknown),
///     pressure: Pressure::absent(unknown),
///     counts: Counts::absent(unknown),
/// };
/// let observed = Observed {
///     length: Nanos::from_ms(2_000),
///     subjects: vec![subject("A", 1_940, 60), subject("B", 60, 860)],
///     cpus: Reading::Absent(unknown),
/// };
/// let found = cosched_core::disturbances(&observed, &Machine::uniform("m", 4, 1));
/// assert_eq!(
///     found[0].to_string(),
///     "A probably slows B: both want CPU 3; in 2.00 s the second waited 0.86 s for it, and the first used 1.94 s of it"
/// );
/// assert_eq!(found.len(), 1, "A waited too little");
/// ```
pub fn disturbances(observed: &Observed, machine: &Machine) -> Vec<Disturbance> {
    let mut found = Vec::new();
    if observed.length < SHORTEST {
        return found;
    }
    for (position, subject) in observed.subjects.iter().enumerate() {
        on_its_cpus(observed, position, &mut found);
        on_its_cores(observed, machine, position, &mut found);
        in_its_memory(observed, machine, position, &mut found);
        under_pressure(observed, position, &mut found);
        found.extend(steal(observed, subject));
    }
    found
}

/// Whether a time is a share of the interval that matters.
fn matters(observed: &Observed, time: Nanos) -> bool {
    is_share(time, observed.length, MATTERS_PERCENT)
}

/// Whether a time is at least so many per cent of the whole.
fn is_share(time: Nanos, whole: Nanos, percent: u64) -> bool {
    time > Nanos::ZERO && time.0.saturating_mul(100) >= whole.0.saturating_mul(percent)
}

fn finding(
    observed: &Observed,
    by: Disturber,
    slowed: &SubjectSample,
    evidence: Evidence,
) -> Disturbance {
    Disturbance {
        by,
        slows: slowed.name.clone(),
        evidence,
        interval: observed.length,
    }
}

/// All subjects but one.
fn others(observed: &Observed, position: usize) -> impl Iterator<Item = &SubjectSample> {
    let all = observed.subjects.iter().enumerate();
    all.filter(move |(other, _)| *other != position)
        .map(|(_, subject)| subject)
}

/// Those who used a CPU that this subject waited for.
fn on_its_cpus(observed: &Observed, position: usize, found: &mut Vec<Disturbance>) {
    let slowed = &observed.subjects[position];
    for on in &slowed.on {
        if !matters(observed, on.waited) || has_idle_time(observed, on.cpu) {
            continue;
        }
        for (by, used) in users_of(observed, position, on.cpu) {
            let evidence = Evidence::SameCpu {
                cpu: on.cpu,
                waited: on.waited,
                used,
            };
            found.push(finding(observed, by, slowed, evidence));
        }
    }
}

/// Whether a CPU was idle for a share of the interval, so that a thread can't have waited for it that long.
fn has_idle_time(observed: &Observed, cpu: CpuId) -> bool {
    let used = observed.cpu(cpu);
    used.is_some_and(|used| !is_share(used.busy + used.stolen, observed.length, BUSY_PERCENT))
}

/// The heaviest users of a CPU beside a subject.
fn users_of(observed: &Observed, position: usize, cpu: CpuId) -> Vec<(Disturber, Nanos)> {
    let mut users = Vec::new();
    let mut observed_use = observed.subjects[position].used_on(cpu);
    for other in others(observed, position) {
        let used = other.used_on(cpu);
        observed_use += used;
        users.push((Disturber::Subject(other.name.clone()), used));
    }
    if let Some(all) = observed.cpu(cpu) {
        let unknown = observed_use + without_place(observed);
        users.push((Disturber::Others, all.busy.since(unknown)));
    }
    users.retain(|(_, used)| matters(observed, *used));
    users.sort_by_key(|(_, used)| Reverse(*used));
    users.truncate(MOST_ON_CPU);
    users
}

/// CPU time of observed processes that have ended. They may have run on any CPU.
fn without_place(observed: &Observed) -> Nanos {
    let mut time = Nanos::ZERO;
    for subject in &observed.subjects {
        let placed = subject.on.iter().fold(Nanos::ZERO, |sum, on| sum + on.used);
        time += subject.cpu_time.since(placed);
    }
    time
}

/// Those who ran on a sibling CPU while this subject ran. Of each pair only the first finds the second.
fn on_its_cores(
    observed: &Observed,
    machine: &Machine,
    position: usize,
    found: &mut Vec<Disturbance>,
) {
    let slowed = &observed.subjects[position];
    let here: Vec<&CpuShare> = much_used(observed, slowed).collect();
    if here.is_empty() {
        return;
    }
    for other in &observed.subjects[position + 1..] {
        let longest = overlap(observed, machine, &here, other);
        if let Some((both, core)) = longest.filter(|(both, _)| matters(observed, *both)) {
            let by = Disturber::Subject(other.name.clone());
            let cpus = core.clone();
            let evidence = Evidence::SameCore { cpus, both };
            found.push(finding(observed, by, slowed, evidence));
        }
    }
}

/// The CPUs that a subject used for a share of the interval that matters.
fn much_used<'a>(
    observed: &'a Observed,
    subject: &'a SubjectSample,
) -> impl Iterator<Item = &'a CpuShare> {
    let on = subject.on.iter();
    on.filter(|on| matters(observed, on.used))
}

/// The longest time in which two subjects certainly ran at once on different CPUs of a core: what exceeds the interval when
/// their times there are added.
fn overlap<'a>(
    observed: &Observed,
    machine: &'a Machine,
    here: &[&CpuShare],
    other: &SubjectSample,
) -> Option<(Nanos, &'a CpuSet)> {
    let mut longest: Option<(Nanos, &CpuSet)> = None;
    for there in much_used(observed, other) {
        for here in here.iter().filter(|here| here.cpu != there.cpu) {
            let core = core_of(machine, here.cpu).filter(|core| core.contains(there.cpu));
            let both = (here.used + there.used).since(observed.length);
            if let Some(core) = core
                && longest.is_none_or(|(most, _)| both > most)
            {
                longest = Some((both, core));
            }
        }
    }
    longest
}

fn core_of(machine: &Machine, cpu: CpuId) -> Option<&CpuSet> {
    Some(&machine.cores[machine.cpu(cpu)?.core])
}

/// The one who reads most from a memory domain that this subject reads from.
fn in_its_memory(
    observed: &Observed,
    machine: &Machine,
    position: usize,
    found: &mut Vec<Disturbance>,
) {
    let slowed = &observed.subjects[position];
    let needs = reads(observed, slowed);
    if needs < NEEDS {
        return;
    }
    let mut heaviest: Option<(Rate, &SubjectSample, &CpuSet)> = None;
    for other in others(observed, position) {
        let moved = reads(observed, other);
        let is_heavier = heaviest.is_none_or(|(most, _, _)| moved > most);
        if moved >= HEAVY
            && moved > needs
            && is_heavier
            && let Some(domain) = shared_domain(machine, slowed, other)
        {
            heaviest = Some((moved, other, domain));
        }
    }
    if let Some((moved, other, domain)) = heaviest {
        let by = Disturber::Subject(other.name.clone());
        let cpus = domain.clone();
        let evidence = Evidence::SameMemory { cpus, moved, needs };
        found.push(finding(observed, by, slowed, evidence));
    }
}

/// A memory domain on whose CPUs both ran.
fn shared_domain<'a>(
    machine: &'a Machine,
    one: &SubjectSample,
    other: &SubjectSample,
) -> Option<&'a CpuSet> {
    let mut domains = machine.memory_domains.iter();
    domains.find(|domain| runs_in(one, domain) && runs_in(other, domain))
}

/// The rate of a subject's reads from memory; zero where it is not counted, which is no evidence.
fn reads(observed: &Observed, subject: &SubjectSample) -> Rate {
    let counted = subject.counts[Counter::MmReads].value();
    let rate = counted.and_then(|count| Rate::from_count(count, observed.length));
    rate.unwrap_or_default()
}

fn runs_in(subject: &SubjectSample, cpus: &CpuSet) -> bool {
    let mut used = subject.on.iter().filter(|on| on.used > Nanos::ZERO);
    used.any(|on| cpus.contains(on.cpu))
}

/// Bytes that a subject's resident memory has grown by; zero where that is unknown, which is no evidence.
fn grown(subject: &SubjectSample) -> u64 {
    let grew = subject.grew.value().unwrap_or(0);
    u64::try_from(grew).unwrap_or(0)
}

/// The one who took most memory while this subject's own group waited for memory.
fn under_pressure(observed: &Observed, position: usize, found: &mut Vec<Disturbance>) {
    let slowed = &observed.subjects[position];
    let stalled = match slowed.pressure.memory {
        Reading::Value(stalled) if !slowed.pressure.of_machine => stalled,
        _ => return,
    };
    let most = others(observed, position).max_by_key(|other| grown(other));
    let Some(other) = most.filter(|other| stalled >= STALLED_PERCENT && grown(other) >= GREW)
    else {
        return;
    };
    let evidence = Evidence::MemoryPressure {
        stalled_percent: stalled,
        grew: grown(other),
    };
    let by = Disturber::Subject(other.name.clone());
    found.push(finding(observed, by, slowed, evidence));
}

/// What the hypervisor took from the CPUs where a subject ran or waited.
fn steal(observed: &Observed, slowed: &SubjectSample) -> Option<Disturbance> {
    let mut cpus = CpuSet::new();
    let mut stolen = Nanos::ZERO;
    for on in &slowed.on {
        let taken = observed.cpu(on.cpu)?.stolen;
        if matters(observed, on.used + on.waited) && matters(observed, taken) {
            cpus.insert(on.cpu);
            stolen += taken;
        }
    }
    let evidence = Evidence::Steal {
        cpus: cpus.clone(),
        stolen,
    };
    (!cpus.is_empty()).then(|| finding(observed, Disturber::Hypervisor, slowed, evidence))
}

#[cfg(test)]
mod tests {
    use super::super::observed::{CpuUsed, Pressure};
    use super::*;
    use crate::sample::Counts;
    use crate::units::Absence;
    use std::fmt::Display;

    const LENGTH: Nanos = Nanos::from_ms(2_000);

    /// A subject that used and waited for CPUs, in milliseconds.
    fn subject(name: &str, on: &[(u32, u64, u64)]) -> SubjectSample {
        let share = |&(cpu, used, waited): &(u32, u64, u64)| CpuShare {
            cpu: CpuId(cpu),
            used: Nanos::from_ms(used),
            waited: Nanos::from_ms(waited),
        };
        SubjectSample {
            name: name.to_owned(),
            processes: 1,
            threads: 1,
            wants: 1,
            cpu_time: Nanos::from_ms(on.iter().map(|on| on.1).sum()),
            waited: Reading::Value(Nanos::from_ms(on.iter().map(|on| on.2).sum())),
            on: on.iter().map(share).collect(),
            resident: Reading::Absent(Absence::NotTold),
            grew: Reading::Absent(Absence::NotTold),
            pressure: Pressure::absent(Absence::NotTold),
            counts: Counts::absent(Absence::NoCounters),
        }
    }

    /// CPUs that were busy and stolen for these milliseconds.
    fn cpus(each: &[(u64, u64)]) -> Reading<Vec<CpuUsed>> {
        let used = each.iter().zip(0..).map(|(&(busy, stolen), cpu)| CpuUsed {
            cpu: CpuId(cpu),
            busy: Nanos::from_ms(busy),
            stolen: Nanos::from_ms(stolen),
        });
        Reading::Value(used.collect())
    }

    /// Who disturbs whom, by which kind of evidence.
    fn check(
        subjects: Vec<SubjectSample>,
        cpus: Reading<Vec<CpuUsed>>,
        expected: &[(&str, &str, &str)],
    ) {
        let observed = Observed {
            length: LENGTH,
            subjects,
            cpus,
        };
        let found = disturbances(&observed, &Machine::uniform("m", 2, 2));
        let text = |by: &dyn Display, slows: &str, kind: &str| format!("{by}, {slows}, {kind}");
        let found = found.iter().map(|found| {
            let evidence = serde_json::to_value(&found.evidence).unwrap();
            text(&found.by, &found.slows, evidence["kind"].as_str().unwrap())
        });
        let found: Vec<String> = found.collect();
        let expected = expected
            .iter()
            .map(|(by, slows, kind)| text(by, slows, kind));
        assert_eq!(found, expected.collect::<Vec<String>>());
    }

    const OTHERS: &str = "something not observed here";
    const GUEST: &str = "another guest of this hypervisor";

    #[test]
    fn two_that_want_one_cpu_disturb_each_other() {
        let pair = || {
            vec![
                subject("A", &[(0, 1_000, 990)]),
                subject("B", &[(0, 990, 1_000)]),
            ]
        };
        let both = [("B", "A", "same-cpu"), ("A", "B", "same-cpu")];
        check(pair(), Reading::Absent(Absence::NotTold), &both);
        check(pair(), cpus(&[(2_000, 0)]), &both);
        check(pair(), cpus(&[(900, 0)]), &[]);
    }

    #[test]
    fn a_wait_without_user_is_of_something_not_observed() {
        let alone = || vec![subject("A", &[(0, 1_000, 990)])];
        check(alone(), cpus(&[(2_000, 0)]), &[(OTHERS, "A", "same-cpu")]);
        check(alone(), cpus(&[(1_100, 0)]), &[]);
        check(alone(), Reading::Absent(Absence::NotTold), &[]);
        let mut with_children = alone();
        with_children[0].cpu_time = Nanos::from_ms(1_900);
        check(with_children, cpus(&[(2_000, 0)]), &[]);
    }

    #[test]
    fn siblings_disturb_if_they_certainly_ran_at_once() {
        // CPUs 0 and 2 are of one core.
        let pair = |here: u64, cpu: u32, there: u64| {
            vec![
                subject("A", &[(0, here, 0)]),
                subject("B", &[(cpu, there, 0)]),
            ]
        };
        let idle = || Reading::Absent(Absence::NotTold);
        check(pair(1_900, 2, 1_900), idle(), &[("B", "A", "same-core")]);
        check(pair(1_900, 1, 1_900), idle(), &[]);
        check(pair(900, 2, 1_000), idle(), &[]);
    }

    #[test]
    fn memory_is_told_only_where_it_is_counted() {
        let mut pair = vec![
            subject("A", &[(0, 2_000, 0)]),
            subject("B", &[(1, 2_000, 0)]),
        ];
        pair[0].counts[Counter::MmReads] = Reading::Value(5_000_000);
        let none = || Reading::Absent(Absence::NotTold);
        check(pair.clone(), none(), &[]);
        pair[1].counts[Counter::MmReads] = Reading::Value(60_000_000);
        check(pair.clone(), none(), &[("B", "A", "same-memory")]);
        pair[0].counts[Counter::MmReads] = Reading::Value(5_000);
        check(pair, none(), &[]);
    }

    #[test]
    fn memory_pressure_needs_a_group_of_its_own_and_one_that_grows() {
        let mut three = vec![subject("A", &[]), subject("B", &[]), subject("C", &[])];
        three[0].pressure.memory = Reading::Value(25.0);
        three[1].grew = Reading::Value(64 << 20);
        three[2].grew = Reading::Value(-(64 << 20));
        let none = || Reading::Absent(Absence::NotTold);
        check(three.clone(), none(), &[]);
        three[0].pressure.of_machine = false;
        check(three.clone(), none(), &[("B", "A", "memory-pressure")]);
        three[1].grew = Reading::Value(1 << 20);
        check(three, none(), &[]);
    }

    #[test]
    fn stolen_time_is_nobodys_here() {
        let alone = |used: u64| vec![subject("A", &[(0, used, 0)])];
        check(
            alone(1_500),
            cpus(&[(1_500, 450)]),
            &[(GUEST, "A", "steal")],
        );
        check(alone(100), cpus(&[(100, 450)]), &[]);
        check(alone(1_500), cpus(&[(1_500, 40)]), &[]);
    }
}
