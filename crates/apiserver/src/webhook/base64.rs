//! Base64 as JSON carries bytes: the standard alphabet, with padding.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The bytes of a text; `None` when the text is not base64.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    let letters: Vec<u8> = text.bytes().filter(|byte| !matches!(byte, b'\n' | b'\r')).collect();
    if !letters.len().is_multiple_of(4) {
        return None;
    }
    let body = letters.strip_suffix(b"==").or_else(|| letters.strip_suffix(b"=")).unwrap_or(&letters);
    let mut out = Vec::with_capacity(body.len() * 3 / 4);
    for chunk in body.chunks(4) {
        let mut word = 0_u32;
        for byte in chunk {
            word = (word << 6) | u32::try_from(ALPHABET.iter().position(|known| known == byte)?).ok()?;
        }
        word <<= 6 * (4 - chunk.len());
        out.extend(word.to_be_bytes().iter().skip(1).take(chunk.len().saturating_sub(1)));
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::decode;

    #[test]
    fn standard_base64_is_read_and_anything_else_is_not() {
        assert_eq!(decode("").unwrap(), b"");
        assert_eq!(decode("W10=").unwrap(), b"[]");
        assert_eq!(decode("YQ==").unwrap(), b"a");
        assert_eq!(decode("Pz8/Pj4+").unwrap(), b"???>>>");
        assert_eq!(decode("YQ"), None);
        assert_eq!(decode("Y!=="), None);
    }
}
