//! Writing the XML documents of responses.
//!
//! A [`Doc`] appends to a reused byte buffer, so responses allocate only when the buffer grows.

use bucketload_s3::date;
use bucketload_s3::encode::{push_decimal, push_key};
use bucketload_s3::xml::push_escaped;
use bucketload_store::Checksum;

use super::checksum;
use super::respond::Body;

/// The namespace of S3 documents.
const NAMESPACE: &str = " xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"";

/// A document being written. The caller opens and closes elements; [`Doc::finish`] closes the root.
pub(crate) struct Doc<'a> {
    out: &'a mut Vec<u8>,
    root: &'static str,
}

impl<'a> Doc<'a> {
    /// Starts a document with the S3 namespace on its root element. Clears `out` first.
    pub(crate) fn new(out: &'a mut Vec<u8>, root: &'static str) -> Self {
        Self::start(out, root, NAMESPACE)
    }

    /// Starts a document without a namespace, as error documents have it.
    pub(crate) fn plain(out: &'a mut Vec<u8>, root: &'static str) -> Self {
        Self::start(out, root, "")
    }

    /// Writes a document that consists of one element with a text.
    pub(crate) fn leaf(out: &'a mut Vec<u8>, root: &'static str, value: &str) -> Body {
        let doc = Self::new(out, root);
        push_escaped(doc.out, value);
        doc.finish()
    }

    fn start(out: &'a mut Vec<u8>, root: &'static str, namespace: &str) -> Self {
        out.clear();
        out.extend_from_slice(b"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<");
        out.extend_from_slice(root.as_bytes());
        out.extend_from_slice(namespace.as_bytes());
        out.push(b'>');
        Self { out, root }
    }

    /// Closes the root element: the document is the response's body.
    pub(crate) fn finish(mut self) -> Body {
        let root = self.root;
        self.close(root);
        Body::Document
    }

    /// `<name>`; `name` may carry attributes.
    pub(crate) fn open(&mut self, name: &str) -> &mut Self {
        self.raw("<").raw(name).raw(">")
    }

    /// `</name>`.
    pub(crate) fn close(&mut self, name: &str) -> &mut Self {
        self.raw("</").raw(name).raw(">")
    }

    /// `<name>value</name>` with the value escaped.
    pub(crate) fn text(&mut self, name: &str, value: &str) -> &mut Self {
        self.open(name);
        push_escaped(self.out, value);
        self.close(name)
    }

    /// `<name>value</name>`. If `url` is set, `value` is percent-encoded except for slashes (the
    /// `encoding-type=url` of listings).
    pub(crate) fn key(&mut self, name: &str, value: &str, url: bool) -> &mut Self {
        if !url {
            return self.text(name, value);
        }
        self.open(name);
        push_key(self.out, value);
        self.close(name)
    }

    /// `<name>value</name>` with a number.
    pub(crate) fn number(&mut self, name: &str, value: u64) -> &mut Self {
        self.open(name);
        push_decimal(self.out, value);
        self.close(name)
    }

    /// `<name>true</name>` or `<name>false</name>`.
    pub(crate) fn flag(&mut self, name: &str, value: bool) -> &mut Self {
        self.text(name, if value { "true" } else { "false" })
    }

    /// `<name>"value"</name>`: an entity tag in quotes.
    pub(crate) fn etag(&mut self, value: &str) -> &mut Self {
        self.raw("<ETag>&quot;").raw(value).raw("&quot;</ETag>")
    }

    /// `<ChecksumCRC32>value</ChecksumCRC32>` or the like.
    pub(crate) fn checksum(&mut self, sum: &Checksum) -> &mut Self {
        let name = ["Checksum", checksum::name(sum.algorithm)].concat();
        self.text(&name, &sum.value)
    }

    /// `<name>1970-01-01T00:00:00.000Z</name>`.
    pub(crate) fn time(&mut self, name: &str, time: std::time::SystemTime) -> &mut Self {
        let since = date::since_epoch(time);
        let millis = since.subsec_millis();
        let mut text = *b"1970-01-01T00:00:00.000Z";
        text[..19].copy_from_slice(&date::iso(since.as_secs())[..19]);
        for (at, unit) in [(20, 100), (21, 10), (22, 1)] {
            text[at] = b'0' + (millis / unit % 10) as u8;
        }
        self.open(name);
        self.out.extend_from_slice(&text);
        self.close(name)
    }

    /// The owner of all buckets and objects.
    pub(crate) fn owner(&mut self, element: &str) -> &mut Self {
        self.open(element)
            .text("ID", OWNER_ID)
            .text("DisplayName", OWNER_NAME)
            .close(element)
    }

    fn raw(&mut self, text: &str) -> &mut Self {
        self.out.extend_from_slice(text.as_bytes());
        self
    }
}

/// Canonical id of the owner.
pub(crate) const OWNER_ID: &str =
    "02d6176db174dc93cb1b899f7c6078f08654445fe8cf1b6ce98d8855f66bdbf4";
/// Display name of the owner.
pub(crate) const OWNER_NAME: &str = "bucketload";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_render() {
        let mut out = b"old".to_vec();
        let mut doc = Doc::new(&mut out, "R");
        doc.text("K", "a<b>&\"'\n")
            .key("U", "a b/ü", true)
            .key("V", "a&b", false);
        doc.number("N", 0)
            .number("M", u64::MAX)
            .flag("F", true)
            .etag("ab")
            .owner("Owner");
        let moment = std::time::Duration::from_millis(951_782_400_007);
        doc.time("T", std::time::UNIX_EPOCH + moment);
        doc.finish();
        let want = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<R{NAMESPACE}><K>a&lt;b&gt;&amp;&quot;&apos;&#10;</K>\
             <U>a%20b/%C3%BC</U><V>a&amp;b</V><N>0</N><M>18446744073709551615</M><F>true</F>\
             <ETag>&quot;ab&quot;</ETag><Owner><ID>{OWNER_ID}</ID><DisplayName>bucketload</DisplayName></Owner>\
             <T>2000-02-29T00:00:00.007Z</T></R>"
        );
        assert_eq!(String::from_utf8(out).unwrap(), want);
    }
}
