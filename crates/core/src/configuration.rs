//! The ConfigMap `kruise-configuration`: settings that need no restart.
//!
//! Every value is a JSON text under a key of its own. The program that first read it ignored the case of member
//! names, so both `Group` and `group` are out there, and both are read. A text that cannot be read is an error that names its
//! key: it never silently means "nothing is allowed".

use std::collections::BTreeMap;

use kruise_api::{
    names::{PERSISTENT_POD_STATE_WHITE_LIST, SIDECARSET_PATCH_WHITE_LIST, WORKLOADSPREAD_WHITE_LIST},
    selector::LabelSelector,
};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Map, Value};

/// The data of the ConfigMap. A ConfigMap that is not there is an empty one.
pub type Data = BTreeMap<String, String>;

/// Why a setting cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("key {key} of ConfigMap kruise-configuration is not readable: {source}")]
pub struct Error {
    /// The key of the ConfigMap.
    pub key: &'static str,
    /// What is wrong with the text.
    pub source: serde_json::Error,
}

/// Which annotations of pods SidecarSets may patch.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct PatchWhiteList {
    /// Every rule adds to what is allowed.
    #[serde(deserialize_with = "or_default")]
    pub rules: Vec<PatchRule>,
}

/// Annotations that some SidecarSets may patch.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct PatchRule {
    /// The SidecarSets by their labels; all of them when there is none.
    pub selector: Option<LabelSelector>,
    /// Regular expressions for the keys of annotations.
    #[serde(rename = "allowedannotationkeyexprs", deserialize_with = "or_default")]
    pub allowed_annotation_keys: Vec<String>,
}

/// Kinds of workloads, besides the known ones, that a feature works with.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct WorkloadWhiteList {
    /// The kinds.
    #[serde(deserialize_with = "or_default")]
    pub workloads: Vec<Workload>,
}

/// A kind of workload.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Workload {
    /// The group.
    #[serde(deserialize_with = "or_default")]
    pub group: String,
    /// The version to read it in. Not looked at when kinds are compared.
    #[serde(deserialize_with = "or_default")]
    pub version: String,
    /// The kind.
    #[serde(deserialize_with = "or_default")]
    pub kind: String,
    /// Kinds between the workload and its pods.
    #[serde(rename = "subresources", deserialize_with = "or_default")]
    pub sub_resources: Vec<SubResource>,
    /// Where the number of replicas stands, such as `spec.replicas`.
    #[serde(rename = "replicaspath", deserialize_with = "or_default")]
    pub replicas_path: String,
}

/// A kind between a workload and its pods, as ReplicaSet is for Deployment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct SubResource {
    /// The group.
    #[serde(deserialize_with = "or_default")]
    pub group: String,
    /// The version.
    #[serde(deserialize_with = "or_default")]
    pub version: String,
    /// The kind.
    #[serde(deserialize_with = "or_default")]
    pub kind: String,
}

impl WorkloadWhiteList {
    /// The entry of a kind.
    pub fn find(&self, group: &str, kind: &str) -> Option<&Workload> {
        self.workloads.iter().find(|workload| workload.group == group && workload.kind == kind)
    }
}

/// Which annotations of pods SidecarSets may patch.
pub fn sidecarset_patches(data: &Data) -> Result<PatchWhiteList, Error> {
    read(data, SIDECARSET_PATCH_WHITE_LIST)
}

/// Kinds for which PersistentPodState works, besides the StatefulSets of Kubernetes and of ours.
pub fn persistent_pod_state_workloads(data: &Data) -> Result<WorkloadWhiteList, Error> {
    read(data, PERSISTENT_POD_STATE_WHITE_LIST)
}

/// Kinds for which WorkloadSpread works, besides those it knows.
pub fn workloadspread_workloads(data: &Data) -> Result<WorkloadWhiteList, Error> {
    read(data, WORKLOADSPREAD_WHITE_LIST)
}

/// The keys that this program reads.
pub const KEYS: [&str; 3] =
    [SIDECARSET_PATCH_WHITE_LIST, PERSISTENT_POD_STATE_WHITE_LIST, WORKLOADSPREAD_WHITE_LIST];

/// Why the text of a key cannot be read and counts as empty, selectors and regular expressions in it included.
pub fn problem(data: &Data, key: &str) -> Option<String> {
    let words = |error: Error| error.source.to_string();
    match key {
        SIDECARSET_PATCH_WHITE_LIST => match sidecarset_patches(data) {
            Err(error) => Some(words(error)),
            Ok(list) => list.rules.iter().find_map(PatchRule::problem),
        },
        PERSISTENT_POD_STATE_WHITE_LIST => persistent_pod_state_workloads(data).err().map(words),
        WORKLOADSPREAD_WHITE_LIST => workloadspread_workloads(data).err().map(words),
        _ => None,
    }
}

impl PatchRule {
    fn problem(&self) -> Option<String> {
        let selector = self.selector.as_ref().and_then(|selector| selector.matcher().err());
        let broken = || self.allowed_annotation_keys.iter().find(|one| regex::Regex::new(one).is_err());
        selector
            .map(|error| error.to_string())
            .or_else(|| broken().map(|one| format!("{one:?} is no regular expression")))
    }
}

fn read<T: DeserializeOwned + Default>(data: &Data, key: &'static str) -> Result<T, Error> {
    let Some(text) = data.get(key).filter(|text| !text.is_empty()) else { return Ok(T::default()) };
    serde_json::from_str(text)
        .map(|value| any_case(value, false))
        .and_then(Option::<T>::deserialize)
        .map(Option::unwrap_or_default)
        .map_err(|source| Error { key, source })
}

