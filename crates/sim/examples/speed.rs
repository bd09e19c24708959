#[path = "../tests/support/mod.rs"]
mod support;
use support::*;
use cosched_sim::*;
use std::time::Instant;
fn main() {
    let mut m = machine(6, 2);
    m.memory.channels = 3; m.llc.mb = 12.0;
    let kinds = [compute(), stream(), chase(4.0), program("mid", 0.6, 15.0, 10.0, 4.0), program("a", 0.5, 5.0, 3.0, 2.0), program("b", 0.4, 25.0, 30.0, 6.0)];
    let jobs: Vec<SimJob> = (0..24).map(|n| job(&kinds[n % 6], 100_000)).collect();
    let c = SimConfig { variation: 0.02, ..config(&m, jobs) };
    for p in ["fifo", "round-robin", "bandwidth", "fair", "perf-fair", "linux"] {
        let t = Instant::now();
        let (r, s) = run_on(&c, p);
        let e = t.elapsed();
        println!("{p}: {:.3} s wall, {:.1} s simulated, {} events, {:.2} us/event", e.as_secs_f64(), r.turnaround.as_s(), s.events(), e.as_secs_f64()*1e6/s.events() as f64);
    }
    let mut m = machine(8, 2);
    m.sockets = 2; m.llcs_per_socket = 8; m.memory.channels = 16; m.llc.mb = 32.0;
    let jobs: Vec<SimJob> = (0..1024).map(|n| job(&kinds[n % 6], 5_000)).collect();
    let c = SimConfig { variation: 0.02, ..config(&m, jobs) };
    for p in ["round-robin", "perf-fair", "linux"] {
        let t = Instant::now();
        let (r, s) = run_on(&c, p);
        let e = t.elapsed();
        println!("{p}: {:.3} s wall, {:.1} s simulated, {} events, {:.2} us/event", e.as_secs_f64(), r.turnaround.as_s(), s.events(), e.as_secs_f64()*1e6/s.events() as f64);
    }
}
