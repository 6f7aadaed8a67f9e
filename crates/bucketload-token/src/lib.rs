//! The access token of a console, of agents or of a gateway: a secret that both sides know. It is read
//! from a file or the environment, compared in constant time and never shown.

use std::fmt;
use std::path::Path;

use subtle::ConstantTimeEq as _;

/// Minimum length of a token, characters. 16 characters of 64 kinds cannot be guessed over a network.
pub const MIN_LENGTH: usize = 16;

/// A secret that both sides of a connection know. `Debug` does not show it.
#[derive(Clone)]
pub struct AccessToken(String);

impl fmt::Debug for AccessToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AccessToken(***)")
    }
}

impl AccessToken {
    /// Takes the first line of `text` that is not blank, without the white space around it. `name` says whose
    /// token it is and where it comes from, for the error message.
    ///
    /// # Errors
    /// When the line has fewer than [`MIN_LENGTH`] characters, or others than visible ASCII, because it must fit into an
    /// HTTP header. The message has the name and a remedy.
    pub fn parse(name: &str, text: &str) -> Result<Self, String> {
        let token = text.trim().lines().next().unwrap_or_default().trim_end();
        if token.len() < MIN_LENGTH || !token.bytes().all(|b| b.is_ascii_graphic()) {
            return Err(format!(
                "{name} must have at least {MIN_LENGTH} visible ASCII characters; make one with: \
                 head -c 24 /dev/urandom | base64"
            ));
        }
        Ok(Self(token.to_owned()))
    }

    /// Reads the token called `name` from `file`.
    ///
    /// # Errors
    /// When the file cannot be read, and as [`AccessToken::parse`].
    pub fn read(name: &str, file: &Path) -> Result<Self, String> {
        let name = format!("{name} in {}", file.display());
        let text = std::fs::read_to_string(file).map_err(|e| format!("{name}: {e}"))?;
        Self::parse(&name, &text)
    }

    /// Reads the token called `name` from `file`, or else from the environment `variable`. `None` when there is
    /// no file and the variable is unset or empty.
    ///
    /// # Errors
    /// As [`AccessToken::read`] and [`AccessToken::parse`].
    pub fn find(name: &str, file: Option<&Path>, variable: &str) -> Result<Option<Self>, String> {
        if let Some(file) = file {
            return Self::read(name, file).map(Some);
        }
        match std::env::var(variable) {
            Ok(text) if !text.is_empty() => {
                Self::parse(&format!("{name} in {variable}"), &text).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// The secret itself, for a header, a key, or the environment of a child process.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Compares `given` with the token in constant time.
    #[must_use]
    pub fn matches(&self, given: impl AsRef<[u8]>) -> bool {
        same(self.0.as_bytes(), given.as_ref())
    }
}

/// Compares two secrets in constant time. Only a difference in length shows.
#[must_use]
pub fn same(a: &[u8], b: &[u8]) -> bool {
    a.ct_eq(b).into()
}

#[cfg(test)]
mod tests {
    use super::AccessToken;

    const SECRET: &str = "0123456789abcdef";

    #[test]
    fn tokens_are_long_and_never_shown() {
        for wrong in ["", "short", "0123456789 abcdef", "0123456789äbcdef"] {
            let error = AccessToken::parse("the console's token", wrong).unwrap_err();
            assert!(error.starts_with("the console's token must"), "{error}");
            assert!(error.contains("/dev/urandom"), "{error}");
        }
        let token = AccessToken::parse("", " 0123456789abcdef\r\nsecond line").unwrap();
        assert_eq!(token.expose(), SECRET);
        assert!(token.matches(SECRET));
        for wrong in ["0123456789abcdeg", "0123456789abcdef0", ""] {
            assert!(!token.matches(wrong), "{wrong}");
        }
        assert_eq!(format!("{token:?}"), "AccessToken(***)");
    }

    #[test]
    fn a_token_comes_from_its_file_and_else_from_the_environment() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("token");
        let find = |file, variable| AccessToken::find("the agents' token", file, variable);
        let error = find(Some(&*file), "PATH").unwrap_err();
        let named = format!("the agents' token in {}: ", file.display());
        assert!(error.starts_with(&named), "{error}");
        std::fs::write(&file, SECRET).unwrap();
        let token = find(Some(&*file), "PATH").unwrap().unwrap();
        assert_eq!(token.expose(), SECRET);
        assert!(find(None, "BUCKETLOAD_UNSET").unwrap().is_none());
    }
}
