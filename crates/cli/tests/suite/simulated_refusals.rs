//! What is refused before a simulation begins, and how it is told.

use crate::common::simulated::{MACHINE, with_mix};
use crate::common::{command, cosched, err, out, write};
use tempfile::tempdir;

/// Asserts that the command fails with code 2, says all of `parts` in one error, and leaves the folder as it was.
fn check_error(files: &[(&str, &str)], words: &[&str], parts: &[&str]) {
    let folder = with_mix();
    files
        .iter()
        .for_each(|(name, text)| write(&folder, name, text));
    let entries = || {
        std::fs::read_dir(folder.path())
            .expect("the folder")
            .count()
    };
    let before = entries();
    let output = cosched(&folder, words);
    let stderr = err(&output);
    assert_eq!(output.status.code(), Some(2), "{words:?}: {stderr}");
    assert!(
        output.stdout.is_empty() && stderr.lines().count() == 1,
        "{words:?}: {stderr}"
    );
    for part in parts {
        assert!(stderr.contains(part), "{words:?}: no {part:?} in: {stderr}");
    }
    assert_eq!(entries(), before, "{words:?} left something behind");
}

#[test]
fn plans_are_refused_on_this_machine() {
    let folder = tempdir().expect("a folder");
    let output = cosched(&folder, &["run", "--actuation", "plans", "touch", "m"]);
    assert_eq!(output.status.code(), Some(3), "{}", err(&output));
    for part in [
        "--actuation plans",
        "does not offer it",
        "nothing was started",
        "--on MACHINE",
    ] {
        assert!(err(&output).contains(part), "{part}: {}", err(&output));
    }
    assert_eq!(
        std::fs::read_dir(folder.path())
            .expect("the folder")
            .count(),
        0
    );
}

#[test]
fn plans_do_not_ignore_a_disk_or_a_network() {
    let simulated = ["mix.toml", "--on", MACHINE, "--actuation", "plans"];
    let here = ["--actuator", "sched-ext", "true"];
    for device in ["disk", "net"] {
        let on = &*format!("{device}=on");
        let run = ["run", "--policy", "efs", "--param", on];
        for (plans, instead) in [
            (&simulated[..], "--actuation decisions"),
            (&here[..], "--actuator freezer"),
        ] {
            let parts = [on, "no effect on plans", instead];
            check_error(&[], &[&run[..], plans].concat(), &parts);
        }
    }
}

#[test]
fn machines_and_programs_that_are_not_there() {
    let run = ["run", "mix.toml", "--on"];
    let on = |machine| [&run[..], &[machine]].concat();
    check_error(
        &[],
        &on("xenon"),
        &[
            "--on",
            "`xenon`",
            "host, ",
            MACHINE,
            "as in --on ",
            "./xenon.toml",
        ],
    );
    check_error(&[], &on("./xenon"), &["--on", "./xenon", "can't be read"]);
    check_error(
        &[],
        &on("xenon.toml"),
        &["--on", "xenon.toml", "can't be read"],
    );
    check_error(
        &[("bad.toml", "sokets = 1\n")],
        &on("bad.toml"),
        &["bad.toml:1", "`sokets`"],
    );
    check_error(
        &[("bad.toml", "no TOML\n")],
        &on("./bad.toml"),
        &["./bad.toml:1"],
    );
    let text = include_str!("../../../../machines/i5-2500.toml");
    let bad = text.replace("mu_trans_per_us", "mu_per_us");
    let at = bad
        .lines()
        .position(|line| line.starts_with("mu_per_us"))
        .expect("there")
        + 1;
    let place = format!("bad.toml:{at}: [params] mu_per_us is not a parameter of any policy");
    check_error(
        &[("bad.toml", &bad)],
        &on("bad.toml"),
        &[&place, "cosched list policies"],
    );

    let with_program = |program: &str| {
        format!("[[job]]\nname = \"a\"\n\n[[job]]\nprogram = \"{program}\"\n").replacen(
            "name = \"a\"\n",
            "name = \"a\"\nprogram = \"mcf\"\n",
            1,
        )
    };
    let job = |program: &str, parts: &[&str]| {
        let files = [
            ("sub/m.toml", &*with_program(program)),
            ("sub/bad.toml", "cpy = 1\n"),
        ];
        check_error(&files, &["run", "sub/m.toml", "--on", MACHINE], parts);
    };
    job(
        "nope",
        &[
            "sub/m.toml:5",
            "`nope`",
            "mcf",
            "lbm",
            "as in program = ",
            "./nope.toml",
        ],
    );
    job(
        "./nope.toml",
        &["sub/m.toml:5", "sub/nope.toml", "can't be read"],
    );
    job(
        "./",
        &[
            "sub/m.toml:5",
            "program sub/./: can't be read: it is a folder",
        ],
    );
    job(
        "libqantum",
        &["no program `libqantum` (did you mean `libquantum`?); there are"],
    );
    check_error(
        &[],
        &on("xeon-e5654"),
        &["no machine `xeon-e5654` (did you mean `xeon-e5645`?); there are"],
    );
    check_error(
        &[],
        &on("/dev/zero"),
        &["--on: /dev/zero: can't be read: it is neither a plain file nor a pipe"],
    );
    job("bad.toml", &["sub/bad.toml:1", "`cpy`"]);
}

