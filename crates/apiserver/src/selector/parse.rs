//! Reads the text of a label selector.

use super::labels::push_invalid;
use super::{Error, Operator, Requirement, syntax};
use crate::field;

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    End,
    Open,
    Close,
    Comma,
    Not,
    Compare(Operator, &'static str),
    /// A word; `in` and `notin` are operators only where one is expected.
    Word(String),
    Junk(String),
}

impl Token {
    fn text(&self) -> &str {
        match self {
            Self::End => "",
            Self::Open => "(",
            Self::Close => ")",
            Self::Comma => ",",
            Self::Not => "!",
            Self::Compare(_, text) => text,
            Self::Word(text) | Self::Junk(text) => text,
        }
    }
}

/// The requirements of a selector, in the order they are written.
pub(super) fn requirements(text: &str) -> Result<Vec<Requirement>, Error> {
    let mut parser = Parser { tokens: tokens(text), position: 0 };
    let mut found = Vec::new();
    loop {
        match parser.peek() {
            Token::End => return Ok(found),
            Token::Word(_) | Token::Not => {}
            other => return fail(&other, ", expected: !, identifier, or 'end of string'"),
        }
        let requirement = parser.requirement();
        found.push(requirement.map_err(|Error(why)| Error(format!("unable to parse requirement: {why}")))?);
        match parser.next() {
            Token::End => return Ok(found),
            Token::Comma => {
                let next = parser.peek();
                if !matches!(next, Token::Word(_) | Token::Not) {
                    return fail(&next, ", expected: identifier after ','");
                }
            }
            other => return fail(&other, ", expected: ',' or 'end of string'"),
        }
    }
}

struct Parser {
    tokens: Vec<Token>,
    position: usize,
}

impl Parser {
    fn peek(&self) -> Token {
        self.tokens.get(self.position).cloned().unwrap_or(Token::End)
    }

    fn next(&mut self) -> Token {
        let token = self.peek();
        self.position += 1;
        token
    }

    fn requirement(&mut self) -> Result<Requirement, Error> {
        let mut token = self.next();
        let negated = token == Token::Not;
        if negated {
            token = self.next();
        }
        let Token::Word(key) = &token else { return fail(&token, ", expected: identifier") };
        let mut errors = Vec::new();
        // The real server has no path here and prints so.
        push_invalid(&mut errors, "<nil>", key, &syntax::qualified_name(key));
        if !errors.is_empty() {
            return Err(Error(field::aggregate(&errors)));
        }
        if negated {
            return Requirement::new(key, Operator::DoesNotExist, Vec::new());
        }
        if matches!(self.peek(), Token::End | Token::Comma) {
            return Requirement::new(key, Operator::Exists, Vec::new());
        }
        let operator = match self.next() {
            Token::Compare(operator, _) => operator,
            Token::Word(word) if word == "in" => Operator::In,
            Token::Word(word) if word == "notin" => Operator::NotIn,
            other => return fail(&other, ", expected: in, notin, =, ==, !=, gt, lt"),
        };
        let values = match operator {
            Operator::In | Operator::NotIn => self.values()?,
            _ => vec![self.exact_value()?],
        };
        Requirement::new(key, operator, values)
    }

    fn exact_value(&mut self) -> Result<String, Error> {
        match self.peek() {
            Token::End | Token::Comma => Ok(String::new()),
            _ => match self.next() {
                Token::Word(value) => Ok(value),
                other => fail(&other, ", expected: identifier"),
            },
        }
    }

    /// `(a,b)`; empty places count as the empty value.
    fn values(&mut self) -> Result<Vec<String>, Error> {
        match self.next() {
            Token::Open => {}
            other => return fail(&other, " expected: '('"),
        }
        let mut values = Vec::new();
        match self.peek() {
            Token::Word(_) | Token::Comma => {}
            Token::Close => {
                self.next();
                return Ok(vec![String::new()]);
            }
            other => return fail(&other, ", expected: ',', ')' or identifier"),
        }
        let mut expect_value = true;
        loop {
            match self.next() {
                Token::Word(value) if expect_value => {
                    values.push(value);
                    expect_value = false;
                    let next = self.peek();
                    if !matches!(next, Token::Comma | Token::Close) {
                        return fail(&next, ", expected: ',' or ')'");
                    }
                }
                Token::Comma => {
                    if expect_value {
                        values.push(String::new());
                    }
                    expect_value = true;
                }
                Token::Close => {
                    if expect_value {
                        values.push(String::new());
                    }
                    return Ok(values);
                }
                other => return fail(&other, ", expected: ',', or identifier"),
            }
        }
    }
}

fn fail<T>(found: &Token, rest: &str) -> Result<T, Error> {
    Err(Error(format!("found '{}'{rest}", found.text())))
}

fn tokens(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let mut then_equals = || chars.next_if_eq(&'=').is_some();
        tokens.push(match c {
            ' ' | '\t' | '\r' | '\n' => continue,
            '(' => Token::Open,
            ')' => Token::Close,
            ',' => Token::Comma,
            '>' => Token::Compare(Operator::GreaterThan, ">"),
            '<' => Token::Compare(Operator::LessThan, "<"),
            '=' if then_equals() => Token::Compare(Operator::Equals, "=="),
            '=' => Token::Compare(Operator::Equals, "="),
            '!' if then_equals() => Token::Compare(Operator::NotEquals, "!="),
            '!' => Token::Not,
            '\0' => Token::Junk("\0".to_owned()),
            first => {
                let mut word = String::from(first);
                while let Some(c) = chars.next_if(|c| !" \t\r\n=!(),><\0".contains(*c)) {
                    word.push(c);
                }
                Token::Word(word)
            }
        });
    }
    tokens
}
