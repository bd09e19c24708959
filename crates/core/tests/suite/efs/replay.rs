//! A decision can be replayed from the saved state.

use super::log::BUS;
use crate::memory::{Memory, Work, run_specs};
use cosched_core::*;

fn policy(settings: &[(&str, &str)]) -> Box<dyn Policy> {
    let entry = find_policy("efs").unwrap();
    let settings: Vec<(String, String)> = settings
        .iter()
        .map(|(k, v)| (k.to_string(), v.to_string()))
        .collect();
    (entry.build)(&Params::resolve("efs", entry.params, &settings).unwrap())
}

#[test]
fn a_saved_state_gives_the_same_decisions() {
    struct Replay {
        decisions: usize,
    }
    impl Recorder for Replay {
        fn emit(&mut self, _at: Nanos, fact: Fact<'_>) {
            if let Fact::Decided(record) = fact {
                let mut again = policy(&[]);
                let text = serde_json::to_string(record.policy_state.unwrap()).unwrap();
                again.load(&serde_json::from_str(&text).unwrap()).unwrap();
                let decision = again.decide(record.snapshot, &mut Rng::restore(record.rng));
                assert_eq!(&decision, record.decision);
                self.decisions += 1;
            }
        }

        fn wants_policy_state(&self) -> bool {
            true
        }
    }
    let work = (0..9)
        .map(|i| Work::ms(3_000).reads(i * 35 % 151))
        .collect();
    let mut world = Memory::new(Machine::uniform("two by two", 2, 2), work);
    world.bus_per_us = Some(BUS);
    let specs = world.specs();
    let mut replay = Replay { decisions: 0 };
    run_specs(
        &mut world,
        specs,
        "efs",
        &[],
        &RunConfig::default(),
        &mut replay,
    );
    assert!(replay.decisions > 50);
}
