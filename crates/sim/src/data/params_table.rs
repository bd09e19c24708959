//! The table `params` of a machine file: policies' parameters that depend on the machine.

use super::error::SpecError;
use super::table::FileTable;
use cosched_core::spelling::did_you_mean;
use cosched_core::{POLICIES, Params, PolicyEntry};

/// Reads the table, if present. Each key must be a parameter of some policy, in the range of every policy that has it.
pub(super) fn read_params(top: &FileTable<'_>) -> Result<Vec<(String, String)>, SpecError> {
    let mut settings = Vec::new();
    let Some(table) = top.optional_table("params")? else {
        return Ok(settings);
    };
    let table = table.with_source()?;
    for (name, value) in table.settings() {
        if name == "source" || name == "assumed" {
            continue;
        }
        let policies: Vec<&PolicyEntry> = POLICIES
            .iter()
            .filter(|policy| policy.params.iter().any(|param| param.name == name))
            .collect();
        if policies.is_empty() {
            let hint = did_you_mean(name, &known_names());
            let message = format!(
                "[params] {name} is not a parameter of any policy{hint}; `cosched list policies` shows them"
            );
            return Err(table.refuse(name, message));
        }
        let setting = [(name.to_owned(), value.to_owned())];
        for policy in policies {
            Params::resolve(policy.name, policy.params, &setting)
                .map_err(|error| table.refuse(name, error))?;
        }
        settings.extend(setting);
    }
    Ok(settings)
}

/// The names of the parameters of all policies.
fn known_names() -> Vec<&'static str> {
    let params = POLICIES.iter().flat_map(|policy| policy.params);
    params.map(|param| param.name).collect()
}
