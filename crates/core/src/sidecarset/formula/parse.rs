//! From text to a tree.

use super::{Error, Resource, number::Number};

/// How deep brackets may go. Nobody needs more, and a request must not exhaust the stack.
const DEEPEST: usize = 64;
/// Suffixes of quantities, with what they multiply by: thousandths of a unit.
const SUFFIXES: &[(&str, i128, bool)] = &[
    ("m", 1, false),
    ("k", 1_000_000, false),
    ("M", 1_000_000_000, false),
    ("G", 1_000_000_000_000, false),
    ("T", 1_000_000_000_000_000, false),
    ("P", 1_000_000_000_000_000_000, false),
    ("Ki", 1000 << 10, true),
    ("Mi", 1000 << 20, true),
    ("Gi", 1000 << 30, true),
    ("Ti", 1000 << 40, true),
    ("Pi", 1000 << 50, true),
];

/// A formula that was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Formula {
    pub(super) root: Node,
    pub(super) resource: Resource,
}

/// A part of a formula.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Node {
    Number(Number),
    Quantity {
        millis: i128,
        is_binary: bool,
    },
    Variable,
    Negative(Box<Node>),
    /// One value and what is done to it, from left to right. A list and no tree: its length is not bounded.
    Chain(Box<Node>, Vec<(Operator, Node)>),
    Call(Function, Box<Node>, Box<Node>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    Plus,
    Minus,
    Times,
    Over,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Function {
    Max,
    Min,
}

impl Function {
    fn name(self) -> &'static str {
        match self {
            Self::Max => "max",
            Self::Min => "min",
        }
    }
}

impl Formula {
    /// Reads a formula for a resource.
    pub fn parse(text: &str, resource: Resource) -> Result<Self, Error> {
        let tokens = tokens(text)?;
        let mut parser = Parser { tokens: &tokens, at: 0, end: text.chars().count() + 1, resource, depth: 0 };
        let root = parser.sum()?;
        if parser.peek().is_some() {
            return Err(parser.unexpected());
        }
        Ok(Self { root, resource })
    }
}

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Number(Number),
    Quantity { millis: i128, is_binary: bool },
    Name(String),
    Sign(char),
}

/// A token with the column behind it.
type Placed = (Token, usize);

fn tokens(text: &str) -> Result<Vec<Placed>, Error> {
    let letters: Vec<char> = text.chars().collect();
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(&letter) = letters.get(at) {
        if letter.is_whitespace() {
            at += 1;
            continue;
        }
        let starts_number = letter.is_ascii_digit() || letter == '.';
        let is_part = |other: &char| {
            other.is_ascii_alphanumeric() || *other == '_' || (starts_number && matches!(other, '.' | '%'))
        };
        let length = if starts_number {
            literal_length(letters.get(at..).unwrap_or_default(), is_part)
        } else {
            letters.iter().skip(at).take_while(|other| is_part(other)).count()
        };
        let end = at + length.max(1);
        let word: String = letters.get(at..end).unwrap_or_default().iter().collect();
        let token = match letter {
            _ if starts_number => literal(&word).ok_or(Error::Literal { text: word })?,
            _ if length > 0 => Token::Name(word.to_lowercase()),
            '+' | '-' | '*' | '/' | '(' | ')' | ',' => Token::Sign(letter),
            _ => return Err(Error::Syntax { column: end + 1 }),
        };
        found.push((token, end + 1));
        at = end;
    }
    Ok(found)
}

/// How long a literal is: its letters, and a sign only right behind an exponent.
fn literal_length(letters: &[char], is_part: impl Fn(&char) -> bool) -> usize {
    let is_digits = |letters: &[char]| letters.iter().all(|letter| letter.is_ascii_digit() || *letter == '.');
    let mut length = 0;
    while let Some(letter) = letters.get(length) {
        let is_exponent_sign = matches!(letter, '+' | '-')
            && letters
                .get(..length)
                .and_then(<[char]>::split_last)
                .is_some_and(|(last, digits)| matches!(last, 'e' | 'E') && is_digits(digits))
            && letters.get(length + 1).is_some_and(char::is_ascii_digit);
        if !is_part(letter) && !is_exponent_sign {
            break;
        }
        length += 1;
    }
    length
}

