use std::cell::Cell;

use bucketload_core::op::ByteRange;

use super::{AzureCall, HeadWriter};
use crate::azblob::sign::Field;
use crate::azblob::{Auth, AzureConfig};
use crate::http::Endpoint;

const KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

thread_local!(static NOW: Cell<u64> = const { Cell::new(784_111_777) });

fn writer(auth: Auth) -> HeadWriter {
    let endpoint = Endpoint::parse("http://127.0.0.1:10000/devstoreaccount1", "test").unwrap();
    let config = AzureConfig::new(vec![endpoint.clone()], "devstoreaccount1", auth);
    HeadWriter::new(&config, &endpoint, || NOW.get())
}

fn head(writer: &mut HeadWriter, call: &AzureCall<'_>, length: u64) -> String {
    let mut out = Vec::new();
    writer.render(&mut out, call, length);
    String::from_utf8(out).unwrap()
}

const RANGE: Option<ByteRange> = Some(ByteRange {
    offset: 10,
    len: 10,
});

/// The expected signature comes from another implementation of HMAC-SHA256.
#[test]
fn signed_heads() {
    let mut writer = writer(Auth::SharedKey(KEY.into()));
    let call = AzureCall {
        range: RANGE,
        ..AzureCall::new("GET", "box", "key")
    };
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(
        head(&mut writer, &call, 0),
        format!(
            "GET /devstoreaccount1/box/key HTTP/1.1\r\nHost: 127.0.0.1:10000\r\n\
             User-Agent: bucketload/{version}\r\nx-ms-version: 2022-11-02\r\n\
             x-ms-date: Sun, 06 Nov 1994 08:49:37 GMT\r\nAuthorization: SharedKey \
             devstoreaccount1:gL5UPbs6PJzZ0Hk97+smz/PyFTJkvh72u8+m0/n/neQ=\r\n\
             x-ms-range: bytes=10-19\r\n\r\n"
        )
    );
    let fields: [Field<'_>; 1] = [("x-ms-blob-type", b"BlockBlob")];
    let put = AzureCall {
        content_md5: b"sQqNsWTgdUEFt6mb5y4/5Q==",
        if_none_match: "*",
        ..AzureCall::new("PUT", "box", "a b").fields(&fields)
    };
    let text = head(&mut writer, &put, 11);
    for line in [
        "PUT /devstoreaccount1/box/a%20b HTTP/1.1",
        "Authorization: SharedKey devstoreaccount1:lEoaE2B+PDPF2FAsuDEhf6vXOzOZpOEabaMji13e8X8=",
        "Content-MD5: sQqNsWTgdUEFt6mb5y4/5Q==",
        "If-None-Match: *",
        "Content-Length: 11",
    ] {
        assert!(text.contains(&format!("{line}\r\n")), "{line} in {text}");
    }
}

#[test]
fn a_new_second_changes_the_signature() {
    let mut writer = writer(Auth::SharedKey(KEY.into()));
    let call = AzureCall::new("GET", "box", "key");
    let first = head(&mut writer, &call, 0);
    assert_eq!(head(&mut writer, &call, 0), first);
    NOW.set(NOW.get() + 1);
    let second = head(&mut writer, &call, 0);
    assert!(second.contains("08:49:38 GMT"), "{second}");
    let signature = |text: &str| {
        text.lines()
            .find(|l| l.starts_with("Auth"))
            .unwrap()
            .to_owned()
    };
    assert_ne!(signature(&first), signature(&second));
}

#[test]
fn a_shared_access_signature_ends_the_query() {
    let mut writer = writer(Auth::Sas("sv=1&sig=a%2Bb".into()));
    let call = AzureCall::new("HEAD", "box", "key");
    let text = head(&mut writer, &call, 0);
    assert!(text.starts_with("HEAD /devstoreaccount1/box/key?sv=1&sig=a%2Bb HTTP/1.1"));
    assert!(!text.contains("Authorization"));
    let query = [("comp", "list"), ("prefix", "a/b&c")];
    let call = AzureCall::new("GET", "box", "").query(&query);
    let text = head(&mut writer, &call, 0);
    let line = "GET /devstoreaccount1/box?comp=list&prefix=a%2Fb%26c&sv=1&sig=a%2Bb HTTP/1.1";
    assert!(text.starts_with(line), "{text}");
}

#[test]
fn sources_of_copies_carry_a_permission() {
    let url = |auth| {
        let mut out = Vec::new();
        writer(auth).push_source_url(&mut out, "box", "a b");
        String::from_utf8(out).unwrap()
    };
    let base = "http://127.0.0.1:10000/devstoreaccount1/box/a%20b";
    assert_eq!(url(Auth::Anonymous), base);
    assert_eq!(url(Auth::Sas("sig=x".into())), format!("{base}?sig=x"));
    let signed = url(Auth::SharedKey(KEY.into()));
    assert!(signed.starts_with(&format!("{base}?sv=2022-11-02&sr=b&sp=r&se=1994-11-06T09")));
}
