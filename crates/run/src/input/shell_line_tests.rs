use super::*;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStringExt;

fn row(values: &[&[u8]]) -> Row {
    Row {
        values: values.iter().map(|value| os(value)).collect(),
        number: 3,
    }
}

/// The script for these values, or the error.
fn filled(line: &[u8], values: &[&[u8]], repeats: bool) -> Result<Vec<u8>, String> {
    filled_with("{}", line, values, repeats)
}

/// The same, where `whole` stands for the value.
fn filled_with(
    whole: &str,
    line: &[u8],
    values: &[&[u8]],
    repeats: bool,
) -> Result<Vec<u8>, String> {
    let strings = Strings {
        whole: (whole != "{}").then_some(OsStr::new(whole)),
        columns: Vec::new(),
    };
    let template = ShellTemplate::new(line, &strings).map_err(|error| error.to_string())?;
    match template.fill(&row(values), repeats) {
        Command::Shell(line) => Ok(line.script.into_vec()),
        Command::Argv(_) => unreachable!("a line stays a line"),
    }
}

fn script(line: &str, values: &[&str], repeats: bool) -> Result<String, String> {
    let values: Vec<&[u8]> = values.iter().map(|value| value.as_bytes()).collect();
    let script = filled(line.as_bytes(), &values, repeats)?;
    Ok(String::from_utf8(script).unwrap())
}

#[test]
fn values_become_quoted_words() {
    let check = |line: &str, value: &str, expected: &str| {
        assert_eq!(script(line, &[value], false).unwrap(), expected);
    };
    check("sort {} > {}.out", "a", "sort a > a.out");
    check(
        "sort {} > {.}.out",
        "$(touch x)",
        "sort '$(touch x)' > '$(touch x)'.out",
    );
    check("sort {}", "it's", "sort 'it'\\''s'");
    check("{} x", "if", "'if' x");
    check("{} x", "a=b", "'a=b' x");
    check("i{}", "f", "i'f'");
    check("echo {}>f", "2", "echo '2'>f");
    check("{}() { ls; }", "f", "'f'() { ls; }");
    check("echo $A{}", "b", "echo $A'b'");
    check("x={}; echo \"$x\"", "a", "x='a'; echo \"$x\"");
    check("echo {}", "", "echo ''");
    check("[ -f {} ] && ls", "a", "[ -f a ] && ls");
}

#[test]
fn values_between_quotes_go_in_with_such_quotes() {
    let check = |line: &str, value: &str, expected: &str| {
        assert_eq!(script(line, &[value], false).unwrap(), expected);
    };
    check("echo \"hi {}\"", "a b", "echo \"hi a b\"");
    check("echo \"hi {}\"", "$(id)", "echo \"hi \"'$(id)'\"\"");
    check("echo \"{}\"", "it's", "echo \"\"'it'\\''s'\"\"");
    check("echo 'hi {}'", "$(id)", "echo 'hi $(id)'");
    check("echo '{}'", "it's", "echo 'it'\\''s'");
    check("echo \"a{.}b\"", "x.c", "echo \"axb\"");
    // The first letters of a value do not belong to the name before it.
    check("echo \"$A{}\"", "B", "echo \"$A\"\"B\"");
    check(
        "echo \"\\${1} \\\"{}\\\\\"",
        "b",
        "echo \"\\$\"\"b \\\"b\\\\\"",
    );
    // Parameters of the shell itself, and of a shell that reads the text in quotes.
    check("echo \"${1}\" '${1}' {}", "b", "echo \"${1}\" '${1}' b");
    check(
        "echo '{%}' \"{%}\" {}",
        "b",
        "echo ''\"${PARALLEL_JOBSLOT}\"'' \"${PARALLEL_JOBSLOT}\" b",
    );
    // Between quotes several values are one argument.
    let two = |repeats| script("echo x\"a {}\" '{}'z", &["1 2", "$3"], repeats).unwrap();
    assert_eq!(two(false), "echo x\"a \"'1 2 $3'\"\" '1 2 $3'z");
    assert_eq!(two(true), "echo x\"a 1 2\" x\"a \"'$3'\"\" '1 2'z '$3'z");
}

