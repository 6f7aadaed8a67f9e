//! Presigned URLs: SigV4 in version 4 of libs3, the older Signature Version 2 in version 2.
//!
//! They are for use with an HTTP server, for example `bucketload serve` on the same directory. Creating
//! one needs no server.

#[cfg(feature = "abi2")]
use base64::Engine as _;
#[cfg(feature = "abi2")]
use hmac::{Hmac, KeyInit as _, Mac as _};

use bucketload_s3::encode::{key_text, query_text};
#[cfg(not(feature = "abi2"))]
use bucketload_s3::{
    date::basic,
    encode::hex32,
    sha256::sha256,
    sigv4::{ALGORITHM, Signing, signing_key},
};

/// The request to sign.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) https: bool,
    pub(crate) virtual_host: bool,
    pub(crate) host: String,
    pub(crate) bucket: String,
    pub(crate) key: String,
    /// Sub-resource such as `acl`; empty for none.
    pub(crate) resource: String,
    pub(crate) access_key: String,
    pub(crate) token: Option<String>,
    #[cfg(not(feature = "abi2"))]
    pub(crate) region: String,
    #[cfg(not(feature = "abi2"))]
    pub(crate) method: String,
}

impl Request {
    fn host(&self) -> String {
        if self.virtual_host {
            format!("{}.{}", self.bucket, self.host)
        } else {
            self.host.clone()
        }
    }

    fn path(&self) -> String {
        let key = key_text(&self.key);
        if self.virtual_host {
            format!("/{key}")
        } else {
            format!("/{}/{key}", self.bucket)
        }
    }

    fn url(&self, query: &str) -> String {
        let scheme = if self.https { "https" } else { "http" };
        format!("{scheme}://{}{}?{query}", self.host(), self.path())
    }
}

/// Maximum validity in seconds (seven days).
#[cfg(not(feature = "abi2"))]
const MAX_EXPIRES: i64 = 604_800;

/// The URL, signed at `now` (seconds since the epoch) and valid for `expires` seconds, with Signature
/// Version 4 in the query and an unsigned payload.
#[cfg(not(feature = "abi2"))]
pub(crate) fn url(request: &Request, secret: &[u8], now: i64, expires: i64) -> String {
    let expires = if (0..=MAX_EXPIRES).contains(&expires) {
        expires
    } else {
        MAX_EXPIRES
    };
    let stamp = basic(u64::try_from(now).unwrap_or(0));
    let stamp = String::from_utf8_lossy(&stamp);
    let day = &stamp[..8];
    let scope = format!("{day}/{}/s3/aws4_request", request.region);
    let mut pairs = vec![
        ("X-Amz-Algorithm".to_owned(), ALGORITHM.to_owned()),
        (
            "X-Amz-Credential".to_owned(),
            query_text(format!("{}/{scope}", request.access_key)),
        ),
        ("X-Amz-Date".to_owned(), stamp.to_string()),
        ("X-Amz-Expires".to_owned(), expires.to_string()),
        ("X-Amz-SignedHeaders".to_owned(), "host".to_owned()),
    ];
    if let Some(token) = &request.token {
        pairs.push(("X-Amz-Security-Token".to_owned(), query_text(token)));
    }
    if !request.resource.is_empty() {
        let (name, value) = request
            .resource
            .split_once('=')
            .unwrap_or((&request.resource, ""));
        pairs.push((query_text(name), query_text(value)));
    }
    pairs.sort();
    let query: Vec<String> = pairs.iter().map(|(n, v)| format!("{n}={v}")).collect();
    let query = query.join("&");
    let canonical = format!(
        "{}\n{}\n{query}\nhost:{}\n\nhost\nUNSIGNED-PAYLOAD",
        request.method,
        request.path(),
        request.host()
    );
    let key = signing_key(secret, day.as_bytes(), &request.region);
    let signing = Signing {
        key: &key,
        timestamp: stamp.as_bytes(),
        scope: scope.as_bytes(),
    };
    let signature = hex32(&signing.request(&sha256(canonical.as_bytes())));
    let signature = String::from_utf8_lossy(&signature);
    request.url(&format!("{query}&X-Amz-Signature={signature}"))
}

/// The URL, valid until `expires` (seconds since the epoch), with Signature Version 2 in the query.
#[cfg(feature = "abi2")]
pub(crate) fn url(request: &Request, secret: &[u8], expires: i64) -> String {
    // 2^31 - 1 is the latest time that version 2 of libs3 can represent.
    let expires = u32::try_from(expires).map_or(i64::from(i32::MAX), i64::from);
    let key = key_text(&request.key);
    let resource = match &*request.resource {
        "" => String::new(),
        resource => format!("?{resource}"),
    };
    let to_sign = format!("GET\n\n\n{expires}\n/{}/{key}{resource}", request.bucket);
    let mut mac =
        Hmac::<sha1::Sha1>::new_from_slice(secret).expect("HMAC takes keys of any length");
    mac.update(to_sign.as_bytes());
    let signature = base64::engine::general_purpose::STANDARD.encode(mac.finalize().into_bytes());
    let mut query = match &*request.resource {
        "" => String::new(),
        resource => format!("{resource}&"),
    };
    query.push_str(&format!(
        "AWSAccessKeyId={}&Expires={expires}&Signature={}",
        query_text(&request.access_key),
        query_text(&signature)
    ));
    request.url(&query)
}

#[cfg(all(test, not(feature = "abi2")))]
mod tests {
    use super::*;

    #[test]
    fn a_presigned_url_matches_the_documentation() {
        // Example of "Authenticating Requests: Using Query Parameters (AWS Signature Version 4)".
        let request = Request {
            https: true,
            virtual_host: true,
            host: "s3.amazonaws.com".to_owned(),
            bucket: "examplebucket".to_owned(),
            key: "test.txt".to_owned(),
            resource: String::new(),
            access_key: "AKIAIOSFODNN7EXAMPLE".to_owned(),
            token: None,
            region: "us-east-1".to_owned(),
            method: "GET".to_owned(),
        };
        let secret = b"wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
        // 24 May 2013, 00:00:00 UTC.
        let url = url(&request, secret, 1_369_353_600, 86_400);
        assert_eq!(
            url,
            "https://examplebucket.s3.amazonaws.com/test.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256\
             &X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2Faws4_request\
             &X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host\
             &X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404"
        );
    }
}
