//! What commands do: a little shell with a few programs.
//!
//! Scripts know `;`, newlines, `&`, `&&`, `||`, `!`, `|`, `if`, `while`, `until`, `for`, groups, quotes, variables, `$(…)`,
//! `$((…))`, patterns with `*` and `?`, and the usual signs for input and output. A script with words that are not known
//! here counts as a program that is not known.

mod parse;
mod pi;
mod process;
mod programs;

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;

use super::files::{Files, absolute};
pub(crate) use parse::Script;
pub(crate) use process::{Manner, Process};
pub(crate) use programs::{is_known, missing, serves};

/// As long as nobody waits.
pub(crate) const FOREVER: Duration = Duration::from_secs(10 * 365 * 86_400);

/// Where a command runs.
pub(crate) struct Around<'a> {
    pub(super) environment: &'a BTreeMap<String, String>,
    pub(super) host: &'a str,
    /// The image, which may be one that everybody knows.
    pub(super) image: &'a str,
    pub(super) network: &'a dyn Network,
    pub(super) now: Timestamp,
    pub(super) files: &'a mut Files,
    pub(super) input: Vec<u8>,
    /// How the last `$(…)` ended, and what it complained about.
    pub(super) inner_code: Option<i32>,
    pub(super) inner_errors: Vec<u8>,
}

/// What a command reaches.
pub(crate) trait Network {
    /// The address behind a name, if there is one.
    fn address(&self, host: &str) -> Option<String>;
    /// Whether somebody there answers.
    fn answers(&self, host: &str) -> bool;
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
    /// Why the program could not be started.
    pub(crate) missing: Option<String>,
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

/// Runs words as a program, to the end.
pub(super) fn run(words: &[String], around: &mut Around<'_>) -> Did {
    match Process::of_words(words, Manner::default()) {
        Some(mut process) => {
            let mut did = process.finish(around);
            let is_program = !words.first().is_some_and(|first| SHELLS.contains(&first.as_str()));
            if let Some(missing) = did.missing.as_ref().filter(|_| is_program) {
                did.stderr = format!(
                    "OCI runtime exec failed: exec failed: unable to start container process: {missing}: unknown\n"
                )
                .into_bytes();
            }
            did
        }
        // Nobody here understands it, so it ends well as any program does that is not known.
        None => Did::default(),
    }
}

/// Runs what somebody types into a shell, which is left in a folder.
pub(super) fn script(text: &str, folder: &mut String, around: &mut Around<'_>) -> Did {
    let Some(script) = Script::read(text) else {
        return Did { stderr: b"sh: syntax error\n".to_vec(), code: 2, ..Did::default() };
    };
    let mut process = Process::new(script, vec!["sh".to_owned()], Manner::default()).in_folder(folder);
    let did = process.finish(around);
    process.folder().clone_into(folder);
    did
}

/// `tar cf - PATH` and `tar xmf - [-C FOLDER]`, as `kubectl cp` calls them.
fn tar(arguments: &[&str], within: &str, input: &[u8], files: &mut Files, did: &mut Did) {
    let folder =
        arguments.iter().position(|word| *word == "-C").and_then(|at| arguments.get(at + 1)).copied();
    let folder = absolute(within, folder.unwrap_or("."));
    let mut fail = |why: String| {
        did.stderr.extend(format!("tar: {why}\n").bytes());
        did.code = 1;
    };
    if arguments.first().is_some_and(|word| is_extract(word))
        || arguments.iter().any(|word| word.starts_with("-x"))
    {
        if let Err(why) = files.unpack(input, &folder) {
            fail(why.to_owned());
        }
        return;
    }
    let mut paths = arguments.iter().skip(1).filter(|word| !word.starts_with('-'));
    let Some(path) = paths.next() else { return };
    match files.pack(&absolute(&folder, path), path) {
        Some(archive) => did.stdout = archive,
        None => fail(format!("{path}: Cannot stat: No such file or directory")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One service `db` that answers and one `slow` that does not.
    struct Services;

    impl Network for Services {
        fn address(&self, host: &str) -> Option<String> {
            matches!(host, "db" | "slow").then(|| "10.96.0.7".to_owned())
        }

        fn answers(&self, host: &str) -> bool {
            host == "db"
        }
    }

    fn around<'a>(
        image: &'a str,
        environment: &'a BTreeMap<String, String>,
        files: &'a mut Files,
        input: &[u8],
    ) -> Around<'a> {
        let now = Timestamp::UNIX_EPOCH;
        let (inner_code, inner_errors) = (None, Vec::new());
        Around {
            environment,
            host: "web",
            image,
            network: &Services,
            now,
            files,
            input: input.to_vec(),
            inner_code,
            inner_errors,
        }
    }

    fn run_with(words: &[&str], files: &mut Files, input: &[u8]) -> (String, String, i32) {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let environment = BTreeMap::from([("A".to_owned(), "b".to_owned())]);
        let did = run(&words, &mut around("app:1", &environment, files, input));
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (text(did.stdout), text(did.stderr), did.code)
    }

    #[track_caller]
    fn check(words: &[&str], stdout: &str, stderr: &str, code: i32) {
        let seen = run_with(words, &mut Files::of("web", "10.0.0.1", &[]), b"typed\n");
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
        check(&["ls", "/nowhere"], "", "ls: cannot access '/nowhere': No such file or directory\n", 2);
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
        sh("! false && echo yes", "yes\n", "", 0);
        sh("cat <<END\n$A\nEND\necho after", "b\nafter\n", "", 0);
    }

    #[test]
    fn scripts_turn_branch_and_count() {
        let sh = |script: &str, stdout: &str, code: i32| check(&["sh", "-c", script], stdout, "", code);
        sh("for i in 1 2 3; do echo $i; done", "1\n2\n3\n", 0);
        sh(
            "for i in $(seq 1 5); do if [ $i = 3 ]; then break; fi; echo $i; done; echo end",
            "1\n2\nend\n",
            0,
        );
        sh("i=0; while [ $i -lt 3 ]; do i=$((i+1)); [ $i = 2 ] && continue; echo $i; done", "1\n3\n", 0);
        sh("if test -f /none; then echo a; elif true; then echo b; else echo c; fi", "b\n", 0);
        sh("until test -f /tmp/x; do touch /tmp/x; done; echo made", "made\n", 0);
        sh("set -e; if false; then :; fi; false || true; false; echo never", "", 1);
        sh("x=$(echo one two); echo \"$x\" ${x} ${y:-none}; false; echo $?", "one two one two none\n1\n", 0);
        sh("mkdir -p /d && echo 1 > /d/a && echo 2 > /d/b && cp /d/* /tmp && cat /tmp/a /tmp/b", "1\n2\n", 0);
        sh("(echo b; echo a) | sort; for i in 1 2; do echo $i; done > /tmp/f; wc -l /tmp/f", "a\nb\n2\n", 0);
        sh("exec sh -c 'echo inner; exit 4'; echo never", "inner\n", 4);
        sh("A=c env | grep ^A=", "A=c\n", 0);
        sh("printf '%s-%s\\n' a b", "a-b\n", 0);
        sh("case x in x) echo;; esac", "", 0);
    }

    #[test]
    fn names_of_services_are_looked_up() {
        let code =
            |script: &str| run_with(&["sh", "-c", script], &mut Files::of("web", "10.0.0.1", &[]), b"").2;
        assert_eq!([code("nslookup db"), code("nslookup nobody")], [0, 1]);
        assert_eq!([code("nc -z db 5432"), code("nc -z slow 5432")], [0, 1]);
        assert_eq!([code("wget -qO- http://db/"), code("curl -s http://nobody")], [0, 6]);
    }

    #[test]
    fn programs_that_are_not_there_are_not_found() {
        let environment = BTreeMap::new();
        let of = |image: &str, words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            let mut files = Files::of("web", "10.0.0.1", &[]);
            let did = run(&words, &mut around(image, &environment, &mut files, b""));
            (did.code, did.missing)
        };
        let nowhere = "exec: \"/nowhere/x\": stat /nowhere/x: no such file or directory".to_owned();
        assert_eq!(of("app:1", &["/nowhere/x"]), (127, Some(nowhere)));
        assert_eq!(of("app:1", &["/app/server"]), (0, None));
        let foo = "exec: \"foo\": executable file not found in $PATH".to_owned();
        assert_eq!(of("busybox:1.36", &["foo"]), (127, Some(foo)));
        assert_eq!(of("busybox:1.36", &["sed", "s/a/b/"]), (0, None));
        assert_eq!(of("docker.io/library/alpine", &["sh", "-c", "foo; exit 0"]).0, 0);
        assert_eq!(of("alpine", &["sh", "-c", "foo"]).0, 127);
    }

