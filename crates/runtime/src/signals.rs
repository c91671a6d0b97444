//! When somebody wants the process to end.

use tokio::signal::unix::{SignalKind, signal};

/// Ends at the next SIGTERM or SIGINT.
pub async fn asked_to_end() {
    let terminated = async {
        match signal(SignalKind::terminate()) {
            Ok(mut signal) => {
                signal.recv().await;
            }
            Err(_) => std::future::pending().await,
        }
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        () = terminated => {}
    }
}
