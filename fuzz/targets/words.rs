//! Feeds random bytes to the check of the same name.
#![no_main]

#[path = "../../tests/it/fuzz/checks.rs"]
#[expect(dead_code, reason = "each target has one of the checks")]
mod checks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| checks::words(data));