/// Where a blank or a sign of the shell divides the text, GNU parallel 20221122 wrote the same lines.
#[test]
fn text_around_a_string_is_repeated_for_each_value() {
    let check = |line: &str, expected: &str| {
        assert_eq!(script(line, &["a", "b"], true).unwrap(), expected, "{line}");
    };
    check("rm {}.bak", "rm a.bak b.bak");
    check("sort {} > {}.out", "sort a b > a.out b.out");
    check("cat >{}.out 2>{}.err", "cat >a.out b.out 2>a.err b.err");
    check("cat 1{}2;echo", "cat 1a2 1b2;echo");
    check("x={}; cat y", "x='a' x='b'; cat y");
    check("echo x{1}y{}z{}", "echo xayaza xaybzb");
    assert_eq!(
        script("echo x{}y", &["a", "b"], false).unwrap(),
        "echo xa by"
    );
}

#[test]
fn other_places_are_refused_with_column_and_remedy() {
    let check = |line: &str, column: usize, place: &str| {
        let error = script(line, &["v"], false).expect_err(line);
        let expected = format!("column {column} of the shell line: {{");
        assert!(error.starts_with(&expected), "{line}: {error}");
        assert!(
            error.contains(&format!(" stands {place}; write it outside")),
            "{line}: {error}"
        );
    };
    check("echo 'a {}", 9, "in single quotes without an end");
    check("echo \"a\\\" {}", 11, "in double quotes without an end");
    check("echo `ls {}`", 10, "in backquotes");
    check("echo \"ü `ls {}`\"", 13, "in backquotes");
    check("echo \"$(ls {})\"", 12, "in or after $(...)");
    check("echo \"${x:-{}}\"", 12, "in or after ${...}");
    check("echo \"\\{}\"", 8, "in text after a backslash");
    check("echo $(ls {})", 11, "in or after $(...)");
    check("echo $(({}+1))", 9, "in or after $(...)");
    check("echo ${x:-{}}", 11, "in or after ${...}");
    check("echo ${}", 7, "in ${...}");
    check("echo $'a' {}", 11, "in or after $'...'");
    check("echo $[{}+1]", 8, "in or after $[...]");
    check("((x={}))", 5, "in or after ((...))");
    check("a=([ {} ]=1)", 6, "in or after an array");
    check("[[ {} -eq 1 ]]", 4, "in or after [...]");
    check("a[{}]=1", 3, "in [...]");
    check("[x #]{}", 6, "in or after [...]");
    check("echo \\{}", 7, "in text after a backslash");
    check("cat << E\n{}\nE\n", 10, "in or after a here-document");
    check("cat <\\\n<E\n{}\nE", 11, "in or after a continued line");
    check("echo a # {}", 10, "in a comment");
    check("a \\\n#{}", 6, "in or after a continued line");
    check(
        "\"$\\\n(echo \" {} \")\"",
        13,
        "in or after a continued line",
    );
    check(
        "\"$(case a in a) echo \" {} \";; esac)\"",
        24,
        "in or after $(...)",
    );
    for line in [
        "awk '{print $1}' {}",
        "awk \"{print \\$1}\" {}",
        "set -- a; echo ${1} ${#} \"${1}\" {}",
        "find {} -exec rm \\{\\} +",
        "echo \"$(wc -l < f) $((1+1)) ${x:-y}\" {}",
        "grep -v [a-z] {} \\\n  > {}.out # it's a comment\nls",
        "for x in {1..3}; do case $x in 1) ls {};; esac; done",
        "cat <<< {}",
    ] {
        script(line, &["v"], false).expect(line);
    }
}

/// `$'...'` ends at another place than `'...'`.
#[test]
fn a_value_right_after_a_dollar_sign_is_refused() {
    let fill = |line: &str| filled_with(",,", line.as_bytes(), &[b"\\';touch marker;#"], false);
    for line in [
        "echo $,,",
        "echo \"a\"$,,",
        "echo \\$$,,",
        "echo \"$,,\"",
        "echo $$,,",
    ] {
        let error = fill(line).expect_err(line);
        assert!(
            error.contains(",, stands right after $; write \\$,,"),
            "{line}: {error}"
        );
    }
    for line in ["echo \\$,,", "echo $a,,", "echo $ ,,", "echo '$,,'"] {
        let script = fill(line).expect(line);
        for shell in shells() {
            output_of(shell, &script);
        }
    }
}

