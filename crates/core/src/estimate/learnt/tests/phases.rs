//! Jobs with phases.

use super::*;

#[test]
fn a_phase_that_comes_back_is_known() {
    let (mut solo, mut progress) = (0.0f64, 0.0f64);
    for seed in SEEDS {
        let mut world = World::new(seed, 0.005);
        world.mix(60, true);
        let before = world.known(3);
        let calm = world.programs[3];
        world.programs[3] = Program {
            near: (4.0 * calm.near.0, calm.near.1),
            once: 0.006,
            ..calm
        };
        world.mix(60, true);
        let other = world.known(3);
        assert!(other.phase != before.phase, "{seed}: {other:?}");
        world.programs[3] = calm;
        world.run(&[(3, 0), (4, 3)]);
        let after = world.known(3);
        assert_eq!(after.phase, before.phase, "{seed}");
        solo = solo.max((after.solo_cpi / before.solo_cpi - 1.0).abs());
        // Progress includes all phases.
        progress = progress.max(world.progress_error(3));
    }
    check("change of solo cycles", solo, 0.02);
    check("progress", progress, 0.011);
}

#[test]
fn phases_that_differ_by_less_than_siblings_raise_are_told_apart() {
    let mut progress = 0.0f64;
    for seed in SEEDS {
        let mut world = World::new(seed, 0.005);
        let calm = Program {
            width: 2.5,
            l1: 0.35,
            near: (0.06, 0.5),
            wide: (0.0005, 1.0),
            once: 0.0002,
            overlap: 1.5,
        };
        let busy = Program {
            near: (1.5 * calm.near.0, calm.near.1),
            ..calm
        };
        let raised = |core| {
            let place = |program, core| Place {
                program,
                core,
                kind: 0,
            };
            run(&[place(calm, 0), place(world.programs[2], core)])[0].llc
        };
        assert!(raised(0) > 1.5 * raised(1));
        // All work in one phase would be 7 % off.
        assert!(alone(busy, 0).ns > 1.14 * alone(calm, 0).ns);
        for n in 0..8 {
            world.programs[3] = [calm, busy][n % 2];
            world.mix(5, false);
            if n < 2 {
                world.measure(&[(3, 0)]);
            }
            if n == 1 {
                // The others are measured too.
                (0..12)
                    .filter(|&job| job != 3)
                    .for_each(|job| world.measure(&[(job, 0)]));
            }
            world.mix(15, false);
        }
        progress = progress.max(world.progress_error(3));
    }
    assert!(
        progress < 0.05,
        "{progress}; 0.01 was found, and up to 0.062 with the seeds 4 to 12"
    );
}
