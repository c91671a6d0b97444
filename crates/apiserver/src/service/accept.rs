//! Which form of answer a client accepts.

use http::HeaderMap;
use http::header::ACCEPT;

use crate::rest::Shape;
use crate::status::Status;
use crate::table::IncludeObject;

/// How an answer is encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encoding {
    Json,
    Yaml,
}

/// What is being answered, since not every form fits everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answered {
    /// One object, or a watch of them.
    One,
    /// A list.
    List,
    /// Something that has no other form.
    Plain,
}

/// One entry of the header.
struct Range<'h> {
    media: &'h str,
    parameters: Vec<(&'h str, &'h str)>,
}

impl<'h> Range<'h> {
    fn parameter(&self, name: &str) -> &'h str {
        self.parameters.iter().find(|(key, _)| *key == name).map_or("", |(_, value)| value)
    }

    fn encoding(&self) -> Option<Encoding> {
        match self.media {
            "application/json" | "*/*" | "application/*" => Some(Encoding::Json),
            "application/yaml" => Some(Encoding::Yaml),
            _ => None,
        }
    }

    fn shape(&self, answered: Answered, include: IncludeObject) -> Option<Shape> {
        let version = match self.parameter("v") {
            "v1" => "v1",
            "v1beta1" => "v1beta1",
            _ => "",
        };
        match (self.parameter("as"), answered) {
            ("", _) => Some(Shape::Object),
            _ if version.is_empty() || self.parameter("g") != "meta.k8s.io" => None,
            ("Table", Answered::One | Answered::List) => Some(Shape::Table(version, include)),
            ("PartialObjectMetadata", Answered::One) | ("PartialObjectMetadataList", Answered::List) => {
                Some(Shape::Metadata(version))
            }
            _ => None,
        }
    }
}

/// The header's entries, in the client's order (clients list what they like best first).
fn ranges(headers: &HeaderMap) -> Vec<Range<'_>> {
    let texts = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    texts
        .flat_map(|text| text.split(','))
        .filter_map(|entry| {
            let mut parts = entry.split(';').map(str::trim);
            let media = parts.next().filter(|media| !media.is_empty())?;
            let parameters = parts.map(|part| part.split_once('=').unwrap_or((part, ""))).collect();
            Some(Range { media, parameters })
        })
        .collect()
}

/// The first form that the client accepts and the server has.
pub(super) fn negotiate(
    headers: &HeaderMap,
    answered: Answered,
    include: IncludeObject,
) -> Result<(Encoding, Shape), Status> {
    let ranges = ranges(headers);
    if ranges.is_empty() {
        return Ok((Encoding::Json, Shape::Object));
    }
    ranges
        .iter()
        .find_map(|range| Some((range.encoding()?, range.shape(answered, include)?)))
        .ok_or_else(|| Status::not_acceptable(&["application/json", "application/yaml"]))
}

/// Whether the client accepts only what no real server has, for all resources and kinds.
pub(super) fn accepts_nothing(headers: &HeaderMap) -> bool {
    let ranges = ranges(headers);
    let is_known = |range: &Range<'_>| {
        range.encoding().is_some() || range.media == "application/vnd.kubernetes.protobuf"
    };
    !ranges.is_empty() && !ranges.iter().any(is_known)
}

/// The version of aggregated discovery that the client accepts, if it does.
pub(super) fn aggregated(headers: &HeaderMap) -> Option<&'static str> {
    for range in ranges(headers) {
        if range.media != "application/json" {
            continue;
        }
        match (range.parameter("g"), range.parameter("v"), range.parameter("as")) {
            ("apidiscovery.k8s.io", "v2", "APIGroupDiscoveryList") => return Some("v2"),
            ("apidiscovery.k8s.io", "v2beta1", "APIGroupDiscoveryList") => return Some("v2beta1"),
            ("", _, "") => return None,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accept(text: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, text.parse().unwrap());
        headers
    }

    #[test]
    fn the_first_form_that_both_sides_know_wins() {
        let kubectl = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
        let found = negotiate(&accept(kubectl), Answered::List, IncludeObject::None).unwrap();
        assert_eq!(found, (Encoding::Json, Shape::Table("v1", IncludeObject::None)));
        let found =
            negotiate(&accept("application/vnd.kubernetes.protobuf,*/*"), Answered::One, IncludeObject::None);
        assert_eq!(found.unwrap(), (Encoding::Json, Shape::Object));
        let only = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
        assert_eq!(negotiate(&accept(only), Answered::One, IncludeObject::None).unwrap_err().code, 406);
    }

    #[test]
    fn aggregated_discovery_is_chosen_by_order() {
        let kubectl = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,\
                       application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";
        assert_eq!(aggregated(&accept(kubectl)), Some("v2"));
        assert_eq!(aggregated(&accept("application/json")), None);
    }
}
