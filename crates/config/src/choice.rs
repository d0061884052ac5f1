//! Values that are one of a few words.

/// Makes an enum of words that a key can have. After its name come what stands for a value in help,
/// and what a value is called in refusals.
#[macro_export]
macro_rules! choice {
    (
        $(#[$attribute:meta])*
        $visibility:vis enum $Name:ident: $word:literal, $what:literal {
            $( $(#[$doc:meta])+ $Variant:ident = $text:literal, )+
        }
    ) => {
        $(#[$attribute])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        $visibility enum $Name { $( $(#[$doc])+ $Variant, )+ }

        impl $Name {
            /// Every value, in the order in which refusals name them.
            $visibility const ALL: &'static [Self] = &[$( Self::$Variant, )+];

            /// The word in configuration.
            #[must_use]
            $visibility const fn name(self) -> &'static str {
                match self { $( Self::$Variant => $text, )+ }
            }
        }

        impl std::fmt::Display for $Name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }

        impl $crate::Value for $Name {
            const WORD: &'static str = $word;

            fn read(text: &str) -> Result<Self, $crate::BadValue> {
                let found = Self::ALL.iter().find(|value| value.name() == text);
                found.copied().ok_or_else(|| {
                    $crate::BadValue::not_valid(text, $what, $crate::one_of(&[$( $text, )+]))
                })
            }

            fn show(&self) -> String {
                self.name().to_owned()
            }
        }
    };
}

/// The words in backticks with `or` before the last.
#[must_use]
pub fn one_of(words: &[&str]) -> String {
    let quoted: Vec<_> = words.iter().map(|word| format!("`{word}`")).collect();
    match quoted.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
        None => String::new(),
    }
}
