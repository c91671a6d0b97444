//! Runs programs that end: long ones with their output in a log file, short ones for what they print.

use std::collections::VecDeque;
use std::env;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::layout::Layout;
use super::process;
use super::progress::{Heartbeat, Progress};

/// What `process` finds such a program by after its parent was killed.
pub(crate) const TASK: &str = "task";
/// Package management is never ended half-way: it would leave the machine's packages broken.
pub(crate) const APT: &str = "apt";

/// How many lines of a log an error shows.
const TAIL: usize = 15;

/// Runs a command to its end. `what` completes the sentence "failed …".
pub(crate) fn run(
    layout: &Layout,
    progress: &Progress,
    kind: &str,
    what: &str,
    command: &mut Command,
) -> Result<()> {
    let log = layout.setup_log();
    let (out, err) = (append_to(&log)?, append_to(&log)?);
    process::mark(command, layout, kind);
    let mut child = command
        .stdin(Stdio::null())
        .stdout(out)
        .stderr(err)
        .spawn()
        .with_context(|| format!("failed {what}: cannot start {}", command.get_program().display()))?;
    let mut heartbeat = Heartbeat::new(progress, what);
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        heartbeat.beat();
        thread::sleep(Duration::from_millis(50));
    };
    if !status.success() {
        bail!("failed {what} ({status}), see {}:\n{}", log.display(), tail(&log));
    }
    Ok(())
}

/// What a short command prints.
pub(crate) fn capture(command: &mut Command) -> Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("cannot start {name}"))?;
    if !output.status.success() {
        bail!("{name} failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Opens a log for more lines.
pub(crate) fn append_to(log: &Path) -> Result<File> {
    if let Some(folder) = log.parent() {
        fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    }
    File::options()
        .create(true)
        .append(true)
        .open(log)
        .with_context(|| format!("cannot write {}", log.display()))
}

/// The last lines of a log.
pub(crate) fn tail(log: &Path) -> String {
    let Ok(file) = File::open(log) else {
        return "  (the log is empty)".to_owned();
    };
    let mut lines = VecDeque::new();
    for line in BufReader::new(file).split(b'\n').map_while(Result::ok) {
        if lines.len() == TAIL {
            lines.pop_front();
        }
        lines.push_back(format!("  {}", String::from_utf8_lossy(&line)));
    }
    Vec::from(lines).join("\n")
}

/// The first program of that name in `PATH`.
pub(crate) fn find(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    // System tools are not in everybody's PATH.
    env::split_paths(&path)
        .chain(["/usr/sbin".into(), "/sbin".into()])
        .map(|dir| dir.join(name))
        .find(|file| is_program(file))
}

pub(crate) fn is_program(file: &Path) -> bool {
    fs::metadata(file).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// Writes a file in one step: a reader, or the next run, sees all of it or nothing.
pub(crate) fn write_atomically(file: &Path, content: impl AsRef<[u8]>) -> Result<()> {
    let folder = file.parent().context("a file has a folder")?;
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let partial = file.with_added_extension("partial");
    fs::write(&partial, content)
        .and_then(|()| fs::rename(&partial, file))
        .with_context(|| format!("cannot write {}", file.display()))
}

/// Removes a file or a folder with all it holds; that it is not there is fine.
pub(crate) fn remove(path: &Path) -> Result<()> {
    let removed = match fs::symlink_metadata(path) {
        Ok(meta) if meta.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    };
    removed.with_context(|| format!("cannot remove {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tail_of_a_log_is_its_last_lines() {
        let folder = tempfile::tempdir().expect("a folder");
        let log = folder.path().join("log");
        let lines: Vec<_> = (0..100).map(|n| format!("line {n}\n")).collect();
        fs::write(&log, lines.concat()).expect("written");
        let shown = tail(&log);
        assert_eq!(shown.lines().count(), TAIL);
        assert!(shown.ends_with("  line 99"), "{shown}");
    }

    #[test]
    fn removing_what_is_not_there_is_fine() {
        let folder = tempfile::tempdir().expect("a folder");
        remove(&folder.path().join("nothing")).expect("fine");
        fs::create_dir_all(folder.path().join("a/b")).expect("created");
        remove(&folder.path().join("a")).expect("removed");
        assert!(!folder.path().join("a").exists());
    }

    #[test]
    fn a_failing_command_tells_what_it_printed() {
        let error =
            capture(Command::new("sh").args(["-c", "echo broken >&2; exit 3"])).expect_err("it fails");
        assert_eq!(error.to_string(), "sh failed: broken");
    }
}
