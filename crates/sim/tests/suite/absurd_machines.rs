//! Machine files with figures that no machine has: each is refused at its line, or a small simulation ends.

use cosched_core::*;
use cosched_sim::program::ProgramPhase;
use cosched_sim::{JobWork, MACHINES, Sim, SimConfig, SimJob, builtin_program, parse_machine};
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

const ABSURD: [&str; 6] = ["0", "-1", "1e300", "nan", "9e18", "1e-300"];

/// Tables that the built-in machines lack.
const DEVICES: &str = "
[disk]
assumed = \"some disk\"
mb_per_s = 500
stream_cost = 0.1

[net]
assumed = \"some network\"
mb_per_s = 100
stream_cost = 0.1

";

/// Bounds on the steps of a small simulation, some ten times what sound machines take.
const MOST_EVENTS: u64 = 1_000_000;
const MOST_WAITS: u64 = 100_000;

/// A file in which one figure can be replaced.
struct MachineFile {
    lines: Vec<String>,
}

impl MachineFile {
    fn of(name: &str) -> MachineFile {
        let file = MACHINES.iter().find(|machine| machine.name == name);
        let text = file.expect("built in").text;
        let text = text.replacen("[power]\n", &format!("{DEVICES}[power]\n"), 1);
        let lines = text.lines().map(str::to_owned).collect();
        MachineFile { lines }
    }

    /// The lines with a figure, by position.
    fn figures(&self) -> Vec<(usize, &str)> {
        let mut figures = Vec::new();
        for (ix, line) in self.lines.iter().enumerate() {
            if let Some((key, value)) = line.split_once(" = ")
                && value.parse::<f64>().is_ok()
            {
                figures.push((ix, key));
            }
        }
        figures
    }

    fn with(&self, (ix, key): (usize, &str), value: &str) -> String {
        let mut lines = self.lines.clone();
        lines[ix] = format!("{key} = {value}");
        lines.join("\n")
    }

    /// The ends of the range that the refusal of a figure names.
    fn ends_of_range(&self, figure: (usize, &str)) -> Vec<String> {
        let error = parse_machine(&self.with(figure, "nan"), "my.toml");
        let error = error.expect_err("nan is no figure").to_string();
        let words: Vec<&str> = error.split([' ', ',', ';']).collect();
        let to = words.iter().position(|word| *word == "to");
        let to = to.unwrap_or_else(|| panic!("no range in: {error}"));
        vec![words[to - 1].to_owned(), words[to + 1].to_owned()]
    }
}

/// More jobs than CPUs, one of two threads, and one that sleeps and uses the devices.
fn jobs(most_cpus: u32) -> Vec<SimJob> {
    let mut jobs = Vec::new();
    for (name, cpus) in [
        ("mcf", 1),
        ("gcc", 2),
        ("libquantum", 1),
        ("gamess", 1),
        ("lbm", 1),
    ] {
        let mut program = builtin_program(name).expect("built in");
        if name == "gamess" {
            let pause = |then_sleep_ms, disk, net| ProgramPhase {
                instructions: 2e6,
                cpi: 1.0,
                memory: 1.0,
                then_sleep_ms,
                then_mb: PerDevice { disk, net },
            };
            program.phases = vec![
                pause(1.0, 0.0, 0.0),
                pause(0.0, 0.001, 0.0),
                pause(0.0, 0.0, 0.001),
            ];
        }
        jobs.push(SimJob {
            program: Arc::new(program),
            work: JobWork::Instructions(10_000_000),
            cpus: most_cpus.min(cpus),
            nice: 0,
        });
    }
    jobs
}

/// Simulates the jobs on up to three cores.
///
/// # Panics
/// It takes too many steps.
fn simulate(text: &str, policy: &str, told: &str) {
    let machine = parse_machine(text, "my.toml").expect("it was parsed before");
    let mut config = SimConfig::new(Arc::new(machine), Vec::new(), 1);
    let whole = config.usable_machine().expect("all CPUs");
    let usable: CpuSet = whole.cores.iter().take(3).flat_map(CpuSet::iter).collect();
    config.jobs = jobs(usable.len() as u32);
    config.usable = Some(usable);
    // `stop` is called every few thousand events of a solo run.
    let mut looks = 0;
    let sim = Sim::watched(config.clone(), &mut |_| {
        looks += 1;
        looks > MOST_EVENTS / 4096
    });
    let mut sim = sim.unwrap_or_else(|error| panic!("{told}: alone: {error}"));
    let waits = Rc::new(Cell::new(0));
    let counted = waits.clone();
    sim.take_signals(move || {
        counted.set(counted.get() + 1);
        (counted.get() > MOST_WAITS).then_some(15)
    });
    let entry = find_policy(policy).expect("a policy");
    let params = config.machine.params_for(entry).expect("checked");
    let settings = RunConfig {
        quantum: Nanos::from_s(params.number("quantum_s")),
        traffic: true,
        ..RunConfig::default()
    };
    let mut specs = Vec::new();
    for (id, job) in config.jobs.iter().enumerate() {
        specs.push(TaskSpec {
            cpus: job.cpus,
            ..TaskSpec::new(id as u32, &job.program.name)
        });
    }
    let mut policy = (entry.build)(&params);
    let result = run(&mut sim, &mut *policy, &mut NullRecorder, specs, &settings).expect(told);
    assert_eq!(
        result.ended_by,
        EndedBy::Completion,
        "{told}: {} waits",
        waits.get()
    );
    assert!(
        sim.events() < MOST_EVENTS,
        "{told}: {} events",
        sim.events()
    );
}

#[test]
fn each_figure_is_refused_at_its_line_or_the_simulation_ends() {
    let (mut refused, mut ended) = (0, 0);
    for machine in ["big1-small3", "epyc-7502-2s", "i5-2500"] {
        let file = MachineFile::of(machine);
        for figure in file.figures() {
            let told =
                |value: &str| format!("{machine}, line {}: {} = {value}", figure.0 + 1, figure.1);
            let place = format!("my.toml:{}: ", figure.0 + 1);
            let mut accepted: Vec<String> = Vec::new();
            for value in ABSURD {
                match parse_machine(&file.with(figure, value), "my.toml") {
                    Ok(_) => accepted.push(value.to_owned()),
                    Err(error) => {
                        let error = error.to_string();
                        assert!(
                            error.starts_with(&place) && error.contains(figure.1),
                            "{}: {error}",
                            told(value)
                        );
                        refused += 1;
                    }
                }
            }
            // The ends of its range may be wrong beside other figures.
            accepted.extend(file.ends_of_range(figure));
            for value in accepted {
                let text = file.with(figure, &value);
                if parse_machine(&text, "my.toml").is_ok() {
                    simulate(&text, "linux", &told(&value));
                    simulate(&text, "efs", &told(&value));
                    ended += 1;
                }
            }
        }
    }
    assert!(refused > 500 && ended > 100, "{refused} {ended}");
}
