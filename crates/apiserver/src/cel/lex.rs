//! The words of an expression.

use super::Issue;
use super::ast::Literal;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    Ident(String),
    Literal(Literal),
    /// An operator or a bracket.
    Mark(&'static str),
    End,
}

/// A word, where it begins, and its text as messages show it.
#[derive(Clone, Debug)]
pub(super) struct Word {
    pub(super) token: Token,
    pub(super) at: usize,
    pub(super) text: String,
}

/// Words that are no names: of the language as it is and as it may become.
#[rustfmt::skip]
pub(crate) const RESERVED: [&str; 21] = [
    "as", "break", "const", "continue", "else", "false", "for", "function", "if", "import", "in", "let", "loop",
    "package", "namespace", "null", "return", "true", "var", "void", "while",
];

/// Longer ones first.
const MARKS: [&str; 27] = [
    "&&", "||", "==", "!=", "<=", ">=", "<", ">", "+", "-", "*", "/", "%", "!", "?", ":", ".", ",", "(", ")",
    "[", "]", "{", "}", "=>", "=", "|",
];

/// Splits a text. What is no word is an issue, and is left out.
pub(super) fn words(text: &str, issues: &mut Vec<Issue>) -> Vec<Word> {
    let chars: Vec<char> = text.chars().collect();
    let mut lexer = Lexer { chars: &chars, at: 0 };
    let mut words = Vec::new();
    loop {
        lexer.skip_blanks();
        let at = lexer.at;
        let Some(first) = lexer.peek(0) else {
            words.push(Word { token: Token::End, at, text: "<EOF>".to_owned() });
            return words;
        };
        let token = match lexer.token(first) {
            Ok(token) => token,
            Err(message) => {
                issues.push(Issue::new(at, format!("Syntax error: {message}")));
                lexer.at = lexer.at.max(at + 1);
                continue;
            }
        };
        let text = chars.get(at..lexer.at).unwrap_or_default().iter().collect();
        words.push(Word { token, at, text });
    }
}

struct Lexer<'c> {
    chars: &'c [char],
    at: usize,
}

