//! From template and value to command: bytes, quoting and the shell.

use super::support::{call, run, run_with_input};
use crate::common::{cosched, err, out, read, write};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::process::Command;
use tempfile::tempdir;

#[test]
fn values_commands_and_files_are_bytes() {
    let folder = tempdir().expect("a folder");
    let name = OsString::from_vec(b"a\xff\n.txt".to_vec());
    std::fs::write(folder.path().join(&name), "content").expect("a file");
    for template in [&["cat", "{}"][..], &["cat {} | cat"], &["cat < {}"]] {
        let mut command = call(&folder, &["-q", "--output", "group"]);
        let output = command
            .args(template)
            .arg(":::")
            .arg(&name)
            .output()
            .expect("it runs");
        assert_eq!(out(&output), "content", "{template:?}: {}", err(&output));
    }
    let mut list = b"cat 'a\xff\n".to_vec();
    list.pop();
    list.extend(b"'*; echo done > ok\n");
    std::fs::write(folder.path().join("list"), &list).expect("a file");
    let words = ["--joblog", "log", "--resume", "-f", "list"];
    let first = run(&folder, &words);
    assert!(first.status.success(), "{}", err(&first));
    assert!(
        read(&folder, "log").ends_with("\tsh -c $'cat \\'a\\377\\'*; echo done > ok'\n"),
        "{}",
        read(&folder, "log")
    );
    std::fs::remove_file(folder.path().join("ok")).expect("it was written");
    // The job is recognised, and not started again.
    let again = run(&folder, &words);
    assert!(
        again.status.success() && err(&again).contains("succeeded before"),
        "{}",
        err(&again)
    );
    assert!(!folder.path().join("ok").exists());
    let values = run_with_input(
        &folder,
        &["-0", "-q", "-k", "printf", "%s."],
        b"\xfe\0x\ny\0",
    );
    assert_eq!(values.stdout, b"\xfe.x\ny.");
    let env = call(&folder, &["-q", "--output", "group", "printf %s \"$V\""])
        .env("V", OsStr::from_bytes(b"\xfd"))
        .output();
    assert_eq!(env.expect("it runs").stdout, b"\xfd");
}

#[test]
fn no_value_is_executed() {
    let folder = tempdir().expect("a folder");
    let hostile = [
        "$(touch marker)",
        "`touch marker`",
        "'; touch marker; '",
        "\"; touch marker; \"",
        "a\ntouch marker",
    ];
    for line in [
        "echo {}",
        "x={}; echo \"$x\"",
        "f() { echo {}; }; f",
        "echo a | grep -c {} || true",
    ] {
        let words = [&["--joblog", "log", line, ":::"], &hostile[..]].concat();
        let output = run(&folder, &words);
        assert!(output.status.success(), "{line}: {}", err(&output));
        assert!(!folder.path().join("marker").exists(), "{line}");
        // The line in the job log is safe to paste as well.
        for row in read(&folder, "log").lines().skip(1) {
            let pasted = row
                .splitn(9, '\t')
                .nth(8)
                .expect("a command")
                .replace('\0', "\n");
            let shell = Command::new("sh")
                .args(["-c", &pasted])
                .current_dir(folder.path())
                .output()
                .expect("a shell");
            assert!(shell.status.success(), "{pasted}: {}", err(&shell));
            assert!(!folder.path().join("marker").exists(), "{pasted}");
        }
    }
}

/// As GNU parallel does it, but for values that would be code there.
#[test]
fn values_stand_between_quotes() {
    let folder = tempdir().expect("a folder");
    for (line, expected) in [
        ("echo \"hi {}\"", "hi a  b\nhi `touch marker`'\n"),
        ("echo 'hi {}'", "hi a  b\nhi `touch marker`'\n"),
        ("printf '%s\\n' \"{}\"", "a  b\n`touch marker`'\n"),
        (
            "printf '%s\\n' '{}' \"{#}{}z\"",
            "a  b\n1a  bz\n`touch marker`'\n2`touch marker`'z\n",
        ),
    ] {
        for shell in ["sh", "bash"] {
            let values = [":::", "a  b", "`touch marker`'"];
            let words = [&["-k", "--shell", shell, line][..], &values].concat();
            assert_eq!(out(&run(&folder, &words)), expected, "{shell}: {line}");
            assert!(!folder.path().join("marker").exists(), "{shell}: {line}");
        }
    }
}

#[test]
fn a_line_that_ends_in_toml_is_no_mix() {
    let folder = tempdir().expect("a folder");
    for name in ["a", "b"] {
        write(&folder, &format!("{name}/x.toml"), &format!("in {name}\n"));
    }
    assert_eq!(out(&run(&folder, &["sort a/x.toml"])), "in a\n");
    let with_values = ["-k", "sort {}/x.toml", ":::", "a", "b"];
    assert_eq!(out(&run(&folder, &with_values)), "in a\nin b\n");
}

