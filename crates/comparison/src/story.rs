//! Behaviours as text.
//!
//! ```text
//! = A name has no capital letters               a behaviour begins
//! ! 1.20: the text changed later                why servers up to 1.20 answer differently
//! ! embedded: no such feature                   why the embedded server answers differently
//! ! from 1.25: newer than 1.20                  older servers are not asked
//! > POST /api/v1/namespaces/$ns/configmaps      a step: method and path
//! @ Content-Type: application/json              a header
//! | {"metadata": {"name": "A"}}                 the body, line by line; sent as protobuf if its type says so
//! & uid /metadata/uid                           `$uid` in later steps is this part of the answer
//! ? metadata.name spec                          only these parts of the answer count
//! - metadata.labels *description                these do not; a star means: wherever it is
//! % content-type                                this header of the answer counts
//! * until status.phase = "Active"               ask again until the answer has this line (or begins with it)
//! < 422 Invalid                                 what every server answers
//! <1.20 ...                                     what servers up to 1.20 answer instead
//! <embedded ...                                 what the embedded server answers instead
//! ```
//!
//! Lines with `#` are remarks. Empty lines mean nothing.

use std::collections::BTreeMap;
use std::fmt;

/// What kind of server is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Server {
    /// Our own.
    Embedded,
    /// A real one of Kubernetes `1.MINOR`.
    Real(u32),
}

/// Servers whose answers are written apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Apart {
    /// Real servers up to `1.MINOR`.
    UpTo(u32),
    /// Our own server.
    Embedded,
}

/// All behaviours of one file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stories {
    /// Remarks before the first behaviour.
    pub head: Vec<String>,
    /// The behaviours, in order.
    pub behaviours: Vec<Behaviour>,
}

/// A story with its answers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Behaviour {
    /// A sentence.
    pub name: String,
    /// Its lines before the first step, as written.
    pub head: Vec<String>,
    /// Why some servers differ.
    pub reasons: BTreeMap<Apart, String>,
    /// The first minor version that has this, and why it is not older.
    pub from: Option<(u32, String)>,
    /// The requests.
    pub steps: Vec<Step>,
}

/// A request with its answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// All its lines but the answers, as written.
    pub source: Vec<String>,
    /// The HTTP method.
    pub method: String,
    /// Path and query.
    pub path: String,
    /// Request headers.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: String,
    /// Parts of the answer that later steps use: name and JSON pointer.
    pub captures: Vec<(String, String)>,
    /// If not empty, only these parts of the answer count.
    pub only: Vec<String>,
    /// Parts of the answer that do not count.
    pub without: Vec<String>,
    /// Headers of the answer that count.
    pub answer_headers: Vec<String>,
    /// The line that ends the waiting.
    pub until: Option<String>,
    /// What every server answers.
    pub expected: Vec<String>,
    /// What some servers answer instead.
    pub apart: BTreeMap<Apart, Vec<String>>,
}

/// A story that cannot be read.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("line {line}: {problem}: {text:?}")]
pub struct Error {
    /// Where, from 1.
    pub line: usize,
    /// What is wrong.
    pub problem: &'static str,
    /// What is written there.
    pub text: String,
}

impl fmt::Display for Apart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UpTo(minor) => write!(f, "1.{minor}"),
            Self::Embedded => f.write_str("embedded"),
        }
    }
}

impl Apart {
    fn parse(text: &str) -> Option<Self> {
        match text {
            "embedded" => Some(Self::Embedded),
            version => minor(version).map(Self::UpTo),
        }
    }

    /// Whether it means this server.
    pub fn is(self, server: Server) -> bool {
        match (self, server) {
            (Self::UpTo(most), Server::Real(minor)) => minor <= most,
            (Self::Embedded, Server::Embedded) => true,
            _ => false,
        }
    }
}

/// The minor version of `1.20` or `v1.20.2`.
pub fn minor(version: &str) -> Option<u32> {
    let rest = version.trim_start_matches('v').strip_prefix("1.")?;
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

impl Step {
    /// What this server must answer; empty when nothing is written down yet.
    pub fn expected(&self, server: Server) -> &[String] {
        self.apart.iter().find(|(apart, _)| apart.is(server)).map_or(&self.expected, |(_, lines)| lines)
    }
}

impl Behaviour {
    /// Whether this server is asked at all.
    pub fn applies(&self, server: Server) -> bool {
        match (server, &self.from) {
            (Server::Real(minor), Some((from, _))) => minor >= *from,
            _ => true,
        }
    }
}

impl Stories {
    /// Reads a file.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let mut stories = Self::default();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim_end();
            if line.is_empty() {
                continue;
            }
            let wrong = |problem| Error { line: index + 1, problem, text: line.to_owned() };
            if let Some(name) = line.strip_prefix("= ") {
                stories.behaviours.push(Behaviour { name: name.to_owned(), ..Behaviour::default() });
                continue;
            }
            let Some(behaviour) = stories.behaviours.last_mut() else {
                if !line.starts_with('#') {
                    return Err(wrong("only remarks may stand before the first behaviour"));
                }
                stories.head.push(line.to_owned());
                continue;
            };
            behaviour.line(line).map_err(wrong)?;
        }
        Ok(stories)
    }
}

