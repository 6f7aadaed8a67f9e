//! Who may use the console.
//!
//! Programs show the token with each request (`Authorization: Bearer …`). Browsers show it once, in a form,
//! and get a cookie with a random number that stands for a session of this process. A form that changes
//! something carries the session's second number, which other sites cannot know.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use axum::http::HeaderMap;
use axum::http::header::{AUTHORIZATION, COOKIE};
use bucketload_token::{AccessToken, same};

/// How long a session lasts after its last use, milliseconds.
const SESSION_MS: u64 = 12 * 3600 * 1000;
/// Most sessions; the one that was used least recently makes room.
const MAX_SESSIONS: usize = 256;

/// 256 random bits of the kernel, in hexadecimal.
///
/// # Errors
/// When the kernel has none.
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

/// Who asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    /// A program that showed the token, or one on this machine where no token is asked for.
    Program,
    /// A browser. Whatever it is to change must carry this number.
    Browser {
        /// The number.
        csrf: String,
    },
}

impl Who {
    /// Whether a change that carries `given` is meant.
    pub(crate) fn means(&self, given: Option<&str>) -> bool {
        match self {
            Self::Program => true,
            Self::Browser { csrf } => {
                given.is_some_and(|given| same(csrf.as_bytes(), given.as_bytes()))
            }
        }
    }

    /// The number for forms; empty for programs.
    pub(crate) fn csrf(&self) -> &str {
        match self {
            Self::Program => "",
            Self::Browser { csrf } => csrf,
        }
    }
}

/// The token, if one is asked for, and the sessions.
#[derive(Debug)]
pub(crate) struct Auth {
    token: Option<AccessToken>,
    /// Whether connections are encrypted.
    tls: bool,
    sessions: Mutex<HashMap<String, Session>>,
    /// For browsers where no token is asked for.
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

    /// Whether a token is asked for.
    pub(crate) const fn is_closed(&self) -> bool {
        self.token.is_some()
    }

    /// Name of the cookie. The prefix makes browsers refuse one that was not set over TLS for this host.
    pub(crate) const fn cookie(&self) -> &'static str {
        if self.tls {
            "__Host-bucketload"
        } else {
            "bucketload"
        }
    }

    /// Who sent a request with these headers; none when it must not be answered.
    pub(crate) fn who(&self, headers: &HeaderMap, now_ms: u64) -> Option<Who> {
        let bearer = headers
            .get(AUTHORIZATION)
            .and_then(|value| value.to_str().ok())
            .and_then(|value| value.strip_prefix("Bearer "));
        let Some(token) = &self.token else {
            return Some(if is_browser(headers) {
                Who::Browser {
                    csrf: self.open_csrf.clone(),
                }
            } else {
                Who::Program
            });
        };
        if let Some(given) = bearer {
            return token.matches(given.trim()).then_some(Who::Program);
        }
        let id = cookie(headers, self.cookie())?;
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        let session = sessions.get_mut(id)?;
        if now_ms.saturating_sub(session.used_ms) > SESSION_MS {
            sessions.remove(id);
            return None;
        }
        session.used_ms = now_ms;
        Some(Who::Browser {
            csrf: session.csrf.clone(),
        })
    }

    /// Whether a program's query carries the token, as COSBench's `password`.
    pub(crate) fn accepts(&self, given: &str) -> bool {
        self.token
            .as_ref()
            .is_some_and(|token| token.matches(given))
    }

    /// Opens a session for who shows the token; the value of a `Set-Cookie` header, or none when the
    /// token is wrong.
    pub(crate) fn login(&self, given: &str, now_ms: u64) -> Result<Option<String>, String> {
        if !self.accepts(given.trim()) {
            return Ok(None);
        }
        let (id, csrf) = (random()?, random()?);
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
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

    /// Ends the session of a request; the value of a `Set-Cookie` header.
    pub(crate) fn logout(&self, headers: &HeaderMap) -> String {
        if let Some(id) = cookie(headers, self.cookie()) {
            self.sessions
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .remove(id);
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

/// Whether a browser sent these headers: every one in use sends one of them with whatever a page of
/// another site makes it do.
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

    use super::{Auth, MAX_SESSIONS, SESSION_MS, Who};

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
    fn nobody_without_the_token_gets_in() {
        let auth = auth();
        assert!(!format!("{auth:?}").contains(TOKEN));
        for given in [
            &[][..],
            &[("authorization", "Bearer wrong-wrong-wrong")],
            &[("authorization", "Basic MDEyMzQ1Njc4OWFiY2RlZg==")],
            &[("cookie", "__Host-bucketload=made-up")],
            &[("cookie", "__Host-bucketload=")],
        ] {
            assert_eq!(auth.who(&headers(given), 0), None, "{given:?}");
        }
        let good = format!("Bearer {TOKEN}");
        assert_eq!(
            auth.who(&headers(&[("authorization", &good)]), 0),
            Some(Who::Program)
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
        let who = auth.who(&request, 2000).unwrap();
        let Who::Browser { csrf } = &who else {
            panic!("{who:?}")
        };
        assert!(who.means(Some(csrf)));
        assert!(!who.means(None) && !who.means(Some("")) && !who.means(Some("x")));
        assert!(!set.contains(csrf.as_str()));
        assert_eq!(auth.who(&request, 2001 + SESSION_MS), None, "expired");
        let set = auth.login(TOKEN, 0).unwrap().unwrap();
        let request = headers(&[("cookie", &cookie_of(&set))]);
        assert!(auth.logout(&request).contains("Max-Age=0"));
        assert_eq!(auth.who(&request, 1), None);
        for n in 0..2 * MAX_SESSIONS as u64 {
            auth.login(TOKEN, n).unwrap();
        }
        assert_eq!(auth.sessions.lock().unwrap().len(), MAX_SESSIONS);
    }

    #[test]
    fn where_no_token_is_asked_for_browsers_still_need_their_number() {
        let auth = Auth::new(None, false).unwrap();
        assert_eq!(auth.who(&headers(&[]), 0), Some(Who::Program));
        for sign in [
            ("origin", "http://evil.example"),
            ("sec-fetch-site", "cross-site"),
            ("accept", "text/html,*/*"),
        ] {
            let who = auth.who(&headers(&[sign]), 0).unwrap();
            assert!(!who.means(None), "{sign:?}");
        }
    }
}
