//! Typed client.
