//! Reads a script: from letters to tokens, from tokens to a list of operations that a [process](super::process) runs.
//!
//! A list with jumps, and not a tree, because a script that sleeps goes on later where it was.

use std::sync::Arc;

/// How deep scripts may be nested.
const DEEPEST: usize = 24;

/// A script, ready to run.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Script {
    pub(super) ops: Vec<Op>,
}

/// One step of a script.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Op {
    /// Runs commands, each of which reads what the one before it wrote.
    Run(Pipeline),
    /// Goes on elsewhere.
    Jump(usize),
    /// Goes on elsewhere if the last command failed.
    IfFailed(usize),
    /// Goes on elsewhere if the last command ended well.
    IfWell(usize),
    /// Failure becomes success, and the other way round.
    Not,
    /// Counts as success.
    Well,
    /// Ends the script if the last command failed and `set -e` is on.
    Check,
    /// Begins a loop over words.
    Each(Vec<Word>),
    /// The next word for the variable, or the end of the loop.
    Next(String, usize),
    /// Gives up the innermost loop over words.
    Drop,
}

/// Commands joined by `|`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Pipeline {
    pub(super) parts: Vec<Part>,
    /// Nobody waits for it (`&`).
    pub(super) is_aside: bool,
}

/// One part of a pipeline with where its output goes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) what: What,
    pub(super) redirects: Vec<Redirect>,
}

/// What a part of a pipeline is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum What {
    /// Assignments and words.
    Command(Vec<(String, Word)>, Vec<Word>),
    /// A loop, a condition or a group.
    Group(Arc<Script>),
}

/// Where something comes from or goes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Redirect {
    /// Standard output into a file, perhaps behind what is there.
    Out(Word, bool),
    /// Standard error into a file, perhaps behind what is there.
    Errors(Word, bool),
    /// Both into a file.
    Both(Word),
    /// Standard output to standard error.
    OutToErrors,
    /// Standard error to standard output.
    ErrorsToOut,
    /// A file to read.
    In(Word),
    /// Text to read.
    Text(Word),
}

/// A word before its variables have values.
pub(super) type Word = Vec<Piece>;

