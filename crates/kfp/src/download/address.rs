//! Which addresses are public.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Whether an address is of the public internet: no loopback, private, link-local, unique-local, shared, multicast,
/// reserved or documentation address, also not one of those within an address of IPv6.
#[must_use]
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

/// First bits and their number, of what is not public.
const NOT_PUBLIC_V4: &[([u8; 4], u32)] = &[
    ([0, 0, 0, 0], 8),
    ([10, 0, 0, 0], 8),
    ([100, 64, 0, 0], 10),
    ([127, 0, 0, 0], 8),
    ([169, 254, 0, 0], 16),
    ([172, 16, 0, 0], 12),
    ([192, 0, 0, 0], 24),
    ([192, 0, 2, 0], 24),
    ([192, 88, 99, 0], 24),
    ([192, 168, 0, 0], 16),
    ([198, 18, 0, 0], 15),
    ([198, 51, 100, 0], 24),
    ([203, 0, 113, 0], 24),
    ([224, 0, 0, 0], 4),
    ([240, 0, 0, 0], 4),
];

/// Likewise within 2000::/3, beyond which nothing but NAT64 is public.
const NOT_PUBLIC_V6: &[([u16; 2], u32)] = &[
    // IETF protocol assignments, Teredo among them.
    ([0x2001, 0], 23),
    ([0x2001, 0xdb8], 32),
    // 6to4 has an address of IPv4 in it.
    ([0x2002, 0], 16),
    ([0x3fff, 0], 20),
];

fn is_public_v4(address: Ipv4Addr) -> bool {
    let bits = address.to_bits();
    let is_in = |(first, length): &([u8; 4], u32)| {
        (bits ^ u32::from_be_bytes(*first)) >> (32 - length) == 0
    };
    !NOT_PUBLIC_V4.iter().any(is_in)
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let segments = address.segments();
    if let [0x64, 0xff9b, 0, 0, 0, 0, high, low] = segments {
        return is_public_v4(Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)));
    }
    let [first, second, ..] = segments;
    let bits = u32::from(first) << 16 | u32::from(second);
    let is_in = |([first, second], length): &([u16; 2], u32)| {
        (bits ^ (u32::from(*first) << 16 | u32::from(*second))) >> (32 - length) == 0
    };
    first >> 13 == 1 && !NOT_PUBLIC_V6.iter().any(is_in)
}

#[cfg(test)]
mod tests {
    use super::is_public;

    #[test]
    fn kfp_43_addresses_that_only_a_server_inside_can_reach_are_not_public() {
        for inside in [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "100.64.0.1",
            "100.127.255.255",
            "127.0.0.1",
            "127.255.0.1",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.8",
            "192.168.1.1",
            "198.19.0.1",
            "203.0.113.7",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:8.8.8.8",
            "::127.0.0.1",
            "64:ff9b::10.0.0.1",
            "64:ff9b:1::1",
            "100::1",
            "2001::1",
            "2001:db8::1",
            "2002:7f00:1::",
            "3fff::1",
            "fc00::1",
            "fd12::1",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "4000::1",
        ] {
            assert!(!is_public(inside.parse().unwrap()), "{inside}");
        }
        for outside in [
            "1.1.1.1",
            "8.8.8.8",
            "100.63.255.255",
            "100.128.0.1",
            "172.15.0.1",
            "172.32.0.1",
            "192.167.0.1",
            "223.255.255.254",
            "2606:4700::1111",
            "2001:4860::8888",
            "64:ff9b::8.8.8.8",
        ] {
            assert!(is_public(outside.parse().unwrap()), "{outside}");
        }
    }
}
