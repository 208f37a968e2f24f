//! A scripted daemon with canned responses, and the program run against it.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use tempfile::TempDir;

/// Responses by method and path, in order; the last one repeats.
type Script = BTreeMap<String, Vec<(u16, String)>>;

pub struct Scripted {
    folder: TempDir,
    script: Arc<Mutex<Script>>,
    asked: Arc<Mutex<Vec<(String, String)>>>,
}

fn answer(script: &Mutex<Script>, request: &str) -> (u16, String) {
    let mut script = script.lock().unwrap();
    match script.get_mut(request) {
        Some(answers) if answers.len() > 1 => answers.remove(0),
        Some(answers) => answers[0].clone(),
        None => (
            404,
            format!(r#"{{"code":"not_found","message":"not in the script: {request}"}}"#),
        ),
    }
}

impl Scripted {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(folder.path().join("s")).unwrap();
        let script = Arc::new(Mutex::new(Script::new()));
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (script_of, asked_of) = (Arc::clone(&script), Arc::clone(&asked));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = BufReader::new(stream.unwrap());
                let mut line = String::new();
                stream.read_line(&mut line).unwrap();
                let request = line.rsplit_once(' ').unwrap().0.to_owned();
                let mut length = 0;
                loop {
                    line.clear();
                    stream.read_line(&mut line).unwrap();
                    let lower = line.to_ascii_lowercase();
                    if let Some(value) = lower.strip_prefix("content-length: ") {
                        length = value.trim().parse().unwrap();
                    }
                    if line.trim().is_empty() {
                        break;
                    }
                }
                let mut body = vec![0; length];
                stream.read_exact(&mut body).unwrap();
                let body = String::from_utf8(body).unwrap();
                asked_of.lock().unwrap().push((request.clone(), body));
                let (status, body) = answer(&script_of, &request);
                let head = format!("HTTP/1.1 {status} X\r\nContent-Length: {}", body.len());
                let _ = stream
                    .get_mut()
                    .write_all(format!("{head}\r\n\r\n{body}").as_bytes());
            }
        });
        Self {
            folder,
            script,
            asked,
        }
    }

    pub fn on(self, request: &str, status: u16, body: &str) -> Self {
        let mut script = self.script.lock().unwrap();
        let answers = script.entry(request.to_owned()).or_default();
        answers.push((status, body.to_owned()));
        drop(script);
        self
    }

    /// Requests so far: method and path, body.
    pub fn asked(&self) -> Vec<(String, String)> {
        self.asked.lock().unwrap().clone()
    }

    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("s")
    }

    /// Asserts that each command line fails with a message and sends no request.
    pub fn is_never_asked(&self, lines: &[&str]) {
        for line in lines {
            let said = self.convect(line);
            assert_eq!(said.code, 2, "{line}: {said:?}");
            assert!(!said.error.is_empty(), "{line}");
        }
        assert_eq!(self.asked(), []);
    }

    pub fn convect(&self, arguments: &str) -> Ended {
        convect(&format!("--socket {} {arguments}", self.socket().display()))
    }
}

/// Exit code and output of the program.
#[derive(Debug)]
pub struct Ended {
    pub code: i32,
    pub out: String,
    pub error: String,
}

/// Copies a program to where it is to be run. Another process does it: a program that other tests start while this process
/// has the copy open for writing would inherit that, and the copy could not be run ("text file busy").
pub fn copy_program(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg(from).arg(to).status();
    assert!(copied.unwrap().success(), "{} is copied", from.display());
}

pub fn command(arguments: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_convect"));
    command
        .args(arguments.split_whitespace())
        .env_remove("CONVECT_SOCKET")
        .env_remove("CONVECT_CONTEXT")
        .env_remove("CONVECT_TOKEN")
        .env("XDG_CONFIG_HOME", "/nonexistent")
        .stdin(Stdio::null());
    command
}

pub fn ended(output: Output) -> Ended {
    Ended {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8(output.stdout).unwrap(),
        error: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Runs the program without a terminal.
pub fn convect(arguments: &str) -> Ended {
    ended(command(arguments).output().unwrap())
}
