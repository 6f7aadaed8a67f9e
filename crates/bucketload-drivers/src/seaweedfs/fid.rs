//! File IDs: `VOLUME,KEYCOOKIE`. Key and cookie are hexadecimal, the cookie has eight digits, and
//! leading zero bytes of the key are omitted (SeaweedFS, "File ID").

use bucketload_s3::encode;

/// A file ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fid {
    pub(crate) volume: u32,
    pub(crate) key: u64,
    pub(crate) cookie: u32,
}

impl Fid {
    /// Parses a file ID in the master's form.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (volume, rest) = text.split_once(',')?;
        let hex = |text: &str| text.bytes().all(|b| b.is_ascii_hexdigit());
        if rest.len() <= 8
            || rest.len() > 24
            || !hex(rest)
            || !volume.bytes().all(|b| b.is_ascii_digit())
        {
            return None;
        }
        let (key, cookie) = rest.split_at(rest.len() - 8);
        Some(Self {
            volume: volume.parse().ok()?,
            key: u64::from_str_radix(key, 16).ok()?,
            cookie: u32::from_str_radix(cookie, 16).ok()?,
        })
    }

    /// Appends the file ID in the master's form.
    pub(crate) fn push_to(self, out: &mut Vec<u8>) {
        const HEX: &[u8; 16] = b"0123456789abcdef";
        encode::push_decimal(out, u64::from(self.volume));
        out.push(b',');
        let key = self.key.to_be_bytes();
        // Keep at least one byte of the key.
        let first = key.iter().position(|&b| b != 0).unwrap_or(7);
        for byte in key[first..].iter().chain(&self.cookie.to_be_bytes()) {
            out.push(HEX[usize::from(byte >> 4)]);
            out.push(HEX[usize::from(byte & 15)]);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Fid;

    fn shown(fid: Fid) -> String {
        let mut out = Vec::new();
        fid.push_to(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_documented_example() {
        let fid = Fid::parse("3,01637037d6").unwrap();
        let expected = Fid {
            volume: 3,
            key: 1,
            cookie: 0x6370_37d6,
        };
        assert_eq!(fid, expected);
        assert_eq!(shown(fid), "3,01637037d6");
        for wrong in [
            "",
            "3",
            "3,",
            "3,637037d6",
            "x,01637037d6",
            "3,0163703zd6",
            "3,+1637037d6",
            "+3,01637037d6",
            "4294967296,01637037d6",
        ] {
            assert_eq!(Fid::parse(wrong), None, "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn ids_round_trip(volume in any::<u32>(), key in any::<u64>(), cookie in any::<u32>()) {
            let fid = Fid { volume, key, cookie };
            prop_assert_eq!(Fid::parse(&shown(fid)), Some(fid));
        }

        #[test]
        fn arbitrary_input_does_not_panic(text in any::<String>()) {
            let _ = Fid::parse(&text);
        }
    }
}
