//! A script that runs. It goes on from one pause to the next, so that hours of it pass as fast as the clock does.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use super::parse::{Op, Part, Piece, Pipeline, Redirect, Script, What, Word};
use super::programs::{self, pattern};
use super::{Around, Did, FOREVER, SHELLS};
use crate::machine::files::absolute;

/// How many operations run without a pause before one is made: a script that turns in a circle must not stop the world.
const MOST: usize = 2_000;
/// How much one pipeline or one `$(…)` may write.
const MOST_OUTPUT: usize = 1 << 20;

/// A script with where it is and what it knows.
#[derive(Clone, Debug)]
pub(crate) struct Process {
    script: Arc<Script>,
    at: usize,
    /// Variables that are its own, beside its environment.
    variables: BTreeMap<String, String>,
    /// `$0`, `$1` and so on.
    arguments: Vec<String>,
    folder: String,
    code: i32,
    /// Loops over words: what is still to come.
    words: Vec<VecDeque<String>>,
    ends_on_failure: bool,
    /// How long the longest command goes on that nobody waits for.
    aside: Duration,
    /// Whether it was left before its end.
    is_left: bool,
    /// How often it did much without a pause of its own.
    turns: u32,
    /// How deep it is called from other scripts.
    depth: usize,
    manner: Manner,
}

/// What becomes of programs that nobody knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Manner {
    /// How long they run.
    pub(crate) moment: Duration,
    /// Whether the last one is a server, which runs for ever.
    pub(crate) serves: bool,
}

impl Process {
    /// A script that begins.
    pub(crate) fn new(script: Script, arguments: Vec<String>, manner: Manner) -> Self {
        Self {
            script: Arc::new(script),
            at: 0,
            variables: BTreeMap::new(),
            arguments,
            folder: "/".to_owned(),
            code: 0,
            words: Vec::new(),
            ends_on_failure: false,
            aside: Duration::ZERO,
            is_left: false,
            turns: 0,
            depth: 0,
            manner,
        }
    }

    /// A program with its arguments, or the script of a shell. Nothing for a script with words that are not known.
    pub(crate) fn of_words(words: &[String], manner: Manner) -> Option<Self> {
        if let [shell, flag, text, arguments @ ..] = words
            && SHELLS.contains(&shell.as_str())
            && let Some(flags) = flag.strip_prefix('-').filter(|flags| flags.ends_with('c'))
        {
            let mut process = Self::new(Script::read(text)?, arguments.to_vec(), manner);
            process.ends_on_failure = flags.contains('e');
            return Some(process);
        }
        let words = words.iter().map(|word| vec![Piece::Quoted(word.clone())]).collect();
        let part = Part { what: What::Command(Vec::new(), words), redirects: Vec::new() };
        let ops = vec![Op::Run(Pipeline { parts: vec![part], is_aside: false })];
        Some(Self::new(Script { ops }, Vec::new(), manner))
    }

    /// Begins in this folder.
    pub(super) fn in_folder(mut self, folder: &str) -> Self {
        folder.clone_into(&mut self.folder);
        self
    }

    pub(super) fn folder(&self) -> &str {
        &self.folder
    }

    /// How deep scripts call each other here.
    pub(super) fn depth(&self) -> usize {
        self.depth
    }

    /// The same with other arguments and another manner.
    pub(super) fn with(mut self, arguments: Vec<String>, manner: Manner) -> Self {
        (self.arguments, self.manner) = (arguments, manner);
        self
    }

    /// A script that is called by this one.
    pub(super) fn called(&self, script: Arc<Script>) -> Self {
        Self {
            script,
            at: 0,
            variables: self.variables.clone(),
            arguments: self.arguments.clone(),
            folder: self.folder.clone(),
            code: 0,
            words: Vec::new(),
            ends_on_failure: self.ends_on_failure,
            aside: Duration::ZERO,
            is_left: false,
            turns: 0,
            depth: self.depth + 1,
            manner: Manner { serves: false, ..self.manner },
        }
    }

