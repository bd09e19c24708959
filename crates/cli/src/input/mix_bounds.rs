//! Refuses mix files that are nested so deeply that reading them would take much memory.

/// The deepest nesting of brackets that is read. A mix file needs two levels: `[[job]]`, or a list of words.
const DEEPEST: usize = 8;

/// The line, from 1, on which a TOML text is nested too deeply. It looks at brackets outside of texts and comments only;
/// everything else is left to the reader of TOML.
pub(crate) fn too_deep(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let (mut at, mut line, mut depth) = (0, 1, 0usize);
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'\n' => line += 1,
            b'#' => {
                at += bytes[at..].iter().position(|&byte| byte == b'\n').unwrap_or(bytes.len() - at);
                continue;
            }
            b'"' | b'\'' => {
                let end = end_of_text(bytes, at);
                line += bytes[at..end].iter().filter(|&&byte| byte == b'\n').count();
                at = end;
                continue;
            }
            b'[' | b'{' => {
                depth += 1;
                if depth > DEEPEST {
                    return Some(line);
                }
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        at += 1;
    }
    None
}

/// The position behind the text in quotes that begins at `at`. Without three quotes it ends with its line at the latest.
fn end_of_text(bytes: &[u8], at: usize) -> usize {
    let quote = bytes[at];
    let three = [quote; 3];
    let long = bytes[at..].starts_with(&three);
    let mut end = at + if long { 3 } else { 1 };
    while end < bytes.len() {
        match bytes[end] {
            b'\\' if quote == b'"' => end += 1,
            b'\n' if !long => return end,
            byte if byte == quote && !long => return end + 1,
            _ if long && bytes[end..].starts_with(&three) => return end + 3,
            _ => {}
        }
        end += 1;
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_are_counted_where_they_nest() {
        assert_eq!(too_deep("[[job]]\ncommand = [\"a\", \"[[[[[[[[[[\", '[[[[[[[[[[[']\n".repeat(50).as_str()), None);
        assert_eq!(too_deep("x = \"\"\"\n[[[[[[[[[[\"\"\"\n# [[[[[[[[[[[\ny = \"\\\"[[[[[[[[[\"\n"), None);
        assert_eq!(too_deep("\n\n[[[[[[[[["), Some(3));
        assert_eq!(too_deep("x = \"\"\"\n\n\"\"\"\ny = {a={a={a={a={a={a={a={a={a=1"), Some(4));
        assert_eq!(too_deep(&"[".repeat(1 << 20)), Some(1));
        assert_eq!((too_deep("\""), too_deep("'''"), too_deep("\"\\")), (None, None, None));
    }
}
