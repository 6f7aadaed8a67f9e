//! The versions of objects, for the clean-up in buckets that keep them.

use bucketload_core::driver::{KeyVersion, VersionPage};
use bucketload_core::error::{ErrorKind, OpError};
use bucketload_core::record::Probe;

use super::ops_list::{MAX_DELETE, MAX_PAGE, begin_delete, end_delete};
use super::prepare::S3Call;
use super::session::S3Session;
use crate::http::answer::unreadable;
use crate::http::control::ignore_missing;
use crate::http::render::Render as _;
use crate::http::session::HttpSession as _;
use bucketload_s3::encode;
use bucketload_s3::xml;

/// Versions requested per page.
const PAGE: u64 = 1000;

impl S3Session {
    /// A page of ListObjectVersions.
    pub(super) async fn version_page(
        &mut self,
        bucket: &str,
        prefix: &str,
        after: Option<&KeyVersion>,
    ) -> Result<VersionPage, OpError> {
        let mut query = Vec::new();
        query.parameter("encoding-type", "url");
        if let Some(after) = after {
            query.parameter("key-marker", &after.key);
        }
        query.number("max-keys", PAGE);
        query.parameter("prefix", prefix);
        if let Some(after) = after.filter(|after| !after.version.is_empty()) {
            query.parameter("version-id-marker", &after.version);
        }
        query.parameter("versions", "");
        let call = S3Call::new("GET", bucket, "").query(&query);
        let mut request = self.prepare(&call);
        let body = self.fetch(&mut request, MAX_PAGE).await?;
        read_page(&body)
    }

    /// Removes versions by DeleteObjects, or one by one where a server lacks it.
    pub(super) async fn remove_versions(
        &mut self,
        bucket: &str,
        versions: &[KeyVersion],
    ) -> Result<(), OpError> {
        for versions in versions.chunks(MAX_DELETE as usize) {
            let mut document = Vec::new();
            begin_delete(&mut document);
            for version in versions {
                document.extend_from_slice(b"<Object><Key>");
                xml::push_escaped(&mut document, &version.key);
                document.extend_from_slice(b"</Key><VersionId>");
                xml::push_escaped(&mut document, &version.version);
                document.extend_from_slice(b"</VersionId></Object>");
            }
            end_delete(&mut document);
            let probe = &mut Probe::untimed();
            match self.delete_document(bucket, &document, probe).await {
                Err(error) if error.kind == ErrorKind::Unsupported => {
                    for version in versions {
                        let mut query = Vec::new();
                        query.parameter("versionId", &version.version);
                        let call = S3Call::new("DELETE", bucket, &version.key).query(&query);
                        let mut request = self.prepare(&call);
                        ignore_missing(self.settle(&mut request).await)?;
                    }
                }
                Err(error) if error.kind != ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }
}

/// Reads a page. A server that ignores `versions` answers with a listing of objects, which has no versions.
fn read_page(body: &[u8]) -> Result<VersionPage, OpError> {
    let mut page = VersionPage::default();
    let (mut encoded, mut truncated) = (false, false);
    let (mut key, mut version) = (None, None);
    let (mut next_key, mut next_version) = (None, String::new());
    xml::leaves(body, |path, text| {
        match *path {
            [_, "Version" | "DeleteMarker", "Key"] => key = Some(text.get()),
            [_, "Version" | "DeleteMarker", "VersionId"] => version = Some(text.get()),
            [_, "EncodingType"] => encoded = text.is("url"),
            [_, "IsTruncated"] => truncated = text.is("true"),
            [_, "NextKeyMarker"] => next_key = Some(text.get()),
            [_, "NextVersionIdMarker"] => next_version = text.get(),
            _ => {}
        }
        // Each version has one key and one id, in either order.
        if let (Some(_), Some(_)) = (&key, &version)
            && let (Some(key), Some(version)) = (key.take(), version.take())
        {
            page.versions.push(KeyVersion { key, version });
        }
    })
    .map_err(|error| unreadable("listing of versions", error))?;
    page.next = next_key.filter(|_| truncated).map(|key| KeyVersion {
        key,
        version: next_version,
    });
    if encoded {
        let keys = page.versions.iter_mut().chain(&mut page.next);
        keys.for_each(|entry| entry.key = encode::decode(&entry.key));
    }
    Ok(page)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_read() {
        let of = |key: &str, version: &str| KeyVersion {
            key: key.into(),
            version: version.into(),
        };
        let page = read_page(
            b"<ListVersionsResult><EncodingType>url</EncodingType><IsTruncated>true</IsTruncated>\
              <NextKeyMarker>b%2Fc</NextKeyMarker><NextVersionIdMarker>2</NextVersionIdMarker>\
              <Version><VersionId>1</VersionId><IsLatest>true</IsLatest><Key>a%20b</Key></Version>\
              <DeleteMarker><Key>b%2Fc</Key><VersionId>2</VersionId></DeleteMarker></ListVersionsResult>",
        );
        let page = page.unwrap();
        assert_eq!(page.versions, [of("a b", "1"), of("b/c", "2")]);
        assert_eq!(page.next, Some(of("b/c", "2")));
        let other = b"<ListBucketResult><IsTruncated>true</IsTruncated><Contents><Key>k</Key></Contents></ListBucketResult>";
        assert_eq!(read_page(other).unwrap(), VersionPage::default());
        assert!(read_page(b"<x").is_err());
    }
}
