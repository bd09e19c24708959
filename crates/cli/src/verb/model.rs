//! `cosched model`: the equations of the papers, for a person or a script.

use anyhow::Result;
use clap::{Args, Subcommand, ValueEnum};
use cosched_core::model::bus::{self, Prediction};
use cosched_core::model::cross_core::{self, CoreSample, CoreType, Regression};
use cosched_core::model::power::{self, PowerModel, PowerPoint};
use cosched_core::model::threshold::{self, Objective};
use serde::Serialize;
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::ExitCode;

/// Solve the models' equations: bus contention, power, admission threshold, lottery tickets
#[derive(Debug, Args)]
pub(crate) struct ModelArgs {
    #[command(subcommand)]
    question: Question,
    /// Form of the answer
    #[arg(long, global = true, value_enum, default_value_t = Format::Text)]
    format: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A small table
    Text,
    /// One JSON object
    Json,
}

#[derive(Debug, Subcommand)]
enum Question {
    /// How fast do these tasks run together? (EFS, Eqs. 10-12)
    Bus {
        /// Solo utilisation of each task: the share of its time for which it keeps the memory bus busy alone, 0 to 1
        #[arg(long, value_name = "B,...", required = true, value_delimiter = ',', value_parser = share, allow_hyphen_values = true)]
        solo: Vec<f64>,
    },
    /// What would these tasks, measured together, use alone? (EFS, Eq. 9)
    Solo {
        /// Measured utilisation of each task, 0 to 1
        #[arg(long, value_name = "U,...", required = true, value_delimiter = ',', value_parser = share, allow_hyphen_values = true)]
        measured: Vec<f64>,
        /// Measured utilisation of the whole bus, if others use it too [default: the sum of the tasks' own]
        #[arg(long, value_name = "U", value_parser = non_negative, allow_hyphen_values = true)]
        total: Option<f64>,
    },
    /// Up to which demand is one more task worth running? (EFS, Eq. 16)
    Threshold {
        /// Solo utilisation of each running task, 0 to 1; leave it out if nothing runs
        #[arg(long, value_name = "B,...", value_delimiter = ',', value_parser = share, allow_hyphen_values = true)]
        running: Vec<f64>,
        /// Power with no core active, and what each further active core adds, in watts
        #[arg(long, value_name = "P0,P1,...", required = true, value_delimiter = ',', value_parser = non_negative, allow_hyphen_values = true)]
        power: Vec<f64>,
        /// What one more task must not make worse
        #[arg(long, value_enum, default_value_t = Goal::Energy)]
        objective: Goal,
    },
    /// How much power do the active cores draw? (EFS, Eq. 13)
    #[command(group(clap::ArgGroup::new("source").required(true).args(["power", "points"])))]
    Power {
        /// Power with no core active, and what each further active core adds, in watts
        #[arg(long, value_name = "P0,P1,...", value_delimiter = ',', value_parser = non_negative, allow_hyphen_values = true)]
        power: Vec<f64>,
        /// Measured powers to fit the model to: number of active cores and watts
        #[arg(long, value_name = "K:WATTS,...", value_delimiter = ',', value_parser = point)]
        points: Vec<PowerPoint>,
        /// Answer for this number of active cores too
        #[arg(long, value_name = "K")]
        active: Option<usize>,
    },
    /// How many lottery tickets for the big cores do these threads get? (lucky, sections 2.2 and 3)
    Tickets {
        /// Performance of each thread on the core type it runs on, in million instructions per second
        #[arg(long, value_name = "MIPS,...", required = true, value_delimiter = ',', value_parser = positive, allow_hyphen_values = true)]
        mips: Vec<f64>,
        /// Last-level cache misses of each thread there, in millions per second
        #[arg(long, value_name = "LLCMS,...", required = true, value_delimiter = ',', value_parser = non_negative, allow_hyphen_values = true)]
        llcms: Vec<f64>,
        /// The core type that the threads run on
        #[arg(long, value_enum)]
        on: Type,
        /// Regression to the other core type: MIPS there = ALPHA x MIPS + BETA x LLCMS + GAMMA
        #[arg(long, value_name = "ALPHA,BETA,GAMMA", required = true, value_parser = coefficients, allow_hyphen_values = true)]
        coefficients: Regression,
        /// The big cores: capacity in MIPS, busy and idle power in watts
        #[arg(long, value_name = "MIPS,BUSY,IDLE", required = true, value_parser = core_type, allow_hyphen_values = true)]
        big: CoreType,
        /// The small cores: capacity in MIPS, busy and idle power in watts
        #[arg(long, value_name = "MIPS,BUSY,IDLE", required = true, value_parser = core_type, allow_hyphen_values = true)]
        small: CoreType,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Goal {
    /// Energy per work
    Energy,
    /// Energy-delay product per work
    Edp,
    /// Throughput
    Throughput,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
enum Type {
    Big,
    Small,
}

/// Prints the answer on standard output. If flags contradict each other, prints the reason on standard error and
/// returns exit code 2; the parser reports an error in a single flag, with the same code.
pub(crate) fn run(args: ModelArgs) -> Result<ExitCode> {
    let answer = match answer(args.question) {
        Ok(answer) => answer,
        Err(Refused(reason)) => {
            eprintln!("error: {reason}");
            return Ok(ExitCode::from(2));
        }
    };
    let mut text = match args.format {
        Format::Text => answer.to_text(),
        Format::Json => serde_json::to_string(&answer)?,
    };
    if !text.ends_with('\n') {
        text.push('\n');
    }
    match std::io::stdout().write_all(text.as_bytes()) {
        // A reader that closes the pipe early is no error.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => {}
        other => other?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Why the flags contradict each other or can't be used, in words.
struct Refused(String);

fn refused(flag: &'static str) -> impl Fn(cosched_core::model::ModelError) -> Refused {
    move |error| Refused(format!("{flag}: {error}"))
}

fn answer(question: Question) -> Result<Answer, Refused> {
    Ok(match question {
        Question::Bus { solo } => {
            let mut together = Prediction::default();
            bus::predict(&solo, &mut together).map_err(refused("--solo"))?;
            let Prediction { utilisation, speed, total, throughput, .. } = together;
            Answer::Bus { solo, utilisation, total, speed, throughput }
        }
        Question::Solo { measured, total } => {
            let mut solo = vec![0.0; measured.len()];
            let inversion = bus::solo_utilisations(&measured, total, &mut solo).map_err(refused("--measured"))?;
            if let Some(from) = inversion.clamped_from {
                let to = inversion.total;
                eprintln!("warning: the total utilisation {from:.4} can't be right and was taken as {to:.4}");
            }
            Answer::Solo { measured, solo, total: inversion.total, clamped_from: inversion.clamped_from }
        }
        Question::Threshold { running, power, objective } => {
            let power = PowerModel::new(&power).map_err(refused("--power"))?;
            let objective = match objective {
                Goal::Energy => Objective::Energy,
                Goal::Edp => Objective::EnergyDelay,
                Goal::Throughput => Objective::Throughput,
            };
            let admission = threshold::threshold(&running, &power, objective).map_err(refused("--running"))?;
            Answer::Threshold {
                running,
                threshold: admission.threshold(),
                admits_any: admission.admits(0.0),
                admits_all: admission.admits(1.0),
            }
        }
        Question::Power { power, points, active } => {
            let (model, fit) = if points.is_empty() {
                (PowerModel::new(&power).map_err(refused("--power"))?, None)
            } else {
                let fit = power::fit(&points).map_err(refused("--points"))?;
                (fit.model, Some(Fit { deviation_w: fit.deviation_w, levelled: fit.levelled }))
            };
            Answer::Power {
                steps_w: model.steps_w().to_vec(),
                watts: (0..model.steps_w().len()).map(|k| model.watts(k)).collect(),
                active: active.map(|cores| Active { cores, watts: model.watts(cores) }),
                fit,
            }
        }
        Question::Tickets { mips, llcms, on, coefficients, big, small } => {
            if llcms.len() != mips.len() {
                let (got, expected) = (llcms.len(), mips.len());
                return Err(Refused(format!("--llcms has {got} values, expected {expected}, one for each of --mips")));
            }
            let threads: Vec<Thread> = mips
                .into_iter()
                .zip(llcms)
                .map(|(mips, llcms)| Thread::of(CoreSample { mips, llcms }, on, coefficients, &big, &small))
                .collect::<Result<_, _>>()?;
            Answer::Tickets { on, total: threads.iter().map(|thread| u64::from(thread.tickets)).sum(), threads }
        }
    })
}

/// The answer; the names of the fields are those of the JSON object.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Answer {
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
struct Active {
    cores: usize,
    watts: f64,
}

#[derive(Debug, Serialize)]
struct Fit {
    deviation_w: f64,
    levelled: bool,
}

#[derive(Debug, Serialize)]
struct Thread {
    mips: f64,
    llcms: f64,
    big_mips: f64,
    small_mips: f64,
    big_w: f64,
    small_w: f64,
    benefit: f64,
    tickets: u32,
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
        let benefit = cross_core::benefit(big, big_mips, small, small_mips).map_err(refused("--mips"))?;
        let tickets = cross_core::tickets(benefit).map_err(refused("--mips"))?;
        Ok(Self { mips, llcms, big_mips, small_mips, big_w, small_w, benefit, tickets })
    }
}

impl Answer {
    fn to_text(&self) -> String {
        match self {
            Self::Bus { solo, utilisation, total, speed, throughput } => {
                let mut table = Table::new(&["task", "solo", "utilisation", "speed"]);
                for (task, ((b, u), s)) in solo.iter().zip(utilisation).zip(speed).enumerate() {
                    table.row(&[(task + 1).to_string(), share_text(*b), share_text(*u), share_text(*s)]);
                }
                format!(
                    "{table}\ntotal utilisation {}, throughput {throughput:.4}\n",
                    share_text(*total),
                    table = table.0
                )
            }
            Self::Solo { measured, solo, total, .. } => {
                let mut table = Table::new(&["task", "measured", "solo"]);
                for (task, (u, b)) in measured.iter().zip(solo).enumerate() {
                    table.row(&[(task + 1).to_string(), share_text(*u), share_text(*b)]);
                }
                format!("{}\ntotal utilisation {}\n", table.0, share_text(*total))
            }
            Self::Threshold { threshold, admits_any, admits_all, .. } => {
                if *admits_all {
                    "any further task is worth running\n".to_owned()
                } else if *admits_any {
                    let threshold = share_text(*threshold);
                    format!("a further task is worth running up to a solo utilisation of {threshold}\n")
                } else {
                    "no further task is worth running\n".to_owned()
                }
            }
            Self::Power { steps_w, watts, active, fit } => {
                let mut table = Table::new(&["active cores", "added W", "power W"]);
                for (cores, (step, watts)) in steps_w.iter().zip(watts).enumerate() {
                    table.row(&[cores.to_string(), format!("{step:.2}"), format!("{watts:.2}")]);
                }
                let mut text = table.0;
                if let Some(Active { cores, watts }) = active {
                    let _ = writeln!(text, "\npower with {cores} active cores: {watts:.2} W");
                }
                if let Some(Fit { deviation_w, levelled }) = fit {
                    let _ = writeln!(text, "\ndeviation of the measurements: {deviation_w:.2} W (root mean square)");
                    if *levelled {
                        text.push_str("power fell as cores became active: these were levelled, no step is negative\n");
                    }
                }
                text
            }
            Self::Tickets { threads, total, .. } => {
                let mut table =
                    Table::new(&["thread", "MIPS big", "MIPS small", "W big", "W small", "benefit", "tickets"]);
                for (number, thread) in threads.iter().enumerate() {
                    table.row(&[
                        (number + 1).to_string(),
                        format!("{:.0}", thread.big_mips),
                        format!("{:.0}", thread.small_mips),
                        format!("{:.2}", thread.big_w),
                        format!("{:.2}", thread.small_w),
                        format!("{:.3}", thread.benefit),
                        thread.tickets.to_string(),
                    ]);
                }
                format!("{}\ntotal {total} tickets\n", table.0)
            }
        }
    }
}

/// Right-aligned columns as wide as their headings, which are never narrower than the numbers below them.
struct Table(String, Vec<usize>);

impl Table {
    fn new(headings: &[&str]) -> Self {
        let mut table = Self(String::new(), headings.iter().map(|heading| heading.len().max(8)).collect());
        table.row(&headings.iter().map(|heading| (*heading).to_owned()).collect::<Vec<_>>());
        table
    }

    fn row(&mut self, cells: &[String]) {
        let cells: Vec<String> = cells.iter().zip(&self.1).map(|(cell, width)| format!("{cell:>width$}")).collect();
        self.0.push_str(&cells.join("  "));
        self.0.push('\n');
    }
}

/// Four digits; more only if the share would otherwise look like 0 or 1.
fn share_text(share: f64) -> String {
    let text = format!("{share:.4}");
    match text.as_str() {
        "0.0000" if share > 0.0 => format!("{share:.1e}"),
        "1.0000" if share < 1.0 => ">0.9999".to_owned(),
        _ => text,
    }
}

fn number(text: &str, allowed: &str, in_range: impl Fn(f64) -> bool) -> Result<f64, String> {
    match text.trim().parse() {
        Ok(value) if in_range(value) => Ok(value),
        _ => Err(format!("expected {allowed}")),
    }
}

fn share(text: &str) -> Result<f64, String> {
    number(text, "a number from 0 to 1", |value| (0.0..=1.0).contains(&value))
}

fn non_negative(text: &str) -> Result<f64, String> {
    number(text, "a number of at least 0", |value| value >= 0.0 && value.is_finite())
}

fn positive(text: &str) -> Result<f64, String> {
    number(text, "a number above 0", |value| value > 0.0 && value.is_finite())
}

fn point(text: &str) -> Result<PowerPoint, String> {
    let expected = "expected a number of active cores, a colon and watts of at least 0, as in 2:61.2";
    let (active, watts) = text.split_once(':').ok_or(expected)?;
    let active = active.trim().parse().ok().filter(|&active| active <= MOST_CORES).ok_or(expected)?;
    Ok(PowerPoint { active, watts: non_negative(watts).map_err(|_| expected)? })
}

/// The fitted model has an entry for each core: a mistyped number must not ask for billions of them.
const MOST_CORES: usize = 65_536;

fn three(text: &str, expected: &str) -> Result<[f64; 3], String> {
    let values: Option<Vec<f64>> =
        text.split(',').map(|part| part.trim().parse().ok().filter(|value: &f64| value.is_finite())).collect();
    values.and_then(|values| values.try_into().ok()).ok_or_else(|| format!("expected {expected}"))
}

fn coefficients(text: &str) -> Result<Regression, String> {
    let [alpha, beta, gamma] = three(text, "three numbers: alpha, beta and gamma, as in 3.9,-90,100")?;
    Ok(Regression { alpha, beta, gamma })
}

fn core_type(text: &str) -> Result<CoreType, String> {
    let expected = "capacity in MIPS, busy power and idle power in watts, as in 1000,2.15,0.7";
    let [capacity, busy, idle] = three(text, expected)?;
    CoreType::new(capacity, busy, idle).map_err(|error| error.to_string())
}
