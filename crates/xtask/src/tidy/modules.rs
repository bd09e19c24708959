//! The modules of a crate, and which file a path leads to.

use super::files_below;
use super::source::SourceFile;
use anyhow::{Context as _, Result};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::path::Path;

/// The path of a module inside its crate; empty for the root.
pub type ModulePath = Vec<String>;

/// A crate: its modules with their sources, one a file.
pub struct Crate {
    pub name: String,
    pub modules: BTreeMap<ModulePath, SourceFile>,
}

impl Crate {
    /// Reads the sources of the crate in `folder`, without its tests.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn read(folder: &Path) -> Result<Crate> {
        let name = folder
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let root = folder.join("src");
        let mut modules = BTreeMap::new();
        for path in files_below(&root, OsStr::new("rs"))? {
            let relative = path.strip_prefix(&root)?.to_string_lossy().into_owned();
            if is_test_file(&relative) {
                continue;
            }
            let text =
                fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
            modules.insert(module_of(&relative), SourceFile::parse(&text));
        }
        Ok(Crate { name, modules })
    }

    /// The module that defines what `path` names as seen from `module`. `None` outside of the crate, and for names of the
    /// module itself.
    pub fn definer(&self, module: &ModulePath, path: &[String]) -> Option<ModulePath> {
        let absolute = self.absolute(module, path)?;
        self.follow(absolute, 0).filter(|found| found != module)
    }

    /// The path from the root of the crate.
    fn absolute(&self, module: &ModulePath, path: &[String]) -> Option<Vec<String>> {
        let mut base = module.clone();
        let mut rest = path;
        match rest.first()?.as_str() {
            "crate" => {
                base.clear();
                rest = &rest[1..];
            }
            "self" => rest = &rest[1..],
            "super" => {}
            name => {
                let is_child = self.modules.contains_key(&join(&base, name));
                if path.len() < 2 || !is_child {
                    return None;
                }
            }
        }
        while rest.first().is_some_and(|segment| segment == "super") {
            base.pop()?;
            rest = &rest[1..];
        }
        base.extend(rest.iter().cloned());
        Some(base)
    }

    /// The module where a path ends, behind re-exports.
    fn follow(&self, path: Vec<String>, depth: usize) -> Option<ModulePath> {
        let known = (0..=path.len())
            .rev()
            .find(|&n| self.modules.contains_key(&path[..n]))?;
        let module: ModulePath = path[..known].to_vec();
        let Some(name) = path.get(known).filter(|_| depth < 8) else {
            return Some(module);
        };
        let source = &self.modules[&module];
        let re_export = source.re_exports.iter().find(|one| one.name == *name);
        match re_export.and_then(|one| self.absolute(&module, &one.path)) {
            Some(further) => self.follow(further, depth + 1),
            None => Some(module),
        }
    }

    /// The file of a module, as it is written in reports.
    pub fn shown(&self, module: &ModulePath) -> String {
        format!("{}::{}", self.name, module.join("::"))
    }
}

fn join(module: &ModulePath, name: &str) -> ModulePath {
    module.iter().cloned().chain([name.to_owned()]).collect()
}

fn module_of(relative: &str) -> ModulePath {
    let path = relative.trim_end_matches(".rs");
    let path = path.strip_suffix("/mod").unwrap_or(path);
    if matches!(path, "lib" | "main") {
        return Vec::new();
    }
    path.split('/').map(str::to_owned).collect()
}

fn is_test_file(relative: &str) -> bool {
    let name = relative.rsplit('/').next().unwrap_or(relative);
    matches!(name, "tests.rs" | "test.rs" | "testing.rs")
        || name.ends_with("_tests.rs")
        || relative.contains("tests/")
}
