//! Circles: files of a crate that import each other in a loop. Re-exports do not count as imports, and neither do
//! imports between a module and what is inside it.

use super::modules::{Crate, ModulePath};
use std::collections::{BTreeMap, BTreeSet};

type Imports<'a> = BTreeMap<&'a ModulePath, BTreeSet<ModulePath>>;

/// The circles of a crate, each as the names of its modules.
pub(super) fn of(one: &Crate) -> Vec<Vec<String>> {
    let imports: Imports = one
        .modules
        .keys()
        .map(|module| (module, imports_of(one, module)))
        .collect();
    let reach: Imports = imports
        .keys()
        .map(|module| (*module, reachable(&imports, module)))
        .collect();
    let mut seen = BTreeSet::new();
    let mut circles = Vec::new();
    for module in one
        .modules
        .keys()
        .filter(|module| reach[module].contains(*module))
    {
        if seen.contains(module) {
            continue;
        }
        let circle: Vec<&ModulePath> = reach[module]
            .iter()
            .filter(|other| reach[other].contains(module))
            .collect();
        seen.extend(circle.iter().copied());
        circles.push(circle.iter().map(|module| one.shown(module)).collect());
    }
    circles
}

fn imports_of(one: &Crate, module: &ModulePath) -> BTreeSet<ModulePath> {
    let paths = one.modules[module].paths.iter();
    paths
        .filter_map(|path| one.definer(module, path))
        .filter(|other| !other.starts_with(module) && !module.starts_with(other))
        .collect()
}

/// All modules that imports lead to, directly or by others.
fn reachable(imports: &Imports, start: &ModulePath) -> BTreeSet<ModulePath> {
    let mut reached = BTreeSet::new();
    let mut open: Vec<&ModulePath> = imports[start].iter().collect();
    while let Some(module) = open.pop() {
        if reached.insert(module.clone()) {
            open.extend(imports[module].iter());
        }
    }
    reached
}
