//! Well-formed and malformed documents, and a comparison with another reader.

use proptest::prelude::*;
use quick_xml::Reader;
use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::Event;

use super::{Malformed, elements, leaves, push_escaped};

fn all(xml: &str) -> Result<Vec<(String, String)>, Malformed> {
    let mut out = Vec::new();
    leaves(xml.as_bytes(), |path, text| {
        out.push((path.join("/"), text.get()))
    })?;
    Ok(out)
}

fn pair(path: &str, text: &str) -> (String, String) {
    (path.to_owned(), text.to_owned())
}

#[test]
fn a_listing() {
    let xml = r#"<?xml version="1.0" encoding="UTF-8"?>
        <ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">
          <Name>b</Name><Prefix></Prefix><Delimiter/>
          <Contents><Key>a&amp;b&#x41;&#10;</Key><ETag>&quot;e&quot;</ETag></Contents>
          <!-- <Contents> --><Contents><Key><![CDATA[c&lt;]]></Key></Contents>
        </ListBucketResult>"#;
    let root = "ListBucketResult";
    assert_eq!(
        all(xml).unwrap(),
        [
            pair(&format!("{root}/Name"), "b"),
            pair(&format!("{root}/Prefix"), ""),
            pair(&format!("{root}/Delimiter"), ""),
            pair(&format!("{root}/Contents/Key"), "a&bA\n"),
            pair(&format!("{root}/Contents/ETag"), "\"e\""),
            pair(&format!("{root}/Contents/Key"), "c&lt;"),
        ]
    );
}

#[test]
fn malformed_documents_are_refused() {
    for xml in [
        "",
        "text",
        "<a>",
        "<a></b>",
        "</a>",
        "<a><b></a></b>",
        "<a",
        "<a/><b/>",
        "< a></a>",
        "<a><!-- </a>",
        "<a b='>",
        "<a><b><c><d><e><f><g><h><i/></h></g></f></e></d></c></b></a>",
    ] {
        assert_eq!(all(xml), Err(Malformed), "{xml}");
    }
    assert_eq!(leaves(b"<a>\xff</a>", |_, _| {}), Err(Malformed));
}

#[test]
fn attributes_namespaces_and_odd_references() {
    let xml = "<s3:a x='>' ><s3:b y=\"/\">&unknown;&#xD800;& </s3:b ></s3:a>";
    assert_eq!(all(xml).unwrap(), [pair("a/b", "&unknown;&#xD800;& ")]);
}

/// Leaves by an independent reader.
fn by_quick_xml(xml: &str) -> Vec<(String, String)> {
    let mut reader = Reader::from_str(xml);
    let (mut path, mut text, mut out) = (Vec::new(), String::new(), Vec::new());
    let mut leaf = false;
    loop {
        match reader.read_event().unwrap() {
            Event::Start(tag) => {
                path.push(tag.name().as_ref().to_owned());
                text.clear();
                leaf = true;
            }
            Event::End(_) => {
                if leaf {
                    out.push((path.join("/"), std::mem::take(&mut text)));
                }
                leaf = false;
                path.pop();
            }
            Event::Text(part) => text.push_str(&part.into_inner()),
            Event::GeneralRef(part) => {
                let known = resolve_predefined_entity(&part).and_then(|text| text.chars().next());
                text.push(part.resolve_char_ref().unwrap().or(known).unwrap());
            }
            Event::Eof => return out,
            _ => {}
        }
    }
}

#[test]
fn requests_report_each_element_and_resolve_every_reference() {
    let mut seen = Vec::new();
    let xml = b"\xef\xbb\xbf<a>\r\n<b>1&amp;\r\n<!-- - --><![CDATA[<2>]]></b><c/> </a>";
    elements(xml, |path, text| seen.push((path.join("/"), text.get()))).unwrap();
    let want = [pair("a/b", "1&\n<2>"), pair("a/c", ""), pair("a", "")];
    assert_eq!(seen, want);
    for xml in [
        "<a>&unknown;</a>",
        "<a>& </a>",
        "<a>&#xD800;</a>",
        "<!DOCTYPE a><a/>",
    ] {
        assert_eq!(elements(xml.as_bytes(), |_, _| {}), Err(Malformed), "{xml}");
    }
}

proptest! {
    #[test]
    fn agrees_with_another_reader(values in prop::collection::vec(("[A-Z][a-z]{0,5}", "\\PC{0,20}"), 0..8)) {
        let mut xml = b"<Root>".to_vec();
        for (name, value) in &values {
            xml.extend_from_slice(format!("<{name}><V>").as_bytes());
            push_escaped(&mut xml, value);
            xml.extend_from_slice(format!("</V></{name}>").as_bytes());
        }
        xml.extend_from_slice(b"</Root>");
        let xml = String::from_utf8(xml).unwrap();
        let ours = all(&xml).unwrap();
        if !values.is_empty() {
            prop_assert_eq!(&ours, &by_quick_xml(&xml));
        }
        let texts: Vec<_> = ours.into_iter().filter(|(p, _)| p.ends_with("/V")).map(|(_, t)| t).collect();
        let want: Vec<_> = values.into_iter().map(|(_, v)| v).collect();
        prop_assert_eq!(texts, want);
    }

    #[test]
    fn no_input_panics(text in "(<|>|/|!|-|\\[|CDATA|\\?|&|;|#|a|b| |\"|'){0,60}") {
        let _ = (all(&text), elements(text.as_bytes(), |_, text| drop(text.get())));
    }
}
