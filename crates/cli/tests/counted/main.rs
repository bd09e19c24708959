//! What cosched counts, held against the truth, in a guest whose counters count: `guest/counted.sh` boots it. Elsewhere
//! each test says that it is skipped.
//!
//! Jobs, counters, traffic and energy of the guest follow laws of contention that cosched does not know (`guest/law`). The
//! law also tells the truth of each job. What is counted is right within 3 %, within 6 % where it had a counter for a tenth of the
//! time, or absent with a reason; every loss is reported once; and `cosched doctor` claims what a run then has. How far off
//! estimates may be stands in `accuracy.rs`. `policies.rs` compares all policies, and makes the page of results, which also says
//! how far off energy and traffic are.

mod accuracy;
mod candidates;
mod figures;
mod guest;
mod kernel;
mod losses;
mod outcome;
mod page;
mod policies;
mod run;
mod traffic;
mod truth;
mod users;
