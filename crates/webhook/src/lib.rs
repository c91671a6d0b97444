//! An HTTPS server for admission and conversion, with certificates of its own. It knows the protocol, not the kinds.