    /// Runs until the next pause or the end. What it says, how long the pause is, and whether the script is over.
    pub(crate) fn step(&mut self, around: &mut Around<'_>) -> Did {
        let mut whole = Did::default();
        for _ in 0..MOST {
            let script = self.script.clone();
            let Some(op) = script.ops.get(self.at) else { break };
            self.at += 1;
            match op {
                Op::Jump(to) => self.at = *to,
                Op::IfFailed(to) if self.code != 0 => self.at = *to,
                Op::IfWell(to) if self.code == 0 => self.at = *to,
                Op::IfFailed(_) | Op::IfWell(_) => {}
                Op::Not => self.code = i32::from(self.code == 0),
                Op::Well => self.code = 0,
                Op::Check if self.ends_on_failure && self.code != 0 => self.is_left = true,
                Op::Check => {}
                Op::Each(words) => {
                    let mut all = VecDeque::new();
                    for word in words {
                        all.extend(self.expand(word, around));
                    }
                    self.words.push(all);
                }
                Op::Next(name, end) => match self.words.last_mut().and_then(VecDeque::pop_front) {
                    Some(word) => {
                        self.variables.insert(name.clone(), word);
                    }
                    None => {
                        self.words.pop();
                        self.at = *end;
                    }
                },
                Op::Drop => {
                    self.words.pop();
                }
                Op::Run(pipeline) => {
                    let rest = script.ops.get(self.at..).unwrap_or_default();
                    let is_last = rest.iter().all(|op| matches!(op, Op::Check | Op::Well));
                    let mut did = self.pipeline(pipeline, is_last, around);
                    whole.stdout.append(&mut did.stdout);
                    whole.stderr.append(&mut did.stderr);
                    whole.missing = did.missing;
                    self.is_left |= did.is_over;
                    self.code = did.code;
                    if pipeline.is_aside {
                        self.aside = self.aside.max(did.after);
                        self.code = 0;
                        continue;
                    }
                    whole.after = did.after;
                }
            }
            if self.is_left || !whole.after.is_zero() {
                break;
            }
        }
        let is_done = self.is_left || self.script.ops.get(self.at).is_none();
        if !is_done && whole.after.is_zero() {
            // Ever longer, up to some hours: it would be busy, and nobody sees with what.
            whole.after = Duration::from_secs(1 << self.turns.min(14));
            self.turns += 1;
        }
        whole.code = self.code;
        whole.is_over = is_done;
        whole
    }

    /// Runs to the end, at once: how long it takes is added up.
    pub(super) fn finish(&mut self, around: &mut Around<'_>) -> Did {
        let mut whole = Did::default();
        for _ in 0..MOST {
            let mut did = self.step(around);
            whole.stdout.append(&mut did.stdout);
            whole.stderr.append(&mut did.stderr);
            whole.after = (whole.after + did.after).min(FOREVER);
            whole.code = did.code;
            whole.missing = did.missing;
            if did.is_over {
                whole.is_over = self.is_left;
                return whole;
            }
            if whole.after >= FOREVER || whole.stdout.len() > MOST_OUTPUT || self.turns > 2 {
                break;
            }
        }
        whole.after = FOREVER;
        whole
    }

    fn pipeline(&mut self, pipeline: &Pipeline, is_last: bool, around: &mut Around<'_>) -> Did {
        let mut whole = Did::default();
        let mut carried = std::mem::take(&mut around.input);
        let count = pipeline.parts.len();
        for (at, part) in pipeline.parts.iter().enumerate() {
            let is_alone = count == 1;
            let mut did = self.part(part, carried, is_alone && is_last && !pipeline.is_aside, around);
            self.redirect(&mut did, part, around);
            whole.stderr.append(&mut did.stderr);
            whole.after = (whole.after + did.after).min(FOREVER);
            whole.code = did.code;
            whole.missing = did.missing;
            whole.is_over |= did.is_over && is_alone;
            carried = did.stdout;
            carried.truncate(MOST_OUTPUT);
            if at + 1 == count {
                whole.stdout.append(&mut carried);
                break;
            }
        }
        whole.stderr.append(&mut around.inner_errors);
        whole
    }

