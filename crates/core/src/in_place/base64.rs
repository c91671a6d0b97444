//! The usual base64 with padding, for the one place that needs it.

const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

pub(super) fn encode(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let bits =
            (0..3).fold(0_u32, |bits, index| bits << 8 | u32::from(chunk.get(index).copied().unwrap_or(0)));
        for index in 0..4 {
            let letter = LETTERS.get((bits >> (18 - 6 * index) & 63) as usize).copied().unwrap_or(b'=');
            out.push(if index <= chunk.len() { char::from(letter) } else { '=' });
        }
    }
    out
}

pub(super) fn decode(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut count) = (0_u32, 0_u32);
    for byte in text.trim_end_matches('=').bytes() {
        let value = LETTERS.iter().position(|letter| *letter == byte)?;
        bits = bits << 6 | u32::try_from(value).ok()?;
        count += 6;
        if count >= 8 {
            count -= 8;
            out.push(u8::try_from(bits >> count & 255).ok()?);
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_every_length_come_back() {
        for (plain, encoded) in
            [("", ""), ("M", "TQ=="), ("Ma", "TWE="), ("Man", "TWFu"), ("Man?", "TWFuPw==")]
        {
            assert_eq!(encode(plain.as_bytes()), encoded);
            assert_eq!(decode(encoded).unwrap(), plain.as_bytes());
        }
        assert_eq!(decode("§"), None);
    }
}
