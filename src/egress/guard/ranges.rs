//! Which addresses are special, from the IANA registries of special-purpose addresses
//! (RFC 6890) and the RFCs named beside each range.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv6Net};

struct Closed {
    range: IpNet,
    why: &'static str,
}

/// IPv6 addresses that lead to the IPv4 address inside them.
struct Carrier {
    range: Ipv6Net,
    carried: fn([u8; 16]) -> Ipv4Addr,
}

/// The loopback ranges of both families (RFC 1122 section 3.2.1.3, RFC 4291 section 2.5.3).
pub(super) const LOOPBACK: [IpNet; 2] = [v4([127, 0, 0, 0], 8), v6([0, 0, 0, 0, 0, 0, 0, 1], 128)];

/// The first range that holds an address names it, so the narrower one stands first.
#[rustfmt::skip]
const CLOSED: &[Closed] = &[
    closed_v4([0, 0, 0, 0], 32, "unspecified addresses"),             // RFC 1122
    closed_v4([0, 0, 0, 0], 8, "addresses of \"this network\""),      // RFC 791
    closed_v4([10, 0, 0, 0], 8, "private addresses"),                 // RFC 1918
    closed_v4([100, 64, 0, 0], 10, "carrier-grade NAT addresses"),    // RFC 6598
    Closed { range: LOOPBACK[0], why: "loopback addresses" },
    closed_v4([169, 254, 0, 0], 16, "link-local addresses"),          // RFC 3927
    closed_v4([172, 16, 0, 0], 12, "private addresses"),              // RFC 1918
    closed_v4([192, 0, 0, 0], 24, "protocol assignment addresses"),   // RFC 6890
    closed_v4([192, 0, 2, 0], 24, "documentation addresses"),         // RFC 5737
    closed_v4([192, 168, 0, 0], 16, "private addresses"),             // RFC 1918
    closed_v4([198, 18, 0, 0], 15, "benchmarking addresses"),         // RFC 2544
    closed_v4([198, 51, 100, 0], 24, "documentation addresses"),      // RFC 5737
    closed_v4([203, 0, 113, 0], 24, "documentation addresses"),       // RFC 5737
    closed_v4([224, 0, 0, 0], 4, "multicast addresses"),              // RFC 5771
    closed_v4([255, 255, 255, 255], 32, "broadcast addresses"),       // RFC 919
    closed_v4([240, 0, 0, 0], 4, "reserved addresses"),               // RFC 1112

    closed_v6([0, 0, 0, 0, 0, 0, 0, 0], 128, "unspecified addresses"),         // RFC 4291
    Closed { range: LOOPBACK[1], why: "loopback addresses" },
    closed_v6([0x64, 0xff9b, 1, 0, 0, 0, 0, 0], 48, "local NAT64 addresses"),  // RFC 8215
    closed_v6([0x100, 0, 0, 0, 0, 0, 0, 0], 64, "discard addresses"),          // RFC 6666
    closed_v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 32, "Teredo addresses"),          // RFC 4380
    closed_v6([0x2001, 2, 0, 0, 0, 0, 0, 0], 48, "benchmarking addresses"),    // RFC 5180
    closed_v6([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32, "documentation addresses"), // RFC 3849
    closed_v6([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20, "documentation addresses"),   // RFC 9637
    closed_v6([0x5f00, 0, 0, 0, 0, 0, 0, 0], 16, "segment routing addresses"), // RFC 9602
    closed_v6([0xfc00, 0, 0, 0, 0, 0, 0, 0], 7, "unique local addresses"),     // RFC 4193
    closed_v6([0xfe80, 0, 0, 0, 0, 0, 0, 0], 10, "link-local addresses"),      // RFC 4291
    closed_v6([0xfec0, 0, 0, 0, 0, 0, 0, 0], 10, "site-local addresses"),      // RFC 3879
    closed_v6([0xff00, 0, 0, 0, 0, 0, 0, 0], 8, "multicast addresses"),        // RFC 4291
];

#[rustfmt::skip]
const CARRIERS: &[Carrier] = &[
    carrier([0, 0, 0, 0, 0, 0, 0, 0], 96, last_four),               // compatible, RFC 4291
    carrier([0, 0, 0, 0, 0xffff, 0, 0, 0], 96, last_four),          // translated, RFC 2765
    carrier([0x64, 0xff9b, 0, 0, 0, 0, 0, 0], 96, last_four),       // NAT64, RFC 6052
    carrier([0x2002, 0, 0, 0, 0, 0, 0, 0], 16, after_two),          // 6to4, RFC 3056
];

/// Why `ip`, or the IPv4 address it carries, is closed by default.
pub(super) fn closed(ip: IpAddr) -> Option<&'static str> {
    listed(ip).or_else(|| carried(ip).and_then(|inner| listed(IpAddr::V4(inner))))
}

fn listed(ip: IpAddr) -> Option<&'static str> {
    CLOSED
        .iter()
        .find(|closed| closed.range.contains(&ip))
        .map(|closed| closed.why)
}

fn carried(ip: IpAddr) -> Option<Ipv4Addr> {
    let IpAddr::V6(ip) = ip else { return None };
    CARRIERS
        .iter()
        .find(|carrier| carrier.range.contains(&ip))
        .map(|carrier| (carrier.carried)(ip.octets()))
}

fn last_four([.., a, b, c, d]: [u8; 16]) -> Ipv4Addr {
    Ipv4Addr::new(a, b, c, d)
}

fn after_two([_, _, a, b, c, d, ..]: [u8; 16]) -> Ipv4Addr {
    Ipv4Addr::new(a, b, c, d)
}

const fn closed_v4(octets: [u8; 4], prefix: u8, why: &'static str) -> Closed {
    let range = v4(octets, prefix);
    Closed { range, why }
}

const fn closed_v6(segments: [u16; 8], prefix: u8, why: &'static str) -> Closed {
    let range = v6(segments, prefix);
    Closed { range, why }
}

const fn carrier(segments: [u16; 8], prefix: u8, carried: fn([u8; 16]) -> Ipv4Addr) -> Carrier {
    let range = Ipv6Net::new_assert(from_segments(segments), prefix);
    Carrier { range, carried }
}

const fn v4([a, b, c, d]: [u8; 4], prefix: u8) -> IpNet {
    IpNet::new_assert(IpAddr::V4(Ipv4Addr::new(a, b, c, d)), prefix)
}

const fn v6(segments: [u16; 8], prefix: u8) -> IpNet {
    IpNet::new_assert(IpAddr::V6(from_segments(segments)), prefix)
}

const fn from_segments([a, b, c, d, e, f, g, h]: [u16; 8]) -> Ipv6Addr {
    Ipv6Addr::new(a, b, c, d, e, f, g, h)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_range_is_written_by_its_first_address() {
        for Closed { range, why } in CLOSED {
            assert_eq!(*range, range.trunc(), "{why}");
        }
        for Carrier { range, .. } in CARRIERS {
            assert_eq!(*range, range.trunc());
        }
    }

    #[test]
    fn every_range_is_closed_from_end_to_end_under_a_name_of_its_own() {
        for Closed { range, why } in CLOSED {
            let ends = [range.network(), range.broadcast()];
            assert!(ends.iter().any(|end| listed(*end) == Some(*why)), "{why}");
            assert!(ends.iter().all(|end| listed(*end).is_some()), "{why}");
        }
    }
}
