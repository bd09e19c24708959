//! The output of jobs: tags, order, and what `--quiet` does not hide.

use super::support::{run, run_with_input};
use crate::common::{err, out};
use tempfile::tempdir;

#[test]
fn output_is_tagged_by_value_and_kept_in_order() {
    let folder = tempdir().expect("a folder");
    let words = [
        "-q",
        "--tag",
        "-k",
        "-j",
        "0",
        "sleep {}; echo a; printf b",
        ":::",
        "0.3",
        "0.1",
    ];
    assert_eq!(
        out(&run(&folder, &words)),
        "0.3\ta\n0.3\tb\n0.1\ta\n0.1\tb\n"
    );
    let words = ["-q", "--tag", "echo", ":::", "x y", ":::", "1"];
    assert_eq!(out(&run(&folder, &words)), "x y 1\tx y 1\n");
    let words = [
        "-q",
        "-k",
        "-j",
        "0",
        "--halt",
        "now,fail=1",
        "sleep {}; echo {}; test {} != 0.2",
        ":::",
        "9",
        "0.1",
        "0.2",
    ];
    // The first job is ended; what the others wrote is shown nevertheless.
    assert_eq!(out(&run(&folder, &words)), "0.1\n0.2\n");
    // The tag of a byte is not that of its name.
    let values = run_with_input(
        &folder,
        &["-q", "--tag", "-k", "-0", "echo {#}; : {}"],
        b"\xff\0\\xff\0",
    );
    assert_eq!(out(&values), "$'\\377'\t1\n\\xff\t2\n");
}

#[test]
fn a_script_without_an_interpreter_line_is_for_the_shell() {
    let folder = tempdir().expect("a folder");
    std::fs::write(folder.path().join("plain"), "echo plain $1\n").expect("a file");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(folder.path().join("plain"), mode).expect("a mode");
    let output = run(&folder, &["-q", "./plain", "word"]);
    assert_eq!(out(&output), "plain word\n", "{}", err(&output));
}

#[test]
fn a_job_that_could_not_be_started_is_told_even_with_quiet() {
    let folder = tempdir().expect("a folder");
    std::fs::write(folder.path().join("bad"), "#!/no/such/interpreter\n").expect("a file");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(folder.path().join("bad"), mode).expect("a mode");
    let output = run(&folder, &["-q", "./bad"]);
    assert!(err(&output).contains("not started"), "{}", err(&output));
}
