//! The least time that a job takes alone, which is known before anything is simulated.

use cosched_core::Nanos;
use cosched_sim::{
    JobWork, MACHINES, PROGRAMS, Sim, SimConfig, SimJob, builtin_machine, builtin_program,
    least_solo_s,
};
use std::sync::Arc;

fn solo_s(machine: &str, job: &SimJob) -> (f64, f64) {
    let machine = Arc::new(builtin_machine(machine).expect("built in"));
    let least = least_solo_s(&machine, job);
    let config = SimConfig {
        variation: 0.0,
        ..SimConfig::new(machine, vec![job.clone()], 1)
    };
    let time = Sim::new(config).expect("sound").solo_runs()[0].time;
    (least, time.as_s())
}

/// No job is refused that would have taken less; and the figure is of the right size.
#[test]
fn no_program_is_faster_than_its_least_time_and_none_much_slower() {
    for machine in MACHINES {
        for program in PROGRAMS {
            let program = Arc::new(builtin_program(program.name).expect("built in"));
            let job = |work, cpus| SimJob {
                program: program.clone(),
                work,
                cpus,
                nice: 0,
            };
            for (instructions, cpus) in [(1_000_000, 1), (200_000_000_000, 1), (200_000_000_000, 2)]
            {
                let (least, time) = solo_s(
                    machine.name,
                    &job(JobWork::Instructions(instructions), cpus),
                );
                // The clock counts whole nanoseconds.
                assert!(
                    least <= time + 1e-8,
                    "{} on {}: {least} s, {time} s",
                    program.name,
                    machine.name
                );
                // Programs that fill the memory bus alone are slowed down by themselves most, and caches are cold at first.
                assert!(
                    time <= 8.0 * least + 0.01,
                    "{} on {}: {least} s, {time} s",
                    program.name,
                    machine.name
                );
            }
            let (least, _) = solo_s(
                machine.name,
                &job(JobWork::SoloTime(Nanos::from_ms(100)), 1),
            );
            assert_eq!(least, 0.1);
        }
    }
}
