//! Sign-in requests and responses of auth v1 and Keystone's Identity API v3. Rendering and parsing only, no I/O.
//!
//! Sources: "Object Storage API, Authentication" (`X-Auth-User`, `X-Storage-Url`), "Identity API v3,
//! Authentication and token management" (OpenStack API reference).

use serde::Deserialize;
use serde_json::{Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::config::{Domain, Identity, Keystone, Named};
use crate::http::Secret;

/// The result of signing in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Grant {
    /// The token.
    pub(crate) token: Secret,
    /// The account's URL, if the service returned it.
    pub(crate) storage_url: Option<String>,
    /// Seconds until the token expires, if the service returned them.
    pub(crate) lifetime_s: Option<u64>,
}

/// The header fields of a sign-in response that matter.
#[derive(Clone, Debug, Default)]
pub(crate) struct GrantFields {
    pub(crate) token: String,
    pub(crate) storage_url: String,
    pub(crate) expires: String,
}

impl GrantFields {
    /// Receives a header field.
    pub(crate) fn take(&mut self, name: &str, value: &[u8]) {
        let slot = match () {
            // The first is Keystone's; radosgw and tempauth send the others.
            () if name.eq_ignore_ascii_case("x-subject-token") => &mut self.token,
            () if name.eq_ignore_ascii_case("x-auth-token") => &mut self.token,
            () if name.eq_ignore_ascii_case("x-storage-url") => &mut self.storage_url,
            () if name.eq_ignore_ascii_case("x-auth-token-expires") => &mut self.expires,
            () => return,
        };
        *slot = String::from_utf8_lossy(value).trim().to_owned();
    }

    /// Evaluates an auth v1 response.
    ///
    /// # Errors
    /// When it lacks token or storage URL.
    pub(crate) fn v1(self) -> Result<Grant, String> {
        if self.token.is_empty() || self.storage_url.is_empty() {
            return Err("the response has no X-Auth-Token or no X-Storage-Url".to_owned());
        }
        Ok(Grant {
            token: token(self.token)?,
            storage_url: Some(self.storage_url),
            lifetime_s: self.expires.parse().ok(),
        })
    }

    /// Evaluates a Keystone response with `body` that arrived at `now_s`, in seconds since 1970.
    ///
    /// # Errors
    /// When it lacks the token, or its catalogue has no matching object store.
    pub(crate) fn keystone(
        self,
        body: &[u8],
        keystone: &Keystone,
        now_s: u64,
    ) -> Result<Grant, String> {
        if self.token.is_empty() {
            return Err("the response has no X-Subject-Token".to_owned());
        }
        let answer: Answer = serde_json::from_slice(body)
            .map_err(|e| format!("the response cannot be read: {e}"))?;
        let ends = OffsetDateTime::parse(&answer.token.expires_at, &Rfc3339)
            .ok()
            .and_then(|t| u64::try_from(t.unix_timestamp()).ok());
        Ok(Grant {
            token: token(self.token)?,
            storage_url: object_store(&answer.token.catalog, keystone)?,
            lifetime_s: ends.map(|ends| ends.saturating_sub(now_s)),
        })
    }
}

/// Checks that a token fits into a header field.
fn token(text: String) -> Result<Secret, String> {
    if text.bytes().all(|b| b.is_ascii_graphic()) {
        Ok(Secret::new(text))
    } else {
        Err("the token contains characters that a header field cannot have".to_owned())
    }
}

#[derive(Deserialize)]
struct Answer {
    token: AnswerToken,
}

#[derive(Deserialize)]
struct AnswerToken {
    #[serde(default)]
    expires_at: String,
    #[serde(default)]
    catalog: Vec<Service>,
}

#[derive(Deserialize)]
struct Service {
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(default)]
    endpoints: Vec<ServiceEndpoint>,
}

#[derive(Deserialize)]
struct ServiceEndpoint {
    #[serde(default)]
    interface: String,
    #[serde(default)]
    region: Option<String>,
    #[serde(default)]
    region_id: Option<String>,
    url: String,
}

/// The URL of the object store in a catalogue; `None` if the catalogue is empty.
fn object_store(catalog: &[Service], keystone: &Keystone) -> Result<Option<String>, String> {
    if catalog.is_empty() {
        return Ok(None);
    }
    let interface = keystone.interface.trim_end_matches("URL");
    let stores = || {
        catalog
            .iter()
            .filter(|s| s.kind == "object-store")
            .flat_map(|s| &s.endpoints)
            .filter(|e| e.interface == interface)
    };
    let here = |e: &&ServiceEndpoint| {
        let wanted = keystone.region.as_deref();
        wanted.is_none() || wanted == e.region.as_deref() || wanted == e.region_id.as_deref()
    };
    if let Some(found) = stores().find(here) {
        return Ok(Some(found.url.clone()));
    }
    let regions: Vec<&str> = stores()
        .filter_map(|e| e.region.as_deref().or(e.region_id.as_deref()))
        .collect();
    Err(match (regions.as_slice(), &keystone.region) {
        ([], _) => format!(
            "the catalogue has no {interface} endpoint of type object-store; set OS_INTERFACE or \
             OS_STORAGE_URL"
        ),
        (known, wanted) => format!(
            "the catalogue has no object store in region `{}`; it has them in {} (set \
             OS_REGION_NAME)",
            wanted.as_deref().unwrap_or_default(),
            known.join(", ")
        ),
    })
}

/// The path on Keystone's host for token requests.
pub(crate) fn tokens_path(keystone: &Keystone) -> String {
    let base = keystone.url.base_path.trim_end_matches('/');
    // Old configurations still name v2.0; such services offer v3 as well.
    let base = base.strip_suffix("/v2.0").unwrap_or(base);
    match base.ends_with("/v3") {
        true => format!("{base}/auth/tokens"),
        false => format!("{base}/v3/auth/tokens"),
    }
}

/// The body of a token request.
pub(crate) fn token_request(keystone: &Keystone) -> Vec<u8> {
    let identity = match &keystone.identity {
        Identity::Password { user, password } => {
            let mut user = named(user);
            user["password"] = password.expose().into();
            json!({"methods": ["password"], "password": {"user": user}})
        }
        Identity::Application { id, secret } => json!({
            "methods": ["application_credential"],
            "application_credential": {"id": id, "secret": secret.expose()},
        }),
    };
    let mut auth = json!({"identity": identity});
    if let Some(project) = &keystone.scope {
        auth["scope"] = json!({"project": named(project)});
    }
    json!({"auth": auth}).to_string().into_bytes()
}

fn named(named: &Named) -> Value {
    match named {
        Named::Id(id) => json!({"id": id}),
        Named::Name { name, domain } => {
            let domain = match domain {
                Domain::Id(id) => json!({"id": id}),
                Domain::Name(name) => json!({"name": name}),
            };
            json!({"name": name, "domain": domain})
        }
    }
}

impl Identity {
    /// The secret to keep out of messages.
    pub(crate) fn secret(&self) -> &str {
        match self {
            Self::Password {
                password: secret, ..
            }
            | Self::Application { secret, .. } => secret.expose(),
        }
    }
}

#[cfg(test)]
#[path = "identity_tests.rs"]
mod tests;
