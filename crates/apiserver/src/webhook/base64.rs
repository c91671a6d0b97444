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

/// The text of bytes.
pub(crate) fn encode(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let word =
            chunk.iter().fold(0_u32, |word, byte| (word << 8) | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for place in 0..4 {
            let letter = ALPHABET.get(((word >> (18 - 6 * place)) & 63) as usize).copied();
            out.push(if place > chunk.len() { '=' } else { char::from(letter.unwrap_or(b'=')) });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{decode, encode};

    #[test]
    fn standard_base64_is_read_and_anything_else_is_not() {
        assert_eq!(decode("").unwrap(), b"");
        assert_eq!(decode("W10=").unwrap(), b"[]");
        assert_eq!(decode("YQ==").unwrap(), b"a");
        assert_eq!(decode("Pz8/Pj4+").unwrap(), b"???>>>");
        assert_eq!(decode("YQ"), None);
        assert_eq!(decode("Y!=="), None);
    }

    #[test]
    fn what_is_written_reads_back() {
        for bytes in [&b""[..], b"a", b"ab", b"abc", b"???>>>", &[0, 255, 128, 7]] {
            assert_eq!(decode(&encode(bytes)).unwrap(), bytes);
        }
        assert_eq!(encode(b"a"), "YQ==");
    }
}
