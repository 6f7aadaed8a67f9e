//! Tests of sign-in requests and responses.

use serde_json::{Value, json};

use super::{GrantFields, token_request, tokens_path};
use crate::http::{Endpoint, Secret};
use crate::swift::config::{Domain, Identity, Keystone, Named};

fn keystone(url: &str, region: Option<&str>) -> Keystone {
    Keystone {
        url: Endpoint::parse(url, "test").unwrap(),
        identity: Identity::Password {
            user: Named::Name {
                name: "alice".into(),
                domain: Domain::Name("Users".into()),
            },
            password: Secret::new("pa\"ss"),
        },
        scope: Some(Named::Name {
            name: "bench".into(),
            domain: Domain::Id("default".into()),
        }),
        region: region.map(str::to_owned),
        interface: "public".into(),
    }
}

#[test]
fn password_requests_have_the_format_of_the_api() {
    let request: Value =
        serde_json::from_slice(&token_request(&keystone("http://k", None))).unwrap();
    assert_eq!(
        request,
        json!({"auth": {
            "identity": {
                "methods": ["password"],
                "password": {"user": {
                    "name": "alice", "domain": {"name": "Users"}, "password": "pa\"ss",
                }},
            },
            "scope": {"project": {"name": "bench", "domain": {"id": "default"}}},
        }})
    );
}

#[test]
fn application_credentials_carry_their_own_scope() {
    let mut wanted = keystone("http://k", None);
    wanted.scope = None;
    wanted.identity = Identity::Application {
        id: "abc".into(),
        secret: Secret::new("s"),
    };
    let request: Value = serde_json::from_slice(&token_request(&wanted)).unwrap();
    assert_eq!(
        request,
        json!({"auth": {"identity": {
            "methods": ["application_credential"],
            "application_credential": {"id": "abc", "secret": "s"},
        }}})
    );
}

#[test]
fn the_version_is_added_once() {
    for (url, path) in [
        ("http://k:5000", "/v3/auth/tokens"),
        ("http://k:5000/v3/", "/v3/auth/tokens"),
        ("http://k/identity/v3", "/identity/v3/auth/tokens"),
        ("http://k/identity", "/identity/v3/auth/tokens"),
        ("http://k:5000/v2.0", "/v3/auth/tokens"),
    ] {
        assert_eq!(tokens_path(&keystone(url, None)), path, "{url}");
    }
}

fn answer() -> Vec<u8> {
    json!({"token": {
        "expires_at": "1970-01-01T01:00:00.000000Z",
        "catalog": [
            {"type": "identity", "endpoints": [{"interface": "public", "url": "http://k"}]},
            {"type": "object-store", "endpoints": [
                {"interface": "admin", "region": "one", "url": "http://admin"},
                {"interface": "public", "region": "one", "region_id": "one", "url": "http://one/v1/AUTH_1"},
                {"interface": "public", "region": "two", "url": "http://two/v1/AUTH_1"},
            ]},
        ],
    }})
    .to_string()
    .into_bytes()
}

fn fields() -> GrantFields {
    let mut fields = GrantFields::default();
    fields.take("X-Subject-Token", b" gAAA ");
    fields
}

#[test]
fn the_catalogue_is_searched_by_region_and_interface() {
    for (region, url) in [
        (None, "http://one/v1/AUTH_1"),
        (Some("two"), "http://two/v1/AUTH_1"),
    ] {
        let wanted = keystone("http://k", region);
        let grant = fields().keystone(&answer(), &wanted, 600).unwrap();
        assert_eq!(grant.storage_url.as_deref(), Some(url));
        assert_eq!(grant.lifetime_s, Some(3000));
        assert_eq!(grant.token.expose(), "gAAA");
    }
    let mut internal = keystone("http://k", None);
    internal.interface = "internalURL".into();
    let error = fields().keystone(&answer(), &internal, 0).unwrap_err();
    assert!(error.contains("no internal endpoint"), "{error}");
    let error = fields()
        .keystone(&answer(), &keystone("http://k", Some("three")), 0)
        .unwrap_err();
    assert!(
        error.contains("one, two") && error.contains("OS_REGION_NAME"),
        "{error}"
    );
}

#[test]
fn version_one_responses_need_token_and_url() {
    let mut fields = GrantFields::default();
    fields.take("x-auth-token", b"AUTH_tk1");
    assert!(fields.clone().v1().is_err());
    fields.take("X-Storage-Url", b"http://h/v1/AUTH_test");
    fields.take("X-Auth-Token-Expires", b"86399");
    let grant = fields.clone().v1().unwrap();
    assert_eq!(grant.lifetime_s, Some(86_399));
    assert_eq!(grant.storage_url.as_deref(), Some("http://h/v1/AUTH_test"));
    fields.take("x-auth-token", b"a b");
    assert!(fields.v1().is_err());
}

#[test]
fn secrets_do_not_print() {
    let text = format!("{:?}", keystone("http://k", None));
    assert!(
        text.contains("alice") && !text.contains("pa\\\"ss"),
        "{text}"
    );
}