    #[test]
    fn a_script_pauses_where_it_sleeps() {
        let environment = BTreeMap::new();
        let mut files = Files::of("web", "10.0.0.1", &[]);
        let words: Vec<String> =
            ["sh", "-c", "echo a; while true; do echo b; sleep 5; done"].map(str::to_owned).into();
        let mut process = Process::of_words(&words, Manner::default()).unwrap();
        let mut step = || {
            let did = process.step(&mut around("app:1", &environment, &mut files, b""));
            (String::from_utf8(did.stdout).unwrap(), did.after, did.is_over)
        };
        let five = Duration::from_secs(5);
        assert_eq!(step(), ("a\nb\n".to_owned(), five, false));
        assert_eq!(step(), ("b\n".to_owned(), five, false));
    }

    #[test]
    fn a_script_that_never_ends_stops_nobody_else() {
        let environment = BTreeMap::new();
        for script in
            ["while :; do :; done", "while true; do sleep 1; done", "while true; do echo a; done | cat"]
        {
            let words = ["sh", "-c", script].map(str::to_owned);
            let mut files = Files::of("web", "10.0.0.1", &[]);
            let did = run(&words, &mut around("app:1", &environment, &mut files, b""));
            assert_eq!(did.after, FOREVER, "{script}");
        }
    }

    #[test]
    fn archives_go_in_and_out() {
        let mut files = Files::of("web", "", &[]);
        files.write("/data/a", b"one".to_vec());
        let words: Vec<String> = ["tar", "cf", "-", "/data"].map(str::to_owned).into();
        let environment = BTreeMap::new();
        let archive = run(&words, &mut around("app:1", &environment, &mut files, b"")).stdout;
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