/// A piece of a word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// As it stands.
    Text(String),
    /// As it stands, in quotes.
    Quoted(String),
    /// The value of a variable: what stands between the braces, and whether it stands in quotes.
    Variable(String, bool),
    /// What a script writes, and whether it stands in quotes.
    Output(Arc<Script>, bool),
    /// The result of a sum.
    Sum(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Word(Word),
    Sign(&'static str),
    /// The text behind `<<END`.
    Here(Word),
}

const SIGNS: [&str; 21] = [
    "2>&1", "1>&2", "<<-", "2>>", ">&2", "&>", "&&", "||", ">>", "2>", "1>", "<<", ";;", ";", "\n", "|", ">",
    "<", "(", ")", "&",
];

impl Script {
    /// Reads a script; nothing for one with words that this shell does not know.
    pub(crate) fn read(text: &str) -> Option<Self> {
        read(text, 0)
    }
}

fn read(text: &str, depth: usize) -> Option<Script> {
    if depth > DEEPEST {
        return None;
    }
    let mut tokens = tokens(text, depth)?;
    tokens.reverse();
    let mut reader = Reader { tokens, ops: Vec::new(), loops: Vec::new(), conditions: 0, depth };
    reader.list(&[])?;
    reader.tokens.is_empty().then_some(Script { ops: reader.ops })
}

fn tokens(text: &str, depth: usize) -> Option<Vec<Token>> {
    let mut found: Vec<Token> = Vec::new();
    let mut word: Option<Word> = None;
    let mut rest = text;
    // Places of texts that stand behind the end of this line, with their last lines.
    let mut awaited: Vec<(usize, String, bool)> = Vec::new();
    let mut heads = 0;
    while let Some(letter) = rest.chars().next() {
        let numbered = |sign: &str| sign.starts_with(['1', '2']);
        let sign = SIGNS.iter().find(|sign| rest.starts_with(**sign) && (!numbered(sign) || word.is_none()));
        if let Some(sign) = sign {
            found.extend(word.take().map(Token::Word));
            rest = rest.get(sign.len()..)?;
            match *sign {
                "<<" | "<<-" => {
                    rest = rest.trim_start_matches(' ');
                    let length = rest.find([' ', '\n', ';', '>', '|', '&']).unwrap_or(rest.len());
                    let end = rest.get(..length)?;
                    let plain: String = end.chars().filter(|c| !matches!(c, '\'' | '"' | '\\')).collect();
                    let is_quoted = plain.len() < end.len();
                    awaited.push((found.len(), plain, is_quoted));
                    found.push(Token::Here(Vec::new()));
                    rest = rest.get(length..)?;
                    heads += 1;
                }
                "\n" => {
                    for (at, end, is_quoted) in awaited.drain(..) {
                        let mut body = String::new();
                        loop {
                            let (line, after) = rest.split_once('\n').unwrap_or((rest, ""));
                            let is_last = line.trim_start_matches('\t') == end;
                            if is_last || rest.is_empty() {
                                rest = after;
                                break;
                            }
                            body.push_str(line);
                            body.push('\n');
                            rest = after;
                        }
                        let piece = if is_quoted { vec![Piece::Quoted(body)] } else { quoted(&body, depth)? };
                        *found.get_mut(at)? = Token::Here(piece);
                    }
                    found.push(Token::Sign("\n"));
                }
                sign => found.push(Token::Sign(sign)),
            }
            continue;
        }
        let mut after = rest.get(letter.len_utf8()..)?;
        match letter {
            ' ' | '\t' | '\r' => found.extend(word.take().map(Token::Word)),
            '#' if word.is_none() => after = after.get(after.find('\n').unwrap_or(after.len())..)?,
            '\'' => {
                let (inside, behind) = after.split_once('\'')?;
                word.get_or_insert_default().push(Piece::Quoted(inside.to_owned()));
                after = behind;
            }
            '"' => {
                let end = end_of_quotes(after)?;
                word.get_or_insert_default().extend(quoted(after.get(..end)?, depth)?);
                after = after.get(end + 1..)?;
            }
            '\\' => {
                let next = after.chars().next();
                if next != Some('\n') {
                    let text = next.map_or_else(String::new, String::from);
                    word.get_or_insert_default().push(Piece::Quoted(text));
                }
                after = after.get(next.map_or(0, char::len_utf8)..)?;
            }
            '$' | '`' => {
                let (piece, length) = expansion(rest, false, depth)?;
                word.get_or_insert_default().push(piece);
                after = rest.get(length..)?;
            }
            letter => {
                let pieces = word.get_or_insert_default();
                match pieces.last_mut() {
                    Some(Piece::Text(text)) => text.push(letter),
                    _ => pieces.push(Piece::Text(letter.to_string())),
                }
            }
        }
        rest = after;
    }
    found.extend(word.map(Token::Word));
    (heads == 0 || awaited.is_empty()).then_some(found)
}

/// Where the closing quotes are. Quotes inside of `$(…)` are its own.
fn end_of_quotes(text: &str) -> Option<usize> {
    let mut at = 0;
    loop {
        let rest = text.get(at..)?;
        let letter = rest.chars().next()?;
        match letter {
            '"' => return Some(at),
            '\\' => at += 1 + rest.chars().nth(1).map_or(0, char::len_utf8),
            '$' if rest.starts_with("$(") => at += closing(rest.get(1..)?)? + 1,
            letter => at += letter.len_utf8(),
        }
    }
}

/// How long a text in parentheses is, with both of them.
fn closing(text: &str) -> Option<usize> {
    let (mut open, mut quote) = (0_usize, None);
    for (at, letter) in text.char_indices() {
        match (quote, letter) {
            (Some(begun), letter) if begun == letter => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(letter),
            (None, '(') => open += 1,
            (None, ')') => {
                open = open.checked_sub(1)?;
                if open == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
    }
    None
}

/// What stands in double quotes.
fn quoted(text: &str, depth: usize) -> Option<Word> {
    let mut pieces = vec![Piece::Quoted(String::new())];
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        let mut length = letter.len_utf8();
        let mut plain = Some(letter);
        match letter {
            '\\' => {
                if let Some(next @ ('"' | '\\' | '$' | '`')) = rest.chars().nth(1) {
                    (plain, length) = (Some(next), 2);
                }
            }
            '$' | '`' => {
                let (piece, long) = expansion(rest, true, depth)?;
                pieces.push(piece);
                (plain, length) = (None, long);
            }
            _ => {}
        }
        if let Some(plain) = plain {
            match pieces.last_mut() {
                Some(Piece::Quoted(text)) => text.push(plain),
                _ => pieces.push(Piece::Quoted(plain.to_string())),
            }
        }
        rest = rest.get(length..)?;
    }
    Some(pieces)
}

/// What begins with `$` or a backquote, and how long it is.
fn expansion(text: &str, is_quoted: bool, depth: usize) -> Option<(Piece, usize)> {
    if let Some(behind) = text.strip_prefix('`') {
        let end = behind.find('`')?;
        return Some((Piece::Output(Arc::new(read(behind.get(..end)?, depth + 1)?), is_quoted), end + 2));
    }
    let behind = text.get(1..)?;
    if behind.starts_with("((") {
        let length = closing(behind)?;
        let sum = behind.get(2..length.checked_sub(2)?)?;
        return Some((Piece::Sum(sum.to_owned()), length + 1));
    }
    if behind.starts_with('(') {
        let length = closing(behind)?;
        let script = read(behind.get(1..length - 1)?, depth + 1)?;
        return Some((Piece::Output(Arc::new(script), is_quoted), length + 1));
    }
    if let Some(inside) = behind.strip_prefix('{') {
        let end = inside.find('}')?;
        return Some((Piece::Variable(inside.get(..end)?.to_owned(), is_quoted), end + 3));
    }
    let is_special = behind.starts_with(['?', '#', '@', '*', '$', '!', '-']);
    let length = match behind.chars().next() {
        Some(digit) if digit.is_ascii_digit() => 1,
        _ if is_special => 1,
        _ => behind.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(behind.len()),
    };
    Some(match length {
        0 => (Piece::Quoted("$".to_owned()), 1),
        length => (Piece::Variable(behind.get(..length)?.to_owned(), is_quoted), length + 1),
    })
}

/// A loop while its body is read.
struct Loop {
    start: usize,
    /// Jumps to its end, whose place is not known yet.
    ends: Vec<usize>,
    is_over_words: bool,
}

struct Reader {
    /// The next token is the last one.
    tokens: Vec<Token>,
    ops: Vec<Op>,
    loops: Vec<Loop>,
    /// How many conditions this stands in, where failures are no problem.
    conditions: usize,
    depth: usize,
}

/// Words that mean something where a command begins.
const RESERVED: [&str; 12] =
    ["if", "then", "elif", "else", "fi", "while", "until", "for", "do", "done", "{", "}"];
/// What this shell does not know.
const UNKNOWN: [&str; 4] = ["case", "function", "select", "[["];

impl Reader {
    /// The word that comes next, if it is one that means something.
    fn reserved(&self) -> Option<&str> {
        match self.tokens.last() {
            Some(Token::Word(pieces)) => match pieces.as_slice() {
                [Piece::Text(text)] if RESERVED.contains(&text.as_str()) => Some(text),
                _ => None,
            },
            _ => None,
        }
    }

    fn sign(&self) -> Option<&'static str> {
        match self.tokens.last() {
            Some(Token::Sign(sign)) => Some(sign),
            _ => None,
        }
    }

    fn expect(&mut self, word: &str) -> Option<()> {
        if self.reserved() != Some(word) {
            return None;
        }
        self.tokens.pop();
        Some(())
    }

    fn push(&mut self, op: Op) -> usize {
        self.ops.push(op);
        self.ops.len() - 1
    }

    /// Lets jumps lead here.
    fn land(&mut self, jumps: &[usize]) {
        let here = self.ops.len();
        for at in jumps {
            if let Some(Op::Jump(to) | Op::IfFailed(to) | Op::IfWell(to) | Op::Next(_, to)) =
                self.ops.get_mut(*at)
            {
                *to = here;
            }
        }
    }

    /// Commands up to one of these words, a closing parenthesis or the end.
    fn list(&mut self, ends: &[&str]) -> Option<()> {
        loop {
            while matches!(self.sign(), Some(";" | "\n")) {
                self.tokens.pop();
            }
            if self.tokens.is_empty() || self.sign() == Some(")") {
                return Some(());
            }
            if let Some(word) = self.reserved()
                && matches!(word, "then" | "elif" | "else" | "fi" | "do" | "done" | "}")
            {
                return ends.contains(&word).then_some(());
            }
            self.chain()?;
            match self.sign() {
                Some("&") => {
                    self.tokens.pop();
                    if let Some(Op::Run(pipeline)) =
                        self.ops.iter_mut().rev().find(|op| matches!(op, Op::Run(_)))
                    {
                        pipeline.is_aside = true;
                    }
                }
                Some(";" | "\n" | ")") | None => {}
                Some(_) => return None,
            }
        }
    }

    /// Pipelines joined by `&&` and `||`.
    fn chain(&mut self) -> Option<()> {
        let mut open: Option<usize> = None;
        loop {
            self.pipeline()?;
            let joint = self.sign().filter(|sign| matches!(*sign, "&&" | "||"));
            if joint.is_none() && self.conditions == 0 {
                self.push(Op::Check);
            }
            // A chain goes from left to right: what is skipped falls through to the next joint.
            if let Some(jump) = open.take() {
                self.land(&[jump]);
            }
            let Some(joint) = joint else { return Some(()) };
            self.tokens.pop();
            while self.sign() == Some("\n") {
                self.tokens.pop();
            }
            open = Some(self.push(if joint == "&&" { Op::IfFailed(0) } else { Op::IfWell(0) }));
        }
    }

    fn pipeline(&mut self) -> Option<()> {
        let is_not =
            matches!(self.tokens.last(), Some(Token::Word(word)) if *word == [Piece::Text("!".to_owned())]);
        if is_not {
            self.tokens.pop();
            self.conditions += 1;
        }
        let mut parts = Vec::new();
        loop {
            let is_group = self.sign() == Some("(")
                || matches!(self.reserved(), Some("if" | "while" | "until" | "for" | "{"));
            if is_group {
                let begun = self.ops.len();
                self.group()?;
                let is_plain = parts.is_empty()
                    && !matches!(self.sign(), Some(sign) if is_redirect(sign) || sign == "|" || sign == "&");
                if is_plain {
                    break;
                }
                // Its output goes elsewhere, so it runs as one: what was read becomes a script of its own.
                let leaves = |one: &Loop| one.ends.iter().any(|at| *at >= begun);
                if self.loops.iter().any(leaves) {
                    return None;
                }
                let ops = self.ops.split_off(begun).into_iter().map(|op| moved(op, begun)).collect();
                let redirects = self.redirects()?;
                parts.push(Part { what: What::Group(Arc::new(Script { ops })), redirects });
            } else {
                match self.command()? {
                    Some(part) => parts.push(part),
                    None => break,
                }
            }
            if self.sign() != Some("|") {
                break;
            }
            self.tokens.pop();
            while self.sign() == Some("\n") {
                self.tokens.pop();
            }
        }
        if !parts.is_empty() {
            self.push(Op::Run(Pipeline { parts, is_aside: false }));
        }
        if is_not {
            self.conditions -= 1;
            self.push(Op::Not);
        }
        Some(())
    }

    fn group(&mut self) -> Option<()> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return None;
        }
        if self.sign() == Some("(") {
            self.tokens.pop();
            self.list(&[])?;
            if self.sign() != Some(")") {
                return None;
            }
            self.tokens.pop();
        } else {
            let word = self.reserved()?.to_owned();
            self.tokens.pop();
            match word.as_str() {
                "{" => {
                    self.list(&["}"])?;
                    self.expect("}")?;
                }
                "if" => self.condition()?,
                "for" => self.over_words()?,
                _ => self.repetition(word == "until")?,
            }
        }
        self.depth -= 1;
        Some(())
    }

    fn condition(&mut self) -> Option<()> {
        let mut ends = Vec::new();
        loop {
            self.conditions += 1;
            self.list(&["then"])?;
            self.conditions -= 1;
            self.expect("then")?;
            let otherwise = self.push(Op::IfFailed(0));
            self.list(&["elif", "else", "fi"])?;
            ends.push(self.push(Op::Jump(0)));
            self.land(&[otherwise]);
            match self.reserved()?.to_owned().as_str() {
                "elif" => self.expect("elif")?,
                "else" => {
                    self.expect("else")?;
                    self.list(&["fi"])?;
                    self.expect("fi")?;
                    break;
                }
                _ => {
                    self.expect("fi")?;
                    self.push(Op::Well);
                    break;
                }
            }
        }
        self.land(&ends);
        Some(())
    }

    fn repetition(&mut self, is_until: bool) -> Option<()> {
        let start = self.ops.len();
        self.conditions += 1;
        self.list(&["do"])?;
        self.conditions -= 1;
        let leave = self.push(if is_until { Op::IfWell(0) } else { Op::IfFailed(0) });
        self.body(Loop { start, ends: vec![leave], is_over_words: false })?;
        self.push(Op::Well);
        Some(())
    }

    fn over_words(&mut self) -> Option<()> {
        let Some(Token::Word(name)) = self.tokens.pop() else { return None };
        let [Piece::Text(name)] = name.as_slice() else { return None };
        let Some(Token::Word(within)) = self.tokens.pop() else { return None };
        if within != [Piece::Text("in".to_owned())] {
            return None;
        }
        let mut words = Vec::new();
        while let Some(Token::Word(_)) = self.tokens.last() {
            if let Some(Token::Word(word)) = self.tokens.pop() {
                words.push(word);
            }
        }
        while matches!(self.sign(), Some(";" | "\n")) {
            self.tokens.pop();
        }
        self.push(Op::Each(words));
        let start = self.push(Op::Next(name.clone(), 0));
        self.body(Loop { start, ends: vec![start], is_over_words: true })
    }

    fn body(&mut self, begun: Loop) -> Option<()> {
        self.expect("do")?;
        let start = begun.start;
        self.loops.push(begun);
        self.list(&["done"])?;
        self.expect("done")?;
        self.push(Op::Jump(start));
        let ends = self.loops.pop()?.ends;
        self.land(&ends);
        Some(())
    }

    /// A command; nothing where it only leads to another place.
    fn command(&mut self) -> Option<Option<Part>> {
        let (mut assignments, mut words, mut redirects) = (Vec::new(), Vec::new(), Vec::new());
        loop {
            match self.tokens.last() {
                Some(Token::Word(_)) => {
                    let Some(Token::Word(word)) = self.tokens.pop() else { return None };
                    match assignment(&word).filter(|_| words.is_empty()) {
                        Some(assigned) => assignments.push(assigned),
                        None => words.push(word),
                    }
                }
                Some(Token::Sign(sign)) if !is_redirect(sign) => break,
                None => break,
                _ => redirects.push(self.redirect()?),
            }
        }
        if assignments.is_empty() && words.is_empty() && redirects.is_empty() {
            return None;
        }
        let plain = |text: &str| words == [vec![Piece::Text(text.to_owned())]];
        if let [first, ..] = words.as_slice()
            && let [Piece::Text(first)] = first.as_slice()
            && (UNKNOWN.contains(&first.as_str()) || self.sign() == Some("("))
        {
            return None;
        }
        let (is_break, is_continue) = (plain("break"), plain("continue"));
        if (is_break || is_continue) && !self.loops.is_empty() {
            let at = self.ops.len();
            let last = self.loops.last_mut()?;
            if is_continue {
                let start = last.start;
                self.push(Op::Jump(start));
            } else {
                let drop = last.is_over_words;
                last.ends.push(at + usize::from(drop));
                if drop {
                    self.push(Op::Drop);
                }
                self.push(Op::Jump(0));
            }
            return Some(None);
        }
        Some(Some(Part { what: What::Command(assignments, words), redirects }))
    }

    fn redirects(&mut self) -> Option<Vec<Redirect>> {
        let mut all = Vec::new();
        while matches!(self.tokens.last(), Some(Token::Here(_))) || self.sign().is_some_and(is_redirect) {
            all.push(self.redirect()?);
        }
        Some(all)
    }

    fn redirect(&mut self) -> Option<Redirect> {
        let sign = match self.tokens.pop()? {
            Token::Here(text) => return Some(Redirect::Text(text)),
            Token::Sign(sign) => sign,
            Token::Word(_) => return None,
        };
        match sign {
            ">&2" | "1>&2" => return Some(Redirect::OutToErrors),
            "2>&1" => return Some(Redirect::ErrorsToOut),
            _ => {}
        }
        let Some(Token::Word(target)) = self.tokens.pop() else { return None };
        Some(match sign {
            ">" | "1>" => Redirect::Out(target, false),
            ">>" => Redirect::Out(target, true),
            "2>" => Redirect::Errors(target, false),
            "2>>" => Redirect::Errors(target, true),
            "&>" => Redirect::Both(target),
            "<" => Redirect::In(target),
            _ => return None,
        })
    }
}

fn is_redirect(sign: &str) -> bool {
    sign.contains(['>', '<'])
}

/// `NAME=value`.
fn assignment(word: &Word) -> Option<(String, Word)> {
    let (first, rest) = word.split_first()?;
    let Piece::Text(text) = first else { return None };
    let (name, value) = text.split_once('=')?;
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let mut pieces = vec![Piece::Text(value.to_owned())];
    pieces.extend(rest.iter().cloned());
    is_name.then(|| (name.to_owned(), pieces))
}

/// An operation of a script that begins later by so much.
fn moved(op: Op, by: usize) -> Op {
    let to = |to: usize| to.saturating_sub(by);
    match op {
        Op::Jump(at) => Op::Jump(to(at)),
        Op::IfFailed(at) => Op::IfFailed(to(at)),
        Op::IfWell(at) => Op::IfWell(to(at)),
        Op::Next(name, at) => Op::Next(name, to(at)),
        op @ (Op::Run(_) | Op::Not | Op::Well | Op::Check | Op::Each(_) | Op::Drop) => op,
    }
}
