//! Versions of objects, compared.

/// Whether a version that was seen is at least as new as the wanted one. The API's versions are numbers that only grow;
/// what is no number is compared for equality, as the API's older rules ask for.
pub fn reached(seen: &str, wanted: &str) -> bool {
    match (seen.parse::<u64>(), wanted.parse::<u64>()) {
        (Ok(seen), Ok(wanted)) => seen >= wanted,
        _ => seen == wanted,
    }
}

/// Whether a version that was seen is newer than another one, or at least another one.
pub(crate) fn passed(seen: &str, old: &str) -> bool {
    match (seen.parse::<u64>(), old.parse::<u64>()) {
        (Ok(seen), Ok(old)) => seen > old,
        _ => seen != old,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers_where_they_are_numbers() {
        assert!(reached("10", "9") && reached("9", "9") && !reached("9", "10"));
        assert!(reached("a", "a") && !reached("b", "a"));
        assert!(passed("10", "9") && !passed("9", "9") && passed("b", "a"));
    }
}