    fn part(&mut self, part: &Part, carried: Vec<u8>, is_last: bool, around: &mut Around<'_>) -> Did {
        let mut input = carried;
        for redirect in &part.redirects {
            match redirect {
                Redirect::Text(text) => input = self.one(text, around).into_bytes(),
                Redirect::In(path) => {
                    let name = self.one(path, around);
                    let path = absolute(&self.folder, &name);
                    if path == "/dev/null" {
                        input.clear();
                    } else if let Some(bytes) = around.files.read(&path) {
                        input = bytes.to_vec();
                    } else {
                        let why = format!("sh: can't open {name}: no such file\n");
                        return Did { stderr: why.into_bytes(), code: 1, ..Did::default() };
                    }
                }
                _ => {}
            }
        }
        match &part.what {
            What::Group(script) => {
                let mut inner = self.called(script.clone());
                if inner.depth > 16 {
                    return Did::default();
                }
                around.input = input;
                let did = inner.finish(around);
                around.input.clear();
                self.variables = inner.variables;
                did
            }
            What::Command(assignments, words) => {
                let words: Vec<String> = words.iter().flat_map(|word| self.expand(word, around)).collect();
                let mut own = BTreeMap::new();
                for (name, value) in assignments {
                    let value = self.one(value, around);
                    own.insert(name.clone(), value);
                }
                if words.is_empty() {
                    self.variables.extend(own);
                    return Did { code: around.inner_code.take().unwrap_or(0), ..Did::default() };
                }
                self.command(&words, own, input, is_last, around)
            }
        }
    }

    /// What a shell does itself, and programs.
    fn command(
        &mut self,
        words: &[String],
        own: BTreeMap<String, String>,
        input: Vec<u8>,
        is_last: bool,
        around: &mut Around<'_>,
    ) -> Did {
        let mut did = Did::default();
        let all: Vec<&str> = words.iter().map(String::as_str).collect();
        match all.as_slice() {
            [":" | "true" | "/bin/true" | "trap" | "umask" | "ulimit" | "hash" | "shopt", ..] => {}
            ["exit" | "return", rest @ ..] => {
                did.code = rest.first().map_or(self.code, |code| code.parse().unwrap_or(2) & 255);
                did.is_over = true;
            }
            ["cd", rest @ ..] => {
                let path = absolute(&self.folder, rest.first().copied().unwrap_or("/root"));
                if around.files.is_folder(&path) {
                    self.folder = path;
                } else {
                    let shown = rest.join(" ");
                    did.stderr
                        .extend(format!("sh: cd: can't cd to {shown}: No such file or directory\n").bytes());
                    did.code = 2;
                }
            }
            ["set", flags @ ..] => {
                for flag in flags {
                    let short = flag.get(1..).unwrap_or_default();
                    match flag.chars().next() {
                        Some('-') if short.contains('e') && !flag.starts_with("--") => {
                            self.ends_on_failure = true;
                        }
                        Some('+') if short.contains('e') => self.ends_on_failure = false,
                        _ => {}
                    }
                }
            }
            ["export" | "local" | "readonly" | "declare", names @ ..] => {
                for name in names {
                    if let Some((name, value)) = name.split_once('=') {
                        self.variables.insert(name.to_owned(), value.to_owned());
                    }
                }
            }
            ["unset", names @ ..] => {
                for name in names {
                    self.variables.remove(*name);
                }
            }
            ["shift", ..] => {
                if self.arguments.len() > 1 {
                    self.arguments.remove(1);
                }
            }
            ["read", names @ ..] => {
                let text = String::from_utf8_lossy(&input).into_owned();
                let line = text.lines().next();
                did.code = i32::from(line.is_none());
                if let Some(name) = names.iter().rfind(|name| !name.starts_with('-')) {
                    self.variables.insert((*name).to_owned(), line.unwrap_or_default().trim().to_owned());
                }
            }
            ["wait", ..] => did.after = std::mem::take(&mut self.aside),
            ["exec"] => {}
            ["exec", ..] => {
                did = self.command(words.get(1..).unwrap_or_default(), own, input, true, around);
                did.is_over = true;
            }
            ["eval", rest @ ..] => match Script::read(&rest.join(" ")) {
                Some(script) if self.depth < 16 => {
                    let mut inner = self.called(Arc::new(script));
                    did = inner.finish(around);
                    self.variables = inner.variables;
                }
                _ => did.code = 2,
            },
            _ => {
                let mut environment = around.environment.clone();
                environment.extend(self.variables.clone());
                environment.extend(own);
                let manner = Manner { serves: self.manner.serves && is_last, ..self.manner };
                let call =
                    programs::Call { process: &*self, environment: &environment, input: &input, manner };
                did = programs::run(&all, &call, around);
            }
        }
        did
    }

