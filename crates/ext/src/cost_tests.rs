//! How long it takes in the kernel to choose who runs. It is measured by hand, as root:
//!
//! ```text
//! cargo test -p cosched-ext --features bpf --release -- --ignored --nocapture --test-threads=1 cost
//! ```

use crate::counting::run;
use crate::demands;
use crate::intf::{Image, NONE, SEAT_FILL, SIBLINGS, call, config, plan};
use crate::tables;
use crate::traffic::Buses;
use cosched_core::Machine;
use cosched_core::model::bus_admission_table::{BusAdmissionTable, DemandClass};
use libbpf_rs::{MapCore as _, MapFlags, Object, ObjectBuilder};

const EFS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/cost_efs.bpf.o"));
const PLAN: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/cost_plan.bpf.o"));

/// CPUs of the memory domain.
const CPUS: u32 = 64;

/// The part of a program that can be called without `sched_ext`, or why this machine does not take it.
fn computing(program: &[u8]) -> Result<Object, String> {
    let machine = Machine::uniform("m", CPUS, 1);
    let mut settings = Image::new(config::SIZE);
    settings.put_u32(config::NR_CPUS, CPUS);
    for at in 0..crate::intf::CPUS * SIBLINGS {
        settings.put_u16(config::SIBLING + 2 * at, NONE);
    }
    (0..CPUS as usize)
        .for_each(|cpu| settings.put_u16(config::SIBLING + 2 * SIBLINGS * cpu, cpu as u16));
    libbpf_rs::set_print(None);
    let mut open = ObjectBuilder::default()
        .open_memory(program)
        .map_err(|error| error.to_string())?;
    for mut map in open.maps_mut() {
        let name = map.name().to_string_lossy().into_owned();
        let set_up = match name.as_str() {
            ".rodata.config" => map.set_initial_value(&settings.0),
            ".rodata.tables" => map.set_initial_value(&tables::image(&BusAdmissionTable::new()).0),
            ".rodata.efs" => map.set_initial_value(&demands::settings(&machine, 20, 5).0),
            ".data.traffic" => map.set_initial_value(&Buses::new(150.0, false).unknown().0),
            name if name.starts_with("cosched_efs") || name.starts_with("cosched_plan") => {
                map.set_autocreate(false)
            }
            _ => Ok(()),
        };
        set_up.map_err(|error| error.to_string())?;
    }
    for mut program in open.progs_mut() {
        let computes = program.name().to_string_lossy().starts_with("cost_");
        program.set_autoload(computes);
    }
    open.load().map_err(|error| error.to_string())
}

fn put(object: &Object, map: &str, key: u32, image: &Image) {
    let map = object.maps().find(|found| found.name() == map).unwrap();
    map.update(&key.to_ne_bytes(), &image.0, MapFlags::ANY)
        .unwrap();
}

/// Nanoseconds of one call; the least, the median and the greatest of several measurements.
fn cost(object: &Object, name: &str) -> [f64; 3] {
    let once = || {
        let mut told = Image::new(call::SIZE);
        run(object, name, &mut told).unwrap();
        told.u64(call::SPAN) as f64 / f64::from(told.u32(call::ANSWER).max(1))
    };
    let mut all: Vec<f64> = (0..41).map(|_| once()).collect();
    all.sort_by(f64::total_cmp);
    [all[0], all[20], all[40]]
}

#[test]
#[ignore = "a measurement"]
fn cost_of_efs() {
    let object = match computing(EFS) {
        Ok(object) => object,
        Err(why) => return println!("skipped, because {why}"),
    };
    let gains = cosched_core::BusAdmission {
        demands: Vec::new(),
        gains: vec![1_300_000; CPUS as usize],
    };
    put(&object, "demands", 0, &demands::image(&gains, |_| None));
    let classes = [0, 1_200, 2_500, DemandClass::HIGHEST.number()];
    println!("ns a call: least, median, greatest");
    for running in [0, 1, 3, 7, 15, 63] {
        // On all CPUs but the first, which decides.
        for cpu in 1..CPUS {
            let mut told = Image::new(call::SIZE);
            told.put_u32(call::SLOT, cpu);
            let word = u32::from(classes[cpu as usize % classes.len()]) + 1;
            told.put_u32(call::ANSWER, if cpu <= running { word } else { 0 });
            run(&object, "cost_seat", &mut told).unwrap();
        }
        for name in [
            "cost_nothing",
            "cost_threshold",
            "cost_change",
            "cost_measure",
        ] {
            let [least, median, greatest] = cost(&object, name);
            println!("{running:2} others, {name}: {least:.0}, {median:.0}, {greatest:.0}");
        }
    }
}

#[test]
#[ignore = "a measurement"]
fn cost_of_plans() {
    let object = match computing(PLAN) {
        Ok(object) => object,
        Err(why) => return println!("skipped, because {why}"),
    };
    println!("ns a call: least, median, greatest");
    for fillers in [0, 1, 4, 16, 64] {
        // CPU 0 belongs to slot 0; the others fill in.
        let mut plan = Image::new(plan::SIZE);
        plan.put_u16(plan::SEATS + plan::FLAGS, SEAT_FILL);
        plan.put_u32(plan::FILLERS, fillers);
        for ix in 0..fillers as usize {
            plan.put_u16(plan::FILLER + plan::OF * ix, ix as u16 + 1);
            plan.put_u16(plan::FILLER + plan::OF * ix + 2, NONE);
        }
        put(&object, "plans", 0, &plan);
        for (what, waits) in [
            ("its owner", 0),
            ("the last filler", fillers),
            ("nobody", u32::from(NONE)),
        ] {
            let mut told = Image::new(call::SIZE);
            told.put_u32(call::ANSWER, waits);
            run(&object, "cost_plan", &mut told).unwrap();
            let [least, median, greatest] = cost(&object, "cost_choose");
            println!(
                "{fillers:2} fillers, {what} wants it: {least:.0}, {median:.0}, {greatest:.0}"
            );
        }
    }
}
