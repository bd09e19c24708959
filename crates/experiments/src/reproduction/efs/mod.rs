//! EFS: energy and time of programs that share one memory bus (its sections 3 and 5).
//!
//! `power` is the calibration of P_k; `bus` Figure 4; `estimate` Figure 6; `only_misses` Figure 7 and Table 1; `programs`
//! Figures 8 to 10; `streams` and `left_alone` show what the differences come from.

mod bus;
mod estimate;
mod left_alone;
mod only_misses;
mod power;
mod programs;
mod streams;

use super::error::ReproduceError;
use super::findings::Chapter;
use super::lab::{Lab, in_words};
use super::machines::machine;
use super::mixes::{Mix, spec_programs};
use super::trial::Candidate;
use cosched_sim::ProgramSpec;
use std::sync::Arc;

/// What energies rest on.
const POWER: &str = "on fitted power";

/// What times of several copies rest on: what further streams cost was chosen so that four get EFS's 150 lines per us.
const STREAMS: &str = "on chosen cost of streams";

/// Cores of the machine.
const CORES: usize = 4;

/// Positions of `linux` and `efs` among candidates.
const LINUX: usize = 0;
const EFS: usize = 1;

fn linux_and_efs() -> [Candidate; 2] {
    ["linux", "efs"].map(Candidate::new)
}

/// One job after the other.
fn serial() -> Candidate {
    Candidate {
        at_once: 1,
        ..Candidate::new("linux")
    }
}

/// A copy of each program for each core.
fn fours(lab: &Lab<'_>, programs: &[Arc<ProgramSpec>]) -> Vec<Mix> {
    programs
        .iter()
        .map(|program| Mix::of_copies(program, CORES, lab.work()))
        .collect()
}

/// The chapter.
pub(super) fn chapter(lab: &Lab<'_>) -> Result<Chapter, ReproduceError> {
    let full = machine("i5-2500");
    let slow = machine("i5-2500-1.6ghz");
    let programs = spec_programs();
    let mut chapter = Chapter::new("efs", "EFS: energy by leaving cores idle");
    chapter.text(format!(
        "Four cores that share one channel of memory (`i5-2500`), {}, with {} (Figures 8 and 10; all others with {}). Energy is \
         that of the whole system. EFS's scheduler is part of a kernel with periods of 18 ms; here it decides every 200 ms, and \
         its other times are scaled alike. It judges 29 programs, the paper 25 that it does not name. The mixes of Figure 10 are \
         drawn from programs of high demand. The power of the machine is fitted to the paper's calibration. The cost of further \
         streams was chosen, within what is published for others, so that four of them get the paper's 150 lines per us. Figures \
         that follow from these are marked.",
        lab.work_in_words(),
        lab.seeds_in_words(),
        in_words(lab.few_seeds()),
    ));
    power::calibration(&mut chapter, lab, &full, &programs)?;
    bus::figure_4(&mut chapter, lab, &slow, &programs)?;
    estimate::figure_6(&mut chapter, lab, &slow)?;
    only_misses::figure_7(&mut chapter, lab, &full)?;
    only_misses::table_1(&mut chapter, lab, &full)?;
    let effects = programs::figure_8(&mut chapter, lab, &full, &programs)?;
    let fixed = programs::figure_9(&mut chapter, lab, &full, &programs)?;
    programs::figure_10(&mut chapter, lab, &full)?;
    chapter.causes(lab.of_causes());
    streams::causes(&mut chapter, lab, &full, &programs)?;
    bus::causes(&mut chapter, lab, &slow)?;
    estimate::causes(&mut chapter, lab, &slow)?;
    left_alone::causes(&mut chapter, &full, &programs, &effects, &fixed);
    Ok(chapter)
}