impl Lexer<'_> {
    fn peek(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at + ahead).copied()
    }

    fn starts_with(&self, text: &str) -> bool {
        text.chars().enumerate().all(|(i, c)| self.peek(i) == Some(c))
    }

    fn skip_blanks(&mut self) {
        while let Some(c) = self.peek(0) {
            if self.starts_with("//") {
                while self.peek(0).is_some_and(|c| c != '\n') {
                    self.at += 1;
                }
            } else if matches!(c, ' ' | '\t' | '\n' | '\r' | '\u{c}') {
                self.at += 1;
            } else {
                return;
            }
        }
    }

    fn token(&mut self, first: char) -> Result<Token, String> {
        let prefix = self.string_prefix();
        if let Some((length, raw, bytes)) = prefix {
            self.at += length;
            return self.string(raw, bytes);
        }
        if first.is_ascii_alphabetic() || first == '_' {
            let mut name = String::new();
            while let Some(c) = self.peek(0).filter(|c| c.is_ascii_alphanumeric() || *c == '_') {
                name.push(c);
                self.at += 1;
            }
            return Ok(match name.as_str() {
                "true" => Token::Literal(Literal::Bool(true)),
                "false" => Token::Literal(Literal::Bool(false)),
                "null" => Token::Literal(Literal::Null),
                "in" => Token::Mark("in"),
                _ => Token::Ident(name),
            });
        }
        let is_fraction = first == '.' && self.peek(1).is_some_and(|c| c.is_ascii_digit());
        if first.is_ascii_digit() || is_fraction {
            return self.number();
        }
        match MARKS.iter().find(|mark| self.starts_with(mark)) {
            Some(mark) if !matches!(*mark, "=" | "=>" | "|") => {
                self.at += mark.len();
                Ok(Token::Mark(mark))
            }
            _ => {
                let mut odd = String::from(first);
                self.at += 1;
                // A lone `=`, `&` or `|` takes the next character with it, as it might have become an operator.
                if matches!(first, '=' | '&' | '|')
                    && let Some(next) = self.peek(0)
                {
                    odd.push(next);
                    self.at += usize::from(next == ' ');
                }
                Err(format!("token recognition error at: '{odd}'"))
            }
        }
    }

    fn string_prefix(&self) -> Option<(usize, bool, bool)> {
        let is_quote = |ahead: usize| matches!(self.peek(ahead), Some('"' | '\''));
        match (self.peek(0)?.to_ascii_lowercase(), self.peek(1).map(|c| c.to_ascii_lowercase())) {
            ('"' | '\'', _) => Some((0, false, false)),
            ('r', _) if is_quote(1) => Some((1, true, false)),
            ('b', _) if is_quote(1) => Some((1, false, true)),
            ('b', Some('r')) | ('r', Some('b')) if is_quote(2) => Some((2, true, true)),
            _ => None,
        }
    }

    fn string(&mut self, raw: bool, bytes: bool) -> Result<Token, String> {
        let quote = self.peek(0).unwrap_or('"');
        let start = self.at;
        let long: String = std::iter::repeat_n(quote, 3).collect();
        let is_long = self.starts_with(&long);
        self.at += if is_long { 3 } else { 1 };
        let (mut text, mut out) = (String::new(), Vec::new());
        loop {
            let Some(c) = self.peek(0).filter(|c| is_long || *c != '\n') else {
                let seen: String = self.chars.get(start..self.at).unwrap_or_default().iter().collect();
                return Err(format!("token recognition error at: '{seen}'"));
            };
            let ends = if is_long { self.starts_with(&long) } else { c == quote };
            if ends {
                self.at += if is_long { 3 } else { 1 };
                break;
            }
            if c == '\\' && !raw {
                self.escape(bytes, &mut text, &mut out)?;
                continue;
            }
            self.at += 1;
            if bytes {
                out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            } else {
                text.push(c);
            }
        }
        Ok(Token::Literal(if bytes { Literal::Bytes(out.into()) } else { Literal::Text(text.into()) }))
    }

    fn escape(&mut self, bytes: bool, text: &mut String, out: &mut Vec<u8>) -> Result<(), String> {
        let c = self.peek(1).ok_or("token recognition error at: '\\'")?;
        let plain = match c {
            'a' => Some('\u{7}'),
            'b' => Some('\u{8}'),
            'f' => Some('\u{c}'),
            'n' => Some('\n'),
            'r' => Some('\r'),
            't' => Some('\t'),
            'v' => Some('\u{b}'),
            '\\' | '?' | '"' | '\'' | '`' => Some(c),
            _ => None,
        };
        let (digits, radix, skip) = match c {
            'x' | 'X' => (2, 16, 2),
            'u' => (4, 16, 2),
            'U' => (8, 16, 2),
            '0'..='3' => (3, 8, 1),
            _ => (0, 10, 2),
        };
        if let Some(plain) = plain {
            self.at += 2;
            text.push(plain);
            out.extend_from_slice(plain.encode_utf8(&mut [0; 4]).as_bytes());
            return Ok(());
        }
        let digits_text: String = (0..digits).filter_map(|i| self.peek(skip + i)).collect();
        let code = u32::from_str_radix(&digits_text, radix).ok().filter(|_| digits_text.len() == digits);
        let Some(code) = code.filter(|_| digits > 0) else {
            return Err(format!("token recognition error at: '\\{c}'"));
        };
        self.at += skip + digits;
        if bytes && let Ok(byte) = u8::try_from(code) {
            out.push(byte);
        } else {
            let c = char::from_u32(code).ok_or("invalid unicode code point")?;
            text.push(c);
            out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        }
        Ok(())
    }

    fn number(&mut self) -> Result<Token, String> {
        let start = self.at;
        let hex = self.starts_with("0x") || self.starts_with("0X");
        if hex {
            self.at += 2;
        }
        let mut is_double = false;
        while let Some(c) = self.peek(0) {
            let exponent = !hex && matches!(c, 'e' | 'E');
            let sign = matches!(c, '+' | '-')
                && !hex
                && matches!(self.chars.get(self.at.wrapping_sub(1)), Some('e' | 'E'));
            let point = c == '.' && !hex && !is_double && self.peek(1).is_some_and(|c| c.is_ascii_digit());
            let digit = if hex { c.is_ascii_hexdigit() } else { c.is_ascii_digit() };
            if !(digit || exponent || sign || point) {
                break;
            }
            is_double |= exponent || point;
            self.at += 1;
        }
        let text: String = self.chars.get(start..self.at).unwrap_or_default().iter().collect();
        let unsigned = !is_double && matches!(self.peek(0), Some('u' | 'U'));
        if is_double {
            return text
                .parse()
                .map(|n| Token::Literal(Literal::Double(n)))
                .map_err(|_| "invalid double literal".to_owned());
        }
        let digits = text.trim_start_matches("0x").trim_start_matches("0X");
        let radix = if hex { 16 } else { 10 };
        if unsigned {
            self.at += 1;
            let value = u64::from_str_radix(digits, radix).map_err(|_| "invalid uint literal")?;
            return Ok(Token::Literal(Literal::Uint(value)));
        }
        // The sign of the smallest integer comes later; it is the one number whose size needs it.
        let value = u64::from_str_radix(digits, radix).map_err(|_| "invalid int literal")?;
        match i64::try_from(value) {
            Ok(value) => Ok(Token::Literal(Literal::Int(value))),
            Err(_) if value == 1 << 63 => Ok(Token::Literal(Literal::Int(i64::MIN))),
            Err(_) => Err("invalid int literal".to_owned()),
        }
    }
}
