//! The commands of a run are those of GNU parallel.

use super::support::run_with_input;
use crate::common::{err, out};
use std::io::Write as _;
use std::process::{Command, Stdio};
use tempfile::tempdir;

/// What both programs print for these words with --dry-run: `~` divides words. The third text is what GNU parallel
/// 20221122 was seen to print.
const SAME_AS_PARALLEL: &[(&str, &str, &str)] = &[
    (
        "echo~{1}~{2}~:::~a~b~:::~1~2",
        "",
        "echo a 1\necho a 2\necho b 1\necho b 2\n",
    ),
    (
        "echo~{1}~{2}~:::~a~b~c~:::+~1~2",
        "",
        "echo a 1\necho b 2\n",
    ),
    (
        "echo~{1}~{3}~:::~a~b~:::+~1~2~:::~x~y",
        "",
        "echo a x\necho a y\necho b x\necho b y\n",
    ),
    (
        "echo~::::~A~B",
        "",
        "echo f1 g1\necho f1 g2\necho f2 g1\necho f2 g2\n",
    ),
    (
        "echo~-x~::::~A~::::+~B",
        "",
        "echo -x f1 g1\necho -x f2 g2\n",
    ),
    ("-a~A~echo~:::~q", "", "echo f1 q\necho f2 q\n"),
    ("-n~2~echo~{2}~{1}~:::~a~b~c~d", "", "echo b a\necho d c\n"),
    ("-n~2~echo~x{}y~:::~a~b~c", "", "echo xa by\necho xcy\n"),
    ("-N~2~echo~:::~a~b~c", "", "echo a b\necho c\n"),
    ("-N~2~echo~x{}y~:::~a~b~c", "", "echo xay xby\necho xcy\n"),
    (
        "-N2~rm~{.}.o~{/}z~:::~d/a.c~e/b.c",
        "",
        "rm d/a.o e/b.o a.cz b.cz\n",
    ),
    (
        "--max-replace-args~2~echo~x{}y{1}z~x{2}~{}{#}~:::~a~b",
        "",
        "echo xayaz xbyaz xb a1 b1\n",
    ),
    ("-N1~echo~x{}y~:::~a~b", "", "echo xay\necho xby\n"),
    (
        "-N2~sort {} > {}.out~:::~a~b",
        "",
        "sort a b > a.out b.out\n",
    ),
    (
        "-N2~rm {}.bak -- \"p q\"~:::~a~b",
        "",
        "rm a.bak b.bak -- \"p q\"\n",
    ),
    ("-n2~rm~{}.bak~:::~a~b~c", "", "rm a b.bak\nrm c.bak\n"),
    (
        "echo~{.}~{/}~{//}~{/.}~{#}~:::~d/a.b.c",
        "",
        "echo d/a.b a.b.c d a.b 1\n",
    ),
    ("echo~{-1}~{1/.}~:::~d/a.b~:::~z/q.x", "", "echo z/q.x a\n"),
    ("echo~{#}~:::~a~b", "", "echo 1\necho 2\n"),
    (
        "--colsep~,~echo~{2}~{1}",
        "a,b\nc,d\n",
        "echo b a\necho d c\n",
    ),
    (
        "--colsep~,~echo~{2}~{1}",
        "a, b\nc ,d\r\n",
        "echo b a\necho d c\n",
    ),
    ("--colsep~\\t~echo~{2}-{1}~{3}x", "a\tb\n", "echo b-a x\n"),
    ("echo~v=", "a\nb", "echo v= a\necho v= b\n"),
    ("-0~echo~{}", "a\0b\0", "echo a\necho b\n"),
    ("-d~,~echo", "a,b", "echo a\necho b\n"),
    ("-I~,,~echo~x,,y~:::~a", "", "echo xay\n"),
    (
        "--header~:~echo~{x/.}-{y}~:::~x~d/a.c~:::~y~1~2",
        "",
        "echo a-1\necho a-2\n",
    ),
    (
        "--header~:~--colsep~,~echo~{m}~{n}",
        "n,m\n1,2\n",
        "echo 2 1\n",
    ),
    ("--colsep~[,;]~echo~{3}{2}{1}", "a,b;c\n", "echo cba\n"),
    ("-r~echo~{}", "\na\n", "echo a\n"),
    ("-r~echo~{}", "", ""),
    ("sort {} > {.}.out~:::~a.txt", "", "sort a.txt > a.out\n"),
];

#[test]
fn commands_are_those_of_gnu_parallel() {
    let folder = tempdir().expect("a folder");
    std::fs::write(folder.path().join("A"), "f1\nf2\n").expect("a file");
    std::fs::write(folder.path().join("B"), "g1\ng2\n").expect("a file");
    let has_parallel = Command::new("parallel")
        .arg("--version")
        .env("PARALLEL_HOME", folder.path())
        .output();
    let has_parallel = has_parallel.is_ok_and(|output| out(&output).starts_with("GNU parallel 2"));
    for (words, input, expected) in SAME_AS_PARALLEL {
        let split: Vec<&str> = words.split('~').collect();
        let output = run_with_input(
            &folder,
            &[&["--dry-run", "-q"], &split[..]].concat(),
            input.as_bytes(),
        );
        assert_eq!(out(&output), *expected, "{words}: {}", err(&output));
        if has_parallel {
            let mut parallel = Command::new("parallel");
            parallel
                .args(["--will-cite", "--dry-run", "-k"])
                .args(&split)
                .current_dir(folder.path());
            parallel
                .env("PARALLEL_HOME", folder.path())
                .stdin(Stdio::piped())
                .stdout(Stdio::piped());
            let mut child = parallel.stderr(Stdio::null()).spawn().expect("it runs");
            let _ = child
                .stdin
                .take()
                .expect("a pipe")
                .write_all(input.as_bytes());
            let output = child.wait_with_output().expect("it ends");
            // It writes one more blank where the values go to the end.
            let lines = |text: &str| {
                text.lines()
                    .map(|line| line.trim_end().to_owned())
                    .collect::<Vec<_>>()
            };
            assert_eq!(
                lines(&out(&output)),
                lines(expected),
                "{words} by GNU parallel"
            );
        }
    }
    if !has_parallel {
        println!("GNU parallel itself was not compared, because it is not here");
    }
}
