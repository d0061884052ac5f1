//! Feeds random choices to the generator of payloads, and what it makes to the check.
#![no_main]

#[path = "../../tests/it/fuzz/payloads.rs"]
mod payloads;

libfuzzer_sys::fuzz_target!(|data: &[u8]| payloads::check(data));
