//! Authentication of the console's users.
//!
//! Programs send the token with each request (`Authorization: Bearer …`). Browsers send it once, in a form, and
//! get a cookie with the random id of a session of this process. Forms that change something carry the
//! session's CSRF token, which other sites cannot know.

use std::collections::HashMap;
use std::sync::Mutex;

use crate::lock;
use axum::http::HeaderMap;
use axum::http::header::{AUTHORIZATION, COOKIE};
use bucketload_token::{AccessToken, same};

/// How long a session lasts after its last use, milliseconds.
const SESSION_MS: u64 = 12 * 3600 * 1000;
/// Maximum number of sessions; the least recently used one is dropped.
const MAX_SESSIONS: usize = 256;

/// Returns 256 random bits from the kernel, in hexadecimal.
///
/// # Errors
/// When the kernel cannot provide them.
pub(crate) fn random() -> Result<String, String> {
    let mut bytes = [0u8; 32];
    let got = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())
        .map_err(|e| format!("no random numbers: {e}"))?;
    if got != bytes.len() {
        return Err("no random numbers: short read".to_owned());
    }
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[derive(Debug)]
struct Session {
    csrf: String,
    used_ms: u64,
}

/// The sender of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Caller {
    /// A program that sent the token, or a local program if no token is required.
    Program,
    /// A browser. Its changes must carry the CSRF token.
    Browser {
        /// The CSRF token.
        csrf: String,
    },
}

impl Caller {
    /// Whether the caller may make a change with the CSRF token `given`.
    pub(crate) fn allows_change(&self, given: Option<&str>) -> bool {
        match self {
            Self::Program => true,
            Self::Browser { csrf } => {
                given.is_some_and(|given| same(csrf.as_bytes(), given.as_bytes()))
            }
        }
    }

    /// The CSRF token for forms; empty for programs.
    pub(crate) fn csrf(&self) -> &str {
        match self {
            Self::Program => "",
            Self::Browser { csrf } => csrf,
        }
    }
}

/// The token, if one is required, and the sessions.
#[derive(Debug)]
pub(crate) struct Auth {
    token: Option<AccessToken>,
    /// Whether connections are encrypted.
    tls: bool,
    sessions: Mutex<HashMap<String, Session>>,
    /// CSRF token of all browsers if no token is required.
    open_csrf: String,
}

impl Auth {
    pub(crate) fn new(token: Option<AccessToken>, tls: bool) -> Result<Self, String> {
        Ok(Self {
            token,
            tls,
            sessions: Mutex::default(),
            open_csrf: random()?,
        })
    }

    /// Whether a token is required.
    pub(crate) const fn is_closed(&self) -> bool {
        self.token.is_some()
    }

    /// Name of the cookie. With the prefix, browsers accept it only over TLS and for this host alone.
    pub(crate) const fn cookie(&self) -> &'static str {
        if self.tls {
            "__Host-bucketload"
        } else {
            "bucketload"
        }
    }

    /// Identifies the sender of a request; `None` if the request must be rejected.
    pub(crate) fn caller(&self, headers: &HeaderMap, now_ms: u64) -> Option<Caller> {
        let bearer = headers
            .get(AUTHORIZATION)
            .and_then(|value| value.to_str().ok())
            .and_then(|value| value.strip_prefix("Bearer "));
        let Some(token) = &self.token else {
            return Some(if is_browser(headers) {
                Caller::Browser {
                    csrf: self.open_csrf.clone(),
                }
            } else {
                Caller::Program
            });
        };
        if let Some(given) = bearer {
            return token.matches(given.trim()).then_some(Caller::Program);
        }
        let id = cookie(headers, self.cookie())?;
        let mut sessions = lock(&self.sessions);
        let session = sessions.get_mut(id)?;
        if now_ms.saturating_sub(session.used_ms) > SESSION_MS {
            sessions.remove(id);
            return None;
        }
        session.used_ms = now_ms;
        Some(Caller::Browser {
            csrf: session.csrf.clone(),
        })
    }

    /// Checks a token from a program's query, such as COSBench's `password`.
    pub(crate) fn accepts(&self, given: &str) -> bool {
        self.token
            .as_ref()
            .is_some_and(|token| token.matches(given))
    }

    /// Opens a session if the token is right. Returns the value of a `Set-Cookie` header, or `None` if the token is
    /// wrong.
    pub(crate) fn login(&self, given: &str, now_ms: u64) -> Result<Option<String>, String> {
        if !self.accepts(given.trim()) {
            return Ok(None);
        }
        let (id, csrf) = (random()?, random()?);
        let mut sessions = lock(&self.sessions);
        if sessions.len() >= MAX_SESSIONS {
            let oldest = sessions
                .iter()
                .min_by_key(|(_, session)| session.used_ms)
                .map(|(id, _)| id.clone());
            oldest.map(|id| sessions.remove(&id));
        }
        sessions.insert(
            id.clone(),
            Session {
                csrf,
                used_ms: now_ms,
            },
        );
        Ok(Some(self.set_cookie(&id, SESSION_MS / 1000)))
    }

    /// Ends the session of a request. Returns the value of a `Set-Cookie` header.
    pub(crate) fn logout(&self, headers: &HeaderMap) -> String {
        if let Some(id) = cookie(headers, self.cookie()) {
            lock(&self.sessions).remove(id);
        }
        self.set_cookie("", 0)
    }

    fn set_cookie(&self, value: &str, max_age_s: u64) -> String {
        format!(
            "{}={value}; Path=/; Max-Age={max_age_s}; HttpOnly; SameSite=Strict{}",
            self.cookie(),
            if self.tls { "; Secure" } else { "" }
        )
    }
}

