//! Access keys.

use bucketload_s3::sign::Signer;

use crate::http::secret::Secret;

/// The keys that sign requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credentials {
    /// Access key id. Not a secret: every request carries it in the clear.
    pub access_key: String,
    /// Secret access key.
    pub secret_key: Secret,
    /// Token of temporary credentials.
    pub session_token: Option<Secret>,
}

impl Credentials {
    /// Long-lived credentials.
    pub fn new(access_key: impl Into<String>, secret_key: impl Into<Secret>) -> Self {
        Self {
            access_key: access_key.into(),
            secret_key: secret_key.into(),
            session_token: None,
        }
    }

    /// Adds the token of temporary credentials.
    #[must_use]
    pub fn with_token(mut self, token: impl Into<Secret>) -> Self {
        self.session_token = Some(token.into());
        self
    }

    /// A signer for requests to `region`.
    pub(crate) fn signer(&self, region: &str) -> Signer {
        let token = self.session_token.as_ref().map_or("", Secret::expose);
        Signer::new(&self.access_key, self.secret_key.expose(), token, region)
    }

    /// Replaces the secret key and the token with `***` in `text`, which came from a server.
    pub(crate) fn scrub(&self, text: &str) -> String {
        let mut out = text.to_owned();
        let token = self.session_token.as_ref().map(Secret::expose);
        for secret in [Some(self.secret_key.expose()), token]
            .into_iter()
            .flatten()
        {
            if !secret.is_empty() {
                out = out.replace(secret, "***");
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::{Credentials, Secret};

    #[test]
    fn secrets_do_not_print() {
        let credentials = Credentials::new("AKID", "wJalr").with_token("tok-en");
        let text = format!("{credentials:?} {:?}", Secret::from("wJalr"));
        assert!(text.contains("AKID") && text.contains("***"));
        assert!(!text.contains("wJalr") && !text.contains("tok-en"));
    }

    #[test]
    fn server_messages_are_scrubbed() {
        let credentials = Credentials::new("AKID", "wJalr").with_token("tok-en");
        assert_eq!(
            credentials.scrub("bad wJalr and tok-en for AKID"),
            "bad *** and *** for AKID"
        );
    }
}