    fn redirect(&mut self, did: &mut Did, part: &Part, around: &mut Around<'_>) {
        for redirect in part.redirects.iter().rev() {
            match redirect {
                Redirect::ErrorsToOut => did.stdout.append(&mut did.stderr),
                Redirect::OutToErrors => did.stderr.append(&mut did.stdout),
                Redirect::Out(path, behind) => {
                    let bytes = std::mem::take(&mut did.stdout);
                    self.put(path, bytes, *behind, did, around);
                }
                Redirect::Errors(path, behind) => {
                    let bytes = std::mem::take(&mut did.stderr);
                    self.put(path, bytes, *behind, did, around);
                }
                Redirect::Both(path) => {
                    did.stdout.append(&mut did.stderr);
                    let bytes = std::mem::take(&mut did.stdout);
                    self.put(path, bytes, false, did, around);
                }
                Redirect::In(_) | Redirect::Text(_) => {}
            }
        }
    }

    fn put(&mut self, path: &Word, bytes: Vec<u8>, behind: bool, did: &mut Did, around: &mut Around<'_>) {
        let path = self.one(path, around);
        // What is written to the first process of a container is its log.
        if path.starts_with("/dev/") || path.starts_with("/proc/") {
            if path.ends_with("/fd/1") || path == "/dev/stdout" {
                did.stdout.extend(bytes);
            } else if path.ends_with("/fd/2") || path == "/dev/stderr" {
                did.stderr.extend(bytes);
            }
            return;
        }
        let path = absolute(&self.folder, &path);
        let mut whole =
            if behind { around.files.read(&path).unwrap_or_default().to_vec() } else { Vec::new() };
        whole.extend(bytes);
        if !around.files.write(&path, whole) {
            did.stderr.extend_from_slice(b"sh: write error: No space left on device\n");
            did.code = 1;
        }
    }

    /// A word as one text.
    fn one(&mut self, word: &Word, around: &mut Around<'_>) -> String {
        word.iter().map(|piece| self.value(piece, around).0).collect()
    }

    /// A word as the words that it becomes.
    fn expand(&mut self, word: &Word, around: &mut Around<'_>) -> Vec<String> {
        let mut done = Vec::new();
        let mut open: Option<String> = None;
        let mut is_pattern = false;
        for piece in word {
            let is_literal = matches!(piece, Piece::Text(_));
            let (text, splits) = self.value(piece, around);
            is_pattern |= is_literal && text.contains(['*', '?']);
            if !splits {
                open.get_or_insert_default().push_str(&text);
                continue;
            }
            let begins_blank = text.starts_with(char::is_whitespace);
            if begins_blank {
                done.extend(open.take());
            }
            let mut parts = text.split_whitespace().peekable();
            while let Some(part) = parts.next() {
                open.get_or_insert_default().push_str(part);
                if parts.peek().is_some() || text.ends_with(char::is_whitespace) {
                    done.extend(open.take());
                }
            }
        }
        done.extend(open);
        if let ([one], true) = (done.as_slice(), is_pattern) {
            let found = pattern(one, &self.folder, around.files);
            if !found.is_empty() {
                return found;
            }
        }
        done
    }

