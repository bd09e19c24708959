use super::*;
use crate::model::bus;
use crate::model::threshold::{Admission, threshold_for_gain};

/// A small generator for the tests' inputs.
struct Numbers(u64);
impl Numbers {
    fn next(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[test]
fn explore() {
    let table = AdmissionTable::new();
    let mut r = Numbers(88172645463325252);
    let (mut wt, mut wc, mut wq, mut wn) = (0.0f64, 0.0f64, 0.0f64, 0.0f64);
    for round in 0..20000 {
        let n = 1 + (r.next() * r.next() * 100.0 + if r.next() < 0.05 { r.next() * 1900.0 } else { 0.0 }) as usize;
        let kind = round % 6;
        let o1 = (r.next() * 52.0 - 42.0).exp2();
        let o2 = (r.next() * 30.0 - 20.0).exp2();
        let frac = r.next();
        let mut load = BusLoad::new();
        let mut exact = vec![];
        let mut rounded = vec![];
        for i in 0..n {
            let o: f64 = match kind {
                0 => (r.next() * 52.0 - 42.0).exp2(),
                1 => o1,
                2 => if i == 0 { o2 } else { o1 },
                3 => if r.next() < frac { o2 } else { o1 },
                4 => { let b = r.next(); b / (1.0 - b) }
                _ => { let b = r.next() * 2.0 / n as f64; if b < 0.99 { b / (1.0 - b) } else { 0.1 } }
            };
            let b = o / (1.0 + o);
            let b = b.min(0.999);
            exact.push(b);
            let c = table.class_of(b).unwrap();
            rounded.push(table.demand(c));
            load.add(&table, c).unwrap();
        }
        let te = bus::throughput(&exact).unwrap();
        let tr = bus::throughput(&rounded).unwrap();
        let t = load.throughput(&table);
        if (t / tr - 1.0).abs() > wt { wt = (t / tr - 1.0).abs(); println!("table {wt} kind {kind} n {n} {o1} {o2}"); }
        if (te / tr - 1.0).abs() > wq { wq = (te / tr - 1.0).abs(); println!("quant {wq} kind {kind} n {n} {o1} {o2} {frac}"); }
        let g = 1.0 + r.next() * r.next();
        let c = table.ceiling(&load, Gain::of(g).unwrap());
        let e = threshold_for_gain(&exact, g).unwrap();
        match (c, e) {
            (None, Admission::Nothing) => {}
            (Some(c), Admission::UpTo(b)) if c < DemandClass::HIGHEST => {
                let mut with = exact.clone();
                with.push(table.demand(c));
                let got = bus::throughput(&with).unwrap();
                let err = (got / (te * g) - 1.0).abs();
                if err > wc { wc = err; println!("ceiling {wc} kind {kind} n {n} o1 {o1} o2 {o2} frac {frac} b {b} c {} g {g}", table.demand(c)); }
            }
            (Some(DemandClass::HIGHEST), Admission::Everything) => {}
            (c, e) => {
                let tc = match c { None => te + 1.0, Some(c) => { let mut w = exact.clone(); w.push(table.demand(c)); bus::throughput(&w).unwrap() } };
                let err = (tc / (te * g) - 1.0).abs();
                if err > wn { wn = err; println!("MIS {wn} kind {kind} n {n} {c:?} {e:?} {tc} {}", te * g); }
            }
        }
    }
    println!("table {wt} quant {wq} ceiling {wc}");
}
