//! From the old template to the new one: step by step, or all at once.

use super::super::Outcome;
use super::numbers::{self, Old};
use super::{Pass, available, is_complete, progress, replicas, revision, sum};
use crate::status::Status;
use serde_json::Value;

impl Pass<'_> {
    /// One step of a rolling update.
    pub(super) async fn roll(&mut self) -> Outcome {
        let Some(new) = revision::new_set(self, true).await? else { return Ok(None) };
        if self.grow(&new).await? {
            return self.write_progress().await;
        }
        self.shrink_old(&new).await?;
        self.finish().await
    }

    /// Scales the new set as far as the surge allows.
    async fn grow(&mut self, new: &Value) -> Result<bool, Status> {
        let (wanted, size) = (replicas(&self.deployment), replicas(new));
        let to = if size > wanted {
            wanted
        } else {
            numbers::new_size(&self.deployment, sum(&self.all, replicas), size)
        };
        Ok(self.scale_to(new, to).await?.0)
    }

    /// Scales old sets down as far as availability allows.
    async fn shrink_old(&mut self, new: &Value) -> Result<bool, Status> {
        let old = self.old(Some(new));
        let view = |set: &Value| Old { size: replicas(set), available: available(set).min(replicas(set)) };
        let views: Vec<Old> = old.iter().map(view).collect();
        let sizes = numbers::old_sizes(&self.deployment, view(new), &views);
        let mut scaled = false;
        for (set, to) in old.iter().zip(sizes) {
            if replicas(set) != to {
                scaled |= self.scale_to(set, to).await?.0;
            }
        }
        Ok(scaled)
    }

    /// All old pods go before the first new one comes.
    pub(super) async fn recreate(&mut self) -> Outcome {
        let new = revision::new_set(self, false).await?;
        let mut scaled = false;
        for set in self.old(new.as_ref()) {
            if replicas(&set) != 0 {
                scaled |= self.scale_to(&set, 0).await?.0;
            }
        }
        if scaled || self.old_pods_run(new.as_ref()) {
            return self.write_progress().await;
        }
        let Some(new) = revision::new_set(self, true).await? else { return Ok(None) };
        let wanted = replicas(&self.deployment);
        self.scale_to(&new, wanted).await?;
        self.finish().await
    }

    /// Whether pods of old sets are still there and not finished.
    fn old_pods_run(&self, new: Option<&Value>) -> bool {
        let pods = self.cx.pods();
        self.old(new).iter().any(|set| pods.controlled(super::uid(set)).iter().any(|pod| !pod.is_finished()))
    }

    async fn finish(&mut self) -> Outcome {
        if is_complete(&self.deployment) {
            let new = revision::find_new(self);
            self.clean_up(new.as_ref()).await?;
        }
        self.write_progress().await
    }

    /// Writes counts and progress. Returns when the deadline is to be checked.
    async fn write_progress(&mut self) -> Outcome {
        let new = revision::find_new(self);
        let now = self.cx.now();
        let changed = progress::advanced(&self.deployment, &self.all, new.as_ref(), now, &self.cx.now_text());
        self.put_status(changed).await?;
        Ok(progress::next_check(&self.deployment, now))
    }
}
