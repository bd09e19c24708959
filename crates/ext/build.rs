//! Compiles the programs for the kernel, if the feature `bpf` is on.

use std::ffi::OsStr;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Versions of clang that are looked for, if `clang` is none of them and `CLANG` names none.
const VERSIONS: RangeInclusive<u32> = 16..=21;
fn main() {
    println!("cargo::rerun-if-changed=bpf");
    println!("cargo::rerun-if-env-changed=CLANG");
    if std::env::var_os("CARGO_FEATURE_BPF").is_none() {
        return;
    }
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo names a folder"));
    let include = std::env::var_os("DEP_BPF_INCLUDE").expect("libbpf-sys names its headers");
    let clang = clang();
    for name in ["plan", "efs", "count", "cost_plan", "cost_efs"] {
        let source = format!("bpf/{name}.bpf.c");
        let object = out.join(format!("{name}.bpf.o"));
        compile(&clang, Path::new(&source), &include, &object);
    }
}

fn compile(clang: &str, source: &Path, include: &OsStr, object: &Path) {
    let done = Command::new(clang)
        .args([
            "-target",
            "bpf",
            "-mcpu=v3",
            "-O2",
            "-g",
            "-Wall",
            "-Werror",
            "-Wno-missing-declarations",
        ])
        .args(["-Ibpf", "-I"])
        .arg(include)
        .arg("-c")
        .arg(source)
        .arg("-o")
        .arg(object)
        .status();
    match done {
        Ok(status) if status.success() => {}
        Ok(status) => panic!("{clang} could not compile {}: {status}", source.display()),
        Err(error) => panic!("{clang}: {error}"),
    }
}

/// What a compiler prints if it is asked for something; nothing where it can't be asked.
fn told(clang: &str, asked: &[&str]) -> String {
    let told = Command::new(clang).args(asked).output();
    told.map(|told| String::from_utf8_lossy(&told.stdout).into_owned())
        .unwrap_or_default()
}

/// Whether this is clang 16 or later with BPF among its targets.
fn is_usable(name: &str) -> bool {
    let macros = told(name, &["-dM", "-E", "-xc", "/dev/null"]);
    let version = macros
        .lines()
        .find_map(|line| line.strip_prefix("#define __clang_major__ "));
    let version: Option<u32> = version.and_then(|version| version.trim().parse().ok());
    let is_new = version.is_some_and(|version| version >= *VERSIONS.start());
    is_new && told(name, &["--print-targets"]).contains("bpf")
}

/// The compiler.
fn clang() -> String {
    if let Ok(named) = std::env::var("CLANG") {
        return named;
    }
    let mut names = vec!["clang".to_owned()];
    for version in VERSIONS.rev() {
        names.push(format!("clang-{version}"));
    }
    match names.into_iter().find(|name| is_usable(name)) {
        Some(name) => name,
        None => panic!(
            "the feature for sched_ext needs clang 16 or later with BPF among its targets (as the Debian package clang-19); \
             CLANG=PATH names one that is not in PATH"
        ),
    }
}
