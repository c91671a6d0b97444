//! Which form of answer a client accepts.

use http::HeaderMap;
use http::header::ACCEPT;

use crate::protobuf;
use crate::rest::Shape;
use crate::status::Status;
use crate::table::IncludeObject;

/// How an answer is encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encoding {
    Json,
    Yaml,
    Protobuf,
}

/// What can be said about the answer in protobuf, since not everything can.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Objects {
    /// Objects of kinds that have it.
    BuiltIn,
    /// Objects that do not; their metadata still has it.
    Custom,
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
            protobuf::CONTENT_TYPE => Some(Encoding::Protobuf),
            _ => None,
        }
    }

    /// How much the client likes it, in thousandths.
    fn quality(&self) -> u32 {
        let text = self.parameter("q");
        let quality = text.parse().ok().filter(|quality: &f64| (0.0..=1.0).contains(quality)).unwrap_or(1.0);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and 1000")]
        let thousandths = (quality * 1000.0) as u32;
        thousandths
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

/// The header's entries: those with a higher quality first, particular ones before general ones, else in the client's
/// order (most clients list what they like best first).
fn ranges(headers: &HeaderMap) -> Vec<Range<'_>> {
    let texts = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let mut ranges: Vec<Range<'_>> = texts
        .flat_map(|text| text.split(','))
        .filter_map(|entry| {
            let mut parts = entry.split(';').map(str::trim);
            let media = parts.next().filter(|media| !media.is_empty())?;
            let parameters = parts.map(|part| part.split_once('=').unwrap_or((part, ""))).collect();
            Some(Range { media, parameters })
        })
        .collect();
    let general = |media: &str| (media.starts_with("*/"), media.ends_with("/*"));
    ranges.sort_by_key(|range| (std::cmp::Reverse(range.quality()), general(range.media)));
    ranges
}

/// The forms that answers have.
const FORMS: [&str; 3] = ["application/json", "application/yaml", protobuf::CONTENT_TYPE];
/// The forms that watches have.
const STREAMS: [&str; 2] = ["application/json;stream=watch", protobuf::WATCH_CONTENT_TYPE];

/// The first form that the client accepts and the server has.
pub(super) fn negotiate(
    headers: &HeaderMap,
    answered: Answered,
    include: IncludeObject,
    objects: Objects,
) -> Result<(Encoding, Shape), Status> {
    let ranges = ranges(headers);
    if ranges.is_empty() {
        return Ok((Encoding::Json, Shape::Object));
    }
    let fits = |range: &Range<'_>| {
        let (encoding, shape) = (range.encoding()?, range.shape(answered, include)?);
        let has = match (encoding, shape) {
            (Encoding::Protobuf, Shape::Object) => objects == Objects::BuiltIn,
            (Encoding::Protobuf, Shape::Table(..)) => false,
            _ => true,
        };
        has.then_some((encoding, shape))
    };
    ranges.iter().find_map(fits).ok_or_else(|| Status::not_acceptable(&FORMS))
}

/// The same for a watch, which cannot be YAML.
pub(super) fn negotiate_watch(
    headers: &HeaderMap,
    include: IncludeObject,
    objects: Objects,
) -> Result<(Encoding, Shape), Status> {
    match negotiate(headers, Answered::One, include, objects)? {
        (Encoding::Yaml, _) => Err(Status::not_acceptable(&STREAMS)),
        other => Ok(other),
    }
}

/// The form in which a client reads a `Status`. What cannot be agreed on is JSON.
pub(super) fn of_status(headers: &HeaderMap) -> Encoding {
    let plain = |range: &Range<'_>| ["as", "g", "v"].iter().all(|name| range.parameter(name).is_empty());
    ranges(headers)
        .iter()
        .find_map(|range| range.encoding().filter(|_| plain(range)))
        .unwrap_or(Encoding::Json)
}

/// The answer to a client that accepts only what no real server has, for all resources and kinds.
pub(super) fn nothing_accepted(headers: &HeaderMap, answered: Answered) -> Option<Status> {
    let ranges = ranges(headers);
    if ranges.is_empty() || ranges.iter().any(|range| range.encoding().is_some()) {
        return None;
    }
    let streams = if answered == Answered::List { &STREAMS[..] } else { &[] };
    let forms = [&FORMS[..], streams].concat().join(", ");
    let why = format!("Not Acceptable\n\nAvailable representations: {forms}");
    Some(Status::unroutable(406, "NotAcceptable", &why))
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
        assert_eq!(list(kubectl), Ok((Encoding::Json, Shape::Table("v1", IncludeObject::None))));
        let only = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
        let found = negotiate(&accept(only), Answered::One, IncludeObject::None, Objects::BuiltIn);
        assert_eq!(found.unwrap_err().code, 406);
        assert_eq!(list("*/*,application/yaml").unwrap().0, Encoding::Yaml);
        assert_eq!(list("application/json;q=0.5,application/yaml;q=0.9").unwrap().0, Encoding::Yaml);
    }

    #[test]
    fn protobuf_is_for_objects_of_built_in_kinds_and_for_metadata_of_all() {
        let go = "application/vnd.kubernetes.protobuf,application/json";
        let ask = |text: &str, objects: Objects| {
            negotiate(&accept(text), Answered::List, IncludeObject::None, objects).map(|found| found.0)
        };
        assert_eq!(ask(go, Objects::BuiltIn), Ok(Encoding::Protobuf));
        assert_eq!(ask(go, Objects::Custom), Ok(Encoding::Json));
        let only = ask("application/vnd.kubernetes.protobuf", Objects::Custom).unwrap_err();
        assert_eq!(
            only.message,
            "only the following media types are accepted: application/json, application/yaml, \
             application/vnd.kubernetes.protobuf"
        );
        let metadata = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
        assert_eq!(ask(metadata, Objects::Custom), Ok(Encoding::Protobuf));
        let table = "application/vnd.kubernetes.protobuf;as=Table;g=meta.k8s.io;v=v1";
        assert_eq!(ask(table, Objects::BuiltIn).unwrap_err().code, 406);
        let yaml = negotiate_watch(&accept("application/yaml"), IncludeObject::None, Objects::BuiltIn);
        assert_eq!(
            yaml.unwrap_err().message,
            "only the following media types are accepted: application/json;stream=watch, \
             application/vnd.kubernetes.protobuf;stream=watch"
        );
    }

    fn list(text: &str) -> Result<(Encoding, Shape), Status> {
        negotiate(&accept(text), Answered::List, IncludeObject::None, Objects::BuiltIn)
    }

    #[test]
    fn aggregated_discovery_is_chosen_by_order() {
        let kubectl = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,\
                       application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";
        assert_eq!(aggregated(&accept(kubectl)), Some("v2"));
        assert_eq!(aggregated(&accept("application/json")), None);
    }
}
