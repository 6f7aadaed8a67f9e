//! The bill of materials of a program: CycloneDX 1.5, JSON.

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::crates::Crate;
use super::when::SourceTime;

/// The document for `package`, which is one of `crates`, and its file with the hash `sum`.
pub(super) fn document(package: &str, crates: &[Crate], sum: &str, when: SourceTime) -> String {
    let (own, others): (Vec<&Crate>, Vec<&Crate>) =
        crates.iter().partition(|known| known.name == package);
    let mut main = own
        .first()
        .map_or(Value::Null, |own| component(own, "application"));
    main["hashes"] = json!([{ "alg": "SHA-256", "content": sum }]);
    let components: Vec<Value> = others
        .iter()
        .map(|known| component(known, "library"))
        .collect();
    let dependencies: Vec<Value> = crates
        .iter()
        .map(|known| {
            let needs = known.needs.iter().map(|&at| reference(&crates[at]));
            json!({ "ref": reference(known), "dependsOn": needs.collect::<Vec<_>>() })
        })
        .collect();
    let mut document = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": { "timestamp": when.rfc3339(), "component": main },
        "components": components,
        "dependencies": dependencies,
    });
    let digest = Sha256::digest(document.to_string());
    document["serialNumber"] = json!(format!("urn:uuid:{}", uuid(&digest)));
    let mut text = serde_json::to_string_pretty(&document).unwrap_or_default();
    text.push('\n');
    text
}

fn component(known: &Crate, kind: &str) -> Value {
    let mut component = json!({
        "type": kind,
        "bom-ref": reference(known),
        "name": known.name,
        "version": known.version,
    });
    component["licenses"] = match known.license.is_empty() {
        true => json!([{ "license": { "name": "in a file of the crate" } }]),
        false => json!([{ "expression": known.license }]),
    };
    if !known.is_own() {
        component["purl"] = json!(reference(known));
        component["hashes"] = json!([{ "alg": "SHA-256", "content": known.sum }]);
    }
    component
}

/// The package URL of a crate, which identifies it in the document; `+` is escaped.
fn reference(known: &Crate) -> String {
    let version = known.version.replace('+', "%2B");
    format!("pkg:cargo/{}@{version}", known.name)
}

/// A UUID derived from a digest (version 8 of RFC 9562).
fn uuid(digest: &[u8]) -> String {
    let mut bytes = digest[..16].to_vec();
    bytes[6] = bytes[6] & 0x0f | 0x80;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let text = super::hex(&bytes);
    let parts = [
        &text[..8],
        &text[8..12],
        &text[12..16],
        &text[16..20],
        &text[20..],
    ];
    parts.join("-")
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::{Crate, SourceTime, document, uuid};

    #[test]
    fn every_crate_is_named_with_licence_and_sum() {
        let known = |name: &str, sum: &str, needs: &[usize]| Crate {
            name: name.to_owned(),
            version: "1.0.0+2".to_owned(),
            license: "MIT".to_owned(),
            sum: sum.to_owned(),
            needs: needs.to_vec(),
            ..Crate::default()
        };
        let crates = [known("ours", "", &[1]), known("zlib", "ab", &[])];
        let text = document("ours", &crates, "cd", SourceTime(0));
        assert_eq!(text, document("ours", &crates, "cd", SourceTime(0)));
        let document: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(document["metadata"]["component"]["name"], "ours");
        assert_eq!(
            document["metadata"]["component"]["hashes"][0]["content"],
            "cd"
        );
        let component = &document["components"][0];
        assert_eq!(component["purl"], "pkg:cargo/zlib@1.0.0%2B2");
        assert_eq!(component["licenses"][0]["expression"], "MIT");
        assert_eq!(component["hashes"][0]["content"], "ab");
        assert_eq!(document["components"].as_array().unwrap().len(), 1);
        assert_eq!(
            document["dependencies"][0]["dependsOn"][0],
            component["bom-ref"]
        );
        let serial = document["serialNumber"].as_str().unwrap();
        assert_eq!(serial.len(), "urn:uuid:".len() + 36);
        assert_eq!(uuid(&[0xff; 32]), "ffffffff-ffff-8fff-bfff-ffffffffffff");
    }
}
