//! An HTTPS server for admission and conversion, with certificates of its own. It knows the protocol, not the kinds.
//!
//! - [`review`]: the two reviews that an API server sends, in both their versions.
//! - [`service`]: a tower service that finds the handler of a path, within bounds. It has no sockets, so an embedded
//!   cluster calls it in the same process.
//! - [`listener`]: the socket: TLS with a certificate that can change while connections live on.
//! - [`certificates`]: where the certificate comes from, how it is renewed without a single refused call, and how API
//!   servers learn whom to trust.
//! - [`selfcheck`]: whether a client that trusts only our own authority gets an answer.

pub mod certificates;
pub mod listener;
pub mod review;
pub mod selfcheck;
pub mod service;
