//! `convect top`.

use crate::map::Paint;
use crate::show::{print, print_json, print_styled, read};
use crate::top::{Extent, LiveView, Outcome, Size, View, keys, screen, told};
use crate::{Client, Failure};
use api::Operation;
use api::v1::{Alert, AlertList, LiveState};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use std::io::{IsTerminal, Read};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

/// Switches to the alternate screen without a cursor, and back.
const ENTER: &str = "\x1b[?1049h\x1b[?25l";
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";
/// Cursor home, then clear below.
const HOME: &str = "\x1b[H\x1b[J";
/// Exit code after Ctrl-C.
const LEFT: i32 = 130;
/// Between two queries of the open alerts.
const ALERTS_EVERY: Duration = Duration::from_secs(5);
/// Inputs that wait to be drawn.
const INPUTS: usize = 16;

/// The terminal's mode before: keys arrive one by one and are not echoed meanwhile.
#[derive(Clone)]
struct KeyMode(Option<Termios>);

impl KeyMode {
    fn enter() -> Self {
        let Ok(before) = tcgetattr(std::io::stdin()) else {
            return Self(None);
        };
        let mut mode = before.clone();
        mode.local_modes -= LocalModes::ICANON | LocalModes::ECHO;
        let set = tcsetattr(std::io::stdin(), OptionalActions::Now, &mode);
        Self(set.ok().map(|()| before))
    }

    fn leave(&self) {
        if let Some(before) = &self.0 {
            // The terminal may be gone.
            let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, before);
        }
    }
}

/// Restores the terminal when dropped.
struct OtherScreen(KeyMode);

impl OtherScreen {
    fn enter() -> Result<Self, Failure> {
        let taken = signal_hook::iterator::Signals::new([
            signal_hook::consts::SIGINT,
            signal_hook::consts::SIGTERM,
        ]);
        let mut signals = taken
            .map_err(|error| Failure::Failed(format!("cannot install signal handlers: {error}")))?;
        let mode = KeyMode::enter();
        let entered = Self(mode.clone());
        print_styled(ENTER)?;
        thread::spawn(move || {
            if signals.forever().next().is_some() {
                mode.leave();
                // The terminal may be gone.
                let _ = print_styled(LEAVE);
                std::process::exit(LEFT);
            }
        });
        Ok(entered)
    }

    fn has_keys(&self) -> bool {
        self.0.0.is_some()
    }
}

impl Drop for OtherScreen {
    fn drop(&mut self) {
        self.0.leave();
        // The terminal may be gone.
        let _ = print_styled(LEAVE);
    }
}

fn size() -> Size {
    let found = terminal_size::terminal_size();
    let (columns, lines) = found.map_or((100, 30), |(columns, lines)| (columns.0, lines.0));
    Size {
        columns: columns.into(),
        // The last line stays free for the cursor.
        lines: usize::from(lines).saturating_sub(1),
    }
}

/// What the screen is drawn from.
enum Input {
    State(Box<LiveState>),
    Alerts(Vec<Alert>),
    Bytes(Vec<u8>),
    Failed(Failure),
}

/// Sends the live data; each of these threads ends once the receiver is gone.
fn follow(client: &Client, inputs: SyncSender<Input>) -> Result<(), Failure> {
    let stream = client.download(Operation::Live, &[], &[])?;
    thread::spawn(move || {
        for state in told::<LiveState>(stream, "state") {
            let input = match state {
                Ok(state) => Input::State(Box::new(state)),
                Err(failure) => Input::Failed(failure),
            };
            let is_end = matches!(input, Input::Failed(_));
            if inputs.send(input).is_err() || is_end {
                return;
            }
        }
    });
    Ok(())
}

/// Queries the open alerts; without an answer the screen tells nothing about them.
fn watch_alerts(client: Arc<Client>, inputs: SyncSender<Input>) {
    thread::spawn(move || {
        loop {
            let answer = client.get(Operation::AlertList, &[]);
            if let Ok(list) = answer.and_then(|answer| read::<AlertList>(&answer))
                && inputs.send(Input::Alerts(list.items)).is_err()
            {
                return;
            }
            thread::sleep(ALERTS_EVERY);
        }
    });
}

fn read_keys(inputs: SyncSender<Input>) {
    thread::spawn(move || {
        let mut bytes = [0; 64];
        while let Ok(count @ 1..) = std::io::stdin().read(&mut bytes) {
            if inputs.send(Input::Bytes(bytes[..count].to_vec())).is_err() {
                return;
            }
        }
    });
}

/// Draws after each input until a key quits.
fn draw(inputs: &Receiver<Input>, has_keys: bool) -> Result<(), Failure> {
    let (mut watched, mut view) = (LiveView::default(), View::default());
    let (mut extent, mut is_known) = (Extent::default(), false);
    for input in inputs {
        match input {
            Input::State(state) => {
                watched.take(*state);
                is_known = true;
            }
            Input::Alerts(alerts) => watched.take_alerts(alerts),
            Input::Bytes(bytes) => {
                for key in keys(&bytes) {
                    if view.key(key, extent) == Outcome::Quit {
                        return Ok(());
                    }
                }
            }
            Input::Failed(failure) => return Err(failure),
        }
        if is_known {
            let (text, drawn) = screen(&watched, &view, size(), Paint::Colour, has_keys);
            extent = drawn;
            print_styled(&format!("{HOME}{text}"))?;
        }
    }
    Ok(())
}

/// One line of JSON, or one screen, per update.
fn report(client: &Client, json: bool) -> Result<(), Failure> {
    let stream = client.download(Operation::Live, &[], &[])?;
    let mut watched = LiveView::default();
    for state in told::<LiveState>(stream, "state") {
        let state = state?;
        if json {
            let text = serde_json::to_vec(&state);
            let text = text.map_err(|error| Failure::Failed(error.to_string()))?;
            print_json(&text, false)?;
            continue;
        }
        watched.take(state);
        let (text, _) = screen(&watched, &View::default(), size(), Paint::Letters, false);
        print(&format!("{text}\n"))?;
    }
    Ok(())
}

/// Shows live load until the user quits. Without a terminal, or with `--json`, prints one screen or
/// line per update.
pub fn top(client: Client, json: bool) -> Result<(), Failure> {
    if json || !std::io::stdout().is_terminal() {
        return report(&client, json);
    }
    let client = Arc::new(client);
    let (sender, inputs) = sync_channel(INPUTS);
    follow(&client, sender.clone())?;
    watch_alerts(client, sender.clone());
    let other = OtherScreen::enter()?;
    let has_keys = other.has_keys();
    match has_keys {
        true => read_keys(sender),
        false => drop(sender),
    }
    draw(&inputs, has_keys)
}
