//! The programs of a simulated container. One that is not here ends well and says nothing: a simulated image has
//! whatever it needs, unless it is an image that everybody knows.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use super::process::{Manner, Process};
use super::{Around, Did, FOREVER, SHELLS, pi, tar};
use crate::image::{known, seconds};
use crate::machine::files::{Files, absolute};

/// How a program is called.
pub(super) struct Call<'a> {
    /// The script that calls it.
    pub(super) process: &'a Process,
    pub(super) environment: &'a BTreeMap<String, String>,
    pub(super) input: &'a [u8],
    pub(super) manner: Manner,
}

/// Programs that do something here.
const DOING: [&str; 62] = [
    "echo", "printf", "sleep", "usleep", "true", "false", "exit", "env", "printenv", "hostname", "pwd",
    "whoami", "id", "cd", "cat", "ls", "mkdir", "touch", "rm", "rmdir", "test", "[", "head", "tail", "tar",
    "cp", "mv", "chown", "chmod", "chgrp", "ln", "date", "seq", "wc", "grep", "sort", "uniq", "nslookup",
    "getent", "nc", "wget", "curl", "ping", "uname", "basename", "dirname", "mktemp", "which", "timeout",
    "nohup", "nice", "time", "command", "sh", "bash", "ash", "set", "perl", "tee", "sync", "expr", "stat",
];

/// Programs that serve until somebody stops them.
const SERVING: [&str; 34] = [
    "nginx",
    "httpd",
    "httpd-foreground",
    "apache2-foreground",
    "redis-server",
    "redis-sentinel",
    "memcached",
    "mongod",
    "mysqld",
    "mariadbd",
    "postgres",
    "etcd",
    "haproxy",
    "envoy",
    "caddy",
    "traefik",
    "pause",
    "agnhost",
    "java",
    "catalina.sh",
    "gunicorn",
    "uvicorn",
    "uwsgi",
    "php-fpm",
    "rabbitmq-server",
    "coredns",
    "registry",
    "top",
    "watch",
    "crond",
    "sshd",
    "supervisord",
    "dumb-server",
    "http-server",
];

/// More programs of the images that everybody knows. What they do is not known here.
const COMMON: [&str; 44] = [
    "awk",
    "sed",
    "find",
    "xargs",
    "cut",
    "tr",
    "dd",
    "df",
    "du",
    "ps",
    "kill",
    "killall",
    "mount",
    "umount",
    "ip",
    "ifconfig",
    "netstat",
    "route",
    "vi",
    "less",
    "more",
    "md5sum",
    "sha256sum",
    "base64",
    "gzip",
    "gunzip",
    "unzip",
    "su",
    "chroot",
    "install",
    "readlink",
    "realpath",
    "rev",
    "tac",
    "diff",
    "cmp",
    "hexdump",
    "od",
    "strings",
    "free",
    "uptime",
    "nproc",
    "yes",
    "busybox",
];

/// Parts of names of programs that say themselves that they do not exist.
const ABSENT: [&str; 12] = [
    "nonexist",
    "non-exist",
    "not-exist",
    "notexist",
    "no-such",
    "nosuch",
    "not-found",
    "notfound",
    "nowhere",
    "no-exist",
    "does-not",
    "not-a-",
];

