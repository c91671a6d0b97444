//! What commands say that nobody declared: a little shell with a few programs.
//!
//! Scripts know `;`, newlines, `&&`, `||`, `|`, quotes, `$NAME`, `>`, `>>`, `2>`, `>&2` and `2>&1`. Programs that are not
//! known end well and say nothing: a simulated image has whatever it needs.

use std::collections::BTreeMap;
use std::time::Duration;

use super::files::{Files, absolute};
use crate::image::seconds;

/// Where a command runs.
pub(super) struct Around<'a> {
    pub(super) environment: &'a BTreeMap<String, String>,
    pub(super) host: &'a str,
    pub(super) files: &'a mut Files,
    /// The folder that it is in.
    pub(super) folder: &'a mut String,
    pub(super) input: Vec<u8>,
}

/// What a command did.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Did {
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
    pub(crate) code: i32,
    pub(crate) after: Duration,
    /// Whether the shell ends with it.
    pub(crate) is_over: bool,
}

const SHELLS: [&str; 8] =
    ["sh", "/bin/sh", "bash", "/bin/bash", "ash", "/bin/ash", "/usr/bin/sh", "/usr/bin/bash"];

/// Whether these words start a shell that reads what is typed.
pub(crate) fn is_shell(words: &[String]) -> bool {
    let mut words = words.iter().map(String::as_str);
    let first = words.next().is_some_and(|word| SHELLS.contains(&word));
    first && words.all(|word| matches!(word, "-i" | "-l" | "-il" | "-li"))
}

/// Whether these words read all that comes in before they end.
pub(crate) fn reads_input(words: &[String]) -> bool {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["cat"] | ["cat", "-"] => true,
        ["tar", rest @ ..] => rest.iter().any(|word| is_extract(word)),
        [shell, "-c" | "-ec", script, ..] => {
            SHELLS.contains(shell) && (script.contains("cat") || script.contains("tar"))
        }
        _ => false,
    }
}

fn is_extract(word: &str) -> bool {
    !word.starts_with("--") && word.trim_start_matches('-').contains('x') && !word.contains('/')
}

/// Runs words as a program.
pub(super) fn run(words: &[String], around: &mut Around<'_>) -> Did {
    match words {
        [shell, flag, text, ..]
            if SHELLS.contains(&shell.as_str()) && matches!(flag.as_str(), "-c" | "-ec") =>
        {
            script(text, around)
        }
        words => {
            let input = std::mem::take(&mut around.input);
            program(words, &input, around)
        }
    }
}