#[test]
fn values_go_to_the_end_only_of_plain_arguments() {
    for line in ["ls -l", " grep x", "x/y a=b"] {
        let template = ShellTemplate::new(line.as_bytes(), &Strings::default()).unwrap();
        let template = template.with_values_at_end(&Strings::default()).unwrap();
        assert_eq!(template.line, format!("{line} {{}}").as_bytes());
    }
    for line in [
        "echo hi;", "A=1 cmd", "if x", "", "ls *", "ls | wc", "echo 'x", "a\nb",
    ] {
        let template = ShellTemplate::new(line.as_bytes(), &Strings::default()).unwrap();
        let error = template
            .with_values_at_end(&Strings::default())
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("write {} where the value belongs"),
            "{error}"
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
    b")touch marker;(",
    b"}touch marker;{",
    b"a[$(touch marker)]",
    b"[b[$(touch marker)]]=1",
];

/// A part of a word, with what it adds to the argument; `None` stands for the value.
type Part = (&'static str, &'static [Option<&'static str>]);

const PARTS: &[Part] = &[
    ("{}", &[None]),
    ("abc", &[Some("abc")]),
    ("\"x y\"{}", &[Some("x y"), None]),
    ("'say \"'{}", &[Some("say \""), None]),
    ("\"it's \\\"\"{}", &[Some("it's \""), None]),
    ("\\'\\\"{}", &[Some("'\""), None]),
    ("$V{}", &[Some("var"), None]),
    ("${V}{}\"$V\"", &[Some("var"), None, Some("var")]),
    ("\"$(printf b)\"{}", &[Some("b"), None]),
    ("\"`printf b`\"{}", &[Some("b"), None]),
    ("$((1+1)){}", &[Some("2"), None]),
    ("a#{}#", &[Some("a#"), None, Some("#")]),
    ("\"{}\"", &[None]),
    ("'{}'", &[None]),
    (
        "\"a{}b\"'c{} d'",
        &[Some("a"), None, Some("bc"), None, Some(" d")],
    ),
    ("\"$V{}$V\"", &[Some("var"), None, Some("var")]),
    (
        "\"\\\"{}\\\\\"'\\{}\"'",
        &[Some("\""), None, Some("\\\\"), None, Some("\"")],
    ),
    ("\"$(printf b){}`printf c`\"", &[Some("b"), None, Some("c")]),
];

/// Lines around a word, as what comes before and after it. The word is one argument of `printf '%s\0'`, whose output is
/// all that the line prints.
const LINES: &[(&str, &str)] = &[
    ("printf '%s\\0' ", ""),
    ("true; printf '%s\\0' ", " # it's a comment"),
    ("for i in 1; do printf '%s\\0' ", "; done"),
    ("(printf '%s\\0' ", ") | cat"),
    ("f() { printf '%s\\0' ", "; }; f other"),
    ("if true\nthen # don't\n  printf '%s\\0' \\\n ", "\nfi"),
    ("w=", "; printf '%s\\0' \"$w\""),
    ("case x in x) printf '%s\\0' ", ";; esac"),
    ("printf '%s\\0' ", "; cat << E > /dev/null\nit's ' \"\nE\n"),
];

/// Runs a script in an empty folder and returns its output. The folder must stay empty of `marker`.
fn output_of(shell: &str, script: &[u8]) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let output = std::process::Command::new(shell)
        .arg("-c")
        .arg(os(script))
        .env("V", "var")
        .current_dir(folder.path())
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap();
    let is_executed = folder.path().join("marker").exists();
    assert!(!is_executed, "{shell} executed {}", script.escape_ascii());
    output.stdout
}

fn shells() -> Vec<&'static str> {
    let has_bash = std::process::Command::new("bash")
        .args(["-c", ":"])
        .status()
        .is_ok_and(|status| status.success());
    if has_bash {
        vec!["sh", "bash"]
    } else {
        println!("bash was not tried, because it is not here");
        vec!["sh"]
    }
}

/// Checks that the line prints each value within the other parts.
fn check_line(line: &str, expected: &[Option<&str>], values: &[&[u8]]) {
    let script = filled(line.as_bytes(), values, true).expect(line);
    let mut wanted = Vec::new();
    for value in values {
        for part in expected {
            wanted.extend(part.map_or(*value, str::as_bytes));
        }
        wanted.push(0);
    }
    for shell in shells() {
        assert_eq!(
            output_of(shell, &script).escape_ascii().to_string(),
            wanted.escape_ascii().to_string(),
            "{shell}: {}",
            script.escape_ascii()
        );
    }
}

#[test]
fn every_hostile_value_arrives_as_it_is() {
    for (ix, (text, expected)) in PARTS.iter().enumerate() {
        for (number, value) in HOSTILE.iter().enumerate() {
            // The lines around take turns.
            let (before, after) = LINES[(ix + number) % LINES.len()];
            check_line(&format!("{before}{text}{after}"), expected, &[value]);
        }
    }
}

#[test]
fn every_hostile_value_arrives_where_the_text_around_it_is_repeated() {
    for (number, &value) in HOSTILE.iter().enumerate() {
        let (text, expected) = PARTS[2 + number % (PARTS.len() - 2)];
        let other = HOSTILE[(number + 7) % HOSTILE.len()];
        check_line(&format!("printf '%s\\0' {text}"), expected, &[value, other]);
    }
}

mod random {
    use super::*;
    use proptest::prelude::*;
    use proptest::sample;

    const TOKENS: &[&str] = &[
        "a", " ", "\n", "echo ", "\"", "'", "`", ")", "))", "}", "${x}", " ]", "]", " ]]",
        " -eq 1", " #", "\nE\n", "E", ">", ";", ";;", "|", "&&", "esac", "x=", "]=1", ";fi",
        "cat ", ": ", "\t", "!", "~", "*", "=", "%", "{}", " {} ",
    ];

    /// Texts after which a reader of shell lines may be wrong.
    const OPENERS: &[&str] = &[
        "",
        "\\\n",
        "\\",
        "\"",
        "'",
        "`",
        "$",
        "$$",
        "$(",
        "$((",
        "((",
        "(",
        "${",
        "${x#",
        "$[",
        "{",
        "[",
        "[ ",
        "[[ ",
        "#",
        "<",
        "<<<",
        "<<E",
        "<< 'E'",
        "case a in a)",
        "x=(",
        "x=([ ",
        "a[",
        "f() ",
        "if true;then ",
        "cat <\\\n<E",
        "\"$\\\n(echo ",
        " \\\n#",
        "[x #]",
        "cat [x <<E ]",
        "`: #`",
        "$'\\'",
        "\"$(case a in a) echo \"",
    ];

    /// What `-I` can say, also where nobody would.
    const SPELLINGS: &[&str] = &[
        ",,", "%", "@", "VALUE", "_", "[]", "(v)", "'v'", "\"v", "$v", "\\v", "<v", ";v", " v",
        "#v", "=v",
    ];

    /// What stands for the value.
    fn spelling() -> impl Strategy<Value = &'static str> {
        prop_oneof![3 => Just("{}"), 1 => sample::select(SPELLINGS)]
    }

    /// Values that run `touch marker` wherever a shell reads more than a quoted word.
    const CODE: &[&str] = &[
        "`touch marker`\nE\ntouch marker\n",
        "x[`touch marker`]",
        "';touch marker;'",
        "\\';touch marker;#",
        "\";touch marker;\"",
        "\\\";touch marker;#",
        "$(touch marker)",
    ];

    fn value() -> impl Strategy<Value = Vec<u8>> {
        let pieces = prop_oneof![
            sample::select(HOSTILE).prop_map(<[u8]>::to_vec),
            proptest::collection::vec(1u8..=255, 0..12),
            "[ -~\n\t]{0,12}".prop_map(String::into_bytes),
        ];
        proptest::collection::vec(pieces, 1..3).prop_map(|pieces| pieces.concat())
    }

    fn cases(count: u32) -> ProptestConfig {
        ProptestConfig {
            cases: count,
            failure_persistence: None,
            ..ProptestConfig::default()
        }
    }

    proptest! {
        #![proptest_config(cases(150))]

        /// Each value arrives byte for byte, where the line is known.
        #[test]
        fn values_arrive_as_they_are(
            parts in proptest::collection::vec(0..PARTS.len(), 1..5), line in 0..LINES.len(), value in value()
        ) {
            let word: String = parts.iter().map(|&ix| PARTS[ix].0).collect();
            let expected: Vec<Option<&str>> = parts.iter().flat_map(|&ix| PARTS[ix].1.iter().copied()).collect();
            let (before, after) = LINES[line];
            check_line(&format!("{before}{word}{after}"), &expected, &[&value]);
        }
    }

    proptest! {
        #![proptest_config(cases(1000))]

        /// No line makes a shell execute a value.
        #[test]
        fn no_value_is_executed(
            before in tokens(), opener in sample::select(OPENERS),
            place in sample::select(&["{}", " {} ", "\n{}\n", "\"{}\"", "'{}'", "\"$x{}"][..]), after in tokens(), value in sample::select(CODE),
            whole in spelling(),
        ) {
            let line = format!("{before}{opener}{place}{after}").replace("{}", whole);
            if let Ok(script) = filled_with(whole, line.as_bytes(), &[value.as_bytes()], false) {
                for shell in shells() {
                    output_of(shell, &script);
                }
            }
        }
    }

    fn tokens() -> impl Strategy<Value = String> {
        proptest::collection::vec(sample::select(TOKENS), 0..6).prop_map(|tokens| tokens.concat())
    }
}
