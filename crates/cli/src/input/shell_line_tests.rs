use super::*;

fn row(values: &[&[u8]]) -> Row {
    Row {
        values: values.iter().map(|value| os(value)).collect(),
        number: 3,
    }
}

fn fill(line: &str, values: &[&str]) -> Result<ShellLine, String> {
    let bytes: Vec<&[u8]> = values.iter().map(|value| value.as_bytes()).collect();
    match ShellTemplate::new(line.as_bytes())
        .and_then(|template| template.fill(&row(&bytes), false))
    {
        Ok(Command::Shell(line)) => Ok(line),
        Ok(Command::Argv(_)) => unreachable!("a line stays a line"),
        Err(error) => Err(error.to_string()),
    }
}

fn shown(line: &str, value: &str) -> String {
    Command::Shell(fill(line, &[value]).unwrap()).line()
}

#[test]
fn the_script_never_holds_a_value() {
    let line = fill("sort {} > {.}.out", &["$(touch x)"]).unwrap();
    assert_eq!(
        line.script,
        "cosched_1=${1} cosched_2=${2}; set --; sort \"${cosched_1}\" > \"${cosched_2}\".out"
    );
    assert_eq!(line.values, ["$(touch x)", "$(touch x)"]);
    assert_eq!(line.shown.unwrap(), "sort '$(touch x)' > '$(touch x)'.out");
}

#[test]
fn values_stand_in_every_kind_of_quotes() {
    let body = |line: &str| {
        let script = fill(line, &["v"]).unwrap().script.into_string().unwrap();
        script.split_once("; set --; ").unwrap().1.to_owned()
    };
    assert_eq!(body("echo {}"), "echo \"${cosched_1}\"");
    assert_eq!(body("echo \"a {} b\""), "echo \"a ${cosched_1} b\"");
    assert_eq!(body("awk '/{}/' f"), "awk '/'\"${cosched_1}\"'/' f");
    assert_eq!(
        body("x=\"$(wc -l < {})\"; echo \"$x {}\""),
        "x=\"$(wc -l < \"${cosched_1}\")\"; echo \"$x ${cosched_1}\""
    );
    assert_eq!(
        body("cat << E\na {}\nE\necho {}"),
        "cat << E\na ${cosched_1}\nE\necho \"${cosched_1}\""
    );
    assert_eq!(
        body("echo a # it's a comment\necho {}"),
        "echo a # it's a comment\necho \"${cosched_1}\""
    );
    assert_eq!(
        body("find {} -exec rm \\{\\} +"),
        "find \"${cosched_1}\" -exec rm \\{\\} +"
    );
    assert_eq!(
        body("set -- a; echo ${1} ${#} {}"),
        "set -- a; echo ${1} ${#} \"${cosched_1}\""
    );
}

/// Where a blank or a sign of the shell divides the text, GNU parallel 20221122 wrote the same lines.
#[test]
fn text_around_a_string_is_repeated_for_each_value() {
    let shown = |line: &str| {
        let template = ShellTemplate::new(line.as_bytes()).unwrap();
        template
            .fill(&row(&[b"a", b"b"]), true)
            .map(|command| command.line())
            .map_err(|error| error.to_string())
    };
    let check = |line: &str, expected: &str| assert_eq!(shown(line).unwrap(), expected, "{line}");
    check("rm {}.bak", "rm a.bak b.bak");
    check("sort {} > {}.out", "sort a b > a.out b.out");
    check(
        "cat >{}.out 2>{}.err",
        "cat >'a'.out >'b'.out 2>'a'.err 2>'b'.err",
    );
    check("cat 1{}2;echo", "cat 1a2 1b2;echo");
    check("x={}; cat \"{}\"w", "x='a' x='b'; cat \"a\"w \"b\"w");
    check("echo \"p x{}y q\" r", "echo \"p x\"'a'\"y x\"'b'\"y q\" r");
    check("echo 'p {}.o q' r", "echo 'p a.o b.o q' r");
    check("echo x{1}y{}z{}", "echo x'a'y'a'z'a' x'a'y'b'z'b'");
    check(
        "echo \"$(basename {}.c)\" {#}{}",
        "echo \"$(basename a.c b.c)\" '3''a' '3''b'",
    );
    check(
        "echo x$(basename {}){}y",
        "echo x$(basename a)'a'y x$(basename b)'b'y",
    );
    check(
        "echo x$(cat {} {}){}y",
        "echo x$(cat a a)'a'y x$(cat b b)'b'y",
    );
    check("cat << E\n{}.c z\n{}\nE\n", "cat << E\na.c b.c z\na b\nE\n");
    check("cat {}<< E\nE\n", "cat 'a' 'b'<< E\nE\n");
    for line in [
        "echo \"file {}\"",
        "echo '{} x'",
        "rm \"/my folder/{}.bak\"",
    ] {
        assert!(
            shown(line).unwrap_err().contains("quotes that hold more"),
            "{line}"
        );
    }
    assert!(fill("echo \"file {}\"", &["a", "b"]).is_ok());
}

