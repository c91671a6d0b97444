//! Addresses and networks.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::super::eval::{Fault, Outcome};
use super::super::value::Value;

pub(super) fn call(name: &str, is_method: bool, args: &[Value]) -> Option<Outcome> {
    let bad =
        |text: &str| Fault::error(format!("IP Address \"{text}\" parse error during conversion from string"));
    let bad_network = |text: &str| {
        Fault::error(format!("network address parse error during conversion from string: {text}"))
    };
    let outcome = match (name, args) {
        ("ip", [Value::Text(text)]) => ip(text).map(Value::Ip).ok_or_else(|| bad(text)),
        ("isIP", [Value::Text(text)]) => Ok(Value::Bool(ip(text).is_some())),
        ("ip.isCanonical", [Value::Text(text)]) => {
            ip(text).map(|address| Value::Bool(address.to_string() == **text)).ok_or_else(|| bad(text))
        }
        ("family", [Value::Ip(address)]) => Ok(Value::Int(if address.is_ipv4() { 4 } else { 6 })),
        ("isUnspecified", [Value::Ip(address)]) => Ok(Value::Bool(address.is_unspecified())),
        ("isLoopback", [Value::Ip(address)]) => Ok(Value::Bool(address.is_loopback())),
        ("isLinkLocalMulticast", [Value::Ip(address)]) => Ok(Value::Bool(match address {
            IpAddr::V4(address) => matches!(address.octets(), [224, 0, 0, _]),
            IpAddr::V6(address) => address.segments().first().is_some_and(|first| first & 0xff0f == 0xff02),
        })),
        ("isLinkLocalUnicast", [Value::Ip(address)]) => Ok(Value::Bool(is_link_local(*address))),
        ("isGlobalUnicast", [Value::Ip(address)]) => {
            let broadcast = matches!(address, IpAddr::V4(address) if address.is_broadcast());
            let other = address.is_unspecified() || address.is_loopback() || address.is_multicast();
            Ok(Value::Bool(!(broadcast || other || is_link_local(*address))))
        }
        ("cidr", [Value::Text(text)]) => {
            cidr(text).map(|(address, bits)| Value::Cidr(address, bits)).ok_or_else(|| bad_network(text))
        }
        ("isCIDR", [Value::Text(text)]) => Ok(Value::Bool(cidr(text).is_some())),
        ("containsIP", [Value::Cidr(net, bits), Value::Ip(address)]) => {
            Ok(Value::Bool(contains(*net, *bits, *address)))
        }
        ("containsIP", [Value::Cidr(net, bits), Value::Text(text)]) => {
            ip(text).map(|address| Value::Bool(contains(*net, *bits, address))).ok_or_else(|| bad(text))
        }
        ("containsCIDR", [Value::Cidr(net, bits), Value::Cidr(other, more)]) => {
            Ok(Value::Bool(more >= bits && contains(*net, *bits, *other)))
        }
        ("containsCIDR", [Value::Cidr(net, bits), Value::Text(text)]) => cidr(text)
            .map(|(other, more)| Value::Bool(more >= *bits && contains(*net, *bits, other)))
            .ok_or_else(|| bad_network(text)),
        ("ip", [Value::Cidr(net, _)]) if is_method => Ok(Value::Ip(*net)),
        ("masked", [Value::Cidr(net, bits)]) => Ok(Value::Cidr(masked(*net, *bits), *bits)),
        ("prefixLength", [Value::Cidr(_, bits)]) => Ok(Value::Int(i64::from(*bits))),
        _ => return None,
    };
    Some(outcome)
}

/// An address, without a zone and not one of version 4 in the clothes of version 6.
fn ip(text: &str) -> Option<IpAddr> {
    let address: IpAddr = text.parse().ok()?;
    match address {
        IpAddr::V6(inner) if inner.to_ipv4_mapped().is_some() => None,
        address => Some(address),
    }
}

fn cidr(text: &str) -> Option<(IpAddr, u8)> {
    let (address, bits) = text.split_once('/')?;
    let address = ip(address)?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    let plain = bits.bytes().all(|byte| byte.is_ascii_digit()) && (bits == "0" || !bits.starts_with('0'));
    let bits: u8 = bits.parse().ok().filter(|bits| plain && *bits <= most)?;
    Some((address, bits))
}

fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    }
}

fn masked(address: IpAddr, bits: u8) -> IpAddr {
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0);
            IpAddr::V4(Ipv4Addr::from_bits(address.to_bits() & mask))
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0);
            IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & mask))
        }
    }
}

fn contains(net: IpAddr, bits: u8, address: IpAddr) -> bool {
    net.is_ipv4() == address.is_ipv4() && masked(net, bits) == masked(address, bits)
}
