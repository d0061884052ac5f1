//! How much a filter may hold and cost. Whoever passes a limit is told it, so what refuses and
//! what counts both read it here.

/// Longest text that is read, in characters.
pub const MAX_CHARS: usize = 100_000;
/// How deep the parts of a filter may be nested. Chains of operators nest, `&&` and `||` do not.
pub const MAX_DEPTH: usize = 96;
/// How many parts a filter may have.
pub const MAX_NODES: usize = 20_000;
/// Most steps that one row may take.
pub const MAX_STEPS: u32 = 100_000;
/// Most steps that the texts of one request may take before a row is read.
pub const MAX_COMPILE_STEPS: u32 = 250_000;
/// Most bytes of constants that a request may keep; an element of a list counts as 64.
pub const MAX_CONSTANT_BYTES: usize = 4 << 20;
/// Most states of the regular expressions of a request, compiled.
pub const MAX_PATTERN_STATES: usize = 10_000;
