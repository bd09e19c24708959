//! The rules of a service: which programs it is about. A file in TOML.

use cosched_linux::attached::Selection;
use serde::Deserialize;

/// The file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Rules {
    #[serde(default)]
    rule: Vec<Words>,
}

/// A rule as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Words {
    cgroup: Option<String>,
    unit: Option<String>,
    user: Option<String>,
    #[serde(rename = "match")]
    matching: Option<String>,
}

/// Parses the rules of a file.
///
/// # Errors
/// What is wrong, in which rule.
pub fn parse(text: &str) -> Result<Vec<Selection>, String> {
    let rules: Rules = toml::from_str(text).map_err(|error| error.to_string())?;
    if rules.rule.is_empty() {
        return Err("there is no rule; write at least one [[rule]]".to_owned());
    }
    let mut all = Vec::new();
    for (words, number) in rules.rule.into_iter().zip(1..) {
        let selection = words.selection();
        all.push(
            selection.ok_or_else(|| {
                format!("rule {number} needs one of unit, user, cgroup and match")
            })?,
        );
    }
    Ok(all)
}

impl Words {
    /// The one selection of a rule.
    fn selection(self) -> Option<Selection> {
        let all = [
            self.cgroup.map(Selection::Cgroup),
            self.unit.map(Selection::Unit),
            self.user.map(Selection::User),
            self.matching.map(Selection::Match),
        ];
        let mut given = all.into_iter().flatten();
        given.next().filter(|_| given.next().is_none())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rule_names_programs_in_one_way() {
        let text = "[[rule]]\nunit = \"db*.service\"\n[[rule]]\nuser = \"alice\"\n";
        let rules = parse(text).unwrap();
        let selections: Vec<String> = rules.iter().map(Selection::to_string).collect();
        assert_eq!(selections, ["--unit db*.service", "--user alice"]);
        for (text, error) in [
            ("", "there is no rule"),
            ("[[rule]]\n", "rule 1 needs one of"),
            (
                "[[rule]]\nuser = \"a\"\n[[rule]]\nuser = \"a\"\nunit = \"b\"\n",
                "rule 2 needs one of",
            ),
            ("[[rule]]\npid = 3\n", "unknown field `pid`"),
        ] {
            let found = parse(text).unwrap_err();
            assert!(found.contains(error), "{text:?}: {found}");
        }
    }
}
