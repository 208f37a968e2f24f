//! Paused jobs of a pool, recorded in the labels: they stay paused when the pool is opened again.

use super::labels::on_loop;
use super::{Pool, Result, lock};
use crate::shard::Progress;
use format::PausedConfig;
use std::sync::Arc;

fn is(paused: &PausedConfig, kind: &str, subject: &str) -> bool {
    (paused.kind.as_str(), paused.subject.as_str()) == (kind, subject)
}

impl Pool {
    /// Begins a job of a kind on a subject, of `total` bytes of which `done` were done before; paused if the labels
    /// say so. Returns its number; `work` returns false when it was cancelled.
    ///
    /// # Errors
    /// If its thread cannot be started.
    pub(super) fn start_job(
        self: &Arc<Self>,
        (kind, subject): (&'static str, &str),
        (done, total): (u64, u64),
        work: impl FnOnce(Arc<Progress>) -> Result<bool> + Send + 'static,
    ) -> Result<u64> {
        let progress = Arc::new(Progress::default());
        progress.start(done, self.is_paused(kind, subject));
        let (pool, of) = (self.clone(), subject.to_owned());
        let run = move |progress: Arc<Progress>| {
            let result = work(progress.clone());
            // A job that is paused when its pool is closed is still paused when it is opened.
            if !progress.is_closing()
                && pool.is_paused(kind, &of)
                && let Err(failed) = pool.keep_paused(kind, &of, false)
            {
                tracing::warn!(error = %failed, "the labels still list a paused job that has ended");
            }
            result
        };
        self.jobs
            .start((kind, &self.name, subject), total, progress, run)
    }

    fn is_paused(&self, kind: &str, subject: &str) -> bool {
        let config = lock(&self.config);
        config.paused.iter().any(|known| is(known, kind, subject))
    }

    fn keep_paused(&self, kind: &str, subject: &str, paused: bool) -> Result<()> {
        let _changing = lock(&self.changing);
        self.update(|config| {
            config.paused.retain(|known| !is(known, kind, subject));
            if paused {
                config.paused.push(PausedConfig {
                    kind: kind.to_owned(),
                    subject: subject.to_owned(),
                });
            }
            Ok(())
        })
    }

    /// Pauses or resumes a running job, also for when the pool is opened again.
    ///
    /// # Errors
    /// When no label can be written: then it continues as before.
    pub(crate) fn pause_job(
        &self,
        (kind, subject): (&str, &str),
        progress: &Progress,
        paused: bool,
    ) -> Result<()> {
        if self.is_paused(kind, subject) != paused {
            self.keep_paused(kind, subject, paused)?;
        }
        progress.pause(paused);
        Ok(())
    }

    /// Removes entries without a job from the labels: those jobs ended before the labels were updated.
    pub(super) fn forget_paused(&self) {
        let runs = |known: &PausedConfig| {
            self.jobs
                .is_running(&known.kind, &self.name, &known.subject)
        };
        lock(&self.config).paused.retain(runs);
    }

    /// Waits while a job is paused.
    ///
    /// # Errors
    /// When the engine is stopping.
    pub(super) fn rest(&self, progress: &Arc<Progress>) -> Result<()> {
        let progress = progress.clone();
        on_loop(&self.remote, move |handle| async move {
            progress.rest(&handle, || true).await;
        })
    }
}
