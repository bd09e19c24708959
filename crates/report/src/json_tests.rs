use super::*;
use cosched_core::Snapshot;

#[derive(Debug, Deserialize)]
#[allow(dead_code)]
struct Outer {
    a: Vec<Inner>,
    b: u8,
}

#[derive(Debug, Deserialize)]
#[allow(dead_code)]
struct Inner {
    c: u32,
    d: String,
}

#[test]
fn errors_name_line_and_key() {
    let check = |text: &str, line: usize, key: &str, problem: &str| {
        let error = parse::<Outer>(text).unwrap_err();
        assert_eq!(
            (error.line.unwrap(), error.key.as_str()),
            (line, key),
            "{error}"
        );
        assert!(error.problem.contains(problem), "{error}");
    };
    check(
        r#"{"a":[{"c":1,"d":"x"},{"c":-3,"d":"y"}],"b":1}"#,
        1,
        "a[1].c",
        "expected u32",
    );
    check(
        "{\"a\":[\n{\"c\":1,\n\"d\":\"x\"},\n{\"c\":2,\"d\":[]}],\"b\":1}",
        4,
        "a[1].d",
        "expected a string",
    );
    check(
        r#"{"a":[{"c":1,"d":"} , \" ["},{"c":2}],"b":1}"#,
        1,
        "a[1]",
        "missing field `d`",
    );
    check(r#"{"a":[],"b":300}"#, 1, "b", "expected u8");
    check(r#"{"a":[]}"#, 1, "", "missing field `b`");
    check(r#"{"a":[{"c":1,"#, 1, "a[0]", "EOF");
    check("", 1, "", "EOF");
    check("nonsense", 1, "", "expected");
}

#[test]
fn a_schema_is_found_whatever_follows() {
    let found = |text: &str| schema_of(text).unwrap();
    assert_eq!(
        found("{\"a\": 1, \"schema\": \"x/1\"}\n[\"b\", 0]\n").as_deref(),
        Some("x/1")
    );
    assert_eq!(
        (found("{\"a\": 1}"), found("{\"schema\": 3}")),
        (None, None)
    );
    assert!(
        schema_of("nonsense").is_err()
            && schema_of(" \n").is_err()
            && schema_of("{\"schema\":").is_err()
    );
}

#[test]
fn any_text_is_survived() {
    for text in [
        "{\"a\\",
        "\"\\",
        "]]}}",
        "{\"ä",
        "[[[[,,,",
        "{,\"\":\"",
        "\u{7f}\0",
    ] {
        assert!(parse::<Snapshot>(text).is_err());
    }
}
