//! List Blobs: pages by marker.
//!
//! A session receives a page in full, then parses it outside the service time. A listing counts its
//! entries: blobs and common prefixes.

use bucketload_core::driver::{Completion, OpResult, Probe, Request};
use bucketload_s3::{encode, xml};

use super::head::AzureCall;
use super::session::AzureSession;
use super::sign::Param;
use crate::http::answer::{as_text, no_next_page, unreadable};
use crate::http::{Buffer, HttpSession as _};

/// Most bytes of a page: 5000 names of 1024 characters, escaped, with their properties.
pub(super) const MAX_PAGE: usize = 64 << 20;

/// The query of a listing, in signing order.
pub(super) struct ListQuery<'a> {
    params: [Param<'a>; 7],
    len: usize,
}

impl<'a> ListQuery<'a> {
    /// Lists blobs that begin with `prefix`. Empty parameters are left out.
    pub(super) fn new(
        delimiter: &'a str,
        include: &'a str,
        marker: &'a str,
        most: &'a str,
        prefix: &'a str,
    ) -> Self {
        let mut listing = Self {
            params: [("comp", "list"); 7],
            len: 1,
        };
        for (name, value) in [
            ("delimiter", delimiter),
            ("include", include),
            ("marker", marker),
            ("maxresults", most),
            ("prefix", prefix),
            ("restype", "container"),
        ] {
            if !value.is_empty() {
                listing.params[listing.len] = (name, value);
                listing.len += 1;
            }
        }
        listing
    }

    pub(super) fn as_slice(&self) -> &[Param<'a>] {
        &self.params[..self.len]
    }
}

/// Strips the byte order mark that the service puts in front of its documents.
pub(super) fn without_mark(body: &[u8]) -> &[u8] {
    body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body)
}

/// Names that XML cannot represent arrive percent-encoded, marked by an attribute (since version
/// 2021-02-12). Rewrites them as ordinary escaped text.
pub(super) fn decode_marked(body: &mut Vec<u8>) {
    const MARK: &str = "<Name Encoded=\"true\">";
    let text = as_text(body);
    if !text.contains(MARK) {
        return;
    }
    let mut out = Vec::with_capacity(body.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(MARK) {
        let (name, behind) = after.split_once('<').unwrap_or((after, ""));
        out.extend_from_slice(before.as_bytes());
        out.extend_from_slice(b"<Name>");
        // A plus sign is literal here.
        xml::push_escaped(&mut out, &encode::decode(&name.replace('+', "%2B")));
        if behind.is_empty() {
            rest = "";
        } else {
            out.push(b'<');
            rest = behind;
        }
    }
    out.extend_from_slice(rest.as_bytes());
    *body = out;
}

impl AzureSession {
    pub(super) async fn list(&mut self, request: &Request<'_>, probe: &mut Probe) -> OpResult {
        let op = &request.op;
        let mut body = Buffer::take();
        // Where to continue; empty on the first page.
        let mut from = Buffer::take();
        let mut next = Buffer::take();
        let mut digits = [0; 20];
        let most = match op.count {
            0 => "",
            n => as_text(encode::decimal(&mut digits, n)),
        };
        let mut items = 0;
        let mut pages = 0;
        loop {
            let mut prepared = {
                let delimiter = request.delimiter;
                let query = ListQuery::new(delimiter, "", as_text(&from), most, request.key);
                let call = AzureCall::new("GET", request.bucket, "").query(query.as_slice());
                self.bare(&call)
            };
            self.document(&mut prepared, &mut body, MAX_PAGE, probe)
                .await?;
            decode_marked(&mut body);
            next.clear();
            xml::leaves(without_mark(&body), |path, text| match *path {
                [_, "Blobs", "Blob", "Name"] => {
                    items += 1;
                    if let Some(watch) = request.watch {
                        watch.listed(&text.get());
                    }
                }
                [_, "Blobs", "BlobPrefix", "Name"] => items += 1,
                [_, "NextMarker"] => {
                    next.clear();
                    text.push_to(&mut next);
                }
                _ => {}
            })
            .map_err(|e| unreadable("listing", e))?;
            pages += 1;
            if next.is_empty() || (op.pages > 0 && pages >= op.pages) {
                if let Some(watch) = request.watch.filter(|_| !next.is_empty()) {
                    watch.cut_short();
                }
                return Ok(Completion::of_items(items));
            }
            if *next == *from {
                return Err(no_next_page());
            }
            std::mem::swap(&mut from, &mut next);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{ListQuery, decode_marked};
    use bucketload_s3::xml;

    #[test]
    fn queries_are_sorted_and_leave_out_empty_parameters() {
        let names = |listing: &ListQuery<'_>| {
            let names: Vec<_> = listing.as_slice().iter().map(|(name, _)| *name).collect();
            assert!(names.is_sorted());
            names.len()
        };
        assert_eq!(names(&ListQuery::new("", "", "", "", "")), 2);
        assert_eq!(names(&ListQuery::new("/", "x", "m", "5", "p")), 7);
    }

    #[test]
    fn encoded_names_are_decoded() {
        let mut body = b"<E><Blobs><Blob><Name Encoded=\"true\">a%EF%BF%BE+%3C</Name></Blob>\
            <Blob><Name>b%41</Name></Blob><Blob><Name Encoded=\"true\">%01</Name></Blob></Blobs></E>"
            .to_vec();
        decode_marked(&mut body);
        let mut names = Vec::new();
        xml::leaves(&body, |_, text| names.push(text.get())).unwrap();
        assert_eq!(names, ["a\u{fffe}+<", "b%41", "\u{1}"]);
        for damaged in ["<Name Encoded=\"true\">", "<Name Encoded=\"true\">x"] {
            decode_marked(&mut damaged.as_bytes().to_vec());
        }
    }
}
