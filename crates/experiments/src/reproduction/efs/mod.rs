//! EFS: energy and time of programs that share one memory bus (its sections 3 and 5).
//!
//! `power` is the calibration of P_k; `bus` Figure 4; `estimate` Figure 6; `only_misses` Figure 7 and Table 1; `programs`
//! Figures 8 to 10; `streams` shows what the differences come from; `effects` is what they share.

mod bus;
mod effects;
mod estimate;
mod only_misses;
mod power;
mod programs;
mod streams;

use crate::reproduction::error::ReproduceError;
use crate::reproduction::findings::{Chapter, Part};
use crate::reproduction::lab::{Lab, in_words};
use crate::reproduction::mixes::spec_programs;
use crate::reproduction::trial::machine;

/// The chapter.
pub(crate) fn chapter(lab: &Lab<'_>) -> Result<Chapter, ReproduceError> {
    let full = machine("i5-2500")?;
    let slow = machine("i5-2500-1.6ghz")?;
    let all = spec_programs();
    let mut parts = vec![Part::Text(format!(
        "Four cores that share one channel of memory (`i5-2500`), {}, with {} (Figures 8 and 10; all others with {}). Energy \
         is that of the whole system. EFS's scheduler is part of a kernel with periods of 18 ms; here it decides every 200 ms, \
         and its other times are scaled alike. It judges 29 programs, the paper 25 that it does not name, and the mixes of \
         Figure 10 are drawn from programs of high demand. The power of the machine is fitted to the paper's calibration, and \
         what further streams cost was chosen, within what is published for others, so that four of them get the paper's 150 \
         lines per us: figures that follow from these are marked.",
        lab.work_in_words(),
        lab.seeds_in_words(),
        in_words(lab.few_seeds()),
    ))];
    let mut verdicts = Vec::new();
    power::calibration(lab, &full, &all, &mut parts, &mut verdicts)?;
    bus::figure_4(lab, &slow, &all, &mut parts, &mut verdicts)?;
    estimate::figure_6(lab, &slow, &mut parts, &mut verdicts)?;
    only_misses::figure_7(lab, &full, &mut parts, &mut verdicts)?;
    only_misses::table_1(lab, &full, &mut parts, &mut verdicts)?;
    let effects = programs::figure_8(lab, &full, &all, &mut parts, &mut verdicts)?;
    let fixed = programs::figure_9(lab, &full, &all, &effects, &mut parts, &mut verdicts)?;
    programs::figure_10(lab, &full, &mut parts, &mut verdicts)?;
    let mut causes = vec![Part::Text(lab.of_causes())];
    causes.extend(streams::causes(lab, &full, &all)?);
    causes.extend(bus::causes(lab, &slow)?);
    causes.extend(estimate::causes(lab, &slow)?);
    causes.extend(programs::left_alone(&full, &all, &effects, &fixed));
    let title = "EFS: energy by leaving cores idle".to_owned();
    Ok(Chapter {
        id: "efs",
        title,
        parts,
        verdicts,
        causes,
    })
}
