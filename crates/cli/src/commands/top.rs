//! `convect top`.

use crate::map::Paint;
use crate::show::{print, print_json, print_styled};
use crate::top::{LiveView, Size, screen, told};
use crate::{Client, Failure};
use api::Operation;
use api::v1::LiveState;
use std::io::IsTerminal;
use std::thread;

/// Switches to the alternate screen without a cursor, and back.
const ENTER: &str = "\x1b[?1049h\x1b[?25l";
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";
/// Cursor home, then clear below.
const HOME: &str = "\x1b[H\x1b[J";
/// Exit code after Ctrl-C.
const LEFT: i32 = 130;

/// Restores the terminal when dropped.
struct OtherScreen;

impl OtherScreen {
    fn enter() -> Result<Self, Failure> {
        let taken = signal_hook::iterator::Signals::new([
            signal_hook::consts::SIGINT,
            signal_hook::consts::SIGTERM,
        ]);
        let mut signals = taken
            .map_err(|error| Failure::Failed(format!("cannot install signal handlers: {error}")))?;
        print_styled(ENTER)?;
        thread::spawn(move || {
            if signals.forever().next().is_some() {
                // The terminal may be gone.
                let _ = print_styled(LEAVE);
                std::process::exit(LEFT);
            }
        });
        Ok(Self)
    }
}

impl Drop for OtherScreen {
    fn drop(&mut self) {
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

/// Shows live load until the user quits. Without a terminal, or with `--json`, prints one screen or
/// line per update.
pub fn top(client: &Client, json: bool) -> Result<(), Failure> {
    let stream = client.download(Operation::Live, &[], &[])?;
    let terminal = !json && std::io::stdout().is_terminal();
    let _other = terminal.then(OtherScreen::enter).transpose()?;
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
        match terminal {
            true => print_styled(&format!(
                "{HOME}{}",
                screen(&watched, size(), Paint::Colour)
            ))?,
            false => print(&format!("{}\n", screen(&watched, size(), Paint::Letters)))?,
        }
    }
    Ok(())
}