fn literal(word: &str) -> Option<Token> {
    let end = word.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(word.len());
    let (digits, suffix) = word.split_at_checked(end)?;
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return None;
    }
    let number = Number::decimal(whole, fraction, 0)?;
    match suffix {
        "" => return Some(Token::Number(number)),
        "%" => return Some(Token::Number(number.product(&Number::new(1, 100).ok()?).ok()?)),
        _ => {}
    }
    if let Some((_, millis, is_binary)) = SUFFIXES.iter().find(|(known, _, _)| *known == suffix) {
        return Some(Token::Quantity { millis: number.times(*millis).ok()?, is_binary: *is_binary });
    }
    let exponent: i32 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
    Number::decimal(whole, fraction, exponent).map(Token::Number)
}

struct Parser<'a> {
    tokens: &'a [Placed],
    at: usize,
    /// The column behind the text.
    end: usize,
    resource: Resource,
    depth: usize,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<&'a Token> {
        self.tokens.get(self.at).map(|(token, _)| token)
    }

    fn unexpected(&self) -> Error {
        Error::Syntax { column: self.tokens.get(self.at).map_or(self.end, |(_, column)| *column) }
    }

    fn takes(&mut self, sign: char) -> bool {
        let is_next = self.peek() == Some(&Token::Sign(sign));
        self.at += usize::from(is_next);
        is_next
    }

    fn expects(&mut self, sign: char) -> Result<(), Error> {
        if self.takes(sign) { Ok(()) } else { Err(self.unexpected()) }
    }

    fn sum(&mut self) -> Result<Node, Error> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(self.unexpected());
        }
        let sum = self.chain(Self::product, |sign| match sign {
            '+' => Some(Operator::Plus),
            '-' => Some(Operator::Minus),
            _ => None,
        })?;
        self.depth -= 1;
        Ok(sum)
    }

    fn product(&mut self) -> Result<Node, Error> {
        self.chain(Self::factor, |sign| match sign {
            '*' => Some(Operator::Times),
            '/' => Some(Operator::Over),
            _ => None,
        })
    }

    fn chain(
        &mut self,
        part: fn(&mut Self) -> Result<Node, Error>,
        operator: fn(char) -> Option<Operator>,
    ) -> Result<Node, Error> {
        let first = part(self)?;
        let mut rest = Vec::new();
        while let Some(Token::Sign(sign)) = self.peek()
            && let Some(operator) = operator(*sign)
        {
            self.at += 1;
            rest.push((operator, part(self)?));
        }
        Ok(if rest.is_empty() { first } else { Node::Chain(Box::new(first), rest) })
    }

    fn factor(&mut self) -> Result<Node, Error> {
        let token = self.peek().ok_or_else(|| self.unexpected())?;
        match token {
            Token::Number(number) => {
                self.at += 1;
                Ok(Node::Number(*number))
            }
            Token::Quantity { millis, is_binary } => {
                self.at += 1;
                Ok(Node::Quantity { millis: *millis, is_binary: *is_binary })
            }
            Token::Name(name) => {
                self.at += 1;
                if self.takes('(') { self.call(name) } else { self.variable(name) }
            }
            Token::Sign('-') => {
                self.at += 1;
                self.depth += 1;
                if self.depth > DEEPEST {
                    return Err(self.unexpected());
                }
                let inner = self.factor()?;
                self.depth -= 1;
                Ok(Node::Negative(Box::new(inner)))
            }
            Token::Sign('(') => {
                self.at += 1;
                let inner = self.sum()?;
                self.expects(')')?;
                Ok(inner)
            }
            Token::Sign(_) => Err(self.unexpected()),
        }
    }

    fn variable(&self, name: &str) -> Result<Node, Error> {
        if name == self.resource.name() { Ok(Node::Variable) } else { Err(Error::Variable(name.to_owned())) }
    }

    fn call(&mut self, name: &str) -> Result<Node, Error> {
        let mut arguments = Vec::new();
        if !self.takes(')') {
            arguments.push(self.sum()?);
            while self.takes(',') {
                arguments.push(self.sum()?);
            }
            self.expects(')')?;
        }
        let function = match name {
            "max" => Function::Max,
            "min" => Function::Min,
            _ => return Err(Error::Function(name.to_owned())),
        };
        match <[Node; 2]>::try_from(arguments) {
            Ok([left, right]) => Ok(Node::Call(function, Box::new(left), Box::new(right))),
            Err(given) => Err(Error::Arguments { name: function.name(), count: given.len() }),
        }
    }
}
