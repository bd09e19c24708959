//! What the measurement of one job tells of others that do the same kind of work.

use super::*;
use crate::snapshot::Measured;

/// A world in which jobs 6 to 11 run the programs of jobs 0 to 5, and only these are measured.
fn twins(seed: u64) -> TestWorld {
    let mut world = TestWorld::new(seed, 0.001);
    for job in 0..6 {
        world.programs[job + 6] = world.programs[job];
    }
    for job in 0..6 {
        world.run(&[(job, 0), ((job + 1) % 6, 2), ((job + 2) % 6, 4)]);
        world.measure(&[(job, 0)]);
    }
    // What siblings cost them is learnt, too.
    for quantum in 0..30 {
        let placed: Vec<(u32, u32)> = (0..6)
            .map(|job| (job, (job * (1 + 4 * (quantum % 2)) + quantum / 2) % 6))
            .collect();
        world.run(&placed);
    }
    world
}

/// The jobs that are taken for their twins.
fn taken_for_twins(world: &TestWorld) -> Vec<u32> {
    (6..12)
        .filter(|&job| world.known(job).measured == Measured::Alike)
        .collect()
}

#[test]
fn a_job_that_was_not_measured_is_known_by_its_twin() {
    for seed in SEEDS {
        let mut world = twins(seed);
        world.mix(12, false);
        let known = taken_for_twins(&world);
        // What siblings add to the accesses of the others is known too little.
        assert!(known.len() >= 2, "{known:?}");
        let errors = known.iter().map(|&job| world.cpi_error(job));
        check("solo cycles", errors.fold(0.0, f64::max), 0.03);
        // Solo time is that which was measured of the other.
        let errors = known.iter().map(|&job| world.solo_error(job));
        check("solo time", errors.fold(0.0, f64::max), 0.002);
        // Nothing of another job is kept for a later run of this one.
        let kept = world.kept();
        assert!(known.iter().all(|&job| kept[job as usize].is_none()));
        // Its own measurement replaces what was taken over.
        world.measure(&[(known[0], 0)]);
        assert_eq!(world.known(known[0]).measured, Measured::Phase);
    }
}

#[test]
fn who_was_taken_for_a_twin_is_known_by_its_own_measurement() {
    for seed in SEEDS {
        let mut world = twins(seed);
        // Beside siblings they may be as fast as the others.
        for program in &mut world.programs[6..] {
            program.width *= 0.7;
        }
        world.mix(12, false);
        let taken = taken_for_twins(&world);
        for job in taken {
            world.measure(&[(job, 0)]);
            world.measure(&[(job, 0)]);
            check("solo time", world.solo_error(job), 0.005);
        }
    }
}

#[test]
fn a_phase_taken_for_another_job_s_is_the_one_that_the_measurement_shows() {
    for seed in SEEDS {
        let mut world = twins(seed);
        world.mix(12, false);
        let mut taken = taken_for_twins(&world);
        taken.retain(|&job| world.programs[job as usize].near.0 > 0.0);
        assert!(!taken.is_empty());
        for job in taken {
            // Its measurement shows that it does something else.
            let program = &mut world.programs[job as usize];
            program.near.0 *= 1.5;
            world.measure(&[(job, 0)]);
            assert_eq!(world.known(job).measured, Measured::Phase, "{seed} {job}");
            // Another phase has about the accesses of what it was taken for.
            let program = &mut world.programs[job as usize];
            program.near.0 /= 1.5;
            program.l1 *= 1.03;
            world.run(&[(job, 0)]);
            let now = world.known(job).measured;
            assert_eq!(now, Measured::OtherPhase, "{seed} {job}");
        }
    }
}
