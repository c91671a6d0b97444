//! The functions that expressions may call, and what they take and give.
//!
//! Each line is one signature: `name(types) result`, or `type.name(types) result` for a method. Capital letters stand
//! for any type.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::types::Type;

/// One way to call a function.
#[derive(Debug)]
pub(super) struct Signature {
    pub(super) is_method: bool,
    pub(super) args: Vec<Type>,
    pub(super) result: Type,
}

/// The signatures of a function; none for a name that nobody knows.
pub(super) fn of(function: &str) -> &'static [Signature] {
    static ALL: LazyLock<BTreeMap<String, Vec<Signature>>> = LazyLock::new(|| {
        let mut all: BTreeMap<String, Vec<Signature>> = BTreeMap::new();
        for line in SIGNATURES.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let (name, signature) = read(line);
            all.entry(name).or_default().push(signature);
        }
        all
    });
    ALL.get(function).map(Vec::as_slice).unwrap_or_default()
}

const SIGNATURES: &str = "
    _==_(A, A) bool
    _!=_(A, A) bool
    _?_:_(bool, A, A) A
    !_(bool) bool
    -_(int) int
    -_(double) double
    @in(A, list(A)) bool
    @in(A, map(A, B)) bool
    _[_](list(A), int) A
    _[_](map(A, B), A) B
    _[_](optional(list(A)), int) optional(A)
    _[_](optional(map(A, B)), A) optional(B)
    _[?_](list(A), int) optional(A)
    _[?_](map(A, B), A) optional(B)
    _[?_](optional(list(A)), int) optional(A)
    _[?_](optional(map(A, B)), A) optional(B)
    _+_(int, int) int
    _+_(uint, uint) uint
    _+_(double, double) double
    _+_(string, string) string
    _+_(bytes, bytes) bytes
    _+_(list(A), list(A)) list(A)
    _+_(timestamp, duration) timestamp
    _+_(duration, timestamp) timestamp
    _+_(duration, duration) duration
    _-_(int, int) int
    _-_(uint, uint) uint
    _-_(double, double) double
    _-_(timestamp, timestamp) duration
    _-_(timestamp, duration) timestamp
    _-_(duration, duration) duration
    _*_(int, int) int
    _*_(uint, uint) uint
    _*_(double, double) double
    _/_(int, int) int
    _/_(uint, uint) uint
    _/_(double, double) double
    _%_(int, int) int
    _%_(uint, uint) uint
    size(string) int
    size(bytes) int
    size(list(A)) int
    size(map(A, B)) int
    string.size() int
    bytes.size() int
    list(A).size() int
    map(A, B).size() int
    bool(bool) bool
    bool(string) bool
    bytes(bytes) bytes
    bytes(string) bytes
    double(double) double
    double(int) double
    double(uint) double
    double(string) double
    int(int) int
    int(uint) int
    int(double) int
    int(string) int
    int(timestamp) int
    uint(uint) uint
    uint(int) uint
    uint(double) uint
    uint(string) uint
    string(string) string
    string(bool) string
    string(int) string
    string(uint) string
    string(double) string
    string(bytes) string
    string(timestamp) string
    string(duration) string
    string(ip) string
    string(cidr) string
    dyn(A) dyn
    type(A) type(A)
    duration(string) duration
    duration(duration) duration
    timestamp(string) timestamp
    timestamp(int) timestamp
    timestamp(timestamp) timestamp
    timestamp.getFullYear() int
    timestamp.getFullYear(string) int
    timestamp.getMonth() int
    timestamp.getMonth(string) int
    timestamp.getDayOfYear() int
    timestamp.getDayOfYear(string) int
    timestamp.getDayOfMonth() int
    timestamp.getDayOfMonth(string) int
    timestamp.getDate() int
    timestamp.getDate(string) int
    timestamp.getDayOfWeek() int
    timestamp.getDayOfWeek(string) int
    timestamp.getHours() int
    timestamp.getHours(string) int
    timestamp.getMinutes() int
    timestamp.getMinutes(string) int
    timestamp.getSeconds() int
    timestamp.getSeconds(string) int
    timestamp.getMilliseconds() int
    timestamp.getMilliseconds(string) int
    duration.getHours() int
    duration.getMinutes() int
    duration.getSeconds() int
    duration.getMilliseconds() int
    string.contains(string) bool
    string.startsWith(string) bool
    string.endsWith(string) bool
    string.matches(string) bool
    matches(string, string) bool
    string.charAt(int) string
    string.indexOf(string) int
    string.indexOf(string, int) int
    string.lastIndexOf(string) int
    string.lastIndexOf(string, int) int
    string.lowerAscii() string
    string.upperAscii() string
    string.replace(string, string) string
    string.replace(string, string, int) string
    string.split(string) list(string)
    string.split(string, int) list(string)
    string.substring(int) string
    string.substring(int, int) string
    string.trim() string
    string.format(list(dyn)) string
    string.find(string) string
    string.findAll(string) list(string)
    string.findAll(string, int) list(string)
    strings.quote(string) string
    list(string).join() string
    list(string).join(string) string
    list(A).isSorted() bool
    list(A).sum() A
    list(A).min() A
    list(A).max() A
    list(A).indexOf(A) int
    list(A).lastIndexOf(A) int
    list(A).slice(int, int) list(A)
    list(A).distinct() list(A)
    list(A).reverse() list(A)
    list(A).sort() list(A)
    list(list(A)).flatten() list(A)
    list(dyn).flatten() list(dyn)
    list(dyn).flatten(int) list(dyn)
    list(A).first() optional(A)
    list(A).last() optional(A)
    lists.range(int) list(int)
    sets.contains(list(A), list(A)) bool
    sets.equivalent(list(A), list(A)) bool
    sets.intersects(list(A), list(A)) bool
    optional.of(A) optional(A)
    optional.none() optional(A)
    optional.ofNonZeroValue(A) optional(A)
    optional(A).hasValue() bool
    optional(A).value() A
    optional(A).or(optional(A)) optional(A)
    optional(A).orValue(A) A
    url(string) url
    isURL(string) bool
    url.getScheme() string
    url.getHost() string
    url.getHostname() string
    url.getPort() string
    url.getEscapedPath() string
    url.getQuery() map(string, list(string))
    quantity(string) quantity
    isQuantity(string) bool
    quantity.sign() int
    quantity.isInteger() bool
    quantity.asInteger() int
    quantity.asApproximateFloat() double
    quantity.isGreaterThan(quantity) bool
    quantity.isLessThan(quantity) bool
    quantity.compareTo(quantity) int
    quantity.add(quantity) quantity
    quantity.add(int) quantity
    quantity.sub(quantity) quantity
    quantity.sub(int) quantity
    ip(string) ip
    isIP(string) bool
    ip.isCanonical(string) bool
    ip.family() int
    ip.isUnspecified() bool
    ip.isLoopback() bool
    ip.isLinkLocalMulticast() bool
    ip.isLinkLocalUnicast() bool
    ip.isGlobalUnicast() bool
    cidr(string) cidr
    isCIDR(string) bool
    cidr.containsIP(ip) bool
    cidr.containsIP(string) bool
    cidr.containsCIDR(cidr) bool
    cidr.containsCIDR(string) bool
    cidr.ip() ip
    cidr.masked() cidr
    cidr.prefixLength() int
    semver(string) semver
    isSemver(string) bool
    semver(string, bool) semver
    isSemver(string, bool) bool
    semver.major() int
    semver.minor() int
    semver.patch() int
    semver.isGreaterThan(semver) bool
    semver.isLessThan(semver) bool
    semver.compareTo(semver) int
    format.named(string) optional(format)
    format.dns1123Label() format
    format.dns1123Subdomain() format
    format.dns1035Label() format
    format.qualifiedName() format
    format.labelValue() format
    format.dns1123LabelPrefix() format
    format.dns1123SubdomainPrefix() format
    format.dns1035LabelPrefix() format
    format.uri() format
    format.uuid() format
    format.byte() format
    format.date() format
    format.datetime() format
    format.validate(string) optional(list(string))
