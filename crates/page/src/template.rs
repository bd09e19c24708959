//! Files of text with places for values.

/// Replace each `{{name}}` of a template by the value with this name. Values are not searched for places.
pub(crate) fn fill(template: &str, values: &[(&str, &str)]) -> String {
    let mut parts = template.split("{{");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (name, rest) = part.split_once("}}").unwrap_or((part, ""));
        for (known, value) in values {
            if *known == name {
                out.push_str(value);
            }
        }
        out.push_str(rest);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_not_searched_for_places() {
        let values = [("a", "{{b}}"), ("b", "x")];
        assert_eq!(fill("<{{a}} {{b}}}> {{b}}", &values), "<{{b}} x}> x");
    }
}