/// Members of label selectors, which our type knows by these names.
const SELECTOR: &[&str] = &["matchLabels", "matchExpressions", "key", "operator", "values"];

/// The value with the names of its members in lower case, but for the labels of a selector, which are data. Where a
/// member is there twice the last one counts, as in the original.
fn any_case(value: Value, in_selector: bool) -> Value {
    match value {
        Value::Array(items) => items.into_iter().map(|item| any_case(item, in_selector)).collect(),
        Value::Object(members) => {
            let mut renamed = Map::new();
            for (name, value) in members {
                let lower = name.to_lowercase();
                if !in_selector {
                    let below = any_case(value, lower == "selector");
                    renamed.insert(lower, below);
                    continue;
                }
                let known = SELECTOR.iter().find(|known| known.eq_ignore_ascii_case(&name));
                let is_data = known == Some(&"matchLabels");
                let below = if is_data { value } else { any_case(value, true) };
                renamed.insert(known.map_or(name, |known| (*known).to_owned()), below);
            }
            Value::Object(renamed)
        }
        other => other,
    }
}

/// The original cannot tell `null` from nothing.
fn or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(key: &str, text: &str) -> Data {
        Data::from([(key.to_owned(), text.to_owned())])
    }

    /// PLATFORM-42: lower case works like upper case, and a broken text is refused by the name of its key.
    #[test]
    fn member_names_are_read_in_any_case_and_errors_name_the_key() {
        let key = "PPS_Watch_Custom_Workload_WhiteList";
        for text in [
            r#"{"workloads":[{"Group":"apps.example.com","Version":"v1","Kind":"GameSet"}]}"#,
            r#"{"workloads":[{"group":"apps.example.com","version":"v1","kind":"GameSet"}]}"#,
            r#"{"WORKLOADS":[{"GROUP":"apps.example.com","vErSiOn":"v1","kinD":"GameSet","other":1}]}"#,
        ] {
            let list = persistent_pod_state_workloads(&data(key, text)).unwrap();
            let found = list.find("apps.example.com", "GameSet").unwrap();
            assert_eq!(found.version, "v1");
            assert_eq!(list.find("apps.example.com", "gameset"), None);
        }
        let error = persistent_pod_state_workloads(&data(key, "{\"workloads\":[")).unwrap_err();
        assert_eq!(
            error.to_string(),
            "key PPS_Watch_Custom_Workload_WhiteList of ConfigMap kruise-configuration is not readable: EOF while \
             parsing a list at line 1 column 14"
        );
        let error = persistent_pod_state_workloads(&data(key, r#"{"workloads": "all"}"#)).unwrap_err();
        assert!(error.to_string().starts_with("key PPS_Watch_Custom_Workload_WhiteList"), "{error}");
    }

    #[test]
    fn what_cannot_be_read_is_named_key_by_key() {
        let check = |key: &str, text: &str, expected: Option<&str>| {
            assert_eq!(problem(&data(key, text), key).as_deref(), expected, "{text}");
        };
        for key in KEYS {
            check(key, "", None);
            check(key, "[", Some("EOF while parsing a list at line 1 column 1"));
            assert_eq!(problem(&data(key, "["), "other"), None);
        }
        let patches = "SidecarSet_PatchPodMetadata_WhiteList";
        let rule = |rule: &str| format!(r#"{{"rules":[{{"allowedAnnotationKeyExprs":["^a$"]}},{rule}]}}"#);
        check(
            patches,
            &rule(r#"{"allowedAnnotationKeyExprs":["(a"]}"#),
            Some("\"(a\" is no regular expression"),
        );
        let selector = r#"{"selector":{"matchExpressions":[{"key":"a","operator":"Foo"}]}}"#;
        assert!(problem(&data(patches, &rule(selector)), patches).is_some());
    }

    #[test]
    fn nothing_is_an_empty_list() {
        assert_eq!(workloadspread_workloads(&Data::new()).unwrap(), WorkloadWhiteList::default());
        for text in ["", "null", "{}", r#"{"workloads":null}"#] {
            let data = data("WorkloadSpread_Watch_Custom_Workload_WhiteList", text);
            assert_eq!(workloadspread_workloads(&data).unwrap(), WorkloadWhiteList::default());
        }
    }

    #[test]
    fn a_workload_of_a_spread_says_what_is_between_and_where_its_number_is() {
        let text = r#"{"workloads":[{"Group":"g","Version":"v","Kind":"K",
            "subResources":[{"Group":"g","Kind":"Sub"}],"replicasPath":"spec.size"}]}"#;
        let list =
            workloadspread_workloads(&data("WorkloadSpread_Watch_Custom_Workload_WhiteList", text)).unwrap();
        let workload = list.find("g", "K").unwrap();
        assert_eq!(workload.replicas_path, "spec.size");
        assert_eq!(workload.sub_resources[0].kind, "Sub");
    }

    #[test]
    fn keys_of_labels_keep_their_case() {
        let text = r#"{"Rules":[{"Selector":{"matchlabels":{"App":"Web"},
            "MatchExpressions":[{"Key":"Tier","Operator":"In","Values":["A"]}]},
            "AllowedAnnotationKeyExprs":["^Key$"]},{"allowedAnnotationKeyExprs":null}]}"#;
        let list = sidecarset_patches(&data("SidecarSet_PatchPodMetadata_WhiteList", text)).unwrap();
        let selector = list.rules[0].selector.as_ref().unwrap();
        assert_eq!(selector.match_labels["App"], "Web");
        assert_eq!(selector.match_expressions[0].key, "Tier");
        assert_eq!(list.rules[0].allowed_annotation_keys, ["^Key$"]);
        assert_eq!(list.rules[1], PatchRule::default());
    }
}
