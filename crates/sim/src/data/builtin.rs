//! The built-in machines, programs and latency curves.

/// A built-in file.
#[derive(Clone, Copy, Debug)]
pub struct BuiltIn {
    /// Its name on the command line and in mix files, as in the file.
    pub name: &'static str,
    /// The file's text.
    pub text: &'static str,
    /// Its path in the repository.
    pub file: &'static str,
}

/// Lists the files of one kind in a folder at the root of the repository, by name.
macro_rules! built_in {
    ($($folder:literal: $($name:literal)+;)+) => {
        &[$($(BuiltIn {
            name: $name,
            text: include_str!(concat!("../../", $folder, "/", $name, ".toml")),
            file: concat!($folder, "/", $name, ".toml"),
        },)+)+]
    };
}

/// The machines, by name.
pub static MACHINES: &[BuiltIn] = built_in! {
    "machines":
        "big1-small3" "epyc-2cpu" "epyc-7502-2s" "i5-2500" "i5-2500-1.6ghz" "server-2x64" "xeon-8480"
        "xeon-e5645" "xeon-e5645-1ch" "xeon-e5645-2ch";
};

/// The programs: those of SPEC CPU2006, those of `cosched workload`, and synthetic ones; each kind by name.
pub static PROGRAMS: &[BuiltIn] = built_in! {
    "programs/spec-cpu2006":
        "GemsFDTD" "astar" "bwaves" "bzip2" "cactusADM" "calculix" "dealII" "gamess" "gcc" "gobmk" "gromacs" "h264ref"
        "hmmer" "lbm" "leslie3d" "libquantum" "mcf" "milc" "namd" "omnetpp" "perlbench" "povray" "sjeng" "soplex"
        "sphinx3" "tonto" "wrf" "xalancbmk" "zeusmp";
    "programs/workloads":
        "workload-bus" "workload-chase" "workload-compute" "workload-phases" "workload-stream";
    "programs/synthetic":
        "bus-10" "bus-20" "bus-30" "bus-40" "bus-50" "bus-60" "bus-70" "bus-80" "bus-90" "bus-100";
};

/// The latency curves that machine files refer to, by name.
pub static CURVES: &[BuiltIn] = built_in! {
    "machines/latency": "ddr3-1333" "ddr4-2666" "ddr4-3200-zen2" "ddr5-4800-spr";
};

/// Tests check every built-in file.
pub(super) const SOUND: &str = "a file that comes with the simulator is sound";

/// The file of this name, if any.
pub(super) fn find(files: &'static [BuiltIn], name: &str) -> Option<&'static BuiltIn> {
    files.iter().find(|file| file.name == name)
}
