//! The list of keys of a program, as a struct with a field for each.

use crate::{Given, Key, Origin, Problem, Reader};

/// A struct that [`settings!`](crate::settings!) made.
pub trait Settings: Sized {
    /// The keys, in the order of the fields.
    const KEYS: &'static [Key];

    /// Reads every key; problems stay with the reader.
    fn read(reader: &mut Reader<'_>) -> Self;

    /// The values as text, in the order of [`Settings::KEYS`]; `None` where nothing is set.
    fn shown(&self) -> Vec<Option<String>>;

    /// The keys whose values differ.
    fn differences(&self, other: &Self) -> Vec<&'static Key>;

    /// Where the values came from.
    fn given(&self) -> &Given;

    /// Where the value of `key` came from.
    fn origin(&self, key: &str) -> &Origin {
        self.given().origin(key)
    }

    /// A problem of a key that is well-formed by itself.
    fn problem(&self, key: &str, text: impl Into<String>) -> Problem {
        Problem::of_key(key, self.origin(key), text)
    }

    /// The effective configuration as a file; a comment on each line says where the value is from.
    fn print(&self) -> String {
        crate::print::tree(Self::KEYS, self.shown(), self.given())
    }
}

/// Makes a struct and its [`Settings`] of sections of keys. The doc comment of a key is its help;
/// `, live` says that a change counts without a restart. A key without a default is an `Option`; one
/// that has both is none where it is `off`.
#[macro_export]
macro_rules! settings {
    (
        $(#[$attribute:meta])*
        $visibility:vis struct $Name:ident;
        $(
            [$section:literal]
            $( $(#[doc = $help:literal])+ $key:ident: $Type:ty $(= $default:literal)? $(, $live:ident)?; )+
        )+
    ) => {
        $(#[$attribute])*
        #[derive(Debug, Clone, PartialEq)]
        $visibility struct $Name {
            $($( $(#[doc = $help])+ pub $key: $Type, )+)+
            given: $crate::Given,
        }

        impl $crate::Settings for $Name {
            const KEYS: &'static [$crate::Key] = &[$($($crate::Key {
                name: stringify!($key),
                section: $section,
                help: concat!($($help),+).trim_ascii(),
                default: $crate::settings!(@default $($default)?),
                value: <$Type as $crate::Slot>::WORD,
                kind: <$Type as $crate::Slot>::KIND,
                live: $crate::settings!(@live $($live)?),
            },)+)+];

            fn read(reader: &mut $crate::Reader<'_>) -> Self {
                Self {
                    $($( $key: reader.read(
                        stringify!($key),
                        $crate::settings!(@default $($default)?),
                    ), )+)+
                    given: reader.given(),
                }
            }

            fn shown(&self) -> Vec<Option<String>> {
                vec![$($( $crate::Slot::shown(
                    &self.$key,
                    $crate::settings!(@default $($default)?),
                ), )+)+]
            }

            fn differences(&self, other: &Self) -> Vec<&'static $crate::Key> {
                let same = [$($( self.$key == other.$key, )+)+];
                let keys = Self::KEYS.iter().zip(same);
                keys.filter_map(|(key, same)| (!same).then_some(key)).collect()
            }

            fn given(&self) -> &$crate::Given {
                &self.given
            }
        }
    };
    (@default) => { None };
    (@default $default:literal) => { Some($default) };
    (@live) => { false };
    (@live live) => { true };
}