#[test]
fn values_are_shown_without_quotes_where_that_means_the_same() {
    let check = |line: &str, value: &str, expected: &str| assert_eq!(shown(line, value), expected);
    check("sort {} > {}.out", "a", "sort a > a.out");
    check("sort {}", "a b", "sort 'a b'");
    check("{} x", "if", "'if' x");
    check("{} x", "a=b", "'a=b' x");
    check("i{}", "f", "i'f'");
    check("echo {}>f", "2", "echo '2'>f");
    check("echo $A{}", "b", "echo $A'b'");
    check("echo \"$A{}\"", "b", "echo \"$A\"'b'\"\"");
    check("echo \"{}\"", "$(x)", "echo \"\"'$(x)'\"\"");
    check("echo '{}'", "it's", "echo '''it'\\''s'''");
    check("echo \"x {}\"", "a.b", "echo \"x a.b\"");
    check("cat << E\n{}\nE", "a", "cat << E\na\nE");
    // There is no way to write such a value into a here-document, so the line is shown as it is run.
    assert!(shown("cat << E\n{}\nE", "$x").starts_with("sh -c 'cosched_1="));
}

#[test]
fn unsafe_places_are_refused_with_column_and_remedy() {
    let check = |line: &str, column: usize, parts: &[&str]| {
        let error = fill(line, &["v"]).expect_err(line);
        assert!(
            error.starts_with(&format!("column {column} of the line for the shell: {{")),
            "{line}: {error}"
        );
        for part in parts {
            assert!(error.contains(part), "{line}: no {part:?} in {error}");
        }
    };
    check("echo `ls {}`", 10, &["between backquotes", "$(...)"]);
    check("echo \"ü `ls {}`\"", 13, &["between backquotes"]);
    check("echo $(({}+1))", 9, &["in arithmetic", "n={}; echo"]);
    check("echo ${x:-{}}", 11, &["inside ${...}"]);
    check("echo $'a {}'", 10, &["$'...'"]);
    check("echo $'a' {}", 11, &["$'...'"]);
    check("echo ${}", 7, &["directly after a `$`"]);
    check("echo \"$${}\"", 9, &["directly after a `$`"]);
    check("echo \"\\{}\"", 8, &["after a backslash"]);
    check("cat << 'E'\n{}\nE\n", 12, &["quoted delimiter", "<< END"]);
    check("cat << E\n$(ls) {}\nE\n", 16, &["here-document with"]);
    check("cat << E\n\\{}\nE\n", 11, &["after a backslash"]);
    check(
        "echo \"$(cat << E\n)\nE\n) {}\"",
        24,
        &["here-document inside a command"],
    );
    check("echo a # {}", 10, &["in a comment"]);
    check(
        "for i in {1..{}}; do ls; done",
        14,
        &["in braces", "$(seq {})"],
    );
    check("echo x{{}..9}y", 8, &["in braces"]);
    check("ls {a,{1..{}}}", 11, &["in braces"]);
    for line in [
        "echo {1..3}{}",
        "echo {a,{}}",
        "cp {../{},a} .",
        "ls {a,../{}}",
        "awk '{print $1..$2}' {}",
        "find .. -exec ls {} ;",
    ] {
        assert!(fill(line, &["v"]).is_ok(), "{line}");
    }
    check("echo \"$(case a in a) echo {};; esac)\"", 27, &["`case`"]);
    check("echo 'a {}", 9, &["without its partner"]);
    assert!(
        fill("echo \"a {}", &["v"])
            .unwrap_err()
            .contains("double quote without its partner")
    );
}

