//! The hashes that clusters already hold: names of revisions, and fingerprints of containers.
//!
//! All of them are FNV of 32 bits. Both orders of its two steps are in use, so both are here.

const OFFSET: u32 = 2_166_136_261;
const PRIME: u32 = 16_777_619;
const SAFE: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// FNV-1: multiply, then xor.
pub fn fnv1(bytes: impl IntoIterator<Item = u8>) -> u32 {
    bytes.into_iter().fold(OFFSET, |hash, byte| hash.wrapping_mul(PRIME) ^ u32::from(byte))
}

/// FNV-1a: xor, then multiply.
pub fn fnv1a(bytes: impl IntoIterator<Item = u8>) -> u32 {
    bytes.into_iter().fold(OFFSET, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(PRIME))
}

/// Writes a text with letters and digits that make no words.
pub fn safe_encode(text: &str) -> String {
    text.bytes()
        .filter_map(|byte| SAFE.get(usize::from(byte) % SAFE.len()))
        .map(|byte| char::from(*byte))
        .collect()
}

/// The letters that random parts of names are made of.
pub fn safe_letters() -> &'static [u8] {
    SAFE
}

/// The fingerprint of a JSON text. What is hashed is how Go prints the bytes: `([]uint8)[123 125]`.
pub fn of_json(json: &str) -> u32 {
    use std::fmt::Write as _;
    let mut printed = String::with_capacity(json.len() * 4 + 12);
    printed.push_str("([]uint8)[");
    for (index, byte) in json.bytes().enumerate() {
        if index > 0 {
            printed.push(' ');
        }
        let _ = write!(printed, "{byte}");
    }
    printed.push(']');
    fnv1a(printed.bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seen in a running cluster.
    #[test]
    fn fingerprints_equal_those_of_a_kubelet() {
        for (json, hash) in [
            ("null", 86_995_377),
            (r#"{"image":"nginx:1.25","name":"main"}"#, 436_018_172),
            (r#"{"image":"app:v1","name":"main"}"#, 3_260_310_990),
            (r#"[{"name":"CFG","value":"alpha"},{"name":"TIER","value":"one"}]"#, 737_729_576),
            (r#"[{"name":"APP_CONFIG","value":"v1"}]"#, 4_274_367_333),
            (r#"[{"name":"APP_CONFIG"}]"#, 225_531_427),
        ] {
            assert_eq!(of_json(json), hash, "{json}");
        }
    }

    #[test]
    fn digits_become_letters_that_make_no_words() {
        assert_eq!(safe_encode("0123456789"), "456789bcdf");
    }
}
