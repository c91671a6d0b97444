//! From words to a tree, with the macros written out.

use super::Issue;
use super::ast::{Expr, Kind, Literal, Macro, Word as MacroWord};
use super::lex::{RESERVED, Token, Word, words};

/// Trees deeper than this are refused, so that no expression can exhaust the stack.
const MAX_DEPTH: usize = 200;
/// Texts longer than this are refused.
const MAX_LENGTH: usize = 100_000;

/// What may begin an expression, as messages list it.
const BEGINNINGS: &str = "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, \
     STRING, BYTES, IDENTIFIER}";

/// Reads an expression.
pub(super) fn parse(text: &str) -> Result<Expr, Vec<Issue>> {
    let mut issues = Vec::new();
    let length = text.chars().count();
    if length > MAX_LENGTH {
        let why = format!("expression code point size exceeds limit: size: {length}, limit {MAX_LENGTH}");
        return Err(vec![Issue::new(0, why)]);
    }
    let words = words(text, &mut issues);
    let mut parser = Parser { words: &words, next: 0, level: 0 };
    let parsed = parser.ternary().and_then(|expr| {
        let left = parser.word();
        match left.token {
            Token::End => Ok(expr),
            _ => Err(Issue::new(
                left.at,
                format!(
                    "Syntax error: mismatched input '{}' expecting {{<EOF>, '==', '!=', 'in', '<', '<=', '>=', '>', \
                     '&&', '||', '[', '.', '-', '?', '+', '*', '/', '%'}}",
                    left.text
                ),
            )),
        }
    });
    match parsed {
        Ok(expr) if issues.is_empty() => Ok(expr),
        Ok(_) => Err(issues),
        Err(issue) => {
            issues.push(issue);
            Err(issues)
        }
    }
}

struct Parser<'w> {
    words: &'w [Word],
    next: usize,
    level: usize,
}

type Parsed<T = Expr> = Result<T, Issue>;

