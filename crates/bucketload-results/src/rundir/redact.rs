//! Keeps credentials out of everything that is stored or shown.

/// Replacement for a secret.
pub const MASK: &str = "***";

/// Query parameters that authorise a request.
const SECRET_PARAMETERS: [&str; 7] = [
    "x-amz-signature",
    "x-amz-credential",
    "x-amz-security-token",
    "awsaccesskeyid",
    "signature",
    "sig",
    "token",
];

/// True if a setting or flag with this name holds a secret.
#[must_use]
pub fn is_secret_name(name: &str) -> bool {
    let name = name
        .trim_start_matches('-')
        .replace('-', "_")
        .to_ascii_lowercase();
    // The name of a file or variable that holds a secret is not itself secret.
    if name.ends_with("_file") || name.ends_with("_env") || name.ends_with("_path") {
        return false;
    }
    [
        "secret",
        "password",
        "passwd",
        "passphrase",
        "token",
        "access_key",
        "private_key",
    ]
    .iter()
    .any(|word| name.contains(word))
}

/// `text` with passwords in URLs and authorising query parameters masked.
#[must_use]
pub fn text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (head, tail) = rest.split_at(at + 3);
        out.push_str(head);
        let end = tail
            .find(|c: char| c.is_whitespace() || matches!(c, '/' | '"' | '\'' | '?' | '#'))
            .unwrap_or(tail.len());
        let (authority, tail) = tail.split_at(end);
        match authority.rsplit_once('@') {
            Some((_, host)) => {
                out.push_str(MASK);
                out.push('@');
                out.push_str(host);
            }
            None => out.push_str(authority),
        }
        rest = tail;
    }
    out.push_str(rest);
    parameters(&out)
}

/// Masks the values of authorising query parameters.
fn parameters(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for (i, part) in text.split_inclusive(['?', '&']).enumerate() {
        let name = part.split('=').next().unwrap_or_default();
        let secret = i > 0
            && part.len() > name.len()
            && SECRET_PARAMETERS.contains(&name.to_ascii_lowercase().as_str());
        if !secret {
            out.push_str(part);
            continue;
        }
        let value = &part[name.len() + 1..];
        let end = value
            .find(|c: char| c.is_whitespace() || matches!(c, '?' | '&' | '#' | '"' | '\''))
            .unwrap_or(value.len());
        out.push_str(name);
        out.push('=');
        out.push_str(MASK);
        out.push_str(&value[end..]);
    }
    out
}

/// A command line with the values of secret flags masked (`--flag value` and `--flag=value`).
#[must_use]
pub fn args(args: &[String]) -> Vec<String> {
    let mut mask_next = false;
    args.iter()
        .map(|arg| {
            if std::mem::take(&mut mask_next) && !arg.starts_with("--") {
                return MASK.to_owned();
            }
            let (name, value) = match arg.split_once('=') {
                Some((name, _)) => (name, true),
                None => (arg.as_str(), false),
            };
            if !is_secret_name(name) || !(name.starts_with('-') || value) {
                return text(arg);
            }
            if value {
                format!("{name}={MASK}")
            } else {
                mask_next = true;
                arg.clone()
            }
        })
        .collect()
}

/// A configuration text (TOML, INI) with the values of secret settings masked.
#[must_use]
pub fn config(source: &str) -> String {
    source
        .split_inclusive('\n')
        .map(|line| match line.split_once('=') {
            Some((name, _))
                if is_secret_name(name.trim()) && !name.trim_start().starts_with('#') =>
            {
                let end = if line.ends_with('\n') { "\n" } else { "" };
                format!("{name}= \"{MASK}\"{end}")
            }
            _ => text(line),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{args, config, is_secret_name, text};

    fn words(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn urls_lose_credentials_and_keep_the_rest() {
        for (before, after) in [
            ("http://host:9000/b/p", "http://host:9000/b/p"),
            ("s3://bucket/prefix", "s3://bucket/prefix"),
            ("https://u:p%40w@host/x", "https://***@host/x"),
            ("https://u:p@w@host", "https://***@host"),
            (
                "at https://u:p@h/x and http://k@g",
                "at https://***@h/x and http://***@g",
            ),
            ("mail a@b.c", "mail a@b.c"),
            (
                "http://h/k?X-Amz-Date=1&X-Amz-Signature=abc&x=2",
                "http://h/k?X-Amz-Date=1&X-Amz-Signature=***&x=2",
            ),
            (
                "http://h/k?X-Amz-Credential=AKIA/x end",
                "http://h/k?X-Amz-Credential=*** end",
            ),
        ] {
            assert_eq!(text(before), after);
        }
    }

    #[test]
    fn flags_lose_their_values() {
        assert_eq!(
            args(&words(
                "bucketload run x --secret-key abc --rate 5 --session-token=def --access-key AK"
            )),
            words(
                "bucketload run x --secret-key *** --rate 5 --session-token=*** --access-key ***"
            )
        );
        assert_eq!(
            args(&words("run --secret-key --rate 5 secret.toml")),
            words("run --secret-key --rate 5 secret.toml")
        );
        assert_eq!(
            args(&words("run --password-file /p")),
            words("run --password-file /p")
        );
    }

    #[test]
    fn configuration_loses_secrets() {
        let source = "# token = kept as comment\n[target]\nsecret_access_key = \"abc\"\nrate = 5\nurl = \"http://a:b@c/\"\n";
        assert_eq!(
            config(source),
            "# token = kept as comment\n[target]\nsecret_access_key = \"***\"\nrate = 5\nurl = \"http://***@c/\"\n"
        );
    }

    #[test]
    fn names() {
        assert!(is_secret_name("--secret-key") && is_secret_name("AWS_SESSION_TOKEN"));
        assert!(!is_secret_name("--token-file") && !is_secret_name("--rate"));
    }

    proptest! {
        #[test]
        fn passwords_never_survive(user in "[a-z]{1,8}", password in "[A-Z0-9]{6,12}", host in "[a-z]{1,8}") {
            let url = format!("https://{user}:{password}@{host}/x?Signature={password}");
            let flag = format!("--endpoint={url}");
            let file = format!("a = \"{url}\"\npassword = '{password}'");
            let shown = args(&[flag, "--password".into(), password.clone()]).concat();
            prop_assert!(!text(&url).contains(&password));
            prop_assert!(!shown.contains(&password));
            prop_assert!(!config(&file).contains(&password));
        }
    }
}
