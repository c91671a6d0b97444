//! `/metrics`: all numbers of a program as one text.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use tokio::time::Instant;

use super::{Answer, process};
use crate::metrics::Registry;

/// How long a text is answered again before a new one is made. Making it takes time, and anyone may ask.
const FRESH: Duration = Duration::from_millis(100);

/// The numbers of a program. Clones share the last text.
#[derive(Clone, Debug)]
pub struct Numbers {
    registry: Registry,
    last: Arc<Mutex<Option<(Instant, Bytes)>>>,
}

impl Numbers {
    /// The numbers of this registry, and those about the process.
    pub fn new(registry: Registry) -> Self {
        Self { registry, last: Arc::default() }
    }

    /// The text, made by one at a time.
    pub fn answer(&self) -> Answer {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let fresh = last.as_ref().filter(|(made, _)| now.duration_since(*made) < FRESH);
        let text = match fresh {
            Some((_, text)) => text.clone(),
            None => {
                let text = Bytes::from(format!("{}{}", self.registry.text(), process::text()));
                *last = Some((now, text.clone()));
                text
            }
        };
        Answer::metrics(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Clients that ask without end keep us at work only a few times in a second.
    #[tokio::test(start_paused = true)]
    async fn the_text_is_made_ten_times_in_a_second_at_most() {
        let registry = Registry::default();
        let made = registry.counter("made", "Made.", &[]);
        let counted = made.clone();
        registry.before_reading(move || counted.inc(&[]));
        let numbers = Numbers::new(registry);
        for _ in 0..1000 {
            let text = String::from_utf8(numbers.answer().body.to_vec()).unwrap();
            assert!(text.contains("made ") && text.contains("process_open_fds "), "{text}");
            tokio::time::advance(Duration::from_millis(1)).await;
        }
        assert_eq!(made.value(&[]), 10.0);
    }
}