#[test]
fn values_go_to_the_end_only_where_they_are_arguments() {
    let at_end = |line: &str| {
        let template = ShellTemplate::new(line.as_bytes())
            .unwrap()
            .with_values_at_end();
        template
            .map(|template| template.line)
            .map_err(|error| error.to_string())
    };
    for line in [
        "ls -l | grep x",
        "A=1 cmd",
        "(cd x; ls) | wc -l",
        "echo a > f",
        "echo done",
        "for x in a b",
        "sleep 1 && ls",
    ] {
        assert_eq!(at_end(line).unwrap(), format!("{line} {{}}").into_bytes());
    }
    for line in [
        "echo hi;",
        "echo hi &&",
        "echo hi |",
        "(echo hi)",
        "{ echo; }",
        "A=1",
        "echo > ",
        "if true; then",
        "echo # x",
        "cat << E\nx\nE",
        "cat << E",
        "echo 'x",
        "echo \"x",
        "for x in a; do ls; done",
        "! ",
        "echo x \\",
    ] {
        assert!(
            at_end(line)
                .unwrap_err()
                .contains("write {} where it belongs"),
            "{line}"
        );
    }
}

/// Values that are code, or look like a part of the line, to whoever is careless.
const HOSTILE: &[&[u8]] = &[
    b"",
    b" ",
    b"$(touch marker)",
    b"`touch marker`",
    b"'; touch marker; '",
    b"\"; touch marker; \"",
    b"'\"$(touch marker)\"'",
    b"a\ntouch marker\n",
    b"E\ntouch marker\n",
    b"\nE\n$(touch marker)\n",
    b"*",
    b"?[a-z]*",
    b"-n",
    b"--",
    b"> marker",
    b"& touch marker &",
    b"| touch marker",
    b"${x:=$(touch marker)}",
    b"$((1+1))",
    b"~",
    b"#",
    b"!!",
    b"\\",
    b"\\\\'\\\"",
    b"a  b\tc",
    b"x=$(touch marker)",
    b"\xff\xfe\x80\x81\x82\x88",
    b"\x01\x02\x1b[2J\x7f",
    "ünïcode".as_bytes(),
    b"plain.txt",
    b"if",
    b"done",
];

