use super::{Op, OpClass, Request, VersionId};

#[test]
fn identifiers_of_versions_survive_storage() {
    for text in [
        "",
        "null",
        "3sL4kqtJlcpXroDTDmJ+rmSpXd3dIbrHY",
        &"v".repeat(47),
    ] {
        let id = VersionId::new(text.as_bytes()).unwrap();
        assert_eq!(id.as_str(), text);
        assert_eq!(VersionId::from_words(id.to_words()), id);
    }
    assert_eq!(VersionId::new(&[b'v'; 48]), None);
}

#[test]
fn names_are_unique_and_round_trip() {
    for class in OpClass::ALL {
        assert_eq!(OpClass::from_name(class.name()), Some(class));
        assert_eq!(serde_json::to_value(class).unwrap(), class.name());
        assert_eq!(Request::plain(class, "b", "k").op, &Op::new(class));
    }
    assert_eq!(OpClass::ALL.len(), OpClass::HeadPart as usize + 1);
}