impl Parser<'_> {
    fn word(&self) -> Word {
        let end = || Word { token: Token::End, at: 0, text: "<EOF>".to_owned() };
        self.words.get(self.next).or(self.words.last()).cloned().unwrap_or_else(end)
    }

    fn is(&self, mark: &str) -> bool {
        matches!(self.words.get(self.next), Some(Word { token: Token::Mark(found), .. }) if *found == mark)
    }

    /// Takes a mark if it is the next word; where it was.
    fn take(&mut self, mark: &str) -> Option<usize> {
        let at = self.words.get(self.next)?.at;
        self.is(mark).then(|| {
            self.next += 1;
            at
        })
    }

    fn expect(&mut self, mark: &str) -> Parsed<usize> {
        self.take(mark).ok_or_else(|| {
            let word = self.word();
            Issue::new(word.at, format!("Syntax error: missing '{mark}' at '{}'", word.text))
        })
    }

    fn node(&self, at: usize, kind: Kind) -> Parsed {
        let mut expr = Expr { at, depth: 0, kind };
        expr.depth = 1 + expr.children().iter().map(|child| child.depth).max().unwrap_or(0);
        if expr.depth > MAX_DEPTH {
            return Err(Issue::new(at, format!("expression recursion limit exceeded: {MAX_DEPTH}")));
        }
        Ok(expr)
    }

    fn call(&self, at: usize, function: &str, args: Vec<Expr>) -> Parsed {
        self.node(at, Kind::Call { function: function.to_owned(), target: None, args })
    }

    fn ternary(&mut self) -> Parsed {
        self.level += 1;
        if self.level > MAX_DEPTH {
            let at = self.word().at;
            return Err(Issue::new(at, format!("expression recursion limit exceeded: {MAX_DEPTH}")));
        }
        let condition = self.either()?;
        let expr = match self.take("?") {
            None => condition,
            Some(at) => {
                let yes = self.either()?;
                self.expect(":")?;
                let no = self.ternary()?;
                self.call(at, "_?_:_", vec![condition, yes, no])?
            }
        };
        self.level -= 1;
        Ok(expr)
    }

    fn either(&mut self) -> Parsed {
        self.joined("||", "_||_", Self::both)
    }

    fn both(&mut self) -> Parsed {
        self.joined("&&", "_&&_", Self::relation)
    }

    /// Terms between logical operators; a long row of them is one call.
    fn joined(&mut self, mark: &str, function: &str, term: fn(&mut Self) -> Parsed) -> Parsed {
        let first = term(self)?;
        let Some(at) = self.take(mark) else { return Ok(first) };
        let mut terms = vec![first, term(self)?];
        while self.take(mark).is_some() {
            terms.push(term(self)?);
        }
        self.call(at, function, terms)
    }

    fn relation(&mut self) -> Parsed {
        const OPERATORS: [(&str, &str); 7] = [
            ("==", "_==_"),
            ("!=", "_!=_"),
            ("<", "_<_"),
            ("<=", "_<=_"),
            (">", "_>_"),
            (">=", "_>=_"),
            ("in", "@in"),
        ];
        self.operators(&OPERATORS, Self::sum)
    }

    fn sum(&mut self) -> Parsed {
        self.operators(&[("+", "_+_"), ("-", "_-_")], Self::product)
    }

    fn product(&mut self) -> Parsed {
        self.operators(&[("*", "_*_"), ("/", "_/_"), ("%", "_%_")], Self::unary)
    }

    fn operators(&mut self, known: &[(&str, &str)], term: fn(&mut Self) -> Parsed) -> Parsed {
        let mut left = term(self)?;
        while let Some((at, function)) =
            known.iter().find_map(|(mark, function)| self.take(mark).map(|at| (at, *function)))
        {
            let right = term(self)?;
            left = self.call(at, function, vec![left, right])?;
        }
        Ok(left)
    }

    fn unary(&mut self) -> Parsed {
        let mark = if self.is("!") { "!" } else { "-" };
        let Some(at) = self.take(mark) else { return self.member() };
        let mut times = 1;
        while self.take(mark).is_some() {
            times += 1;
        }
        if mark == "-"
            && times == 1
            && let Some(Word { token: Token::Literal(number), .. }) = self.words.get(self.next)
        {
            let negative = match number {
                Literal::Int(i64::MIN) => Some(Literal::Int(i64::MIN)),
                Literal::Int(n) => Some(Literal::Int(-n)),
                Literal::Double(n) => Some(Literal::Double(-n)),
                _ => None,
            };
            if let Some(negative) = negative {
                self.next += 1;
                let literal = self.node(at, Kind::Literal(negative))?;
                return self.members(literal);
            }
        }
        let operand = self.member()?;
        if times % 2 == 0 {
            return Ok(operand);
        }
        self.call(at, if mark == "!" { "!_" } else { "-_" }, vec![operand])
    }

    fn member(&mut self) -> Parsed {
        let primary = self.primary()?;
        self.members(primary)
    }

    fn members(&mut self, mut expr: Expr) -> Parsed {
        loop {
            if let Some(at) = self.take(".") {
                let optional = self.take("?").is_some();
                let word = self.word();
                let Token::Ident(field) = word.token else {
                    let why = format!("Syntax error: no viable alternative at input '.{}'", word.text);
                    return Err(Issue::new(word.at, why));
                };
                self.next += 1;
                if optional {
                    expr = self.node(at, Kind::Optional { operand: Box::new(expr), field })?;
                } else if let Some(open) = self.take("(") {
                    let args = self.arguments(")")?;
                    expr = self.method(open, expr, field, args)?;
                } else {
                    expr = self.node(at, Kind::Select { operand: Box::new(expr), field })?;
                }
            } else if let Some(at) = self.take("[") {
                let optional = self.take("?").is_some();
                let index = self.ternary()?;
                self.expect("]")?;
                expr = self.call(at, if optional { "_[?_]" } else { "_[_]" }, vec![expr, index])?;
            } else {
                return Ok(expr);
            }
        }
    }

    fn arguments(&mut self, end: &str) -> Parsed<Vec<Expr>> {
        let mut args = Vec::new();
        if self.take(end).is_some() {
            return Ok(args);
        }
        loop {
            args.push(self.ternary()?);
            if self.take(",").is_none() {
                self.expect(end)?;
                return Ok(args);
            }
        }
    }

    fn primary(&mut self) -> Parsed {
        let word = self.word();
        let at = word.at;
        match word.token {
            Token::Literal(Literal::Int(i64::MIN)) => {
                Err(Issue::new(at, "Syntax error: invalid int literal".to_owned()))
            }
            Token::Literal(literal) => {
                self.next += 1;
                self.node(at, Kind::Literal(literal))
            }
            Token::Ident(name) => {
                self.next += 1;
                self.named(at, name)
            }
            Token::Mark(".") => {
                self.next += 1;
                let word = self.word();
                let Token::Ident(name) = word.token else { return Err(self.unexpected()) };
                self.next += 1;
                self.named(word.at, name)
            }
            Token::Mark("(") => {
                self.next += 1;
                let inner = self.ternary()?;
                self.expect(")")?;
                Ok(inner)
            }
            Token::Mark("[") => {
                self.next += 1;
                let mut items = Vec::new();
                while self.take("]").is_none() {
                    let optional = self.take("?").is_some();
                    items.push((self.ternary()?, optional));
                    if self.take(",").is_none() {
                        self.expect("]")?;
                        break;
                    }
                }
                self.node(at, Kind::List(items))
            }
            Token::Mark("{") => {
                self.next += 1;
                let mut entries = Vec::new();
                while self.take("}").is_none() {
                    let optional = self.take("?").is_some();
                    let key = self.ternary()?;
                    self.expect(":")?;
                    entries.push((key, self.ternary()?, optional));
                    if self.take(",").is_none() {
                        self.expect("}")?;
                        break;
                    }
                }
                self.node(at, Kind::Map(entries))
            }
            _ => Err(self.unexpected()),
        }
    }

    fn unexpected(&self) -> Issue {
        let word = self.word();
        let kind = if word.token == Token::End { "mismatched" } else { "extraneous" };
        Issue::new(word.at, format!("Syntax error: {kind} input '{}' expecting {BEGINNINGS}", word.text))
    }

    fn named(&mut self, at: usize, name: String) -> Parsed {
        if RESERVED.contains(&name.as_str()) {
            return Err(Issue::new(at, format!("reserved identifier: {name}")));
        }
        let Some(open) = self.take("(") else { return self.node(at, Kind::Ident(name)) };
        let mut args = self.arguments(")")?;
        if name == "has" && args.len() == 1 {
            return match args.pop().map(|arg| (arg.at, arg.kind)) {
                Some((_, Kind::Select { operand, field })) => self.node(open, Kind::Has { operand, field }),
                Some((at, _)) => Err(Issue::new(at, "invalid argument to has() macro".to_owned())),
                None => Err(self.unexpected()),
            };
        }
        self.node(open, Kind::Call { function: name, target: None, args })
    }

    /// A method, unless it is a macro.
    fn method(&self, at: usize, target: Expr, name: String, args: Vec<Expr>) -> Parsed {
        let word = match (name.as_str(), args.len()) {
            ("all", 2 | 3) => MacroWord::All,
            ("exists", 2 | 3) => MacroWord::Exists,
            ("exists_one" | "existsOne", 2 | 3) => MacroWord::ExistsOne,
            ("map", 2 | 3) => MacroWord::Map,
            ("filter", 2) => MacroWord::Filter,
            ("transformList", 3 | 4) => MacroWord::TransformList,
            ("transformMap", 3 | 4) => MacroWord::TransformMap,
            ("optMap", 2) => MacroWord::OptMap,
            ("optFlatMap", 2) => MacroWord::OptFlatMap,
            _ => {
                let target = Some(Box::new(target));
                return self.node(at, Kind::Call { function: name, target, args });
            }
        };
        let count = args.len();
        let two = match word {
            MacroWord::TransformList | MacroWord::TransformMap => true,
            MacroWord::Map | MacroWord::Filter | MacroWord::OptMap | MacroWord::OptFlatMap => false,
            MacroWord::All | MacroWord::Exists | MacroWord::ExistsOne => count == 3,
        };
        let mut args = args.into_iter();
        let mut names = Vec::new();
        for arg in args.by_ref().take(1 + usize::from(two)) {
            let Kind::Ident(name) = arg.kind else {
                return Err(Issue::new(arg.at, "argument must be a simple name".to_owned()));
            };
            names.push(name);
        }
        let filters = count > names.len() + 1;
        let filter = if filters { args.next() } else { None };
        let Some(body) = args.next() else { return Err(self.unexpected()) };
        let parts = Macro { word, range: target, names, filter, body };
        self.node(at, Kind::Macro(Box::new(parts)))
    }
}