    /// The text of a piece, and whether it is split at blanks.
    fn value(&mut self, piece: &Piece, around: &mut Around<'_>) -> (String, bool) {
        match piece {
            Piece::Text(text) if text == "~" => ("/root".to_owned(), false),
            Piece::Text(text) | Piece::Quoted(text) => (text.clone(), false),
            Piece::Sum(text) => (self.sum(text, around).to_string(), false),
            Piece::Variable(name, is_quoted) => (self.variable(name, around), !is_quoted),
            Piece::Output(script, is_quoted) => {
                let mut inner = self.called(script.clone());
                if inner.depth > 16 {
                    return (String::new(), !is_quoted);
                }
                let kept = std::mem::take(&mut around.input);
                let did = inner.finish(around);
                around.input = kept;
                around.inner_code = Some(did.code);
                around.inner_errors.extend(did.stderr);
                let text = String::from_utf8_lossy(&did.stdout).into_owned();
                (text.trim_end_matches('\n').to_owned(), !is_quoted)
            }
        }
    }

    fn variable(&self, name: &str, around: &Around<'_>) -> String {
        let end = name.find([':', '-', '%', '#', '/', '=']).filter(|at| *at > 0).unwrap_or(name.len());
        let (plain, rest) = name.split_at_checked(end).unwrap_or((name, ""));
        let known = self.known(plain, around);
        let default =
            rest.strip_prefix(":-").or_else(|| rest.strip_prefix('-')).or_else(|| rest.strip_prefix(":="));
        match (known, default) {
            (Some(value), _) if !value.is_empty() => value,
            (_, Some(default)) => default.to_owned(),
            (known, None) => known.unwrap_or_default(),
        }
    }

    fn known(&self, name: &str, around: &Around<'_>) -> Option<String> {
        let arguments = self.arguments.get(1..).unwrap_or_default();
        Some(match name {
            "?" => self.code.to_string(),
            "#" => arguments.len().to_string(),
            "@" | "*" => arguments.join(" "),
            "$" => "1".to_owned(),
            "PWD" => self.folder.clone(),
            "HOSTNAME" => around.host.to_owned(),
            "RANDOM" => "4".to_owned(),
            "!" => "7".to_owned(),
            name => match name.parse::<usize>() {
                Ok(number) => return self.arguments.get(number).cloned(),
                Err(_) => {
                    return self.variables.get(name).or_else(|| around.environment.get(name)).cloned();
                }
            },
        })
    }

    /// `i + 1`: from left to right, without rules of precedence.
    fn sum(&self, text: &str, around: &Around<'_>) -> i64 {
        let mut spaced = String::new();
        for letter in text.chars() {
            match letter {
                '+' | '-' | '*' | '/' | '%' => spaced.extend([' ', letter, ' ']),
                '$' | '(' | ')' => {}
                letter => spaced.push(letter),
            }
        }
        let value = |word: &str| {
            let known = || self.known(word, around).and_then(|text| text.parse().ok());
            word.parse::<i64>().ok().or_else(known).unwrap_or(0)
        };
        let mut total = 0_i64;
        let mut sign = "+";
        for word in spaced.split_whitespace() {
            match word {
                "+" | "-" | "*" | "/" | "%" => sign = word,
                word => {
                    let next = value(word);
                    total = match sign {
                        "+" => total.saturating_add(next),
                        "-" => total.saturating_sub(next),
                        "*" => total.saturating_mul(next),
                        "/" => total.checked_div(next).unwrap_or(0),
                        _ => total.checked_rem(next).unwrap_or(0),
                    };
                }
            }
        }
        total
    }
}