fn base(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

/// Whether this shell knows what a program does.
pub(crate) fn is_known(word: &str) -> bool {
    DOING.contains(&base(word))
}

/// Whether a program serves until it is stopped.
pub(crate) fn serves(words: &[String]) -> bool {
    let name = words.first().map_or("", |word| base(word));
    SERVING.contains(&name)
}

/// Why a program cannot be started, as a runtime says it; nothing if it is there.
pub(crate) fn missing(word: &str, image: &str, is_there: impl Fn(&str) -> bool) -> Option<String> {
    if word.is_empty() || word.contains('/') && is_there(word) {
        return None;
    }
    let name = base(word);
    let is_absent = if ABSENT.iter().any(|part| word.contains(part)) {
        true
    } else if let Some(known) = known::find(image) {
        let folders = ["/bin/", "/sbin/", "/usr/bin/", "/usr/sbin/", "/usr/local/bin/", "/usr/local/sbin/"];
        let has = DOING.contains(&name) || COMMON.contains(&name) || known.programs.contains(&name);
        let is_own = word.contains("entrypoint") || known.programs.contains(&word);
        let may_be_there =
            !word.contains('/') || folders.iter().any(|folder| *folder == word.trim_end_matches(name));
        !(is_own || has && may_be_there)
    } else {
        false
    };
    is_absent.then(|| match word.contains('/') {
        true => format!("exec: \"{word}\": stat {word}: no such file or directory"),
        false => format!("exec: \"{word}\": executable file not found in $PATH"),
    })
}

/// The files that a word with `*` and `?` means.
pub(super) fn pattern(word: &str, folder: &str, files: &Files) -> Vec<String> {
    let (parent, last) = word.rsplit_once('/').unwrap_or(("", word));
    let full =
        if word.starts_with('/') && parent.is_empty() { "/".to_owned() } else { absolute(folder, parent) };
    let names = files.names(&full);
    let fits = names.into_iter().filter(|name| {
        name.starts_with('.') == last.starts_with('.') && fits(last.as_bytes(), name.as_bytes())
    });
    let before = if word.contains('/') { format!("{parent}/") } else { String::new() };
    fits.map(|name| format!("{before}{name}")).collect()
}

fn fits(pattern: &[u8], text: &[u8]) -> bool {
    match (pattern, text) {
        ([], []) => true,
        ([b'*', rest @ ..], text) => {
            fits(rest, text) || text.split_first().is_some_and(|(_, after)| fits(pattern, after))
        }
        ([b'?', rest @ ..], [_, after @ ..]) => fits(rest, after),
        ([one, rest @ ..], [other, after @ ..]) => one == other && fits(rest, after),
        _ => false,
    }
}

/// Runs one program.
pub(super) fn run(words: &[&str], call: &Call<'_>, around: &mut Around<'_>) -> Did {
    let mut did = Did::default();
    let Some((first, arguments)) = words.split_first() else { return did };
    let name = base(first);
    let folder = call.process.folder();
    let at = |path: &str| absolute(folder, path);
    let plain: Vec<&str> = arguments.iter().copied().filter(|word| !word.starts_with('-')).collect();
    let has_flag = |flag: char| arguments.iter().any(|word| word.starts_with('-') && word.contains(flag));
    let is_strict = known::find(around.image).is_some();
    if let Some(found) = missing(first, around.image, |path| around.files.read(&at(path)).is_some()) {
        did.stderr.extend(format!("sh: {first}: not found\n").bytes());
        did.code = 127;
        did.missing = Some(found);
        return did;
    }
    match (name, arguments) {
        ("echo", text) => {
            let flags = text.iter().take_while(|word| matches!(**word, "-n" | "-e" | "-ne" | "-en")).count();
            let (flags, text) = text.split_at_checked(flags).unwrap_or((&[], text));
            let has = |flag: char| flags.iter().any(|word| word.contains(flag));
            let text = text.join(" ");
            let text = if has('e') { escaped(&text) } else { text };
            did.stdout.extend(text.bytes());
            if !has('n') {
                did.stdout.push(b'\n');
            }
        }
        ("printf", [form, values @ ..]) => did.stdout.extend(printed(form, values).bytes()),
        ("sleep", [_, ..]) => {
            let time = |word: &str| match word {
                "infinity" | "inf" => Some(FOREVER),
                word => days(word),
            };
            match arguments.iter().map(|word| time(word)).collect::<Option<Vec<Duration>>>() {
                Some(times) => did.after = times.iter().sum::<Duration>().min(FOREVER),
                None => {
                    did.stderr.extend(format!("sleep: invalid number '{}'\n", arguments.join(" ")).bytes());
                    did.code = 1;
                }
            }
        }
        ("sleep", []) => fail(&mut did, "sleep: missing operand", 1),
        ("usleep", [time, ..]) => did.after = Duration::from_micros(time.parse().unwrap_or(0)),
        ("false", _) => did.code = 1,
        ("exit", rest) => {
            did.code = rest.first().map_or(0, |code| code.parse().unwrap_or(2));
            did.is_over = true;
        }
        ("env" | "printenv" | "set", []) => {
            for (name, value) in call.environment {
                did.stdout.extend(format!("{name}={value}\n").bytes());
            }
        }
        ("printenv", [name, ..]) => match call.environment.get(*name) {
            Some(value) => did.stdout.extend(format!("{value}\n").bytes()),
            None => did.code = 1,
        },
        ("env", rest) => {
            let mut environment = call.environment.clone();
            let count = rest.iter().take_while(|word| word.contains('=')).count();
            let (own, rest) = rest.split_at_checked(count).unwrap_or((&[], rest));
            let own = own.iter().filter_map(|word| word.split_once('='));
            environment.extend(own.map(|(name, value)| (name.to_owned(), value.to_owned())));
            return called(rest, &environment, call, around);
        }
        ("nohup" | "nice" | "time" | "command", rest @ [_, ..]) => {
            return called(rest, call.environment, call, around);
        }
        ("timeout", [time, rest @ ..]) => {
            let most = seconds(time.trim_start_matches("-t")).unwrap_or(FOREVER);
            did = called(rest, call.environment, call, around);
            if did.after > most {
                (did.after, did.code) = (most, 124);
            }
        }
        ("sh" | "bash" | "ash", rest) if SHELLS.contains(first) => return shell(rest, call, around),
        ("hostname", _) => did.stdout.extend(format!("{}\n", around.host).bytes()),
        ("pwd", _) => did.stdout.extend(format!("{folder}\n").bytes()),
        ("whoami", _) => did.stdout.extend_from_slice(b"root\n"),
        ("uname", _) => did.stdout.extend_from_slice(b"Linux\n"),
        ("id", _) => did.stdout.extend_from_slice(b"uid=0(root) gid=0(root) groups=0(root)\n"),
        ("date", _) if arguments.contains(&"+%s") => {
            did.stdout.extend(format!("{}\n", around.now.as_second()).bytes());
        }
        ("date", _) => {
            did.stdout.extend(format!("{}\n", around.now.strftime("%a %b %e %H:%M:%S UTC %Y")).bytes());
        }
        ("basename", [path, ..]) => did.stdout.extend(format!("{}\n", base(path)).bytes()),
        ("dirname", [path, ..]) => {
            let parent =
                path.rsplit_once('/').map_or(".", |(parent, _)| if parent.is_empty() { "/" } else { parent });
            did.stdout.extend(format!("{parent}\n").bytes());
        }
        ("mktemp", _) => {
            let path = "/tmp/tmp.000001";
            if has_flag('d') {
                around.files.make_folder(path);
            } else {
                around.files.write(path, Vec::new());
            }
            did.stdout.extend(format!("{path}\n").bytes());
        }
        ("which", [program, ..]) => {
            let there =
                missing(program, around.image, |_| false).is_none() && (is_known(program) || !is_strict);
            match there {
                true => did.stdout.extend(format!("/usr/bin/{program}\n").bytes()),
                false => did.code = 1,
            }
        }
        ("cat", _) => {
            if plain.is_empty() {
                did.stdout.extend_from_slice(call.input);
            }
            for path in plain {
                match around.files.read(&at(path)) {
                    Some(bytes) => did.stdout.extend_from_slice(bytes),
                    None if path.starts_with("/dev/") => {}
                    None => {
                        fail(&mut did, &format!("cat: can't open '{path}': No such file or directory"), 1);
                    }
                }
            }
        }
        ("tee", _) => {
            did.stdout.extend_from_slice(call.input);
            for path in plain {
                around.files.write(&at(path), call.input.to_vec());
            }
        }
        ("ls" | "stat", _) => {
            let paths = if plain.is_empty() { vec!["."] } else { plain };
            for path in paths {
                let full = at(path);
                if around.files.read(&full).is_some() {
                    did.stdout.extend(format!("{path}\n").bytes());
                } else if around.files.is_folder(&full) {
                    let names = around.files.names(&full);
                    let shown = names.iter().filter(|name| !name.starts_with('.') || has_flag('a'));
                    shown.for_each(|name| did.stdout.extend(format!("{name}\n").bytes()));
                } else {
                    let why = format!("{name}: cannot access '{path}': No such file or directory");
                    fail(&mut did, &why, if name == "ls" { 2 } else { 1 });
                }
            }
        }
        ("mkdir", _) => {
            for path in plain {
                let full = at(path);
                let is_there = around.files.is_folder(&full) || around.files.read(&full).is_some();
                if is_there && !has_flag('p') {
                    fail(&mut did, &format!("mkdir: can't create directory '{path}': File exists"), 1);
                } else {
                    around.files.make_folder(&full);
                }
            }
        }
        ("touch", _) => plain.iter().for_each(|path| {
            let full = at(path);
            if around.files.read(&full).is_none() {
                around.files.write(&full, Vec::new());
            }
        }),
        ("rm" | "rmdir", _) => {
            for path in plain {
                if !around.files.remove(&at(path)) && !has_flag('f') {
                    fail(&mut did, &format!("rm: can't remove '{path}': No such file or directory"), 1);
                }
            }
        }
        ("cp" | "mv" | "ln", _) => {
            let Some((target, sources)) = plain.split_last().filter(|(_, sources)| !sources.is_empty())
            else {
                fail(&mut did, &format!("{name}: missing file operand"), 1);
                return did;
            };
            for source in sources {
                if !carry(around.files, &at(source), &at(target), name == "mv", is_strict) {
                    fail(&mut did, &format!("{name}: can't stat '{source}': No such file or directory"), 1);
                }
            }
        }
        ("chown" | "chmod" | "chgrp", _) => {
            for path in plain.iter().skip(1).filter(|_| is_strict) {
                let full = at(path);
                if around.files.read(&full).is_none() && !around.files.is_folder(&full) {
                    fail(&mut did, &format!("{name}: {path}: No such file or directory"), 1);
                }
            }
        }
        ("test" | "[", words) => {
            let words = if name == "[" { words.strip_suffix(&["]"]).unwrap_or(words) } else { words };
            did.code = i32::from(!holds(words, around.files, &at));
        }
        ("expr", [a, sign, b]) => {
            let (a, b) = (a.parse::<i64>().unwrap_or(0), b.parse::<i64>().unwrap_or(0));
            let result = match *sign {
                "+" => a.saturating_add(b),
                "-" => a.saturating_sub(b),
                "*" => a.saturating_mul(b),
                "/" => a.checked_div(b).unwrap_or(0),
                _ => a.checked_rem(b).unwrap_or(0),
            };
            did.stdout.extend(format!("{result}\n").bytes());
        }
        ("seq", _) => {
            let numbers: Vec<i64> = plain.iter().filter_map(|word| word.parse().ok()).collect();
            let (from, by, to) = match numbers.as_slice() {
                [to] => (1, 1, *to),
                [from, to] => (*from, 1, *to),
                [from, by, to] => (*from, (*by).max(1), *to),
                _ => (1, 1, 0),
            };
            let mut next = from;
            while next <= to && did.stdout.len() < 1 << 16 {
                did.stdout.extend(format!("{next}\n").bytes());
                next += by;
            }
        }
        ("head" | "tail" | "wc" | "grep" | "sort" | "uniq", _) => {
            text_tool(name, arguments, call.input, &mut did, |path| around.files.read(&at(path)));
        }
        ("nslookup" | "getent" | "ping", _) => {
            let host = match name {
                "getent" => plain.get(1),
                _ => plain.iter().find(|word| word.parse::<f64>().is_err()),
            };
            let host = host.copied().unwrap_or_default();
            match around.network.address(host) {
                Some(address) if name == "nslookup" => {
                    let server = "Server:\t\t10.96.0.10\nAddress:\t10.96.0.10:53\n\n";
                    did.stdout.extend(format!("{server}Name:\t{host}\nAddress: {address}\n\n").bytes());
                }
                Some(address) => did.stdout.extend(format!("{address} {host}\n").bytes()),
                None if name == "nslookup" => {
                    let text = "Server:\t\t10.96.0.10\nAddress:\t10.96.0.10:53\n\n";
                    did.stdout.extend(format!("{text}** server can't find {host}: NXDOMAIN\n\n").bytes());
                    did.code = 1;
                }
                None if name == "ping" => fail(&mut did, &format!("ping: bad address '{host}'"), 1),
                None => did.code = 2,
            }
        }
        ("nc", _) if has_flag('l') => did.after = FOREVER,
        ("nc" | "wget" | "curl", _) => fetch(name, arguments, &plain, around, &mut did),
        ("tar", _) => tar(arguments, folder, call.input, around.files, &mut did),
        ("perl", _) => match arguments.iter().find_map(|word| pi::asked(word)) {
            Some(digits) => did.stdout.extend(format!("{}\n", pi::digits(digits)).bytes()),
            None => unknown(call.manner, &mut did),
        },
        ("true" | "sync" | ":", _) => {}
        (name, _) if SERVING.contains(&name) => did.after = FOREVER,
        (_, arguments) => match around.files.read(&at(first)) {
            Some(bytes) if first.contains('/') => {
                let text = String::from_utf8_lossy(bytes).into_owned();
                return script(&text, first, arguments, call, around);
            }
            _ => unknown(call.manner, &mut did),
        },
    }
    did
}

/// A program that nobody knows.
fn unknown(manner: Manner, did: &mut Did) {
    did.after = if manner.serves { FOREVER } else { manner.moment };
}

fn fail(did: &mut Did, why: &str, code: i32) {
    did.stderr.extend(format!("{why}\n").bytes());
    did.code = code;
}

/// Runs words in another environment.
fn called(
    words: &[&str],
    environment: &BTreeMap<String, String>,
    call: &Call<'_>,
    around: &mut Around<'_>,
) -> Did {
    if words.is_empty() || call.process.depth() > 16 {
        return Did::default();
    }
    let words: Vec<&str> = words.to_vec();
    let inner = Call { environment, process: call.process, input: call.input, manner: call.manner };
    run(&words, &inner, around)
}

/// A shell in a shell.
fn shell(words: &[&str], call: &Call<'_>, around: &mut Around<'_>) -> Did {
    match words {
        [flag, text, arguments @ ..] if flag.starts_with('-') && flag.ends_with('c') => {
            script(text, "sh", arguments, call, around)
        }
        [flags @ .., path] if !path.starts_with('-') && flags.iter().all(|flag| flag.starts_with('-')) => {
            let full = absolute(call.process.folder(), path);
            match around.files.read(&full) {
                Some(bytes) => {
                    let text = String::from_utf8_lossy(bytes).into_owned();
                    script(&text, path, &[], call, around)
                }
                None if known::find(around.image).is_some() => {
                    let mut did = Did::default();
                    fail(&mut did, &format!("sh: can't open '{path}': No such file or directory"), 2);
                    did
                }
                None => {
                    let mut did = Did::default();
                    unknown(call.manner, &mut did);
                    did
                }
            }
        }
        _ => {
            let text = String::from_utf8_lossy(call.input).into_owned();
            script(&text, "sh", &[], call, around)
        }
    }
}

fn script(text: &str, name: &str, arguments: &[&str], call: &Call<'_>, around: &mut Around<'_>) -> Did {
    let mut did = Did::default();
    let Some(script) = super::Script::read(text).filter(|_| call.process.depth() < 16) else {
        unknown(call.manner, &mut did);
        return did;
    };
    let arguments = std::iter::once(name).chain(arguments.iter().copied()).map(str::to_owned).collect();
    let mut inner = call.process.called(script.into()).with(arguments, call.manner);
    let mut own = Around {
        environment: call.environment,
        host: around.host,
        image: around.image,
        network: around.network,
        now: around.now,
        files: &mut *around.files,
        input: Vec::new(),
        inner_code: None,
        inner_errors: Vec::new(),
    };
    did = inner.finish(&mut own);
    did.is_over = false;
    did
}

/// Copies or moves; false when there is nothing to copy. An image that nobody knows has the file.
fn carry(files: &mut Files, source: &str, target: &str, moves: bool, is_strict: bool) -> bool {
    let contents = source.strip_suffix("/.").unwrap_or(source);
    let into_folder = files.is_folder(target);
    let goal = if into_folder { format!("{target}/{}", base(contents)) } else { target.to_owned() };
    if let Some(bytes) = files.read(contents).map(<[u8]>::to_vec) {
        files.write(&goal, bytes);
    } else if files.is_folder(contents) {
        files.copy_folder(contents, &goal);
    } else if is_strict {
        return false;
    } else {
        files.write(&goal, Vec::new());
    }
    if moves {
        files.remove(contents);
    }
    true
}

/// What `test` finds.
fn holds(words: &[&str], files: &Files, at: &dyn Fn(&str) -> String) -> bool {
    if let Some(middle) = words.iter().position(|word| *word == "-o") {
        let (a, b) = words.split_at_checked(middle).unwrap_or_default();
        return holds(a, files, at) || holds(b.get(1..).unwrap_or_default(), files, at);
    }
    if let Some(middle) = words.iter().position(|word| *word == "-a") {
        let (a, b) = words.split_at_checked(middle).unwrap_or_default();
        return holds(a, files, at) && holds(b.get(1..).unwrap_or_default(), files, at);
    }
    let number = |word: &str| word.trim().parse::<i64>().unwrap_or(0);
    match words {
        [] => false,
        ["!", rest @ ..] => !holds(rest, files, at),
        ["-z", text] => text.is_empty(),
        ["-n", text] => !text.is_empty(),
        ["-d", path] => files.is_folder(&at(path)),
        ["-f" | "-r" | "-x" | "-w", path] => files.read(&at(path)).is_some(),
        ["-s", path] => files.read(&at(path)).is_some_and(|bytes| !bytes.is_empty()),
        ["-e", path] => files.read(&at(path)).is_some() || files.is_folder(&at(path)),
        [a, "=" | "==", b] => a == b,
        [a, "!=", b] => a != b,
        [a, "-eq", b] => number(a) == number(b),
        [a, "-ne", b] => number(a) != number(b),
        [a, "-lt", b] => number(a) < number(b),
        [a, "-le", b] => number(a) <= number(b),
        [a, "-gt", b] => number(a) > number(b),
        [a, "-ge", b] => number(a) >= number(b),
        [text] => !text.is_empty(),
        _ => true,
    }
}

fn text_tool<'f>(
    name: &str,
    arguments: &[&str],
    input: &[u8],
    did: &mut Did,
    read: impl Fn(&str) -> Option<&'f [u8]>,
) {
    let mut paths: Vec<&str> = Vec::new();
    let (mut count, mut from_byte, mut goes_on, mut wanted) = (10_usize, None, false, None);
    let mut flags = String::new();
    let mut words = arguments.iter().peekable();
    while let Some(word) = words.next() {
        match word.strip_prefix('-') {
            Some("") | None => match (name, wanted.is_none()) {
                ("grep", true) => wanted = Some(*word),
                _ => paths.push(word),
            },
            Some("e") if name == "grep" => wanted = words.next().copied(),
            Some(flag) => {
                goes_on |= name == "tail" && (flag.contains('f') || flag.contains('F'));
                if let Some(bytes) = flag.strip_prefix('c').filter(|_| name == "tail") {
                    let text =
                        if bytes.is_empty() { words.next().copied().unwrap_or_default() } else { bytes };
                    from_byte = text.strip_prefix('+').and_then(|number| number.parse::<usize>().ok());
                } else if let Some(lines) = flag.strip_prefix('n').filter(|_| matches!(name, "head" | "tail"))
                {
                    let text =
                        if lines.is_empty() { words.next().copied().unwrap_or_default() } else { lines };
                    count = if text.starts_with('+') { usize::MAX } else { text.parse().unwrap_or(10) };
                } else if let Ok(lines) = flag.parse() {
                    count = lines;
                }
                flags.push_str(flag);
            }
        }
    }
    let mut bytes = Vec::new();
    if paths.is_empty() {
        bytes.extend_from_slice(input);
    }
    for path in &paths {
        match read(path) {
            Some(content) => bytes.extend_from_slice(content),
            // It may still come.
            None if goes_on || path.starts_with("/dev/") => {}
            None => {
                let code = if name == "grep" { 2 } else { 1 };
                fail(did, &format!("{name}: {path}: No such file or directory"), code);
                return;
            }
        }
    }
    if let Some(from) = from_byte {
        did.stdout.extend_from_slice(bytes.get(from.saturating_sub(1)..).unwrap_or_default());
        return;
    }
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let mut lines: Vec<&str> = text.lines().collect();
    match name {
        "head" => lines.truncate(count),
        "tail" => drop(lines.drain(..lines.len().saturating_sub(count))),
        "sort" => lines.sort_unstable(),
        "uniq" => lines.dedup(),
        "wc" => {
            let number = if flags.contains('l') { lines.len() } else { bytes.len() };
            did.stdout.extend(format!("{number}\n").bytes());
            return;
        }
        _ => {
            let wanted = wanted.unwrap_or_default();
            let lower = |text: &str| if flags.contains('i') { text.to_lowercase() } else { text.to_owned() };
            let (needle, inverted) = (lower(wanted.trim_matches(['^', '$'])), flags.contains('v'));
            lines.retain(|line| lower(line).contains(&needle) != inverted);
            did.code = i32::from(lines.is_empty());
            if flags.contains('q') {
                return;
            }
            if flags.contains('c') {
                did.stdout.extend(format!("{}\n", lines.len()).bytes());
                return;
            }
        }
    }
    for line in lines {
        did.stdout.extend(line.bytes());
        did.stdout.push(b'\n');
    }
    if goes_on {
        did.after = FOREVER;
    }
}

