//! Who has which CPU, and what each job does: rows change it, and what has changed when time goes on becomes slices.
//!
//! All that a decision changes happens at one time. First all slices that end do so, then the new ones begin: so no
//! job is seen beside the one that it follows, and what a decision takes back at once is not seen at all.

use super::job::{Doing, Figures, Place};
use super::packet::{Arg, Args, Phase, Uuid};
use super::tracks::Tracks;
use crate::series::{Mode, SeriesHeader};
use crate::text::visible;
use cosched_core::{CpuId, Nanos};
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Something that happened to a job, which is told once its slice has ended and before the next begins.
#[derive(Debug)]
pub(super) struct Happened {
    pub(super) name: String,
    pub(super) category: &'static str,
    pub(super) args: Args,
}

/// A job on the stage.
#[derive(Debug)]
struct Player {
    name: String,
    track: Uuid,
    /// What its slices show.
    shown: Doing,
    /// The tracks of CPUs on which it has a slice.
    open: Vec<Uuid>,
    next: Doing,
    /// Its slices end and begin anew, whether or not it does something else.
    split: bool,
    changed: bool,
    figures: Figures,
    happened: Vec<Happened>,
}

/// All jobs and CPUs.
#[derive(Debug)]
pub(super) struct Stage {
    players: Vec<Player>,
    /// Who has a CPU of its own.
    owners: BTreeMap<CpuId, usize>,
    changed: Vec<usize>,
}

impl Stage {
    /// A stage on which no job does anything yet.
    pub(super) fn new<W: Write>(header: &SeriesHeader, tracks: &Tracks<W>) -> Stage {
        let player = |(ix, name): (usize, String)| Player {
            name,
            track: tracks.job(ix),
            shown: Doing::Nothing,
            open: Vec::new(),
            next: Doing::Nothing,
            split: false,
            changed: false,
            figures: Figures::default(),
            happened: Vec::new(),
        };
        let names = header
            .tasks
            .iter()
            .map(|task| visible(&task.name))
            .enumerate();
        Stage {
            players: names.map(player).collect(),
            owners: BTreeMap::new(),
            changed: Vec::new(),
        }
    }

    /// What a job does from now on.
    pub(super) fn does(&self, job: usize) -> &Doing {
        &self.players[job].next
    }

    /// The job's name as it is shown.
    pub(super) fn name(&self, job: usize) -> &str {
        &self.players[job].name
    }

    /// A job does something else from now on.
    pub(super) fn set(&mut self, job: usize, doing: Doing) {
        self.players[job].next = doing;
        self.note(job);
    }

    /// A job begins anew with what it does.
    pub(super) fn split(&mut self, job: usize) {
        self.players[job].split = true;
        self.note(job);
    }

    /// Something happened to a job.
    pub(super) fn tell(&mut self, job: usize, happened: Happened) {
        self.players[job].happened.push(happened);
        self.note(job);
    }

    /// What was measured of a job since it was placed.
    pub(super) fn figures(&mut self, job: usize) -> &mut Figures {
        &mut self.players[job].figures
    }

    fn note(&mut self, job: usize) {
        if !std::mem::replace(&mut self.players[job].changed, true) {
            self.changed.push(job);
        }
    }

    /// Writes what has changed since the last call, all at this time.
    ///
    /// # Errors
    /// An error of the system.
    pub(super) fn write<W: Write>(&mut self, at: Nanos, tracks: &mut Tracks<W>) -> io::Result<()> {
        let changed = std::mem::take(&mut self.changed);
        let mut begin = Vec::new();
        for &job in &changed {
            let player = &mut self.players[job];
            player.changed = false;
            if std::mem::take(&mut player.split) || player.shown != player.next {
                self.end(job, at, &[], tracks)?;
                begin.push(job);
            }
            let player = &mut self.players[job];
            for happened in player.happened.drain(..) {
                let name = (happened.name.as_str(), happened.category);
                tracks.event(at, player.track, Phase::Instant, name, &happened.args)?;
            }
        }
        for job in begin {
            self.begin(job, at, tracks)?;
        }
        Ok(())
    }

    /// Ends all slices where the series ends: nothing is known of what came later.
    ///
    /// # Errors
    /// An error of the system.
    pub(super) fn finish<W: Write>(&mut self, at: Nanos, tracks: &mut Tracks<W>) -> io::Result<()> {
        let open = [("series_ends_here".to_owned(), Arg::Flag(true))];
        (0..self.players.len()).try_for_each(|job| self.end(job, at, &open, tracks))
    }

    fn end<W: Write>(
        &mut self,
        job: usize,
        at: Nanos,
        more: &[(String, Arg)],
        tracks: &mut Tracks<W>,
    ) -> io::Result<()> {
        let player = &mut self.players[job];
        if player.shown == Doing::Nothing {
            return Ok(());
        }
        let mut args = std::mem::take(&mut player.figures).args();
        args.extend_from_slice(more);
        for track in player.open.drain(..) {
            tracks.event(at, track, Phase::End, ("", ""), &args)?;
        }
        tracks.event(at, player.track, Phase::End, ("", ""), more)?;
        if let Doing::Placed(place) = std::mem::replace(&mut player.shown, Doing::Nothing) {
            for cpu in place.cpus.iter().filter(|_| place.mode != Mode::Shared) {
                self.owners.remove(&cpu);
            }
        }
        Ok(())
    }

    fn begin<W: Write>(&mut self, job: usize, at: Nanos, tracks: &mut Tracks<W>) -> io::Result<()> {
        let doing = self.players[job].next.clone();
        if doing == Doing::Nothing {
            return Ok(());
        }
        if let Doing::Placed(place) = &doing {
            self.clear(place, at, tracks)?;
            let player = &mut self.players[job];
            let (title, category) = place.title(&player.name);
            let args = place.args();
            if place.mode == Mode::Shared {
                player.open.push(tracks.shared(&place.cpus, job)?);
            } else {
                for cpu in place.cpus.iter() {
                    self.owners.insert(cpu, job);
                    player.open.extend(tracks.cpu(cpu));
                }
            }
            for &track in &player.open {
                tracks.event(at, track, Phase::Begin, (&title, category), &args)?;
            }
        }
        let player = &mut self.players[job];
        let (name, category) = doing.name();
        tracks.event(
            at,
            player.track,
            Phase::Begin,
            (&name, category),
            &doing.args(),
        )?;
        player.shown = doing;
        Ok(())
    }

    /// Takes from others the CPUs that a job gets. They are being ended, and the series tells of them no more until then.
    fn clear<W: Write>(
        &mut self,
        place: &Place,
        at: Nanos,
        tracks: &mut Tracks<W>,
    ) -> io::Result<()> {
        for cpu in place.cpus.iter().filter(|_| place.mode != Mode::Shared) {
            let Some(&other) = self.owners.get(&cpu) else {
                continue;
            };
            self.end(other, at, &[], tracks)?;
            self.players[other].next = Doing::Off;
            self.begin(other, at, tracks)?;
        }
        Ok(())
    }
}
