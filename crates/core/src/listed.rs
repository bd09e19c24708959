//! Enums whose variants can be listed. The crate does not compile if a list lacks a variant.

/// Declares an enum without data, and `ALL`: its variants in the order of their declaration.
macro_rules! listed_enum {
    (
        $(#[$attribute:meta])*
        pub enum $Name:ident { $($(#[$of_variant:meta])* $Variant:ident),* $(,)? }
    ) => {
        $(#[$attribute])*
        pub enum $Name { $($(#[$of_variant])* $Variant),* }

        impl $Name {
            /// Every variant, in the order of declaration.
            pub const ALL: [$Name; [$($Name::$Variant),*].len()] = [$($Name::$Variant),*];
        }
    };
}

/// Gives an enum whose variants hold data `one_of_each()`, from one example of each variant.
macro_rules! one_of_each {
    ($Name:ident { $($Variant:ident $(($of:expr))? $({ $($field:ident: $value:expr),* $(,)? })?),* $(,)? }) => {
        impl $Name {
            /// One example of each variant, with any numbers: for tests and documentation.
            pub fn one_of_each() -> Vec<$Name> {
                /// Compiles only if the examples name every variant.
                const fn _names_every_variant(one: &$Name) {
                    match one {
                        $($Name::$Variant { .. } => {})*
                    }
                }
                vec![$($Name::$Variant $(($of))? $({ $($field: $value),* })?),*]
            }
        }
    };
}

pub(crate) use {listed_enum, one_of_each};