/// Runs a script.
pub(super) fn script(text: &str, around: &mut Around<'_>) -> Did {
    let mut whole = Did::default();
    let mut input = std::mem::take(&mut around.input);
    let mut skip = false;
    for (joint, pipeline) in parse(text, around) {
        let goes = match joint {
            Joint::Then => true,
            Joint::And => !skip && whole.code == 0,
            Joint::Or => whole.code != 0,
        };
        skip = !goes && joint == Joint::And;
        if !goes {
            continue;
        }
        let mut carried = std::mem::take(&mut input);
        let last = pipeline.len().saturating_sub(1);
        for (at, command) in pipeline.iter().enumerate() {
            let mut did = program(&command.words, &carried, around);
            redirect(&mut did, command, around);
            whole.stderr.append(&mut did.stderr);
            whole.after += did.after;
            (whole.code, whole.is_over) = (did.code, did.is_over && last == 0);
            carried = did.stdout;
            if at == last {
                whole.stdout.append(&mut carried);
            }
        }
        if whole.is_over {
            break;
        }
    }
    whole
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Joint {
    Then,
    And,
    Or,
}

#[derive(Clone, Debug, Default)]
struct Command {
    words: Vec<String>,
    /// Where standard output goes: a path, and whether behind what is there.
    out: Option<(String, bool)>,
    errors: Option<String>,
    out_to_errors: bool,
    errors_to_out: bool,
}

fn redirect(did: &mut Did, command: &Command, around: &mut Around<'_>) {
    if command.errors_to_out {
        did.stdout.append(&mut did.stderr);
    }
    if command.out_to_errors {
        did.stderr.append(&mut did.stdout);
    }
    let mut put = |path: &str, bytes: Vec<u8>, behind: bool| {
        if path == "/dev/null" {
            return true;
        }
        let path = absolute(around.folder, path);
        let mut whole =
            if behind { around.files.read(&path).unwrap_or_default().to_vec() } else { Vec::new() };
        whole.extend(bytes);
        around.files.write(&path, whole)
    };
    if let Some((path, behind)) = &command.out
        && !put(path, std::mem::take(&mut did.stdout), *behind)
    {
        did.stderr.extend_from_slice(b"sh: write error: No space left on device\n");
        did.code = 1;
    }
    if let Some(path) = &command.errors {
        put(path, std::mem::take(&mut did.stderr), false);
    }
}

/// Pipelines with how they hang together.
fn parse(text: &str, around: &Around<'_>) -> Vec<(Joint, Vec<Command>)> {
    let mut all = Vec::new();
    let (mut joint, mut pipeline, mut command) = (Joint::Then, Vec::new(), Command::default());
    let mut target: Option<&str> = None;
    for token in tokens(text, around) {
        match token {
            Token::Word(word) => match target.take() {
                Some(">") => command.out = Some((word, false)),
                Some(">>") => command.out = Some((word, true)),
                Some(_) => command.errors = Some(word),
                None => command.words.push(word),
            },
            Token::Sign(">&2") => command.out_to_errors = true,
            Token::Sign("2>&1") => command.errors_to_out = true,
            Token::Sign(sign @ (">" | ">>" | "2>")) => target = Some(sign),
            Token::Sign(sign) => {
                if !command.words.is_empty() {
                    pipeline.push(std::mem::take(&mut command));
                }
                if sign != "|" {
                    if !pipeline.is_empty() {
                        all.push((joint, std::mem::take(&mut pipeline)));
                    }
                    joint = match sign {
                        "&&" => Joint::And,
                        "||" => Joint::Or,
                        _ => Joint::Then,
                    };
                }
            }
        }
    }
    if !command.words.is_empty() {
        pipeline.push(command);
    }
    if !pipeline.is_empty() {
        all.push((joint, pipeline));
    }
    all
}

enum Token {
    Word(String),
    Sign(&'static str),
}

const SIGNS: [&str; 10] = ["2>&1", ">&2", "&&", "||", ">>", "2>", ";", "\n", "|", ">"];

fn tokens(text: &str, around: &Around<'_>) -> Vec<Token> {
    let mut found = Vec::new();
    let mut word: Option<String> = None;
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        let sign =
            SIGNS.iter().find(|sign| rest.starts_with(**sign) && (!sign.starts_with('2') || word.is_none()));
        if let Some(sign) = sign {
            found.extend(word.take().map(Token::Word));
            found.push(Token::Sign(sign));
            rest = rest.get(sign.len()..).unwrap_or_default();
            continue;
        }
        let mut after = rest.get(letter.len_utf8()..).unwrap_or_default();
        match letter {
            ' ' | '\t' | '\r' => found.extend(word.take().map(Token::Word)),
            '\'' => {
                let (inside, behind) = after.split_once('\'').unwrap_or((after, ""));
                word.get_or_insert_default().push_str(inside);
                after = behind;
            }
            '"' => {
                let end = after.find('"').unwrap_or(after.len());
                let inside = after.get(..end).unwrap_or_default();
                word.get_or_insert_default().push_str(&expanded(inside, around));
                after = after.get(end + 1..).unwrap_or_default();
            }
            '\\' => {
                let next = after.chars().next();
                word.get_or_insert_default().extend(next);
                after = after.get(next.map_or(0, char::len_utf8)..).unwrap_or_default();
            }
            '$' => {
                let length = 1 + name_length(after);
                let piece = rest.get(..length).unwrap_or(rest);
                word.get_or_insert_default().push_str(&expanded(piece, around));
                after = rest.get(length..).unwrap_or_default();
            }
            letter => word.get_or_insert_default().push(letter),
        }
        rest = after;
    }
    found.extend(word.map(Token::Word));
    found
}

/// How long the name of a variable is, with braces.
fn name_length(text: &str) -> usize {
    match text.strip_prefix('{') {
        Some(inside) => inside.find('}').map_or(0, |end| end + 2),
        None => text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len()),
    }
}

fn expanded(text: &str, around: &Around<'_>) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        out.push_str(before);
        let length = name_length(after);
        let name = after.get(..length).unwrap_or_default().trim_matches(['{', '}']);
        match name {
            "" => out.push('$'),
            "HOSTNAME" => out.push_str(around.host),
            "PWD" => out.push_str(around.folder),
            name => out.push_str(around.environment.get(name).map_or("", String::as_str)),
        }
        rest = after.get(length..).unwrap_or_default();
    }
    out + rest
}

