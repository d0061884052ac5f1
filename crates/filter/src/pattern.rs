//! Regular expressions whose time is bounded.
//!
//! A search first takes a few nanoseconds for a byte whatever the pattern is: by a DFA that is
//! built as it goes and gives up where that does not pay. What is left takes a few nanoseconds for
//! each byte and each state, which is charged before it is done.

use std::{
    error::Error as _,
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use regex_automata::{
    Input,
    hybrid::dfa::{Cache, DFA},
    nfa::thompson::{self, NFA, WhichCaptures, pikevm::PikeVM},
};

use super::{cost::Meter, error::Miss};

/// What reading a character of a pattern costs. The dearest, classes without regard to case, have
/// hundreds of ranges.
const CHARACTER: usize = 64;
/// Largest compiled pattern, in bytes.
const MAX_BYTES: usize = 1 << 20;
/// Largest compiled pattern that is no constant, in bytes: it is compiled where it is used.
const MAX_BYTES_OF_ROW: usize = 64 << 10;
/// What compiling such a pattern costs beside reading it.
const COMPILE_OF_ROW: usize = 1_000;
/// Most bytes of states that a DFA keeps for the next search, in each thread.
const CACHE: usize = 256 << 10;
/// Bytes of states that are made in a step.
const GROWTH: usize = 32;
/// Bytes times states that are searched in a step where a DFA does not pay.
const SLOW: usize = 64;

/// A regular expression. It may match anywhere, as in RE2.
#[derive(Clone)]
pub(super) struct Pattern(Arc<Inner>);

struct Inner {
    fast: Option<DFA>,
    caches: Mutex<Vec<Cache>>,
    slow: PikeVM,
    states: usize,
}

/// Why a text is no pattern.
#[derive(Debug)]
pub(super) enum Malformed {
    /// It is too large when it is compiled.
    TooLarge,
    /// It is not written as one.
    Syntax(String),
}

/// How many steps reading `text` as a pattern costs.
pub(super) fn cost(text: &str) -> usize {
    text.chars().count().saturating_mul(CHARACTER)
}

/// Whether `pattern`, which is no constant, matches; a text that is no pattern has no answer.
pub(super) fn matches_once(pattern: &str, text: &str, meter: &mut Meter) -> Result<bool, Miss> {
    meter.charge(cost(pattern).saturating_add(COMPILE_OF_ROW))?;
    let pattern = Pattern::within(pattern, MAX_BYTES_OF_ROW).map_err(|_malformed| Miss::Unknown)?;
    pattern.matches(text, meter)
}

impl Pattern {
    /// Compiles `text`, which was paid for.
    pub(super) fn compile(text: &str) -> Result<Self, Malformed> {
        Self::within(text, MAX_BYTES)
    }

    fn within(text: &str, bytes: usize) -> Result<Self, Malformed> {
        let config = thompson::Config::new()
            .nfa_size_limit(Some(bytes))
            .which_captures(WhichCaptures::None);
        let compiled = NFA::compiler().configure(config).build(text);
        let nfa = compiled.map_err(|error| match (error.size_limit(), error.source()) {
            (None, Some(syntax)) => Malformed::Syntax(syntax.to_string()),
            _ => Malformed::TooLarge,
        })?;
        let states = nfa.states().len();
        let config = DFA::config()
            .cache_capacity(CACHE)
            .skip_cache_capacity_check(true)
            .unicode_word_boundary(true)
            // It pays while a state that it makes is good for as many bytes as the pattern has
            // states, since that is what making it takes.
            .minimum_cache_clear_count(Some(1))
            .minimum_bytes_per_state(Some(states));
        let fast = DFA::builder().configure(config).build_from_nfa(nfa.clone());
        let slow = PikeVM::new_from_nfa(nfa).map_err(|_too_large| Malformed::TooLarge)?;
        Ok(Self(Arc::new(Inner {
            fast: fast.ok(),
            caches: Mutex::default(),
            slow,
            states,
        })))
    }

    /// How many states it has.
    pub(super) fn states(&self) -> usize {
        self.0.states
    }

    /// Whether it matches somewhere in `text`.
    pub(super) fn matches(&self, text: &str, meter: &mut Meter) -> Result<bool, Miss> {
        let input = Input::new(text).earliest(true);
        meter.charge_bulk(text.len())?;
        if let Some(dfa) = &self.0.fast {
            let kept = self.caches().pop();
            let mut cache = kept.unwrap_or_else(|| dfa.create_cache());
            let before = cache.memory_usage();
            let found = dfa.try_search_fwd(&mut cache, &input);
            let grown = cache.memory_usage().saturating_sub(before);
            self.caches().push(cache);
            meter.charge(grown / GROWTH)?;
            if let Ok(found) = found {
                return Ok(found.is_some());
            }
        }
        let work = (text.len() + SLOW).saturating_mul(self.0.states);
        meter.charge(work / SLOW)?;
        let slow = &self.0.slow;
        Ok(slow.is_match(&mut slow.create_cache(), input))
    }

    fn caches(&self) -> std::sync::MutexGuard<'_, Vec<Cache>> {
        let caches = self.0.caches.lock();
        caches.unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pattern")
            .field("states", &self.0.states)
            .finish_non_exhaustive()
    }
}
