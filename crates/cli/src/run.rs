//! Parses the arguments, runs the command and returns its exit code.

use crate::arguments::{Arguments, Command};
use crate::manual::pages;
use crate::serve_arguments::Serve;
use crate::show::print;
use crate::transport::{DaemonSelection, Environment, choose};
use crate::{Client, Failure, colour, commands, grammar, parse_line, visible};
use clap::error::ErrorKind;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const CONFIG: &str = "/etc/convect/convect.toml";

/// Runs the command; prints one line if it fails, with `--json` one JSON object.
pub fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().collect();
    let json = requests_json(&words);
    let result = match parse_line(words) {
        Ok(arguments) => run(arguments),
        Err(error) if json && error.use_stderr() => Err(Failure::Usage(usage_message(&error))),
        Err(error) => error.exit(),
    };
    let Err(failure) = result else {
        return ExitCode::SUCCESS;
    };
    if let Some(problem) = failure.to_json() {
        let text = match (json, &failure) {
            (true, _) => problem.to_string(),
            (false, Failure::Left(message)) => message.clone(),
            (false, _) => format!("error: {failure}"),
        };
        eprintln!("{}", visible::lines(&text));
    }
    ExitCode::from(failure.code())
}

/// Whether errors are printed as JSON: also those of a command line that cannot be parsed.
fn requests_json(words: &[OsString]) -> bool {
    let options = words.iter().take_while(|word| *word != "--");
    let mut options = options.skip(1);
    options.any(|word| word == "--json")
}

/// What is wrong with a command line, in one line and without its usage.
fn usage_message(error: &clap::Error) -> String {
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return "a subcommand or argument is missing: see --help".to_owned();
    }
    let text = error.render().to_string();
    let told = ["\n\nUsage:", "\n\nFor more information"]
        .iter()
        .fold(text.as_str(), |text, end| {
            text.split_once(end).map_or(text, |(told, _)| told)
        });
    let told = told.strip_prefix("error: ").unwrap_or(told);
    told.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

fn serve(serve: &Serve, socket: Option<PathBuf>) -> Result<(), Failure> {
    let failed = |error: daemon::ServeError| Failure::Failed(error.to_string());
    let config = serve.config.as_deref().unwrap_or(Path::new(CONFIG));
    let mut config = daemon::Config::load(config, serve.config.is_some()).map_err(failed)?;
    if let Some(socket) = socket {
        config.socket = absolute(&socket);
    }
    if let Some(state_dir) = &serve.state_dir {
        config.state_dir = absolute(state_dir);
    }
    if serve.listen.is_some() {
        config.listen = serve.listen;
    }
    if serve.metrics.is_some() {
        config.metrics = serve.metrics;
    }
    config.metrics_anywhere |= serve.metrics_anywhere;
    daemon::serve(&config).map_err(failed)
}

fn manual(dir: &Path) -> Result<(), Failure> {
    let failed = |error: std::io::Error| {
        Failure::Failed(format!("cannot write to {}: {error}", dir.display()))
    };
    std::fs::create_dir_all(dir).map_err(failed)?;
    for (name, text) in pages().map_err(failed)? {
        std::fs::write(dir.join(name), text).map_err(failed)?;
    }
    Ok(())
}

fn completions(shell: clap_complete::Shell) -> Result<(), Failure> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut grammar(), "convect", &mut text);
    print(&String::from_utf8_lossy(&text))
}

/// Refuses options that select a daemon for commands that use none.
fn check_reach(command: &Command, reach: &DaemonSelection) -> Result<(), Failure> {
    let here = matches!(
        command,
        Command::Serve(_)
            | Command::Completions { .. }
            | Command::Man { .. }
            | Command::Lab { .. }
            | Command::Check(_)
            | Command::Repair(_)
            | Command::Reidentify(_)
            | Command::Dump(_)
            | Command::Restore(_)
    );
    match here && reach.names_server() {
        true => Err(Failure::Usage(
            "this command works on local drives without a daemon: remove the options that select \
             one, or run it on that host"
                .to_owned(),
        )),
        false => Ok(()),
    }
}

fn run(arguments: Arguments) -> Result<(), Failure> {
    let reach = &arguments.reach;
    let environment = Environment::read();
    check_reach(&arguments.command, reach)?;
    colour::choose(arguments.color);
    let client = || choose(reach, &environment).map(Client::new);
    let json = arguments.json;
    match &arguments.command {
        Command::Serve(options) => {
            serve(options, reach.socket.clone().or(environment.socket.clone()))
        }
        Command::Completions { shell } => completions(*shell),
        Command::Man { dir } => manual(dir),
        Command::Lab { arguments } => commands::lab(arguments),
        Command::Check(options) => commands::check(json, options),
        Command::Repair(options) => commands::repair(json, options),
        Command::Reidentify(options) => commands::reidentify(json, options),
        Command::Dump(options) => commands::dump(options),
        Command::Restore(options) => commands::restore(json, options),
        Command::Context(command) => commands::context(reach, &environment, json, command),
        Command::Drive(command) => commands::drive(&client()?, json, command),
        Command::Vdrive(command) => commands::vdrive(&client()?, json, command),
        Command::Pool(command) => commands::pool(&client()?, json, command),
        Command::Volume(command) => commands::volume(&client()?, json, command),
        Command::Snapshot(command) => commands::snapshot(&client()?, json, command),
        Command::Send(options) => commands::send(&client()?, json, options),
        Command::Receive(options) => commands::receive(&client()?, json, options),
        Command::Export(command) => commands::export(&client()?, json, command),
        Command::Session(command) => commands::session(&client()?, json, command),
        Command::Explain(command) => commands::explain(&client()?, json, command),
        Command::Why(command) => commands::why(&client()?, json, command),
        Command::Qos(command) => commands::qos(&client()?, json, command),
        Command::Latency { name } => commands::latency(&client()?, json, name),
        Command::Map(command) => commands::map(&client()?, json, command),
        Command::Top => commands::top(client()?, json),
        Command::Server(command) => commands::server(&client()?, json, command),
        Command::Token(command) => commands::token(&client()?, json, command),
        Command::Audit(command) => commands::audit(&client()?, json, command),
        Command::Event(command) => commands::event(&client()?, json, command),
        Command::Alert(command) => commands::alert(&client()?, json, command),
        Command::History(options) => commands::history(&client()?, json, options),
        Command::Job(command) => commands::job(&client()?, json, command),
    }
}