/// Runs one program.
fn program(words: &[String], input: &[u8], around: &mut Around<'_>) -> Did {
    let mut did = Did::default();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let (name, arguments) = match words.as_slice() {
        [first, rest @ ..] => (first.rsplit('/').next().unwrap_or(first), rest),
        [] => return did,
    };
    let at = |path: &str, around: &Around<'_>| absolute(around.folder, path);
    let plain: Vec<&str> = arguments.iter().copied().filter(|word| !word.starts_with('-')).collect();
    let missing = |path: &str| format!("{name}: {path}: No such file or directory\n").into_bytes();
    match (name, arguments) {
        ("echo", ["-n", text @ ..]) => did.stdout.extend(text.join(" ").bytes()),
        ("echo", text) => did.stdout.extend(format!("{}\n", text.join(" ")).bytes()),
        ("sleep", [time, ..]) => did.after = seconds(time).unwrap_or_default(),
        ("false", _) => did.code = 1,
        ("exit", rest) => {
            did.code = rest.first().map_or(0, |code| code.parse().unwrap_or(2));
            did.is_over = true;
        }
        ("env" | "printenv", []) => {
            for (name, value) in around.environment {
                did.stdout.extend(format!("{name}={value}\n").bytes());
            }
        }
        ("printenv", [name, ..]) => match around.environment.get(*name) {
            Some(value) => did.stdout.extend(format!("{value}\n").bytes()),
            None => did.code = 1,
        },
        ("hostname", _) => did.stdout.extend(format!("{}\n", around.host).bytes()),
        ("pwd", _) => did.stdout.extend(format!("{}\n", around.folder).bytes()),
        ("whoami", _) => did.stdout.extend_from_slice(b"root\n"),
        ("id", _) => did.stdout.extend_from_slice(b"uid=0(root) gid=0(root) groups=0(root)\n"),
        ("cd", rest) => {
            let path = at(rest.first().copied().unwrap_or("/root"), around);
            if around.files.is_folder(&path) {
                *around.folder = path;
            } else {
                did.stderr.extend(
                    format!("sh: cd: can't cd to {}: No such file or directory\n", rest.join(" ")).bytes(),
                );
                did.code = 2;
            }
        }
        ("cat", _) => {
            if plain.is_empty() {
                did.stdout.extend_from_slice(input);
            }
            for path in plain {
                match around.files.read(&at(path, around)) {
                    Some(bytes) => did.stdout.extend_from_slice(bytes),
                    None => {
                        did.stderr
                            .extend(format!("cat: can't open '{path}': No such file or directory\n").bytes());
                        did.code = 1;
                    }
                }
            }
        }
        ("ls", _) => {
            let paths = if plain.is_empty() { vec!["."] } else { plain };
            for path in paths {
                let full = at(path, around);
                if around.files.read(&full).is_some() {
                    did.stdout.extend(format!("{path}\n").bytes());
                } else if around.files.is_folder(&full) {
                    around
                        .files
                        .names(&full)
                        .iter()
                        .for_each(|name| did.stdout.extend(format!("{name}\n").bytes()));
                } else {
                    did.stderr.extend(missing(path));
                    did.code = 1;
                }
            }
        }
        ("mkdir", _) => plain.iter().for_each(|path| {
            let full = at(path, around);
            around.files.make_folder(&full);
        }),
        ("touch", _) => plain.iter().for_each(|path| {
            let full = at(path, around);
            if around.files.read(&full).is_none() {
                around.files.write(&full, Vec::new());
            }
        }),
        ("rm", _) => {
            let is_forced = arguments.iter().any(|word| word.starts_with('-') && word.contains('f'));
            for path in plain {
                if !around.files.remove(&at(path, around)) && !is_forced {
                    did.stderr
                        .extend(format!("rm: can't remove '{path}': No such file or directory\n").bytes());
                    did.code = 1;
                }
            }
        }
        ("test" | "[", [flag, path, ..]) => {
            let full = at(path, around);
            let holds = match *flag {
                "-d" => around.files.is_folder(&full),
                "-f" => around.files.read(&full).is_some(),
                "-e" => around.files.read(&full).is_some() || around.files.is_folder(&full),
                _ => true,
            };
            did.code = i32::from(!holds);
        }
        ("tail", _) => {
            let from = arguments
                .iter()
                .find_map(|word| word.trim_start_matches("-c").strip_prefix('+')?.parse::<usize>().ok());
            did.stdout
                .extend_from_slice(input.get(from.unwrap_or(1).saturating_sub(1)..).unwrap_or_default());
        }
        ("tar", _) => tar(arguments, input, around, &mut did),
        _ => {}
    }
    did
}

