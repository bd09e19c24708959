//! The wall clock.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Return the time since 1970; zero if the clock is set before that.
pub fn unix_time() -> Duration {
    UNIX_EPOCH.elapsed().unwrap_or_default()
}

/// Return the local time of day as `HH:MM:SS`, in the time zone of the user.
pub fn time_of_day(at: SystemTime) -> String {
    let since_epoch = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    let seconds = since_epoch.as_secs() as _;
    // SAFETY: all fields are numbers or pointers that may be null, and both pointers passed are valid.
    let local = unsafe {
        let mut local: libc::tm = std::mem::zeroed();
        libc::localtime_r(&seconds, &mut local);
        local
    };
    let [hour, minute, second] = [local.tm_hour, local.tm_min, local.tm_sec];
    format!("{hour:02}:{minute:02}:{second:02}")
}
