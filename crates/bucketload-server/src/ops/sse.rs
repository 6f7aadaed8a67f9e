//! Server-side encryption as clients see it: its headers are checked, kept with the object and
//! returned, and an object stored with a customer's key is read with that key only. Nothing is
//! encrypted: the store holds what it holds in memory or in files of its own. The key itself is never
//! kept, only its MD5.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

use super::Ctx;
use crate::error::{Code, S3Error, S3Result};
use crate::headers::{Headers, Name};
use crate::respond::Head;
use crate::xml_in::{malformed, walk};
use bucketload_store::ObjectInfo;

/// Algorithm, key and MD5 of the key for the object of the request.
pub(crate) const REQUEST: [Name; 3] = [
    Name::SseCustomerAlgorithm,
    Name::SseCustomerKey,
    Name::SseCustomerKeyMd5,
];
/// The same for the source of a copy.
pub(crate) const SOURCE: [Name; 3] = [
    Name::CopySseAlgorithm,
    Name::CopySseKey,
    Name::CopySseKeyMd5,
];
/// What the names of all headers about encryption begin with.
const PREFIX: &str = Name::ServerSideEncryption.text();

/// Adds the encryption that the request asks for to the headers of an object.
///
/// # Errors
/// `InvalidArgument` for an incomplete or wrong key, `NotImplemented` for keys of a key service.
pub(crate) fn collect(
    headers: &Headers<'_, '_>,
    all: &mut bucketload_store::Headers,
) -> S3Result<()> {
    let managed = headers.text(Name::ServerSideEncryption)?;
    let customer = customer_key(headers, REQUEST)?;
    match (managed, customer) {
        (Some(_), Some(_)) => {
            return Err(invalid(
                "Server-side encryption takes either a managed or a customer's key.",
            ));
        }
        (Some("AES256"), None) if !headers.has(Name::SseKmsKeyId) => {
            all.set(PREFIX, Some("AES256".to_owned()));
        }
        (Some("aws:kms" | "aws:kms:dsse"), None) => {
            return Err(no_key_service());
        }
        (Some(_), None) => return Err(invalid("The encryption method is not supported.")),
        (None, Some(md5)) => {
            let algorithm = Name::SseCustomerAlgorithm.text();
            all.set(algorithm, Some("AES256".to_owned()));
            all.set(Name::SseCustomerKeyMd5.text(), Some(md5.to_owned()));
        }
        (None, None) => {}
    }
    Ok(())
}

/// Name of the document with a bucket's default encryption.
pub(crate) const DOCUMENT: &str = "encryption";

/// Adds the bucket's default encryption to the headers of a new object that asks for none.
///
/// # Errors
/// The store's.
pub(crate) fn by_default(ctx: &Ctx<'_>, all: &mut bucketload_store::Headers) -> S3Result<()> {
    let asked = all.system.iter().any(|(name, _)| name.starts_with(PREFIX));
    let bucket = ctx.target.bucket();
    if !asked && ctx.store().document(bucket, DOCUMENT)?.is_some() {
        all.set(PREFIX, Some("AES256".to_owned()));
    }
    Ok(())
}

/// Checks the default encryption of a bucket: only keys that the server manages.
///
/// # Errors
/// `MalformedXML`, `NotImplemented`.
pub(crate) fn check_default(input: &[u8]) -> S3Result<()> {
    let mut algorithm = None;
    walk(input, |path, text| {
        if let [
            "ServerSideEncryptionConfiguration",
            "Rule",
            "ApplyServerSideEncryptionByDefault",
            "SSEAlgorithm",
        ] = path
        {
            algorithm = Some(text.get());
        }
        Ok(())
    })?;
    match algorithm.as_deref().map(str::trim) {
        Some("AES256") => Ok(()),
        Some("aws:kms" | "aws:kms:dsse") => Err(no_key_service()),
        _ => Err(malformed()),
    }
}

fn no_key_service() -> S3Error {
    S3Error::new(
        Code::NotImplemented,
        "Encryption with keys of a key service is not implemented.",
    )
}

fn invalid(message: &'static str) -> S3Error {
    S3Error::new(Code::InvalidArgument, message)
}

/// The MD5 of the customer's key in the headers `names`, in base64.
///
/// # Errors
/// `InvalidArgument` if a header is missing, or the key is not one of 256 bits with that MD5.
fn customer_key<'b>(headers: &Headers<'_, 'b>, names: [Name; 3]) -> S3Result<Option<&'b str>> {
    use md5::Digest as _;
    if !names.iter().any(|name| headers.has(*name)) {
        return Ok(None);
    }
    let [algorithm, key, md5] = names;
    if headers.bytes(algorithm) != Some(b"AES256") {
        return Err(invalid(
            "The customer's encryption algorithm must be AES256.",
        ));
    }
    let (Some(key), Some(md5)) = (headers.bytes(key), headers.text(md5)?) else {
        return Err(invalid(
            "A customer's encryption key and its MD5 go together.",
        ));
    };
    let key = BASE64.decode(key).ok().filter(|key| key.len() == 32);
    let key = key.ok_or_else(|| invalid("The customer's key must have 256 bits, in base64."))?;
    let digest: [u8; 16] = md5::Md5::digest(&key).into();
    if BASE64.decode(md5).ok().as_deref() != Some(&digest) {
        return Err(invalid(
            "The MD5 of the customer's key is not the one that was sent with it.",
        ));
    }
    Ok(Some(md5))
}

/// Requires the key of an object that was stored with one, in the headers `names`.
///
/// # Errors
/// `InvalidRequest` for a missing or another key, or for a key of an object that has none.
pub(crate) fn check_read(
    headers: &Headers<'_, '_>,
    names: [Name; 3],
    info: &ObjectInfo,
) -> S3Result<()> {
    let given = customer_key(headers, names)?;
    let stored = match info.headers.system.is_empty() {
        true => None,
        false => info.headers.get(Name::SseCustomerKeyMd5.text()),
    };
    let message = match (stored, given) {
        (None, None) => return Ok(()),
        (Some(stored), Some(given)) if stored == given => return Ok(()),
        (Some(_), None) => "The object was stored with a customer's encryption key. Send that key.",
        (Some(_), Some(_)) => "The object was stored with another encryption key.",
        (None, Some(_)) => "The object was not stored with a customer's encryption key.",
    };
    Err(S3Error::new(Code::InvalidRequest, message))
}

/// The headers about the encryption of an object being written, to return with the response.
#[derive(Debug, Default)]
pub(crate) struct Encryption(Vec<(String, String)>);

/// The encryption among the headers of an object.
pub(crate) fn of(headers: &bucketload_store::Headers) -> Encryption {
    let all = headers.system.iter();
    let encryption = all.filter(|(name, _)| name.starts_with(PREFIX));
    Encryption(encryption.cloned().collect())
}

/// The encryption of a part: its headers are checked and returned, not kept.
///
/// # Errors
/// As [`collect`].
pub(crate) fn of_part(headers: &Headers<'_, '_>) -> S3Result<Encryption> {
    let mut all = bucketload_store::Headers::default();
    collect(headers, &mut all)?;
    Ok(of(&all))
}

impl Encryption {
    /// Adds the headers to a response.
    pub(crate) fn write(&self, head: &mut Head) {
        for (name, value) in &self.0 {
            head.header(name, value.as_bytes());
        }
    }
}