/// `tar cf - PATH` and `tar xmf - [-C FOLDER]`, as `kubectl cp` calls them.
fn tar(arguments: &[&str], input: &[u8], around: &mut Around<'_>, did: &mut Did) {
    let folder =
        arguments.iter().position(|word| *word == "-C").and_then(|at| arguments.get(at + 1)).copied();
    let folder = absolute(around.folder, folder.unwrap_or("."));
    let mut fail = |why: String| {
        did.stderr.extend(format!("tar: {why}\n").bytes());
        did.code = 1;
    };
    if arguments.first().is_some_and(|word| is_extract(word))
        || arguments.iter().any(|word| word.starts_with("-x"))
    {
        if let Err(why) = around.files.unpack(input, &folder) {
            fail(why.to_owned());
        }
        return;
    }
    let mut paths = arguments.iter().skip(1).filter(|word| !word.starts_with('-'));
    let Some(path) = paths.next() else { return };
    match around.files.pack(&absolute(&folder, path), path) {
        Some(archive) => did.stdout = archive,
        None => fail(format!("{path}: Cannot stat: No such file or directory")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run_with(words: &[&str], files: &mut Files, input: &[u8]) -> (String, String, i32) {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let environment = BTreeMap::from([("A".to_owned(), "b".to_owned())]);
        let mut folder = "/".to_owned();
        let mut around = Around {
            environment: &environment,
            host: "web",
            files,
            folder: &mut folder,
            input: input.to_vec(),
        };
        let did = run(&words, &mut around);
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (text(did.stdout), text(did.stderr), did.code)
    }

    #[track_caller]
    fn check(words: &[&str], stdout: &str, stderr: &str, code: i32) {
        let seen = run_with(words, &mut Files::of("web", "10.0.0.1"), b"typed\n");
        assert_eq!(seen, (stdout.to_owned(), stderr.to_owned(), code), "{words:?}");
    }

    #[test]
    fn simple_commands_do_what_they_say() {
        check(&["true"], "", "", 0);
        check(&["/usr/bin/anything", "x"], "", "", 0);
        check(&["/bin/false"], "", "", 1);
        check(&["env"], "A=b\n", "", 0);
        check(&["hostname"], "web\n", "", 0);
        check(&["cat"], "typed\n", "", 0);
        check(&["cat", "/etc/hostname"], "web\n", "", 0);
        check(&["cat", "/x"], "", "cat: can't open '/x': No such file or directory\n", 1);
        check(&["test", "-d", "/tmp"], "", "", 0);
        check(&["test", "-d", "/tmp/x"], "", "", 1);
    }

    #[test]
    fn scripts_join_commands() {
        let sh = |script: &str, stdout: &str, stderr: &str, code: i32| {
            check(&["sh", "-c", script], stdout, stderr, code);
        };
        sh("echo 'hello you'; sleep 2; echo bad >&2; exit 3; echo never", "hello you\n", "bad\n", 3);
        sh("false && echo no || echo yes", "yes\n", "", 0);
        sh("true && echo yes || echo no", "yes\n", "", 0);
        sh("false && echo a && echo b", "", "", 1);
        sh("echo $A \"${A}c\" '$A' $NONE-", "b bc $A -\n", "", 0);
        sh("echo one > /tmp/f; echo two >> /tmp/f; cat /tmp/f | cat", "one\ntwo\n", "", 0);
        sh("cd /tmp && pwd", "/tmp\n", "", 0);
        sh("cat /none 2>/dev/null || echo gone", "gone\n", "", 0);
        sh("cat /none 2>&1", "cat: can't open '/none': No such file or directory\n", "", 1);
        sh("", "", "", 0);
    }

    #[test]
    fn archives_go_in_and_out() {
        let mut files = Files::of("web", "");
        files.write("/data/a", b"one".to_vec());
        let words: Vec<String> = ["tar", "cf", "-", "/data"].map(str::to_owned).into();
        let environment = BTreeMap::new();
        let mut folder = "/".to_owned();
        let mut around = Around {
            environment: &environment,
            host: "",
            files: &mut files,
            folder: &mut folder,
            input: Vec::new(),
        };
        let archive = run(&words, &mut around).stdout;
        let (_, stderr, code) = run_with(&["tar", "-xmf", "-", "-C", "/tmp"], &mut files, &archive);
        assert_eq!((stderr.as_str(), code), ("", 0));
        assert_eq!(files.read("/tmp/data/a").unwrap(), b"one");
    }

    #[test]
    fn shells_are_told_from_programs() {
        let words = |text: &str| -> Vec<String> { text.split(' ').map(str::to_owned).collect() };
        assert!(is_shell(&words("sh")) && is_shell(&words("/bin/bash -i")));
        assert!(!is_shell(&words("sh -c ls")) && !is_shell(&words("ls")));
        assert!(reads_input(&words("tar -xmf - -C /tmp")) && reads_input(&words("cat")));
        assert!(!reads_input(&words("tar cf - /tmp/x")) && !reads_input(&words("echo cat")));
    }
}
