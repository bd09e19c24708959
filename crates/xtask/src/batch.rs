//! Small batches of jobs that are hard to keep track of.

/// Random numbers from a seed (xorshift64). The same seed gives the same attacks; their moments are as exact as sleeping
/// is.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Dice {
        Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// A number below `most`.
    pub(crate) fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) % most
    }

    pub(crate) fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize]
    }
}

/// What a job does around its work, which is the script `work` in its folder.
pub(crate) const KINDS: [(&str, &str); 8] = [
    ("plain", "sh work"),
    ("family", "sh work & sh work & wait"),
    ("cleared", "env -i sh work"),
    ("session", "setsid sh work & wait"),
    ("both", "env -i setsid sh work & wait"),
    ("forks-twice", "setsid sh -c 'sh work & exit' & exit"),
    (
        "subgroup",
        "own=$(sed -n s/^0:://p /proc/self/cgroup); case $own in */cosched-*) mkdir -p MOUNT$own/sub; echo $$ > MOUNT$own/sub/cgroup.procs;; esac; sh work",
    ),
    ("stops-itself", "kill -STOP $$; sh work"),
];

/// Policies that differ in when and how they freeze.
pub(crate) const POLICIES: [&str; 4] = ["round-robin", "perf-fair", "fair", "linux"];

/// The mix file of a batch: its jobs' kinds, and the text. Where jobs may not stop themselves, none does: nobody
/// continues one that stops after its run has died.
pub(crate) fn mix(dice: &mut Dice, mount: &str, may_stop: bool) -> (Vec<&'static str>, String) {
    let count = 3 + dice.below(4);
    let mut kinds = Vec::new();
    let mut text = String::new();
    for number in 0..count {
        let (kind, command) = dice.one_of(if may_stop {
            &KINDS
        } else {
            &KINDS[..KINDS.len() - 1]
        });
        kinds.push(kind);
        let command = command.replace("MOUNT", mount);
        text.push_str(&format!(
            "[[job]]\nname = \"{kind}-{number}\"\ncommand = '''{command}'''\n\n"
        ));
    }
    (kinds, text)
}

/// The work of a job: it uses the CPU for some tenths of a second.
pub(crate) const WORK: &str = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done\n";
