//! Which addresses are the open internet: everything else may be somebody's own house, and is not fetched from.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Whether anybody on the internet could reach it. What is reserved, local or embeds such an address is not.
pub(super) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => is_public_v4(v4),
        IpAddr::V6(v6) => is_public_v6(v6),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let is_special = address.is_loopback()
        || address.is_private()
        || address.is_link_local()
        || address.is_multicast()
        || address.is_broadcast()
        || address.is_documentation()
        || a == 0
        || a >= 240
        || (a == 100 && (64..128).contains(&b)) // shared by carriers, RFC 6598
        || (a == 192 && b == 0 && c == 0) // protocol assignments, RFC 6890
        || (a == 192 && b == 88 && c == 99) // 6to4 relays, RFC 7526
        || (a == 198 && (18..20).contains(&b)); // benchmarks, RFC 2544
    !is_special
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let segments = address.segments();
    let [a, b, c, d, e, f, g, h] = segments;
    let embedded = |high: u16, low: u16| {
        let ([w, x], [y, z]) = (high.to_be_bytes(), low.to_be_bytes());
        is_public_v4(Ipv4Addr::new(w, x, y, z))
    };
    match segments {
        [0, 0, 0, 0, 0, 0xffff, ..] => embedded(g, h),           // mapped
        [0x64, 0xff9b, 0, 0, 0, 0, ..] => embedded(g, h),        // NAT64, RFC 6052
        [0x64, 0xff9b, 1, ..] => false,                          // local NAT64, RFC 8215
        [0x2002, ..] => embedded(b, c),                          // 6to4
        [0x2001, 0, ..] => false,                                // Teredo
        [0x2001, 0xdb8, ..] | [0x3fff, 0..=0x0fff, ..] => false, // documentation
        // Of the rest only this part was ever given out to the internet.
        _ => (0x2000..0x4000).contains(&a) && (b, c, d, e, f) != (0, 0, 0, 0, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_open_internet_is_public() {
        for public in
            ["1.1.1.1", "93.184.216.34", "100.63.0.1", "2606:4700::1111", "::ffff:1.1.1.1", "64:ff9b::101:101"]
        {
            assert!(is_public(public.parse().unwrap()), "{public}");
        }
        for local in [
            "127.0.0.1",
            "127.9.9.9",
            "0.0.0.0",
            "10.0.0.1",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "192.0.0.192",
            "198.18.0.1",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "fe80::1",
            "fd00::1",
            "fec0::1",
            "ff02::1",
            "2001:db8::1",
            "2001::1",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "::127.0.0.1",
            "64:ff9b::7f00:1",
            "64:ff9b:1::1",
            "2002:7f00:1::",
            "2002:a9fe:a9fe::1",
            "fd00:ec2::254",
            "4000::1",
        ] {
            assert!(!is_public(local.parse().unwrap()), "{local}");
        }
    }
}
