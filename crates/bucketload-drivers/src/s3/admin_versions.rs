//! The versions of objects, for the clean-up in buckets that keep them.

use bucketload_core::driver::{KeyVersion, VersionPage};
use bucketload_core::error::{ErrorKind, OpError, OpResult};
use bucketload_core::op::BucketNeeds;
use bucketload_core::record::Probe;

use super::ops_list::{MAX_DELETE, MAX_PAGE, begin_delete, end_delete};
use super::ops_list_marked::{After, VERSIONS};
use super::ops_lock::HOLD_OFF;
use super::prepare::S3Call;
use super::session::S3Session;
use crate::http::answer::{MAX_DOCUMENT, unreadable};
use crate::http::control::ignore_missing;
use crate::http::render::Render as _;
use crate::http::session::HttpSession as _;
use bucketload_s3::canonical::Header;
use bucketload_s3::encode;
use bucketload_s3::xml;

/// Allows the removal of a version despite its retention in governance mode.
const BYPASS: [Header<'static>; 1] = [Header {
    name: "x-amz-bypass-governance-retention",
    value: b"true",
}];
/// Versions requested per page.
const PAGE: u64 = 1000;

impl S3Session {
    /// A page of ListObjectVersions.
    pub(super) async fn version_page(
        &mut self,
        bucket: &str,
        prefix: &str,
        after: Option<&KeyVersion>,
    ) -> OpResult<VersionPage> {
        let mut query = Vec::new();
        query.parameter("encoding-type", "url");
        let after = after.map(|after| After {
            key: &after.key,
            id: &after.version,
        });
        VERSIONS.query(&mut query, prefix, PAGE, after.unwrap_or_default());
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
    ) -> OpResult<()> {
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

impl S3Session {
    /// Lets a bucket keep versions.
    pub(super) async fn enable_versioning(&mut self, bucket: &str) -> OpResult<()> {
        let call = S3Call::new("PUT", bucket, "").query(b"versioning=");
        let mut request = self.prepare(&call.document(
            b"<VersioningConfiguration xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">\
              <Status>Enabled</Status></VersioningConfiguration>",
        ));
        self.settle(&mut request).await
    }

    /// Checks that a bucket offers what operations need of it.
    pub(super) async fn bucket_offers(&mut self, bucket: &str, needs: BucketNeeds) -> OpResult<()> {
        let lacks = |text: &str| Err(OpError::new(ErrorKind::Rejected, text));
        if needs.versions {
            let [state, _] = self.configuration(bucket, b"versioning=").await?;
            if state != "Enabled" {
                return lacks(
                    "it keeps no versions, which the workload needs: enable versioning, or let the run create a \
                     bucket of its own (--create-bucket)",
                );
            }
        }
        if needs.lock {
            let [state, mode] = match self.configuration(bucket, b"object-lock=").await {
                Err(error) if error.kind == ErrorKind::NotFound => Default::default(),
                other => other?,
            };
            if state != "Enabled" {
                return lacks(
                    "it has no object lock, which the workload needs: enable it, or let the run create a bucket of \
                     its own (--create-bucket)",
                );
            }
            if mode == "COMPLIANCE" {
                return lacks(
                    "it retains new objects in compliance mode, so nobody could remove what the run writes: use a \
                     bucket without that rule",
                );
            }
        }
        Ok(())
    }

    /// State and retention mode in the bucket's configuration `query`; empty where it has none.
    async fn configuration(&mut self, bucket: &str, query: &'static [u8]) -> OpResult<[String; 2]> {
        let mut request = self.prepare(&S3Call::new("GET", bucket, "").query(query));
        let body = self.fetch(&mut request, MAX_DOCUMENT).await?;
        let mut found = <[String; 2]>::default();
        xml::leaves(&body, |path, text| match path.last() {
            Some(&("Status" | "ObjectLockEnabled")) => found[0] = text.get(),
            Some(&"Mode") => found[1] = text.get(),
            _ => {}
        })
        .map_err(|error| unreadable("configuration of the bucket", error))?;
        Ok(found)
    }

    /// Lifts the legal hold of each version and removes it, whatever its retention in governance mode.
    pub(super) async fn remove_locked(
        &mut self,
        bucket: &str,
        versions: &[KeyVersion],
    ) -> OpResult<()> {
        for version in versions {
            let mut query = Vec::new();
            query.parameter("legal-hold", "");
            query.parameter("versionId", &version.version);
            let call = S3Call::new("PUT", bucket, &version.key).query(&query);
            let mut request = self.prepare(&call.document(HOLD_OFF));
            match self.settle(&mut request).await {
                // Delete markers have no locks.
                Err(error) if error.kind == ErrorKind::Unsupported => {}
                other => ignore_missing(other)?,
            }
            let mut query = Vec::new();
            query.parameter("versionId", &version.version);
            let call = S3Call::new("DELETE", bucket, &version.key).query(&query);
            let mut request = self.prepare(&call.headers(&BYPASS));
            ignore_missing(self.settle(&mut request).await)?;
        }
        Ok(())
    }
}

/// Reads a page. A server that ignores `versions` answers with a listing of objects, which has no versions.
fn read_page(body: &[u8]) -> OpResult<VersionPage> {
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
