//! Which servers are one neighbour.
//!
//! Ten thousand subdomains usually end at one operator's machines, so they share one budget until
//! a rule says otherwise. Who is one operator is what the public suffix list says, its private
//! section included: two customers of one hosting service are two neighbours.

use std::net::{IpAddr, Ipv6Addr};

/// The registrable domain of a canonical host; the host itself when it is an address, a single
/// label or a public suffix.
#[must_use]
pub fn registrable_domain(host: &str) -> &str {
    if address(host).is_some() {
        return host;
    }
    psl::domain_str(host).unwrap_or(host)
}

/// The address that a host is, if it is one; IPv6 stands in brackets, as in a URL.
pub(super) fn address(host: &str) -> Option<IpAddr> {
    match host.strip_prefix('[') {
        Some(rest) => {
            let literal = rest.strip_suffix(']')?;
            literal.parse::<Ipv6Addr>().ok().map(IpAddr::V6)
        }
        None => host.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::locate;

    #[test]
    fn the_group_is_the_registrable_domain() {
        for (host, group) in [
            ("example.com", "example.com"),
            ("www.example.com", "example.com"),
            ("a.b.c.example.co.uk", "example.co.uk"),
            ("co.uk", "co.uk"),
            ("uk", "uk"),
            ("localhost", "localhost"),
            ("db.internal", "db.internal"),
            ("a.db.internal", "db.internal"),
            ("github.io", "github.io"),
            ("alice.github.io", "alice.github.io"),
            ("www.alice.github.io", "alice.github.io"),
            ("api.github.com", "github.com"),
            ("x.y.ck", "x.y.ck"),
            ("a.www.ck", "www.ck"),
            ("shop.xn--55qx5d.cn", "shop.xn--55qx5d.cn"),
            ("a.shop.xn--55qx5d.cn", "shop.xn--55qx5d.cn"),
            ("a.xn--bcher-kva.example", "xn--bcher-kva.example"),
            ("_dmarc.example.com", "example.com"),
            ("10.1.2.3", "10.1.2.3"),
            ("[2001:db8::1]", "[2001:db8::1]"),
        ] {
            assert_eq!(registrable_domain(host), group, "{host}");
        }
    }

    #[test]
    fn two_addresses_are_two_groups() {
        let group = |text: &str| locate(text).expect(text).origin.group().to_owned();
        assert_ne!(group("http://10.0.0.1/"), group("http://10.0.0.2/"));
        assert_eq!(
            group("http://10.0.0.1/"),
            group("https://[::ffff:a00:1]:8443/")
        );
    }

    #[test]
    fn ten_thousand_subdomains_two_schemes_and_three_ports_are_one_group() {
        for n in 0..10_000 {
            for (scheme, port) in [("http", ""), ("https", ""), ("https", ":8443")] {
                let text = format!("{scheme}://h{n}.example.co.uk{port}/x");
                assert_eq!(locate(&text).expect(&text).origin.group(), "example.co.uk");
            }
        }
    }

    #[test]
    fn odd_hosts_are_their_own_group() {
        for host in ["", ".", "..", ".com", "[", "[]", "[::1", "::"] {
            assert!(host.ends_with(registrable_domain(host)), "{host}");
        }
    }
}