/// `wget`, `curl` and `nc` to something in the cluster. What is elsewhere answers nothing and is well.
fn fetch(name: &str, arguments: &[&str], plain: &[&str], around: &mut Around<'_>, did: &mut Did) {
    let target = match name {
        "nc" => plain.iter().find(|word| word.parse::<u16>().is_err()).copied(),
        _ => arguments.iter().find(|word| word.contains("://")).or(plain.last()).copied(),
    };
    let Some(target) = target else { return fail(did, &format!("{name}: missing URL"), 1) };
    let bare = target.split_once("://").map_or(target, |(_, rest)| rest);
    let authority = bare.split(['/', '?']).next().unwrap_or_default();
    let (host, port) = authority.split_once(':').unwrap_or((authority, "80"));
    let port = match name {
        "nc" => plain.iter().find(|word| word.parse::<u16>().is_ok()).copied().unwrap_or("80"),
        _ => port,
    };
    if around.network.address(host).is_none() {
        return match name {
            "curl" => fail(did, &format!("curl: (6) Could not resolve host: {host}"), 6),
            name => fail(did, &format!("{name}: bad address '{host}'"), 1),
        };
    }
    match (around.network.answers(host), name) {
        (true, "nc") => {}
        (true, "wget") => {
            let is_to_nowhere = arguments.windows(2).any(|two| matches!(two, ["-O", "/dev/null"]));
            let is_shown = arguments.iter().any(|word| word.starts_with('-') && word.ends_with("O-"))
                || arguments.windows(2).any(|two| matches!(two, [flag, "-"] if flag.ends_with('O')));
            if is_shown && !is_to_nowhere {
                did.stdout.extend_from_slice(b"ok");
            }
        }
        (true, _) => did.stdout.extend_from_slice(b"ok"),
        (false, "curl") => {
            fail(did, &format!("curl: (7) Failed to connect to {host} port {port}: Connection refused"), 7);
        }
        (false, name) => {
            fail(did, &format!("{name}: can't connect to remote host ({host}): Connection refused"), 1);
        }
    }
}

