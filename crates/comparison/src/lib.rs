//! One suite of API behaviours, run against the embedded and against a real API server.
//!
//! A behaviour is a short story of HTTP requests in a namespace of its own, with the answers written down beside
//! them (`behaviours/*.story`, see [`story`] for the format). Both servers are asked the same and must answer
//! what is written. What a server makes up (uids, versions, times, names) is [made comparable](outcome) first:
//! the same uid gets the same word, so that "the version did not change" can still be read off.
//!
//! Where servers differ on purpose, the story carries a second answer and a reason; [`exceptions`] lists them.

pub mod exceptions;
pub mod outcome;
pub mod run;
pub mod story;
