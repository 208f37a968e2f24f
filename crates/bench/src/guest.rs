//! A guest that sends its requests by batches and sleeps until all of a batch are answered.

use crate::failure::{Result, while_doing};
use block::BlockDevice;
use frontend_vhost_user_blk::FRONT_END;
use reactor::{Export, NoKeeper, Remote, StartExport};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use vhost_client::{Client, ClientQueue, Command, Options};

/// Bytes of the largest request.
const SLOT_BYTES: usize = 64 << 10;
/// Longer than any batch takes, under callgrind, too.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A disk with one ring, and whoever serves it.
pub struct Guest {
    queue: ClientQueue,
    /// Goes before the export, which would wait for it.
    _client: Client,
    _export: Box<dyn Export>,
}

impl Guest {
    /// Exports a volume with rings that never look without being asked to, since how often they would is the clock's, and connects.
    ///
    /// # Errors
    /// When either fails.
    pub fn new(name: &str, device: Arc<dyn BlockDevice>, remotes: Vec<Remote>) -> Result<Self> {
        let file = format!("convect-bench-{}-{name}.sock", std::process::id());
        let path: PathBuf = std::env::temp_dir().join(file);
        let parameters = [
            ("path", path.display().to_string()),
            ("queues", "1".to_owned()),
            ("polling", "interrupt".to_owned()),
        ];
        let parameters = parameters.map(|(name, value)| (name.to_owned(), value));
        let export = (FRONT_END.start)(StartExport {
            name: name.to_owned(),
            volume: name.to_owned(),
            device,
            open_for: None,
            keeper: Arc::new(NoKeeper),
            parameters: BTreeMap::from(parameters),
            remotes,
        });
        let export = export.map_err(while_doing("the volume cannot be exported"))?;
        let options = Options {
            slot_bytes: SLOT_BYTES,
            segments: 1,
            ..Options::default()
        };
        let client = Client::connect(&path, options);
        let mut client = client.map_err(while_doing("the export cannot be reached"))?;
        let queue = client.take_queues().pop().ok_or("the export has no ring")?;
        Ok(Self {
            queue,
            _client: client,
            _export: export,
        })
    }

    /// Sends `commands` at once, and sleeps until the last one is answered.
    ///
    /// # Errors
    /// When one is not answered, or not with success.
    pub fn batch(&mut self, commands: &[Command]) -> Result<()> {
        for command in commands {
            let slot = self.queue.take_slot().ok_or("the ring is full")?;
            self.queue.push(slot, *command);
        }
        self.queue.arm_after(commands.len() as u16);
        self.queue.kick();
        for _ in commands {
            let done = self.queue.wait_armed(TIMEOUT);
            let done = done.map_err(while_doing("a request"))?;
            if done.status != 0 {
                return Err(format!(
                    "a request was answered with status {}",
                    done.status
                ));
            }
        }
        Ok(())
    }
}