#[test]
fn jobs_that_can_not_be_simulated() {
    let only_command = "[[job]]\nprogram = \"mcf\"\n[[job]]\ncommand = [\"gzip\", \"a\"]\n";
    let words = ["run", "m.toml", "--on", MACHINE];
    check_error(
        &[("m.toml", only_command)],
        &words,
        &[
            "m.toml:3",
            "`gzip`",
            "program = \"",
            "cosched list programs",
        ],
    );
    for words in [
        &["-f", "list"][..],
        &["gzip", "-k"],
        &["gzip", "{}", ":::", "a"],
    ] {
        let words = [&["run", "--on", MACHINE], words].concat();
        check_error(
            &[("list", "gzip a\n")],
            &words,
            &["--on xeon-e5645", "mix file", "`program`", "as in"],
        );
    }
    let folder = with_mix();
    write(&folder, "m.toml", "[[job]]\nprogram = \"mcf\"\ncpus = 13\n");
    let output = cosched(&folder, &words);
    assert_eq!(output.status.code(), Some(3), "{}", err(&output));
    assert!(
        err(&output).contains("m.toml:1") && err(&output).contains("0-11"),
        "{}",
        err(&output)
    );
}

#[test]
fn options_without_meaning_are_refused() {
    let cases: &[(&[&str], &str)] = &[
        (&["--freeze", "signals"], "--freeze"),
        (&["--freeze", "cgroup"], "--freeze"),
        (&["--event", "mm=0x4844"], "--event"),
        (&["--mem-keep", "1G"], "--mem-keep"),
        (&["--output", "live"], "--output"),
        (&["--joblog", "log", "--resume"], "--resume"),
    ];
    for (options, name) in cases {
        let words = [&["run", "mix.toml", "--on", MACHINE], *options].concat();
        check_error(
            &[],
            &words,
            &[name, "no meaning in a simulation", "leave it out"],
        );
    }
    check_error(
        &[],
        &["run", "mix.toml", "--on", MACHINE, "--cpus", "90"],
        &["--cpus 90", "0-11", "as in"],
    );
    let folder = with_mix();
    let mut habits = command(folder.path(), &["run", "mix.toml", "-q"]);
    habits
        .env("COSCHED_ON", MACHINE)
        .env("COSCHED_SHELL", "no-such-shell");
    let output = habits.output().expect("the binary runs");
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
}

#[test]
fn a_job_of_more_than_a_year_is_refused_with_the_figure() {
    let folder = tempdir().expect("a folder");
    let run = |work: &str, more: &[&str]| {
        write(
            &folder,
            "mix.toml",
            &format!("[[job]]\nprogram = \"mcf\"\nwork_instructions = {work}\n"),
        );
        cosched(
            &folder,
            &[&["run", "mix.toml", "--on", "i5-2500"], more].concat(),
        )
    };
    for more in [&["--dry-run"][..], &["--logs", "L"]] {
        let output = run("1e18", more);
        let told = err(&output);
        assert_eq!(
            (output.status.code(), out(&output).as_str()),
            (Some(2), ""),
            "{told}"
        );
        for part in [
            "mix.toml:1: job `mcf`: alone on i5-2500 it would take ",
            " years; expected at most 1; ",
            "nothing was started",
        ] {
            assert!(told.contains(part), "{part}: {told}");
        }
        assert!(!folder.path().join("L").exists());
    }
}