/// Whether a browser sent these headers. Every browser in use adds at least one of them to requests that a page of
/// another site causes.
fn is_browser(headers: &HeaderMap) -> bool {
    ["origin", "sec-fetch-site", "cookie", "referer"]
        .iter()
        .any(|name| headers.contains_key(*name))
        || headers
            .get("accept")
            .and_then(|value| value.to_str().ok())
            .is_some_and(|value| value.contains("text/html"))
}

fn cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers
        .get_all(COOKIE)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .find(|(known, value)| *known == name && !value.is_empty())
        .map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderMap, HeaderValue};

    use bucketload_token::AccessToken;

    use super::{Auth, Caller, MAX_SESSIONS, SESSION_MS};

    const TOKEN: &str = "0123456789abcdef";

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| {
                (
                    axum::http::HeaderName::from_static(name),
                    HeaderValue::from_str(value).unwrap(),
                )
            })
            .collect()
    }

    fn auth() -> Auth {
        Auth::new(Some(AccessToken::parse("", TOKEN).unwrap()), true).unwrap()
    }

    fn cookie_of(set: &str) -> String {
        set.split(';').next().unwrap().to_owned()
    }

    #[test]
    fn a_wrong_or_missing_token_is_rejected() {
        let auth = auth();
        assert!(!format!("{auth:?}").contains(TOKEN));
        for given in [
            &[][..],
            &[("authorization", "Bearer wrong-wrong-wrong")],
            &[("authorization", "Basic MDEyMzQ1Njc4OWFiY2RlZg==")],
            &[("cookie", "__Host-bucketload=made-up")],
            &[("cookie", "__Host-bucketload=")],
        ] {
            assert_eq!(auth.caller(&headers(given), 0), None, "{given:?}");
        }
        let good = format!("Bearer {TOKEN}");
        assert_eq!(
            auth.caller(&headers(&[("authorization", &good)]), 0),
            Some(Caller::Program)
        );
        assert_eq!(auth.login("wrong-wrong-wrong", 0), Ok(None));
    }

    #[test]
    fn sessions_come_and_go() {
        let auth = auth();
        let set = auth.login(TOKEN, 1000).unwrap().unwrap();
        for attribute in ["HttpOnly", "SameSite=Strict", "Secure", "Path=/"] {
            assert!(set.contains(attribute), "{set}");
        }
        let request = headers(&[("cookie", &format!("a=b; {}", cookie_of(&set)))]);
        let who = auth.caller(&request, 2000).unwrap();
        let Caller::Browser { csrf } = &who else {
            panic!("{who:?}")
        };
        assert!(who.allows_change(Some(csrf)));
        assert!(
            !who.allows_change(None)
                && !who.allows_change(Some(""))
                && !who.allows_change(Some("x"))
        );
        assert!(!set.contains(csrf.as_str()));
        assert_eq!(auth.caller(&request, 2001 + SESSION_MS), None, "expired");
        let set = auth.login(TOKEN, 0).unwrap().unwrap();
        let request = headers(&[("cookie", &cookie_of(&set))]);
        assert!(auth.logout(&request).contains("Max-Age=0"));
        assert_eq!(auth.caller(&request, 1), None);
        for n in 0..2 * MAX_SESSIONS as u64 {
            auth.login(TOKEN, n).unwrap();
        }
        assert_eq!(auth.sessions.lock().unwrap().len(), MAX_SESSIONS);
    }

    #[test]
    fn without_a_token_browsers_still_need_their_csrf_token() {
        let auth = Auth::new(None, false).unwrap();
        assert_eq!(auth.caller(&headers(&[]), 0), Some(Caller::Program));
        for sign in [
            ("origin", "http://evil.example"),
            ("sec-fetch-site", "cross-site"),
            ("accept", "text/html,*/*"),
        ] {
            let who = auth.caller(&headers(&[sign]), 0).unwrap();
            assert!(!who.allows_change(None), "{sign:?}");
        }
    }
}
