//! `run --metrics`, asked by a raw socket.

mod common;

use common::looping::Run;
use common::{cosched, err, until};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::Duration;
use tempfile::tempdir;

/// A port that was free a moment ago.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0")
        .expect("a port")
        .local_addr()
        .expect("an address")
        .port()
}

/// The whole answer to a request: head and body.
fn exchange(mut stream: impl Read + Write, request: &str) -> (String, String) {
    stream
        .write_all(request.as_bytes())
        .expect("a request is taken");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("an answer");
    let (head, body) = text
        .split_once("\r\n\r\n")
        .unwrap_or_else(|| panic!("{text}"));
    (head.to_owned(), body.to_owned())
}

fn connect(port: u16) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", port)).expect("somebody listens");
    stream
        .set_read_timeout(Some(Duration::from_secs(60)))
        .expect("a limit");
    stream
}

const GET: &str = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n";

#[test]
fn metrics_are_served_in_both_formats_to_those_who_ask_well() {
    let port = free_port();
    let run = Run::start(&["--metrics", &port.to_string()]);
    let (head, body) = exchange(connect(port), &format!("{GET}\r\n"));
    assert!(
        head.starts_with("HTTP/1.1 200 OK") && head.contains("text/plain; version=0.0.4"),
        "{head}"
    );
    assert!(
        head.contains(&format!("Content-Length: {}", body.len())),
        "{head}"
    );
    assert!(
        body.contains("# TYPE cosched_jobs gauge\ncosched_jobs{state=\"running\"} ")
            && !body.contains("# EOF"),
        "{body}"
    );
    assert!(
        body.contains("cosched_jobs_ended_total ") && !body.contains("loop-1"),
        "{body}"
    );
    let (head, body) = exchange(
        connect(port),
        &format!("{GET}Accept: application/openmetrics-text; version=1.0.0\r\n\r\n"),
    );
    assert!(
        head.contains("application/openmetrics-text; version=1.0.0; charset=utf-8"),
        "{head}"
    );
    assert!(
        body.ends_with("# EOF\n") && body.contains("# UNIT cosched_elapsed_seconds seconds"),
        "{body}"
    );
    for (request, status) in [
        ("POST /metrics HTTP/1.1\r\n\r\n", "405"),
        ("GET /secrets HTTP/1.1\r\n\r\n", "404"),
        ("{\"ask\":\"status\"}\n\n", "400"),
    ] {
        let (head, _) = exchange(connect(port), request);
        assert!(
            head.starts_with(&format!("HTTP/1.1 {status}")),
            "{request}: {head}"
        );
    }
    // Who never ends the request, or leaves in the middle, is no trouble.
    let mut slow: Vec<TcpStream> = (0..10).map(|_| connect(port)).collect();
    slow.iter_mut()
        .for_each(|stream| stream.write_all(b"GET /metr").expect("a beginning"));
    drop(slow.split_off(5));
    let (head, _) = exchange(connect(port), &format!("{GET}\r\n"));
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    run.end();
    assert!(
        TcpStream::connect(("127.0.0.1", port)).is_err(),
        "the port is free again"
    );
}

#[test]
fn metrics_are_served_in_the_file_system_too() {
    let folder = tempdir().expect("a folder");
    let path = folder.path().join("metrics");
    let run = Run::start(&["--metrics", &format!("unix:{}", path.display())]);
    let (head, body) = exchange(
        UnixStream::connect(&path).expect("a socket"),
        &format!("{GET}\r\n"),
    );
    assert!(
        head.starts_with("HTTP/1.1 200") && body.contains("cosched_info{"),
        "{head}\n{body}"
    );
    run.end();
    until("the socket is gone", || !path.exists());
}

#[test]
fn an_address_that_can_not_be_had_is_an_error_before_anything_starts() {
    let folder = tempdir().expect("a folder");
    let held = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = held.local_addr().expect("an address").port().to_string();
    for address in [
        port.as_str(),
        "host:x",
        "192.0.2.1:9",
        "unix:/no/such/folder/m",
    ] {
        let output = cosched(
            &folder,
            &["run", "--metrics", address, "--", "touch", "started"],
        );
        assert_eq!(output.status.code(), Some(2), "{address}: {}", err(&output));
        assert!(err(&output).contains("--metrics"), "{}", err(&output));
        assert!(
            !folder.path().join("started").exists() && !folder.path().join("cosched-logs").exists()
        );
    }
}

#[test]
fn an_address_for_all_is_warned_of() {
    let folder = tempdir().expect("a folder");
    let output = cosched(&folder, &["run", "--metrics", "0.0.0.0:0", "--", "true"]);
    assert!(output.status.success());
    let told = err(&output);
    assert!(
        told.contains("metrics are served at 0.0.0.0:") && told.contains("whoever can reach"),
        "{told}"
    );
    let output = cosched(&folder, &["run", "--metrics", "0", "--", "true"]);
    assert!(
        output.status.success() && !err(&output).contains("whoever can reach"),
        "{}",
        err(&output)
    );
}
