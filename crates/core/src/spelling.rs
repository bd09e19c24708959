//! Typing errors: finds the known word that was meant.

/// The known word that is nearest to `word`, if it differs by a letter or two, or is the only one that begins with
/// `word`.
pub fn near<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let known: Vec<&str> = known.into_iter().collect();
    let lower = word.to_lowercase();
    let length = lower.chars().count();
    let most = (length / 3).min(2);
    let nearest = known.iter().min_by_key(|known| distance(&lower, known))?;
    if distance(&lower, nearest) <= most {
        return Some(nearest);
    }
    let mut begun = known.iter().filter(|known| known.starts_with(&lower));
    match (begun.next(), begun.next()) {
        (Some(only), None) if length >= 3 => Some(only),
        _ => None,
    }
}

/// ` (did you mean X?)` for a message, or nothing.
pub fn did_you_mean(word: &str, known: &[&str]) -> String {
    match near(word, known.iter().copied()) {
        Some(meant) => format!(" (did you mean `{meant}`?)"),
        None => String::new(),
    }
}

/// The message that nothing of this kind has this name, with the names that there are.
pub fn unknown(kind: &str, name: &str, known: &[&str]) -> String {
    let hint = did_you_mean(name, known);
    let known = known.join(", ");
    format!("there is no {kind} `{name}`{hint}; there are {known}")
}

/// The least number of characters to insert, delete or change to turn one word into the other (Levenshtein's distance).
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, &y) in b.iter().enumerate() {
            let changed = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_recognised_and_nothing_else() {
        let known = [
            "mcf",
            "libquantum",
            "lbm",
            "xeon-e5645",
            "xeon-e5645-1ch",
            "big1-small3",
        ];
        let near = |word| near(word, known);
        assert_eq!(near("libqantum"), Some("libquantum"));
        assert_eq!(near("Mcf"), Some("mcf"));
        assert_eq!(near("mfc"), None);
        assert_eq!(near("mc"), None);
        assert_eq!(near("xeon-e5654"), Some("xeon-e5645"));
        assert_eq!(near("big1"), Some("big1-small3"));
        assert_eq!(near("xeon"), None, "two begin so");
        assert_eq!((near(""), near("nope")), (None, None));
        assert_eq!(
            (
                distance("", "abc"),
                distance("kitten", "sitting"),
                distance("a", "a")
            ),
            (3, 3, 0)
        );
    }
}
