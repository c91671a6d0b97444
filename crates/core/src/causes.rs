//! Errors in the words that people read.

/// An error with what is behind it, one after the other.
pub fn told(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {}", told(source)),
        None => error.to_string(),
    }
}