/// A part of a word, with what it adds to the argument; `None` stands for the value.
type Part = (&'static str, &'static [Option<&'static str>]);

const PARTS: &[Part] = &[
    ("{}", &[None]),
    ("abc", &[Some("abc")]),
    ("\"x {} y\"", &[Some("x "), None, Some(" y")]),
    ("'x {} y'", &[Some("x "), None, Some(" y")]),
    ("\"{}\"", &[None]),
    ("'{}'", &[None]),
    ("\"it's {}\"", &[Some("it's "), None]),
    ("'say \"{}\"'", &[Some("say \""), None, Some("\"")]),
    ("\\'\\\"{}", &[Some("'\""), None]),
    ("\"\\\"{}\\\\\"", &[Some("\""), None, Some("\\")]),
    ("\\{}", &[Some("{}")]),
    ("$V{}", &[Some("var"), None]),
    ("\"$V{}$V\"", &[Some("var"), None, Some("var")]),
    ("${V}{}", &[Some("var"), None]),
    ("\"$(printf '%s.' {})\"", &[None, Some(".")]),
    ("\"$(printf '%s.' \"{}\" 'a)')\"", &[None, Some(".a).")]),
    ("\"`printf b`{}\"", &[Some("b"), None]),
    ("\"$((1+1)){}\"", &[Some("2"), None]),
    ("\"{print} {}\"", &[Some("{print} "), None]),
];

/// Lines around a word, as what comes before and after it. The word is one argument of `printf '%s\0'`, whose output is
/// all that the line prints.
const LINES: &[(&str, &str)] = &[
    ("printf '%s\\0' ", ""),
    ("true; printf '%s\\0' ", " # it's a comment"),
    ("for i in 1; do printf '%s\\0' ", "; done"),
    ("(printf '%s\\0' ", ") | cat"),
    ("f() { printf '%s\\0' ", "; }; f other"),
    ("set -- other; printf '%s\\0' ", ""),
    ("if true\nthen # don't\n  printf '%s\\0' ", "\nfi"),
    ("w=", "; printf '%s\\0' \"$w\""),
    ("case x in x) printf '%s\\0' ", ";; esac"),
    ("cat << E > /dev/null\nit's {} \"\nE\nprintf '%s\\0' ", ""),
    (
        "cat > /dev/null <<- 'E'\n\tit's $( `\n\tE\nprintf '%s\\0' ",
        "",
    ),
];

/// Runs a command in an empty folder and returns its output. The folder must be empty afterwards.
fn output_of(words: &[OsString]) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let mut command = std::process::Command::new(&words[0]);
    command
        .args(&words[1..])
        .env("V", "var")
        .current_dir(folder.path())
        .stdin(std::process::Stdio::null());
    let output = command.output().unwrap();
    let found: Vec<_> = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert!(found.is_empty(), "{found:?} by {words:?}");
    assert!(
        output.status.success(),
        "{words:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    output.stdout
}

fn check_line(line: &str, expected: &[Option<&str>], value: &[u8], has_bash: bool) {
    let template =
        ShellTemplate::new(line.as_bytes()).unwrap_or_else(|error| panic!("{line}: {error}"));
    let command = template.fill(&row(&[value]), false).unwrap();
    let Command::Shell(script) = &command else {
        unreachable!("a line stays a line")
    };
    let mut wanted: Vec<u8> = Vec::new();
    expected
        .iter()
        .for_each(|part| wanted.extend(part.map_or(value, str::as_bytes)));
    wanted.push(0);
    let mut words = script.words();
    words[0] = "/bin/sh".into();
    let shown = |bytes: &[u8]| bytes.escape_ascii().to_string();
    assert_eq!(shown(&output_of(&words)), shown(&wanted), "{line}");
    // The line that people see means the same to a shell that knows $'...', and if it does without, to any shell.
    let pasted = command.line();
    let shell = if pasted.contains("$'") {
        "bash"
    } else {
        "/bin/sh"
    };
    if shell == "/bin/sh" || has_bash {
        let found = output_of(&[shell, "-c", &pasted].map(OsString::from));
        assert_eq!(shown(&found), shown(&wanted), "{line} as {pasted}");
    }
}

fn has_bash() -> bool {
    std::process::Command::new("bash")
        .args(["-c", ":"])
        .status()
        .is_ok_and(|status| status.success())
}

#[test]
fn every_hostile_value_arrives_as_it_is_in_every_kind_of_place() {
    let has_bash = has_bash();
    for (ix, (text, expected)) in PARTS.iter().enumerate() {
        for (number, value) in HOSTILE.iter().enumerate() {
            // Each value in each kind of quotes; the lines around take turns.
            let (before, after) = LINES[(ix + number) % LINES.len()];
            check_line(&format!("{before}{text}{after}"), expected, value, has_bash);
        }
    }
}

#[test]
fn every_hostile_value_arrives_where_the_text_around_it_is_repeated() {
    let is_repeated = |(text, expected): &&Part| !text.contains(' ') && expected.contains(&None);
    for (text, expected) in PARTS.iter().filter(is_repeated) {
        for (number, &value) in HOSTILE.iter().enumerate() {
            let (before, after) = LINES[number % 2];
            let other = HOSTILE[(number + 7) % HOSTILE.len()];
            let template = ShellTemplate::new(format!("{before}{text}{after}").as_bytes()).unwrap();
            let command = template.fill(&row(&[value, other]), true).unwrap();
            let Command::Shell(script) = &command else {
                unreachable!("a line stays a line")
            };
            let mut wanted: Vec<u8> = Vec::new();
            for value in [value, other] {
                expected
                    .iter()
                    .for_each(|part| wanted.extend(part.map_or(value, str::as_bytes)));
                wanted.push(0);
            }
            let shown = |bytes: &[u8]| bytes.escape_ascii().to_string();
            assert_eq!(shown(&output_of(&script.words())), shown(&wanted), "{text}");
            if !command.line().contains("$'") {
                let pasted = ["/bin/sh", "-c", &command.line()].map(OsString::from);
                assert_eq!(
                    shown(&output_of(&pasted)),
                    shown(&wanted),
                    "{}",
                    command.line()
                );
            }
        }
    }
}

/// What a here-document prints is the value as it is, whatever its lines look like.
#[test]
fn every_hostile_value_arrives_in_a_here_document() {
    for value in HOSTILE {
        let template = ShellTemplate::new(b"cat << E\nx {} y\nE\n").unwrap();
        let command = template.fill(&row(&[value]), false).unwrap();
        let Command::Shell(script) = &command else {
            unreachable!("a line stays a line")
        };
        let mut words = script.words();
        words[0] = "/bin/sh".into();
        let wanted = [&b"x "[..], value, b" y\n"].concat();
        assert_eq!(output_of(&words), wanted, "{}", value.escape_ascii());
        if !command.line().contains("$'") {
            let pasted = ["/bin/sh", "-c", &command.line()].map(OsString::from);
            assert_eq!(output_of(&pasted), wanted, "{}", command.line());
        }
    }
}

mod random {
    use super::*;
    use proptest::prelude::*;

    fn value() -> impl Strategy<Value = Vec<u8>> {
        let pieces = prop_oneof![
            proptest::sample::select(HOSTILE).prop_map(<[u8]>::to_vec),
            proptest::collection::vec(1u8..=255, 0..12),
            "[ -~\n\t]{0,12}".prop_map(String::into_bytes),
        ];
        proptest::collection::vec(pieces, 1..3).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

        /// No value is executed or changes the line, and each arrives byte for byte.
        #[test]
        fn values_arrive_as_they_are(
            parts in proptest::collection::vec(0..PARTS.len(), 1..5), line in 0..LINES.len(), value in value()
        ) {
            let word: String = parts.iter().map(|&ix| PARTS[ix].0).collect();
            let expected: Vec<Option<&str>> = parts.iter().flat_map(|&ix| PARTS[ix].1.iter().copied()).collect();
            let (before, after) = LINES[line];
            check_line(&format!("{before}{word}{after}"), &expected, &value, has_bash());
        }

        /// Whatever the line, the reader neither panics nor loses a byte, and no script holds a value.
        #[test]
        fn any_line_is_taken_apart_or_refused(line in "[-a-z{}$()'\"`\\\\<>|&; \n#/.1=*]{0,40}") {
            let Ok(template) = ShellTemplate::new(line.as_bytes()) else { return Ok(()) };
            let whole: Vec<u8> = template.pieces.iter().flat_map(|piece| match piece {
                Piece::Text(range) => template.line[range.clone()].to_vec(),
                Piece::Place(place) => template.line[place.at.clone()].to_vec(),
            }).collect();
            prop_assert_eq!(whole, line.as_bytes());
            if let Ok(Command::Shell(script)) = template.fill(&row(&[b"VALUE", b"VALUE"]), true) {
                prop_assert!(!script.script.to_string_lossy().contains("VALUE"));
            }
        }
    }
}
