//! Solves the equations.

use super::{Goal, Question, Type};
use cosched_core::model::bus::{self, Prediction};
use cosched_core::model::cross_core::{self, CoreSample, CoreType, Regression};
use cosched_core::model::power::{self, PowerModel};
use cosched_core::model::threshold::{self, Objective};
use serde::Serialize;

/// Why the flags contradict each other or can't be used, in words.
pub(super) struct Refused(pub(super) String);

fn refused(flag: &'static str) -> impl Fn(cosched_core::model::ModelError) -> Refused {
    move |error| Refused(format!("{flag}: {error}"))
}

pub(super) fn answer(question: Question) -> Result<Answer, Refused> {
    Ok(match question {
        Question::Bus { solo } => {
            let mut together = Prediction::default();
            bus::predict(&solo, &mut together).map_err(refused("--solo"))?;
            let Prediction {
                utilisation,
                speed,
                total,
                throughput,
                ..
            } = together;
            Answer::Bus {
                solo,
                utilisation,
                total,
                speed,
                throughput,
            }
        }
        Question::Solo { measured, total } => {
            let mut solo = vec![0.0; measured.len()];
            let inversion = bus::solo_utilisations(&measured, total, &mut solo)
                .map_err(refused("--measured"))?;
            if let Some(from) = inversion.clamped_from {
                let to = inversion.total;
                crate::stderr::say(format_args!(
                    "warning: the total utilisation {from:.4} can't be right and was taken as {to:.4}"
                ));
            }
            Answer::Solo {
                measured,
                solo,
                total: inversion.total,
                clamped_from: inversion.clamped_from,
            }
        }
        Question::Threshold {
            running,
            power,
            objective,
        } => {
            let power = PowerModel::new(&power).map_err(refused("--power"))?;
            let objective = match objective {
                Goal::Energy => Objective::Energy,
                Goal::Edp => Objective::EnergyDelay,
                Goal::Throughput => Objective::Throughput,
            };
            let admission =
                threshold::threshold(&running, &power, objective).map_err(refused("--running"))?;
            Answer::Threshold {
                running,
                threshold: admission.threshold(),
                admits_any: admission.admits(0.0),
                admits_all: admission.admits(1.0),
            }
        }
        Question::Power {
            power,
            points,
            active,
        } => {
            let (model, fit) = if points.is_empty() {
                (PowerModel::new(&power).map_err(refused("--power"))?, None)
            } else {
                let fit = power::fit(&points).map_err(refused("--points"))?;
                (
                    fit.model,
                    Some(Fit {
                        deviation_w: fit.deviation_w,
                        levelled: fit.levelled,
                    }),
                )
            };
            Answer::Power {
                steps_w: model.steps_w().to_vec(),
                watts: (0..model.steps_w().len()).map(|k| model.watts(k)).collect(),
                active: active.map(|cores| Active {
                    cores,
                    watts: model.watts(cores),
                }),
                fit,
            }
        }
        Question::Tickets {
            mips,
            llcms,
            on,
            coefficients,
            big,
            small,
        } => {
            if llcms.len() != mips.len() {
                let (got, expected) = (llcms.len(), mips.len());
                return Err(Refused(format!(
                    "--llcms has {got} values, expected {expected}, one for each of --mips"
                )));
            }
            let threads: Vec<Thread> = mips
                .into_iter()
                .zip(llcms)
                .map(|(mips, llcms)| {
                    Thread::of(CoreSample { mips, llcms }, on, coefficients, &big, &small)
                })
                .collect::<Result<_, _>>()?;
            Answer::Tickets {
                on,
                total: threads.iter().map(|thread| u64::from(thread.tickets)).sum(),
                threads,
            }
        }
    })
}

/// The answer; the names of the fields are those of the JSON object.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Answer {
    Bus {
        solo: Vec<f64>,
        utilisation: Vec<f64>,
        total: f64,
        speed: Vec<f64>,
        throughput: f64,
    },
    Solo {
        measured: Vec<f64>,
        solo: Vec<f64>,
        total: f64,
        /// The measured total, if it had to be clamped.
        #[serde(skip_serializing_if = "Option::is_none")]
        clamped_from: Option<f64>,
    },
    Threshold {
        running: Vec<f64>,
        /// 0 when nothing fits, 1 when everything does.
        threshold: f64,
        admits_any: bool,
        admits_all: bool,
    },
    Power {
        steps_w: Vec<f64>,
        /// With 0, 1, ... active cores.
        watts: Vec<f64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        active: Option<Active>,
        #[serde(skip_serializing_if = "Option::is_none")]
        fit: Option<Fit>,
    },
    Tickets {
        on: Type,
        threads: Vec<Thread>,
        total: u64,
    },
}

#[derive(Debug, Serialize)]
pub(super) struct Active {
    pub(super) cores: usize,
    pub(super) watts: f64,
}

#[derive(Debug, Serialize)]
pub(super) struct Fit {
    pub(super) deviation_w: f64,
    pub(super) levelled: bool,
}

#[derive(Debug, Serialize)]
pub(super) struct Thread {
    pub(super) mips: f64,
    pub(super) llcms: f64,
    pub(super) big_mips: f64,
    pub(super) small_mips: f64,
    pub(super) big_w: f64,
    pub(super) small_w: f64,
    pub(super) benefit: f64,
    pub(super) tickets: u32,
}

impl Thread {
    fn of(
        sample: CoreSample,
        on: Type,
        coefficients: Regression,
        big: &CoreType,
        small: &CoreType,
    ) -> Result<Self, Refused> {
        let CoreSample { mips, llcms } = sample;
        let predicted = coefficients.predict(sample);
        if !(predicted > 0.0 && predicted.is_finite()) {
            return Err(Refused(format!(
                "--coefficients: they predict {predicted} MIPS for a thread with {mips} MIPS and {llcms} LLCMS, expected a \
                 performance above 0"
            )));
        }
        let (big_mips, small_mips) = match on {
            Type::Big => (mips, predicted),
            Type::Small => (predicted, mips),
        };
        let big_w = big.power_w(big_mips).map_err(refused("--big"))?;
        let small_w = small.power_w(small_mips).map_err(refused("--small"))?;
        let benefit =
            cross_core::benefit(big, big_mips, small, small_mips).map_err(refused("--mips"))?;
        let tickets = cross_core::tickets(benefit).map_err(refused("--mips"))?;
        Ok(Self {
            mips,
            llcms,
            big_mips,
            small_mips,
            big_w,
            small_w,
            benefit,
            tickets,
        })
    }
}