/// What `printf` makes of a form and values.
fn printed(form: &str, values: &[&str]) -> String {
    let form = escaped(form);
    let mut out = String::new();
    let mut values = values.iter();
    loop {
        let mut letters = form.chars();
        let before = values.len();
        while let Some(letter) = letters.next() {
            if letter != '%' {
                out.push(letter);
                continue;
            }
            let kind = letters.find(|c| c.is_ascii_alphabetic() || *c == '%');
            match kind {
                Some('%') => out.push('%'),
                _ => out.push_str(values.next().copied().unwrap_or_default()),
            }
        }
        if values.len() == 0 || values.len() == before {
            return out;
        }
    }
}

fn escaped(text: &str) -> String {
    let mut out = String::new();
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        if letter != '\\' {
            out.push(letter);
            continue;
        }
        match letters.next() {
            Some('n') => out.push('\n'),
            Some('t') => out.push('\t'),
            Some('r') => out.push('\r'),
            Some('\\') | None => out.push('\\'),
            Some(other) => {
                let _ = write!(out, "\\{other}");
            }
        }
    }
    out
}

/// `2d`, which only this program knows.
fn days(word: &str) -> Option<Duration> {
    match word.strip_suffix('d') {
        Some(number) => seconds(number).map(|time| (time * 86_400).min(FOREVER)),
        None => seconds(word),
    }
}
