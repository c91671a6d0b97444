//! The annotation of a pod that says in which subset of which spread it is.

use kruise_api::annotations::MATCHED_WORKLOADSPREAD;
use serde::{Deserialize, Serialize};

use crate::pod::Pairs;

/// What the annotation says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Mark {
    /// The spread.
    pub name: String,
    /// The subset.
    pub subset: String,
    /// The key of the booking of a pod that had no name yet.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
}

impl Mark {
    /// The mark of a pod. One that cannot be read, or names no spread or subset, is none.
    pub fn of(annotations: &Pairs) -> Option<Self> {
        let mark: Self = serde_json::from_str(annotations.text(MATCHED_WORKLOADSPREAD)?).ok()?;
        (!mark.name.is_empty() && !mark.subset.is_empty()).then_some(mark)
    }

    /// The text of the annotation.
    pub fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::Text;

    #[test]
    fn the_text_is_that_of_the_original() {
        let mark = |uid: &str| Mark { name: "w".into(), subset: "za".into(), uid: uid.into() };
        assert_eq!(mark("").text(), r#"{"name":"w","subset":"za"}"#);
        assert_eq!(mark("u").text(), r#"{"name":"w","subset":"za","uid":"u"}"#);
        let of = |text: &str| {
            Mark::of(&[(Text::from(MATCHED_WORKLOADSPREAD), Text::from(text))].into_iter().collect())
        };
        assert_eq!(of(&mark("u").text()), Some(mark("u")));
        assert_eq!(of(r#"{"name":"w","subset":""}"#), None);
        assert_eq!(of("w"), None);
    }
}
