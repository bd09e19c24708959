//! What siblings of a core raise in each other.

use super::*;

#[test]
fn threads_of_a_gang_are_each_other_s_siblings() {
    let machine = Machine::uniform("m", 2, 2);
    let mut counts = Usage::zero(TaskId(0)).counts;
    counts[Counter::Cycles] = Reading::Value(1_000_000_000);
    counts[Counter::Instructions] = Reading::Value(1_000_000_000);
    let mut gang = sample(0, CpuId(0), Q, Q, counts, Purpose::Run);
    gang.cpus = "0-2".parse().unwrap();
    let other = sample(1, CpuId(3), Q, Q, counts, Purpose::Run);
    let seen = vec![
        TaskActivity::of(&machine, &gang, 3, Nanos(Q)).unwrap(),
        TaskActivity::of(&machine, &other, 1, Nanos(Q)).unwrap(),
    ];
    let met = |at: usize| -> Vec<(u32, f64)> {
        siblings(&seen, at)
            .into_iter()
            .map(|(other, met)| (other.task.0, met))
            .collect()
    };
    // Two of its three threads share core 0, and the third shares core 1 with the other job.
    assert_eq!(met(0), [(0, 2.0 / 3.0), (1, 1.0 / 3.0)]);
    assert_eq!(met(1), [(0, 1.0)]);
}

#[test]
fn what_was_not_counted_alone_may_be_counted_beside_siblings() {
    let mut world = TestWorld::new(1, 0.0);
    for missing in [None, Some(Counter::LlcAccesses)] {
        world.missing = missing;
        for at in 0..2 {
            world.programs[at].near.0 = 0.0;
            world.programs[at].wide.0 = 0.0;
            world.programs[at].once = 0.0;
        }
        world.measure(&[(0, 0)]);
        world.measure(&[(1, 2)]);
        world.programs[0].wide.0 = 1e-3;
        (0..3).for_each(|_| world.run(&[(0, 0), (1, 3)]));
        let asks = world.known(0).asks;
        assert!(world.learner.shared().missed.is_finite());
        assert!(asks.accesses.sensitivity.is_finite() && asks.accesses.pressure.is_finite());
    }
}

#[test]
fn what_siblings_raise_is_learnt_also_for_pairs_that_never_ran() {
    let mut rng = Rng::new(6);
    let table: Vec<(f64, f64)> = (0..12)
        .map(|_| {
            let sensitivity = between(&mut rng, 0.4, 1.6);
            (sensitivity, between(&mut rng, 0.1, 0.8))
        })
        .collect();
    let mut learnt = vec![(SiblingEffect::default(), SiblingVariance::default()); table.len()];
    // Every second pair may run. 120 pairs are 20 samples a job.
    for _ in 0..120 {
        let (one, other) = loop {
            let [one, other] = [0, 1].map(|_| rng.below(12) as usize);
            if (one + other) % 2 == 1 {
                break (one, other);
            }
        };
        for (one, other) in [(one, other), (other, one)] {
            let noise = between(&mut rng, -0.02, 0.02);
            let growth = (1.0 + table[one].0 * table[other].1) * (1.0 + noise);
            let beside = [SiblingPressure::of(1.0, learnt[other].0, learnt[other].1)];
            let lesson = SiblingUpdate::of(learnt[one], &beside, growth - 1.0, ROUGH);
            let (of, doubt) = &mut learnt[one];
            doubt.learn_sensitivity(of, &lesson);
            let (of, doubt) = &mut learnt[other];
            doubt.learn_pressure(of, &lesson, 1.0);
        }
    }
    let errors = |ran: bool| {
        let mut all = Vec::new();
        for one in 0..12 {
            for other in (0..12).filter(|&other| other != one && ((one + other) % 2 == 1) == ran) {
                let truth = 1.0 + table[one].0 * table[other].1;
                let predicted = learnt[one].0.growth(learnt[other].0.pressure);
                all.push((predicted / truth - 1.0).abs());
            }
        }
        median(all)
    };
    let (ran, never) = (errors(true), errors(false));
    assert!(
        ran < 0.03 && never < 0.03,
        "{ran} {never}; 0.0026 and 0.0055 were found"
    );
}
