//! So much of HTTP as a scraper of metrics needs: one GET on a connection. Everything else is refused.

use cosched_report::MetricsFormat;

/// Bytes of a request at most.
pub(super) const MOST_REQUEST: usize = 8 << 10;

/// What has come of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Parsed {
    /// Not all of it.
    Part,
    /// The metrics, in this format.
    Metrics(MetricsFormat),
    /// What can't be served: the status, and why.
    Refused(&'static str, &'static str),
}

/// Reads the head of a request, as far as it has come.
pub(super) fn parse(heard: &[u8]) -> Parsed {
    let end = |mark: &[u8]| heard.windows(mark.len()).position(|window| window == mark);
    let Some(end) = end(b"\r\n\r\n").or_else(|| end(b"\n\n")) else {
        return if heard.len() >= MOST_REQUEST {
            Parsed::Refused(
                "431 Request Header Fields Too Large",
                "a request has at most 8192 bytes",
            )
        } else {
            Parsed::Part
        };
    };
    let bad = Parsed::Refused("400 Bad Request", "this is no HTTP request");
    let Ok(head) = std::str::from_utf8(&heard[..end]) else {
        return bad;
    };
    let mut lines = head.lines();
    let mut words = lines.next().unwrap_or_default().split(' ');
    let (Some(method), Some(target), Some(version), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return bad;
    };
    if !["HTTP/1.0", "HTTP/1.1"].contains(&version) {
        return bad;
    }
    if method != "GET" {
        return Parsed::Refused("405 Method Not Allowed", "only GET is served");
    }
    if target.split('?').next() != Some("/metrics") {
        return Parsed::Refused("404 Not Found", "only /metrics is served");
    }
    let accepts = |line: &str| {
        let (name, value) = line.split_once(':')?;
        (name.eq_ignore_ascii_case("accept")).then(|| {
            value
                .to_ascii_lowercase()
                .contains("application/openmetrics-text")
        })
    };
    let is_open = lines.filter_map(accepts).any(|accepts| accepts);
    Parsed::Metrics(if is_open {
        MetricsFormat::OpenMetrics
    } else {
        MetricsFormat::Plain
    })
}

/// An answer with metrics.
pub(super) fn answer(format: MetricsFormat, body: &str) -> Vec<u8> {
    message("200 OK", format.media_type(), body)
}

/// A refusal.
pub(super) fn refusal(status: &str, why: &str) -> Vec<u8> {
    message(status, "text/plain; charset=utf-8", &format!("{why}\n"))
}

fn message(status: &str, kind: &str, body: &str) -> Vec<u8> {
    let allow = if status.starts_with("405") {
        "Allow: GET\r\n"
    } else {
        ""
    };
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n{allow}Cache-Control: no-store\r\nConnection: \
         close\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_kind_of_request_is_served() {
        let plain = Parsed::Metrics(MetricsFormat::Plain);
        let open = Parsed::Metrics(MetricsFormat::OpenMetrics);
        let status = |text: &str| match parse(text.as_bytes()) {
            Parsed::Refused(status, _) => status[..3].parse::<u16>().unwrap(),
            other => panic!("{other:?}"),
        };
        assert_eq!(parse(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"), plain);
        assert_eq!(parse(b"GET /metrics?a=b HTTP/1.0\n\n"), plain);
        let head = "GET /metrics HTTP/1.1\r\naccept: application/openmetrics-text;version=1.0.0;q=0.5,text/plain;q=0.2\r\n\r\n";
        assert_eq!(parse(head.as_bytes()), open);
        for end in 0..head.len() - 1 {
            assert_eq!(parse(&head.as_bytes()[..end]), Parsed::Part);
        }
        assert_eq!(status("POST /metrics HTTP/1.1\r\n\r\n"), 405);
        assert_eq!(status("GET / HTTP/1.1\r\n\r\n"), 404);
        for bad in [
            "GET /metrics\r\n\r\n",
            "GET  /metrics HTTP/1.1\r\n\r\n",
            "GET /metrics HTTP/2\r\n\r\n",
            "x\n\n",
            "\n\n",
        ] {
            assert_eq!(status(bad), 400, "{bad:?}");
        }
        assert_eq!(status(&"x".repeat(MOST_REQUEST)), 431);
        assert!(matches!(parse(b"\xff\xfe\r\n\r\n"), Parsed::Refused(..)));
    }

    #[test]
    fn answers_tell_their_length() {
        let text = String::from_utf8(answer(MetricsFormat::OpenMetrics, "a 1\n# EOF\n")).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with(
            "HTTP/1.1 200 OK\r\nContent-Type: application/openmetrics-text; version=1.0.0; charset=utf-8"
        ));
        assert!(head.contains(&format!("Content-Length: {}", body.len())));
        assert!(
            String::from_utf8(refusal("405 Method Not Allowed", "no"))
                .unwrap()
                .contains("\r\nAllow: GET\r\n")
        );
    }
}
