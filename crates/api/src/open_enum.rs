//! Enumerations that survive a value they do not know.
//!
//! A CRD field may hold text that a newer version knows and this build does not, or that a user mistyped. Such a
//! value must be kept (and refused by validation with its name), not fail the decoding of the whole object.

/// Declares an enumeration over texts, with `Other` for every text that has no name here.
///
/// The first variant is the default.
#[macro_export]
macro_rules! open_enum {
    (
        $(#[$meta:meta])*
        pub enum $name:ident {
            $(#[$first_meta:meta])*
            $first:ident = $first_text:literal,
            $( $(#[$variant_meta:meta])* $variant:ident = $text:literal, )*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $name {
            $(#[$first_meta])*
            #[default]
            $first,
            $( $(#[$variant_meta])* $variant, )*
            /// A value that this build does not know; kept as it was written.
            Other(String),
        }

        impl $name {
            /// Every value with a name, in the order of declaration.
            pub const KNOWN: &'static [&'static str] = &[$first_text, $($text),*];

            /// The text on the wire.
            pub fn as_str(&self) -> &str {
                match self {
                    Self::$first => $first_text,
                    $( Self::$variant => $text, )*
                    Self::Other(text) => text,
                }
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                match text {
                    $first_text => Self::$first,
                    $( $text => Self::$variant, )*
                    other => Self::Other(other.to_owned()),
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <std::borrow::Cow<'de, str> as serde::Deserialize>::deserialize(deserializer)?;
                Ok(Self::from(text.as_ref()))
            }
        }

        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn inline_schema() -> bool {
                true
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "type": "string" })
            }
        }
    };
}

#[cfg(test)]
#[allow(unreachable_pub, reason = "the macro declares public items, and a test module is private")]
mod tests {
    open_enum! {
        /// Colours.
        pub enum Colour {
            /// The first.
            Red = "red",
            /// The second.
            Green = "green",
        }
    }

    #[test]
    fn unknown_values_survive_a_round_trip() {
        let colours: Vec<Colour> = serde_json::from_str(r#"["green","ultraviolet"]"#).unwrap();
        assert_eq!(colours, [Colour::Green, Colour::Other("ultraviolet".into())]);
        assert_eq!(serde_json::to_string(&colours).unwrap(), r#"["green","ultraviolet"]"#);
        assert_eq!(Colour::default(), Colour::Red);
        assert_eq!(Colour::KNOWN, ["red", "green"]);
    }
}
