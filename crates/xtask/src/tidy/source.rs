//! One source file, as text in rustfmt's form: its functions, its named closures and the paths that it names.
//! Tests are left out.

/// Sizes of functions and the number of named closures, of a file or of many.
#[derive(Default)]
pub struct CodeSizes {
    /// Lines of code, without blank lines and comments.
    lines: usize,
    closures: usize,
    /// Lines and name of each function.
    functions: Vec<(usize, String)>,
}

impl CodeSizes {
    pub fn sum<'a>(parts: impl Iterator<Item = &'a CodeSizes>) -> CodeSizes {
        let mut sum = CodeSizes::default();
        for part in parts {
            sum.lines += part.lines;
            sum.closures += part.closures;
            sum.functions.extend(part.functions.iter().cloned());
        }
        sum.functions.sort();
        sum
    }

    /// The longest functions, the longest first.
    pub fn longest(&self, number: usize) -> impl Iterator<Item = &(usize, String)> {
        self.functions.iter().rev().take(number)
    }

    /// Lines that so many per cent of the functions do not exceed. Only of a sum.
    pub fn percentile(&self, percent: usize) -> usize {
        let last = self.functions.len().saturating_sub(1);
        let function = self.functions.get(last * percent / 100);
        function.map_or(0, |(lines, _)| *lines)
    }

    pub fn closures_per_thousand(&self) -> f64 {
        1000.0 * self.closures as f64 / self.lines.max(1) as f64
    }
}

/// A name that a file makes visible under another path: `pub use child::Name`.
pub struct ReExport {
    pub name: String,
    pub path: Vec<String>,
}

/// What a file says.
#[derive(Default)]
pub struct SourceFile {
    pub measured: CodeSizes,
    /// Paths that it imports or names, by their segments.
    pub paths: Vec<Vec<String>>,
    pub re_exports: Vec<ReExport>,
}

impl SourceFile {
    /// Reads a file; `file` is its name for reports.
    pub fn parse(file: &str, text: &str) -> SourceFile {
        let lines = without_tests(text);
        let mut source = SourceFile::default();
        source.measure(file, &lines);
        source.read_paths(&lines);
        source
    }

    fn measure(&mut self, file: &str, lines: &[&str]) {
        for (number, line) in lines.iter().enumerate() {
            self.measured.lines += usize::from(is_code(line));
            self.measured.closures += usize::from(names_closure(line));
            if let Some(name) = function_name(line) {
                let length = length_of_block(&lines[number..]);
                let name = format!("{file}:{name}");
                self.measured.functions.push((length, name));
            }
        }
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

/// Whether the line is `let name = |...`.
fn names_closure(line: &str) -> bool {
    let Some(binding) = line.trim_start().strip_prefix("let ") else {
        return false;
    };
    let value = binding.split_once(" = ").map(|(_, value)| value);
    value.is_some_and(|value| value.starts_with('|') || value.starts_with("move |"))
}

/// The name of the function that begins on a line.
fn function_name(line: &str) -> Option<&str> {
    let (before, after) = line.split_once("fn ")?;
    let begins = before.split_whitespace().all(is_qualifier);
    let end = after.find(|c: char| !is_name(c))?;
    (begins && end > 0).then(|| &after[..end])
}

/// Whether a word can stand before `fn`.
fn is_qualifier(word: &str) -> bool {
    let name = word.split('(').next().unwrap_or(word);
    let is_known = ["const", "async", "unsafe", "extern", "\"C\"", "pub"].contains(&name);
    is_known || word == "in" || word.ends_with(')')
}

/// Lines from the first to the closing brace of the same indent.
fn length_of_block(lines: &[&str]) -> usize {
    let head = lines
        .iter()
        .position(|line| line.ends_with(['{', '}', ';']));
    if let Some(head) = head.filter(|&head| !lines[head].ends_with('{')) {
        // A declaration without a body, or a body of one line.
        return head + 1;
    }
    let closing = format!("{}}}", indent(lines[0]));
    let last = lines.iter().position(|line| *line == closing);
    last.map_or(1, |last| last + 1)
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
