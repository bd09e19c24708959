//! One source file, as text in rustfmt's form: the paths that it names. Tests are left out.

/// A name that a file makes visible under another path: `pub use child::Name`.
pub struct ReExport {
    pub name: String,
    pub path: Vec<String>,
}

/// What a file says.
#[derive(Default)]
pub struct SourceFile {
    /// Paths that it imports or names, by their segments.
    pub paths: Vec<Vec<String>>,
    pub re_exports: Vec<ReExport>,
}

impl SourceFile {
    pub fn parse(text: &str) -> SourceFile {
        let lines = without_tests(text);
        let mut source = SourceFile::default();
        source.read_paths(&lines);
        source
    }

    fn read_paths(&mut self, lines: &[&str]) {
        let code: Vec<&str> = lines.iter().copied().filter(|line| is_code(line)).collect();
        let mut rest = code.as_slice();
        while let Some((line, further)) = rest.split_first() {
            rest = further;
            let Some((is_public, begin)) = import_of(line) else {
                self.paths.extend(paths_in(line));
                continue;
            };
            let mut import = begin.to_owned();
            while !import.ends_with(';') {
                let Some((line, further)) = rest.split_first() else {
                    break;
                };
                import.push_str(line.trim());
                rest = further;
            }
            self.import(is_public, import.trim_end_matches(';'));
        }
    }

    fn import(&mut self, is_public: bool, tree: &str) {
        let mut imported = Vec::new();
        flatten(tree, &[], &mut imported);
        for (path, name) in imported {
            if is_public {
                self.re_exports.push(ReExport { name, path });
            } else {
                self.paths.push(path);
            }
        }
    }
}

/// The lines of a file but for items behind `#[cfg(test)]`.
fn without_tests(text: &str) -> Vec<&str> {
    let mut kept = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let attribute = line.trim_start();
        let is_test =
            attribute.starts_with("#[cfg(test") || attribute.starts_with("#[cfg(all(test");
        if !is_test {
            kept.push(line);
            continue;
        }
        let here = indent(line);
        lines.find(|line| ends_item(line, here));
    }
    kept
}

/// Whether the line ends an item that begins at an indent: with its brace, or in one line.
fn ends_item(line: &str, here: &str) -> bool {
    indent(line) == here && (line.trim() == "}" || line.ends_with(';') || line.ends_with("{}"))
}

fn indent(line: &str) -> &str {
    &line[..line.len() - line.trim_start().len()]
}

fn is_code(line: &str) -> bool {
    let line = line.trim();
    !line.is_empty() && !line.starts_with("//")
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The tree that a line begins to import, and whether the import is public.
fn import_of(line: &str) -> Option<(bool, &str)> {
    let line = line.trim();
    if let Some(tree) = line.strip_prefix("use ") {
        return Some((false, tree));
    }
    let (visibility, tree) = line.split_once(" use ")?;
    let is_public =
        visibility == "pub" || visibility.starts_with("pub(") && !visibility.contains(' ');
    is_public.then_some((true, tree))
}

/// Paths of two and more segments that a line names.
fn paths_in(line: &str) -> impl Iterator<Item = Vec<String>> {
    let code = line.split("//").next().unwrap_or(line);
    let words = code.split(|c: char| !is_name(c) && c != ':');
    let paths = words.filter(|word| word.contains("::"));
    paths.map(|path| path.split("::").map(str::to_owned).collect())
}

/// Each path of an import tree, with the name under which it is visible.
fn flatten(tree: &str, above: &[String], found: &mut Vec<(Vec<String>, String)>) {
    let tree = tree.trim();
    if let Some((head, group)) = tree.split_once('{') {
        let base = extend(above, head.trim_end_matches("::"));
        let inner = group.strip_suffix('}').unwrap_or(group);
        for part in split_group(inner) {
            flatten(part, &base, found);
        }
        return;
    }
    let Some((path, name)) = tree.split_once(" as ") else {
        let path = extend(above, tree);
        let name = path.last().cloned().unwrap_or_default();
        found.push((path, name));
        return;
    };
    found.push((extend(above, path), name.to_owned()));
}

fn extend(above: &[String], path: &str) -> Vec<String> {
    let mut whole = above.to_vec();
    if path == "self" && !above.is_empty() {
        return whole;
    }
    for segment in path.split("::") {
        if !segment.is_empty() {
            whole.push(segment.to_owned());
        }
    }
    whole
}

/// The parts between the commas of a group, whatever groups they hold themselves.
fn split_group(group: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut depth, mut begin) = (0, 0);
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&group[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&group[begin..]);
    parts.retain(|part| !part.trim().is_empty());
    parts
}
