//! A simulated disk against the plain definition: k waiting jobs get 1/k each of what the disk delivers to k.

use crate::support::*;
use cosched_core::*;
use cosched_sim::machine::{DeviceSpec, MachineSpec};
use cosched_sim::program::{ProgramPhase, ProgramSpec};
use cosched_sim::{JobWork, SimJob};

/// 10 ms of work, then 1 MB.
fn reader() -> ProgramSpec {
    let mut program = compute();
    program.phases = vec![ProgramPhase {
        instructions: 4e7,
        cpi: 1.0,
        memory: 1.0,
        then_sleep_ms: 0.0,
        then_mb: PerDevice {
            disk: 1.0,
            net: 0.0,
        },
    }];
    program
}

fn with_disk(cores: u32, mb_per_s: f64, stream_cost: f64) -> MachineSpec {
    let mut machine = machine(cores, 1);
    machine.devices.disk = Some(DeviceSpec {
        mb_per_s,
        stream_cost,
    });
    machine
}

fn readers(number: usize, parts: u64) -> Vec<SimJob> {
    let one = SimJob {
        // The last part is not followed by a wait.
        work: JobWork::Instructions(40_000_000 * (parts + 1)),
        ..job(&reader(), 1)
    };
    vec![one; number]
}

#[test]
fn jobs_share_a_disk_evenly_and_leave_their_cpus_meanwhile() {
    let took = |cores, number, cost| {
        let machine = with_disk(cores, 100.0, cost);
        let (result, mut sim) = run_on(&config(&machine, readers(number, 100)), "linux");
        for task in 0..number as u32 {
            let mut usage = [Usage::zero(TaskId(task))];
            sim.device_time(&mut usage);
            let time_s = usage[0].device_time.disk.value().unwrap().as_s();
            // The disk is busy but while the first parts run, and works for each alike.
            let busy_s = result.turnaround.as_s() - 1.01;
            assert!((time_s * number as f64 - busy_s).abs() < 0.03, "{time_s}");
            let cpu_s = result.tasks[task as usize].cpu_time.value().unwrap().as_s();
            assert!((cpu_s - 1.01).abs() < 0.01, "{cpu_s}");
        }
        result.turnaround.as_s()
    };
    // Alone, 10 ms of each.
    assert!((took(1, 1, 0.0) - 2.01).abs() < 0.01);
    // In step, two wait 20 ms together for each 10 ms of work, or 30 ms if the second stream costs half as much again.
    assert!((took(2, 2, 0.0) - 3.01).abs() < 0.02);
    assert!((took(2, 2, 0.5) - 4.01).abs() < 0.02);
}

/// Turnaround and energy of four jobs that wait for a device most of the time, under `linux` and under `efs`.
fn four_waiting(device: Device, stream_cost: f64) -> [(f64, f64); 2] {
    let mut program = reader();
    program.phases[0].instructions = 4e6;
    program.phases[0].then_mb = PerDevice::default();
    program.phases[0].then_mb[device] = 1.0;
    let one = SimJob {
        program: std::sync::Arc::new(program),
        work: JobWork::Instructions(400_000_000),
        ..job(&reader(), 1)
    };
    let mut machine = machine(4, 1);
    machine.devices[device] = Some(DeviceSpec {
        mb_per_s: 100.0,
        stream_cost,
    });
    machine.params = vec![(device.name().to_owned(), "on".to_owned())];
    let jobs = config(&machine, vec![one; 4]);
    ["linux", "efs"].map(|policy| {
        let (result, mut sim) = run_on(&jobs, policy);
        let energy_j = sim.energy_j().value().unwrap();
        (result.turnaround.as_s(), energy_j)
    })
}

#[test]
fn a_busy_disk_keeps_jobs_waiting_which_gains_only_if_it_seeks() {
    let [linux, efs] = four_waiting(Device::Disk, 0.0);
    assert!(efs.0 > linux.0 && efs.1 > linux.1, "{linux:?} {efs:?}");
    let [linux, efs] = four_waiting(Device::Disk, 1.0);
    assert!(
        2.0 * efs.0 < linux.0 && 2.0 * efs.1 < linux.1,
        "{linux:?} {efs:?}"
    );
}

#[test]
fn a_network_is_shared_as_a_disk_is() {
    let [disk, net] = [Device::Disk, Device::Net].map(|device| four_waiting(device, 1.0));
    assert_eq!(net, disk);
}
