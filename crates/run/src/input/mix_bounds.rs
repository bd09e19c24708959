//! Refuses mix files that would take much memory to read: those that are nested deeply, or hold very many values.

/// The deepest nesting of brackets that is read. A mix file needs two levels: `[[job]]`, or a list of words.
const DEEPEST: usize = 8;

/// The most values, tables and lists together. Half a million jobs with a name and a command of two words have as many.
const MOST_VALUES: usize = 4_000_000;

/// What is too much in a TOML text, with the line, from 1. It looks at what stands outside of texts and comments only;
/// everything else is left to the reader of TOML.
pub(crate) fn too_much(text: &str) -> Option<(usize, String)> {
    let bytes = text.as_bytes();
    let (mut at, mut line, mut depth, mut values) = (0, 1, 0usize, 0usize);
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'\n' => line += 1,
            b'#' => {
                at += bytes[at..]
                    .iter()
                    .position(|&byte| byte == b'\n')
                    .unwrap_or(bytes.len() - at);
                continue;
            }
            b'"' | b'\'' => {
                let end = end_of_text(bytes, at);
                line += bytes[at..end].iter().filter(|&&byte| byte == b'\n').count();
                at = end;
                continue;
            }
            b'[' | b'{' | b',' | b'=' => {
                values += 1;
                depth += usize::from(byte == b'[' || byte == b'{');
                if depth > DEEPEST {
                    return Some((line, "the brackets are nested too deeply".to_owned()));
                }
                if values > MOST_VALUES {
                    let problem = format!(
                        "there are more than {MOST_VALUES} values; divide the file into several"
                    );
                    return Some((line, problem));
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

    fn line(text: &str) -> Option<usize> {
        too_much(text).map(|(line, _)| line)
    }

    #[test]
    fn brackets_are_counted_where_they_nest() {
        assert_eq!(
            line(&"[[job]]\ncommand = [\"a\", \"[[[[[[[[[[\", '[[[[[[[[[[[']\n".repeat(50)),
            None
        );
        assert_eq!(
            line("x = \"\"\"\n[[[[[[[[[[\"\"\"\n# [[[[[[[[[[[\ny = \"\\\"[[[[[[[[[\"\n"),
            None
        );
        assert_eq!(line("\n\n[[[[[[[[["), Some(3));
        assert_eq!(
            line("x = \"\"\"\n\n\"\"\"\ny = {a={a={a={a={a={a={a={a={a=1"),
            Some(4)
        );
        assert_eq!(line(&"[".repeat(1 << 20)), Some(1));
        assert_eq!((line("\""), line("'''"), line("\"\\")), (None, None, None));
    }

    #[test]
    fn values_are_counted() {
        assert_eq!(
            line(&"[[job]]\nname = \"a\"\ncommand = [\"a\", \"b\"]\n".repeat(500_000)),
            None
        );
        assert_eq!(
            line(&format!("a = [\n{}]", "[],".repeat(MOST_VALUES / 2))),
            Some(2)
        );
    }
}
