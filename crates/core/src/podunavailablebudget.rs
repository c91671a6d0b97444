//! PodUnavailableBudget: how many pods of an application may be down at once by anybody's hand.

pub mod validate;
