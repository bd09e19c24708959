//! What those who look are sent, as pieces that several of them can share.

use std::rc::Rc;

/// A piece of an answer.
pub(super) type Piece = Rc<[u8]>;

/// The schema of answers on the socket.
pub const WINDOW_SCHEMA: &str = "cosched.window/1";

/// Why there is no state.
pub(super) const NO_STATE: &str =
    "the run has not answered yet: it is suspended, or it begins or ends";

/// The state of the run and its age in seconds, on a line; or why there is none.
pub(super) fn status(state: Option<(f64, &Piece)>) -> Vec<Piece> {
    let head = match state {
        Some((age_s, _)) => {
            format!("{{\"schema\":\"{WINDOW_SCHEMA}\",\"age_s\":{age_s:.3},\"status\":")
        }
        None => format!(
            "{{\"schema\":\"{WINDOW_SCHEMA}\",\"age_s\":null,\"status_absent\":\"{NO_STATE}\",\"status\":"
        ),
    };
    let state = state.map_or_else(|| Rc::from(&b"null"[..]), |(_, state)| state.clone());
    vec![head.into_bytes().into(), state, Rc::from(&b"}\n"[..])]
}

/// An answer that says what was done.
pub(super) fn done(what: &str) -> Vec<u8> {
    format!(
        "{}\n",
        serde_json::json!({"schema": WINDOW_SCHEMA, "done": what})
    )
    .into_bytes()
}

/// An answer that says what is wrong.
pub(super) fn refusal(why: &str) -> Vec<u8> {
    format!(
        "{}\n",
        serde_json::json!({"schema": WINDOW_SCHEMA, "error": why})
    )
    .into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_lines_of_json() {
        let read = |pieces: Vec<Piece>| -> serde_json::Value {
            let text = pieces.concat();
            assert_eq!(
                text.iter().position(|&byte| byte == b'\n'),
                Some(text.len() - 1)
            );
            serde_json::from_slice(&text).unwrap()
        };
        let told = read(status(None));
        assert!(
            told["status"].is_null()
                && told["status_absent"]
                    .as_str()
                    .is_some_and(|why| why.contains("suspended"))
        );
        let state: Piece = Rc::from(&br#"{"a":1}"#[..]);
        let told = read(status(Some((4.9, &state))));
        assert_eq!(
            (&told["age_s"], &told["status"]["a"]),
            (&4.9.into(), &1.into())
        );
        assert_eq!(read(vec![refusal("a \"b\"").into()])["error"], "a \"b\"");
    }
}
