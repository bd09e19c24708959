//! Circles: files of a crate that import each other in a loop. Re-exports do not count as imports, and neither do
//! imports between a module and what is inside it.

use super::modules::{Crate, ModulePath};
use std::collections::{BTreeMap, BTreeSet};

type Imports<'a> = BTreeMap<&'a ModulePath, BTreeSet<ModulePath>>;

/// The circles of a crate, each as the names of its modules.
pub fn of(one: &Crate) -> Vec<Vec<String>> {
    let mut imports = Imports::new();
    for module in one.modules.keys() {
        imports.insert(module, imports_of(one, module));
    }
    let mut reach = Imports::new();
    for module in imports.keys() {
        reach.insert(module, reachable(&imports, module));
    }
    let mut seen = BTreeSet::new();
    let mut circles = Vec::new();
    for module in one.modules.keys() {
        if seen.contains(module) || !reach[module].contains(module) {
            continue;
        }
        let mut circle: Vec<&ModulePath> = reach[module].iter().collect();
        circle.retain(|other| reach[other].contains(module));
        circles.push(circle.iter().map(|module| one.shown(module)).collect());
        seen.extend(circle);
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
