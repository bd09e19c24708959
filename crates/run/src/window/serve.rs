//! When the run is asked for its state, and when those who wait are answered. Time is given, so that it can be tested.

use super::answer::Piece;
use std::time::{Duration, Instant};

/// The run is asked at most this often, however many look. A younger state is as good as a new one.
const LEAST_BETWEEN: Duration = Duration::from_millis(200);
/// Those who ask wait for the run for so long. Then they get what there is.
const PATIENCE: Duration = Duration::from_secs(2);

/// The last state of the run, and when it is asked for the next.
#[derive(Default)]
pub(super) struct Relay {
    state: Option<(Instant, Piece)>,
    /// When the run was asked for the last time.
    asked: Option<Instant>,
    /// It has not answered that.
    is_waiting: bool,
}

impl Relay {
    /// The run has answered.
    pub(super) fn answered(&mut self, state: Vec<u8>, now: Instant) {
        self.state = Some((now, state.into()));
        self.is_waiting = false;
    }

    /// Whether the run is to be asked now, since somebody waits.
    pub(super) fn ask(&mut self, now: Instant) -> bool {
        let after = if self.is_waiting {
            PATIENCE
        } else {
            LEAST_BETWEEN
        };
        let is_due = self.asked.is_none_or(|asked| now - asked >= after);
        if is_due {
            (self.asked, self.is_waiting) = (Some(now), true);
        }
        is_due
    }

    /// Whether somebody who asked at that instant is to be answered now.
    pub(super) fn is_ready(&self, asked: Instant, now: Instant) -> bool {
        let is_young = self
            .state
            .as_ref()
            .is_some_and(|(at, _)| now - *at < LEAST_BETWEEN || *at >= asked);
        is_young || now - asked >= PATIENCE
    }

    /// When something is to be done for somebody who asked at that instant and has not been answered.
    pub(super) fn next(&self, asked: Instant) -> Instant {
        let after = if self.is_waiting {
            PATIENCE
        } else {
            LEAST_BETWEEN
        };
        let next_ask = self.asked.map_or(asked, |last| last + after);
        next_ask.min(asked + PATIENCE)
    }

    /// The last state of the run, and how old it is in seconds.
    pub(super) fn state(&self, now: Instant) -> Option<(f64, &Piece)> {
        self.state
            .as_ref()
            .map(|(at, state)| ((now - *at).as_secs_f64(), state))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_run_is_asked_seldom_however_many_look() {
        let began = Instant::now();
        let mut relay = Relay::default();
        let ms = |ms| began + Duration::from_millis(ms);
        assert!(relay.ask(ms(0)));
        assert!(
            !relay.ask(ms(1)) && !relay.ask(ms(300)),
            "it has not answered"
        );
        assert!(!relay.is_ready(ms(0), ms(300)));
        relay.answered(b"{}".to_vec(), ms(301));
        assert!(relay.is_ready(ms(0), ms(302)));
        assert!(
            relay.is_ready(ms(400), ms(400)),
            "who asks soon after gets the same"
        );
        assert!(!relay.is_ready(ms(600), ms(600)));
        let asked = (600..1_600).filter(|&at| {
            let asks = relay.ask(ms(at));
            if asks {
                relay.answered(b"{}".to_vec(), ms(at));
            }
            asks
        });
        assert_eq!(asked.count(), 5, "in a second");
    }

    #[test]
    fn a_run_that_does_not_answer_is_asked_again_and_the_old_state_told_with_its_age() {
        let began = Instant::now();
        let mut relay = Relay::default();
        let ms = |ms| began + Duration::from_millis(ms);
        assert!(relay.ask(ms(0)));
        assert_eq!(relay.next(ms(0)), ms(2_000));
        assert!(relay.is_ready(ms(0), ms(2_000)) && relay.state(ms(2_000)).is_none());
        relay.answered(b"{}".to_vec(), ms(2_100));
        assert!(relay.ask(ms(5_000)));
        assert!(!relay.is_ready(ms(5_000), ms(6_999)) && relay.is_ready(ms(5_000), ms(7_000)));
        assert_eq!(relay.state(ms(7_000)).unwrap().0, 4.9);
        assert!(relay.ask(ms(7_001)), "it may have gone on meanwhile");
    }
}