";

/// Reads a line. The first word of `sets.contains(…)` is no type, so it belongs to the name.
fn read(line: &str) -> (String, Signature) {
    let mut text = Text(line);
    let head = text.until_call();
    let (target, name) = match head.rsplit_once('.') {
        Some((target, name)) if !is_static(head) => (Some(Text(target).one()), name.to_owned()),
        _ => (None, head.to_owned()),
    };
    let mut args: Vec<Type> = target.iter().cloned().collect();
    args.extend(text.list());
    let result = Text(text.0.trim()).one();
    (name, Signature { is_method: target.is_some(), args, result })
}

fn is_static(head: &str) -> bool {
    match head.split_once('.') {
        Some(("sets" | "lists" | "strings", _)) => true,
        Some(("optional", name)) => matches!(name, "of" | "none" | "ofNonZeroValue"),
        Some(("ip", name)) => name == "isCanonical",
        Some(("format", name)) => name != "validate",
        _ => false,
    }
}

struct Text<'t>(&'t str);

impl<'t> Text<'t> {
    /// Everything before the parenthesis of the arguments: the last one that opens at the outermost level.
    fn until_call(&mut self) -> &'t str {
        let mut depth = 0_usize;
        let mut open = 0;
        for (at, c) in self.0.char_indices() {
            match c {
                '(' => {
                    if depth == 0 {
                        open = at;
                    }
                    depth += 1;
                }
                ')' => depth = depth.saturating_sub(1),
                // The result begins.
                ' ' if depth == 0 => break,
                _ => {}
            }
        }
        let (head, rest) = self.0.split_at(open);
        self.0 = rest;
        head
    }

    /// The types in parentheses.
    fn list(&mut self) -> Vec<Type> {
        let mut types = Vec::new();
        self.0 = self.0.strip_prefix('(').unwrap_or(self.0).trim_start();
        while !self.0.starts_with(')') && !self.0.is_empty() {
            types.push(self.one());
            self.0 = self.0.strip_prefix(',').unwrap_or(self.0).trim_start();
        }
        self.0 = self.0.strip_prefix(')').unwrap_or(self.0);
        types
    }

    /// The next type.
    fn one(&mut self) -> Type {
        let end = self.0.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(self.0.len());
        let (word, rest) = self.0.split_at(end);
        self.0 = rest;
        let inner = if rest.starts_with('(') { self.list() } else { Vec::new() };
        let mut inner = inner.into_iter();
        let mut next = || inner.next().unwrap_or(Type::Dyn);
        match word {
            "list" => Type::list(next()),
            "map" => Type::map(next(), next()),
            "optional" => Type::optional(next()),
            "type" => Type::Kind(next().into()),
            "null" => Type::Null,
            "bool" => Type::Bool,
            "int" => Type::Int,
            "uint" => Type::Uint,
            "double" => Type::Double,
            "string" => Type::Text,
            "bytes" => Type::Bytes,
            "timestamp" => Type::Timestamp,
            "duration" => Type::Duration,
            "quantity" => Type::Opaque("kubernetes.Quantity"),
            "url" => Type::Opaque("kubernetes.URL"),
            "ip" => Type::Opaque("net.IP"),
            "cidr" => Type::Opaque("net.CIDR"),
            "semver" => Type::Opaque("kubernetes.Semver"),
            "format" => Type::Opaque("kubernetes.NamedFormat"),
            _ => match word.chars().next() {
                Some(name) if name.is_ascii_uppercase() => Type::Param(name),
                _ => Type::Dyn,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_as_they_are_written() {
        let shown = |function: &str| -> Vec<String> {
            of(function)
                .iter()
                .map(|one| {
                    let args: Vec<String> = one.args.iter().map(ToString::to_string).collect();
                    format!("{} {} -> {}", one.is_method, args.join(", "), one.result)
                })
                .collect()
        };
        assert_eq!(shown("_[?_]")[1], "false map(<A>, <B>), <A> -> optional_type(<B>)");
        assert_eq!(shown("join")[1], "true list(string), string -> string");
        assert_eq!(shown("sets.contains"), ["false list(<A>), list(<A>) -> bool"]);
        assert_eq!(shown("hasValue"), ["true optional_type(<A>) -> bool"]);
        assert_eq!(shown("optional.of"), ["false <A> -> optional_type(<A>)"]);
        assert_eq!(shown("getQuery"), ["true kubernetes.URL -> map(string, list(string))"]);
        for line in SIGNATURES.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let (name, _) = read(line);
            assert!(line.contains(name.as_str()) && !of(&name).is_empty(), "{line}: {name}");
        }
    }
}
