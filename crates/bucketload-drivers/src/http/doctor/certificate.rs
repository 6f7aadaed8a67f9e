//! Reads what a report says of a certificate: subject, issuer and validity. The TLS library checks certificates, but
//! tells nobody what they contain.

use bucketload_s3::date;

/// What a report says of a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Certificate {
    /// Common name of the subject, else its organisation; empty if it has neither.
    pub(crate) subject: String,
    /// The same of the issuer.
    pub(crate) issuer: String,
    /// Last second of its validity, since 1970.
    pub(crate) expires: u64,
}

/// Attribute types of names: common name and organisation (RFC 5280, appendix A.1).
const COMMON_NAME: &[u8] = &[0x55, 4, 3];
const ORGANISATION: &[u8] = &[0x55, 4, 10];

/// DER tags (X.690).
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const OID: u8 = 0x06;
const INTEGER: u8 = 0x02;
const UTC_TIME: u8 = 0x17;
const VERSION: u8 = 0xa0;

impl Certificate {
    /// Reads a certificate in DER (RFC 5280, section 4.1); `None` if it is malformed.
    pub(crate) fn read(der: &[u8]) -> Option<Self> {
        let mut whole = Der(der).inside(SEQUENCE)?;
        let mut body = whole.inside(SEQUENCE)?;
        if body.0.first() == Some(&VERSION) {
            body.next()?;
        }
        body.inside(INTEGER)?;
        body.inside(SEQUENCE)?;
        let issuer = body.inside(SEQUENCE)?.name();
        let mut validity = body.inside(SEQUENCE)?;
        validity.next()?;
        let expires = time(validity.next()?)?;
        let subject = body.inside(SEQUENCE)?.name();
        Some(Self {
            subject,
            issuer,
            expires,
        })
    }
}

/// Elements that remain to be read.
#[derive(Clone, Copy)]
struct Der<'a>(&'a [u8]);

impl<'a> Der<'a> {
    /// The next element: its tag and contents.
    fn next(&mut self) -> Option<(u8, &'a [u8])> {
        let (&tag, rest) = self.0.split_first()?;
        let (&first, mut rest) = rest.split_first()?;
        let mut len = usize::from(first & 0x7f);
        if first & 0x80 != 0 {
            let (bytes, after) = rest
                .split_at_checked(len)
                .filter(|_| (1..=3).contains(&len))?;
            len = bytes.iter().fold(0, |n, b| n << 8 | usize::from(*b));
            rest = after;
        }
        let (contents, after) = rest.split_at_checked(len)?;
        self.0 = after;
        Some((tag, contents))
    }

    /// The contents of the next element, which must have `tag`.
    fn inside(&mut self, tag: u8) -> Option<Self> {
        let (found, contents) = self.next()?;
        (found == tag).then_some(Der(contents))
    }

    /// Common name or organisation of a name.
    fn name(mut self) -> String {
        let mut found = String::new();
        while let Some(mut attributes) = self.inside(SET) {
            while let Some(mut attribute) = attributes.inside(SEQUENCE) {
                let (Some(kind), Some((_, text))) = (attribute.inside(OID), attribute.next())
                else {
                    continue;
                };
                if kind.0 == COMMON_NAME || (kind.0 == ORGANISATION && found.is_empty()) {
                    let text = String::from_utf8_lossy(text);
                    found = text.chars().filter(|c| !c.is_control()).collect();
                }
            }
        }
        found
    }
}

/// Seconds since 1970 of `YYMMDDHHMMSSZ` (1950 to 2049) or `YYYYMMDDHHMMSSZ`.
fn time((tag, text): (u8, &[u8])) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?;
    let century = match (tag, text.get(..1)?) {
        (UTC_TIME, "5" | "6" | "7" | "8" | "9") => "19",
        (UTC_TIME, _) => "20",
        _ => "",
    };
    let text = format!("{century}{text}");
    let (day, clock) = text.split_at_checked(8)?;
    date::parse_basic(format!("{day}T{clock}").as_bytes())
}

#[cfg(test)]
mod tests {
    use super::Certificate;

    #[test]
    fn subject_issuer_and_expiry_are_read() {
        let key = rcgen::KeyPair::generate().unwrap();
        let mut params = rcgen::CertificateParams::new(vec!["store.example".to_owned()]).unwrap();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params
            .distinguished_name
            .push(rcgen::DnType::OrganizationName, "Desk");
        params
            .distinguished_name
            .push(rcgen::DnType::CommonName, "store.example");
        params.not_after = rcgen::date_time_ymd(2031, 2, 3);
        let der = params.self_signed(&key).unwrap().der().to_vec();
        let read = Certificate::read(&der).unwrap();
        assert_eq!(
            (&*read.subject, &*read.issuer),
            ("store.example", "store.example")
        );
        // 2031-02-03T00:00:00Z
        assert_eq!(read.expires, 1_927_843_200);
        for cut in 0..der.len().min(300) {
            assert!(Certificate::read(&der[..cut]).is_none(), "{cut}");
        }
    }
}