#[test]
fn messages_name_the_string_that_stands_for_the_values() {
    let folder = tempdir().expect("a folder");
    for (words, expected) in [
        (
            &["echo \"`,,`\"", ":::", "x"][..],
            "column 8 of the shell line: ,, stands in backquotes; write it outside, as in 'v=,,; echo \"$v\"', or give \
             the line in a file (-f) to keep ,, as it is",
        ),
        (
            &["echo $,,", ":::", "\\';touch marker;#"],
            "column 7 of the shell line: ,, stands right after $; write \\$,, for a dollar sign before the value",
        ),
        (
            &["echo hi;", ":::", "x"],
            "the shell line has no ,,: echo hi;; write ,, where the value belongs, as in `sort ,, > ,,.out`",
        ),
        (
            &["echo ,,", "::::", "/dev/null"],
            "the lists hold no value; give values, as in `cosched run gzip ::: a.txt`, or -r if there may be none; a command \
             in a list (-f) keeps its ,,",
        ),
    ] {
        let output = run(&folder, &[&["-I", ",,"], words].concat());
        let told = err(&output);
        assert_eq!(
            (out(&output).as_str(), told.as_str(), output.status.code()),
            ("", format!("cosched: {expected}\n").as_str(), Some(2))
        );
    }
    assert!(!folder.path().join("marker").exists());
}

#[test]
fn a_command_of_which_nothing_is_left_is_an_error() {
    let folder = tempdir().expect("a folder");
    let output = run(&folder, &["-n", "2", "{2}", ":::", "a", "true", "c"]);
    assert_eq!(output.status.code(), Some(2), "{}", err(&output));
    assert!(
        err(&output).contains("with the values `c` nothing is left of the command"),
        "{}",
        err(&output)
    );
}

/// A shell reads back what --dry-run --quiet prints, also characters that a terminal would hide.
#[test]
fn commands_that_are_printed_are_those_that_run() {
    let folder = tempdir().expect("a folder");
    let values: [&[u8]; 6] = [
        "\u{1f468}\u{200d}\u{1f469}".as_bytes(),
        "\u{202e}a b".as_bytes(),
        b"\x1b[1m",
        b"it's",
        b"it's \xff\n",
        b"caf\xe9 $HOME",
    ];
    for value in values {
        for words in [&["printf", "%s"][..], &["printf %s {}"]] {
            let mut command = call(&folder, &[&["--dry-run", "-q"], words, &[":::"]].concat());
            let lines = command
                .arg(OsStr::from_bytes(value))
                .output()
                .expect("it runs")
                .stdout;
            // No other shell than that of POSIX is asked for.
            let again = Command::new("sh")
                .arg("-c")
                .arg(OsStr::from_bytes(&lines))
                .output()
                .expect("it runs");
            assert_eq!(again.stdout, value, "{}", String::from_utf8_lossy(&lines));
        }
    }
}

/// Lines on the command line, in lists and in mix files go to the shell that is named, and no others do.
#[test]
fn lines_go_to_the_shell_that_is_named() {
    let folder = tempdir().expect("a folder");
    let file =
        |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("a file");
    // A shell of our own, which says that it was called.
    file("mysh", "#!/bin/sh\necho mine\nexec /bin/sh \"$@\"\n");
    use std::os::unix::fs::PermissionsExt as _;
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(folder.path().join("mysh"), mode).expect("a mode");
    file("list", "echo a b\n");
    file(
        "mix.toml",
        "[[job]]\ncommand = \"echo a b\"\n[[job]]\ncommand = [\"echo\", \"c\"]\n",
    );
    let shown = |words: &[&str]| {
        let output = run(
            &folder,
            &[
                &["-q", "-k", "--record", "r.json", "--shell", "./mysh"],
                words,
            ]
            .concat(),
        );
        assert!(output.status.success(), "{words:?}: {}", err(&output));
        out(&output)
    };
    assert_eq!(shown(&["echo '<'{}'>'", ":::", "a b"]), "mine\n<a b>\n");
    assert_eq!(shown(&["-f", "list"]), "mine\na b\n");
    assert_eq!(shown(&["mix.toml"]), "mine\na b\nc\n");
    let record: serde_json::Value = serde_json::from_str(&read(&folder, "r.json")).expect("JSON");
    assert_eq!(record["setting"]["options"]["shell"], "./mysh");
    assert_eq!(shown(&["echo", "a b"]), "a b\n");
    // It is found in PATH, and the environment names it as well.
    let mut command = call(&folder, &["-q", "-k", "echo a b"]);
    command
        .env("PATH", format!("{}:/usr/bin:/bin", folder.path().display()))
        .env("COSCHED_SHELL", "mysh");
    assert_eq!(out(&command.output().expect("it runs")), "mine\na b\n");
    let refused = run(&folder, &["--shell", "fish", "touch m; true"]);
    assert_eq!(refused.status.code(), Some(2), "{}", err(&refused));
    assert!(
        err(&refused).contains("fish is no POSIX shell") && err(&refused).contains("--shell bash")
    );
    assert!(!folder.path().join("m").exists());
}

/// The last job has one value of two. What stands behind the missing one keeps its meaning.
#[test]
fn a_missing_value_makes_nothing_of_another_one_a_command() {
    let folder = tempdir().expect("a folder");
    let words = [
        "run",
        "-q",
        "-k",
        "--no-logs",
        "-n",
        "2",
        "echo {2}#{1}; echo {2}",
        ":::",
    ];
    let values = ["a", "b", "x\ntouch made\n"];
    let output = cosched(&folder, &[&words[..], &values].concat());
    assert_eq!(
        out(&output),
        "b#a\nb\n#x\ntouch made\n\n\n",
        "{}",
        err(&output)
    );
    assert!(!folder.path().join("made").exists());
}