impl Behaviour {
    fn line(&mut self, line: &str) -> Result<(), &'static str> {
        if let Some(request) = line.strip_prefix("> ") {
            let (method, path) = request.split_once(' ').ok_or("a step is a method and a path")?;
            self.steps.push(Step {
                source: vec![line.to_owned()],
                method: method.to_owned(),
                path: path.to_owned(),
                ..Step::default()
            });
            return Ok(());
        }
        let Some(step) = self.steps.last_mut() else {
            self.head.push(line.to_owned());
            return match line.strip_prefix("! ") {
                Some(reason) => self.reason(reason),
                None if line.starts_with('#') => Ok(()),
                None => Err("a step begins with its method and path"),
            };
        };
        step.line(line)
    }

    fn reason(&mut self, text: &str) -> Result<(), &'static str> {
        let (what, why) = text.split_once(": ").ok_or("a reason is `! servers: why`")?;
        if let Some(version) = what.strip_prefix("from ") {
            let minor = minor(version).ok_or("no version")?;
            self.from = Some((minor, why.to_owned()));
            return Ok(());
        }
        let apart = Apart::parse(what).ok_or("a reason is about a version or `embedded`")?;
        self.reasons.insert(apart, why.to_owned());
        Ok(())
    }
}

impl Step {
    fn line(&mut self, line: &str) -> Result<(), &'static str> {
        if let Some(answer) = line.strip_prefix('<') {
            let (apart, answer) = answer.split_once(' ').ok_or("an answer is `< line`")?;
            let lines = match apart {
                "" => &mut self.expected,
                apart => self.apart.entry(Apart::parse(apart).ok_or("unknown servers")?).or_default(),
            };
            lines.push(answer.to_owned());
            return Ok(());
        }
        self.source.push(line.to_owned());
        let (sign, rest) = line.split_once(' ').unwrap_or((line, ""));
        let words = || rest.split_whitespace().map(str::to_owned);
        match sign {
            "#" => {}
            "@" => {
                let (name, value) = rest.split_once(": ").ok_or("a header is `@ name: value`")?;
                self.headers.push((name.to_owned(), value.to_owned()));
            }
            "|" => {
                if !self.body.is_empty() {
                    self.body.push('\n');
                }
                self.body.push_str(rest);
            }
            "&" => {
                let (name, pointer) = rest.split_once(' ').ok_or("a capture is `& name /pointer`")?;
                self.captures.push((name.to_owned(), pointer.to_owned()));
            }
            "?" => self.only.extend(words()),
            "-" => self.without.extend(words()),
            "%" => self.answer_headers.extend(words()),
            "*" => self.until = Some(rest.strip_prefix("until ").ok_or("only `* until`")?.to_owned()),
            _ => return Err("unknown sign"),
        }
        Ok(())
    }
}

impl fmt::Display for Stories {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in &self.head {
            writeln!(f, "{line}")?;
        }
        for behaviour in &self.behaviours {
            writeln!(f, "\n= {}", behaviour.name)?;
            for line in &behaviour.head {
                writeln!(f, "{line}")?;
            }
            for step in &behaviour.steps {
                for line in &step.source {
                    writeln!(f, "{line}")?;
                }
                for line in &step.expected {
                    writeln!(f, "< {line}")?;
                }
                for (apart, lines) in &step.apart {
                    for line in lines {
                        writeln!(f, "<{apart} {line}")?;
                    }
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# Remark.

= First
! 1.20: old
> POST /a
@ X: y
| {
|  }
& rv /metadata/resourceVersion
? metadata spec
* until 404
< 201
< a = 1
<1.20 200
<embedded 500
";

    #[test]
    fn a_story_is_read_and_written_as_it_was() {
        let stories = Stories::parse(TEXT).unwrap();
        assert_eq!(stories.to_string(), TEXT);
        let step = &stories.behaviours[0].steps[0];
        assert_eq!(step.body, "{\n }");
        assert_eq!(step.until.as_deref(), Some("404"));
        assert_eq!(step.expected(Server::Real(30)), ["201", "a = 1"]);
        assert_eq!(step.expected(Server::Real(19)), ["200"]);
        assert_eq!(step.expected(Server::Embedded), ["500"]);
    }

    #[test]
    fn a_bad_line_is_named() {
        let error = Stories::parse("= A\n> GET /\n$ what").unwrap_err();
        assert_eq!(error.line, 3);
        assert!(Stories::parse("> GET /").is_err());
    }

    #[test]
    fn newer_servers_are_asked_what_older_ones_are_not() {
        let text = "= A\n! from 1.25: new\n> GET /\n";
        let behaviour = &Stories::parse(text).unwrap().behaviours[0];
        assert!(!behaviour.applies(Server::Real(minor("v1.20.2").unwrap())));
        assert!(behaviour.applies(Server::Real(25)) && behaviour.applies(Server::Embedded));
    }
}
