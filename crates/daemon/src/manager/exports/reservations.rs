//! SCSI persistent reservations, stored in the labels of their pools (docs/iscsi.md).

use crate::Control;
use crate::sync::lock;
use reactor::{Keeper, Kept, NoKeeper};
use std::io;
use std::sync::{Arc, Mutex};

/// Stores the reservations of one volume in its pool's labels.
struct InPool {
    control: Arc<dyn Control>,
    pool: String,
    volume: String,
}

impl Keeper for InPool {
    fn is_there(&self) -> bool {
        true
    }

    fn load(&self) -> io::Result<Option<String>> {
        let kept = self.control.volume_reservations(&self.pool, &self.volume);
        kept.map_err(|error| io::Error::other(error.message))
    }

    fn keep(&self, state: Option<String>, done: Kept) {
        let (control, pool, volume) =
            (self.control.clone(), self.pool.clone(), self.volume.clone());
        let done = Arc::new(Mutex::new(Some(done)));
        let tell = {
            move |kept: bool| {
                if let Some(done) = lock(&done).take() {
                    done(kept);
                }
            }
        };
        let tell_at_once = tell.clone();
        let place = format!("{pool}/{volume}");
        // Writing labels blocks on a loop, which may be the caller's.
        let work = Box::new(move || {
            let kept = control.volume_set_reservations(&pool, &volume, state);
            if let Err(error) = &kept {
                tracing::warn!("cannot store the reservations of {pool}/{volume}: {error}");
            }
            tell(kept.is_ok());
        });
        if let Err(error) = reactor::control::start("reservations".to_owned(), work) {
            tracing::warn!("cannot store the reservations of {place}: {error}");
            tell_at_once(false);
        }
    }
}

/// Storage for the reservations of a volume; those of snapshots are not stored.
pub(super) fn keeper(control: &Arc<dyn Control>, pool: &str, volume: &str) -> Arc<dyn Keeper> {
    if volume.contains('@') {
        return Arc::new(NoKeeper);
    }
    Arc::new(InPool {
        control: Arc::clone(control),
        pool: pool.to_owned(),
        volume: volume.to_owned(),
    })
}
