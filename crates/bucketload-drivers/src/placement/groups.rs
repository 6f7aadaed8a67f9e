//! Ceph: from an object's name to its placement group.
//!
//! The group of an object is a hash of its name, reduced to the pool's number of groups in such a way that doubling the
//! number splits each group in two (Ceph documentation, "Mapping PGs to OSDs"; Weil et al. 2006, CRUSH). The hash is Bob
//! Jenkins' `lookup2` of 1996 (public domain), which Ceph calls rjenkins. The monitors know which OSDs serve a group
//! (`ceph pg dump`).

/// The number of this hash function in a pool's `object_hash`.
pub const RJENKINS: u64 = 2;

/// Jenkins' `lookup2` hash with an initial value of 0.
#[must_use]
pub fn rjenkins(name: &[u8]) -> u32 {
    const GOLDEN: u32 = 0x9e37_79b9;
    let (mut a, mut b, mut c) = (GOLDEN, GOLDEN, 0u32);
    let word = |bytes: &[u8]| {
        let at = |i: usize| u32::from(bytes.get(i).copied().unwrap_or(0));
        at(0) | at(1) << 8 | at(2) << 16 | at(3) << 24
    };
    let mut blocks = name.chunks_exact(12);
    for block in &mut blocks {
        a = a.wrapping_add(word(&block[..4]));
        b = b.wrapping_add(word(&block[4..8]));
        c = c.wrapping_add(word(&block[8..]));
        mix(&mut a, &mut b, &mut c);
    }
    let rest = blocks.remainder();
    let part = |from: usize| rest.get(from..).unwrap_or_default();
    a = a.wrapping_add(word(part(0)));
    b = b.wrapping_add(word(part(4)));
    // The lowest byte of the last word is reserved for the length.
    c = c
        .wrapping_add(name.len() as u32)
        .wrapping_add(word(part(8)) << 8);
    mix(&mut a, &mut b, &mut c);
    c
}

fn mix(a: &mut u32, b: &mut u32, c: &mut u32) {
    let step = |x: u32, y: u32, z: u32, shifted: u32| x.wrapping_sub(y).wrapping_sub(z) ^ shifted;
    *a = step(*a, *b, *c, *c >> 13);
    *b = step(*b, *c, *a, *a << 8);
    *c = step(*c, *a, *b, *b >> 13);
    *a = step(*a, *b, *c, *c >> 12);
    *b = step(*b, *c, *a, *a << 16);
    *c = step(*c, *a, *b, *b >> 5);
    *a = step(*a, *b, *c, *c >> 3);
    *b = step(*b, *c, *a, *a << 10);
    *c = step(*c, *a, *b, *b >> 15);
}

/// The placement group of the object `name` in a pool with `groups` groups.
#[must_use]
pub fn group_of(name: &[u8], groups: u32) -> u32 {
    let mask = groups.max(1).next_power_of_two() - 1;
    let hash = rjenkins(name);
    match hash & mask {
        group if group < groups => group,
        _ => hash & (mask >> 1),
    }
}

/// Name of the RADOS object in which radosgw keeps the head of the object `key` in the bucket with `marker`. Objects
/// larger than a stripe (4 MiB by default) have further RADOS objects with other names.
#[must_use]
pub fn head_object(marker: &str, key: &str) -> String {
    // Names with a leading underscore are reserved for radosgw, so it doubles the underscore of a key.
    let escape = if key.starts_with('_') { "_" } else { "" };
    format!("{marker}_{escape}{key}")
}

#[cfg(test)]
mod tests {
    use super::{group_of, head_object, rjenkins};

    #[test]
    fn groups_split_in_two() {
        for name in [
            &b"a"[..],
            b"object-17",
            b"0123456789ab",
            b"0123456789abcdef0123456789",
        ] {
            for (few, many) in [(8, 16), (32, 64)] {
                let (before, after) = (group_of(name, few), group_of(name, many));
                assert!(after == before || after == before + few);
            }
            // Between powers of two, groups that are not split yet keep their objects.
            let (eight, twelve) = (group_of(name, 8), group_of(name, 12));
            assert!(twelve < 12 && (twelve == eight || twelve == eight + 8));
        }
        assert_eq!(group_of(b"x", 1), 0);
    }

    #[test]
    fn every_byte_changes_the_hash() {
        let name: Vec<u8> = (0..30).collect();
        for len in 1..30 {
            let mut other = name[..len].to_vec();
            other[len - 1] ^= 0x80;
            assert_ne!(rjenkins(&name[..len]), rjenkins(&other), "{len}");
        }
    }

    #[test]
    fn radosgw_escapes_its_own_names() {
        assert_eq!(head_object("m.1", "a/b"), "m.1_a/b");
        assert_eq!(head_object("m.1", "_a"), "m.1___a");
    }
}
