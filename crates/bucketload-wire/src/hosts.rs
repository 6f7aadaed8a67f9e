//! Endpoint lists in one argument, such as `http://host{1...8}:9000`, with several separated by commas;
//! and splitting `host:port`.

/// Maximum number of endpoints in a list.
pub const MAX_HOSTS: usize = 65_536;

/// An invalid pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// Not `{from...to}`.
    #[error(
        "{pattern:?}: {range:?} is not a range: write {{1...8}} (or {{01...16}} for fixed width)"
    )]
    Range {
        /// The whole pattern.
        pattern: String,
        /// The braces with their content.
        range: String,
    },
    /// The range runs backwards.
    #[error("{pattern:?}: the range {range:?} is empty: the first number must not exceed the last")]
    Empty {
        /// The whole pattern.
        pattern: String,
        /// The braces with their content.
        range: String,
    },
    /// An unmatched brace.
    #[error("{pattern:?}: unmatched brace")]
    Brace {
        /// The whole pattern.
        pattern: String,
    },
    /// More than [`MAX_HOSTS`].
    #[error("{pattern:?} stands for more than {MAX_HOSTS} endpoints")]
    TooMany {
        /// The whole pattern.
        pattern: String,
    },
    /// Nothing between two commas, or nothing at all.
    #[error("{pattern:?} names an empty endpoint")]
    Blank {
        /// The whole pattern.
        pattern: String,
    },
}

/// Expands a comma-separated list of patterns. `{a...b}` expands to every number from `a` to `b`,
/// zero-padded to the width of `a` if `a` has leading zeros. Several ranges in one pattern expand to all
/// combinations, the last range varying fastest. Text without braces stays unchanged.
///
/// ```
/// use bucketload_wire::hosts::expand;
/// assert_eq!(expand("r{1...2}n{09...10},x")?, ["r1n09", "r1n10", "r2n09", "r2n10", "x"]);
/// # Ok::<(), bucketload_wire::hosts::PatternError>(())
/// ```
///
/// # Errors
/// The pattern and the problem.
pub fn expand(list: &str) -> Result<Vec<String>, PatternError> {
    let mut all = Vec::new();
    for pattern in list.split(',').map(str::trim) {
        if pattern.is_empty() {
            return Err(PatternError::Blank {
                pattern: list.to_owned(),
            });
        }
        let mut expanded = vec![String::new()];
        let mut rest = pattern;
        while let Some(open) = rest.find('{') {
            let brace = || PatternError::Brace {
                pattern: pattern.to_owned(),
            };
            let close = rest[open..].find('}').ok_or_else(brace)? + open;
            if rest[..open].contains('}') {
                return Err(brace());
            }
            let numbers = Range::parse(pattern, &rest[open..=close])?;
            let count = numbers.len().saturating_mul(expanded.len() as u64);
            if count > (MAX_HOSTS - all.len()) as u64 {
                return Err(PatternError::TooMany {
                    pattern: pattern.to_owned(),
                });
            }
            let mut next = Vec::with_capacity(count as usize);
            for stem in &expanded {
                for n in numbers.from..=numbers.to {
                    next.push(format!("{stem}{}{n:0w$}", &rest[..open], w = numbers.width));
                }
            }
            expanded = next;
            rest = &rest[close + 1..];
        }
        if rest.contains('}') {
            return Err(PatternError::Brace {
                pattern: pattern.to_owned(),
            });
        }
        if all.len() + expanded.len() > MAX_HOSTS {
            return Err(PatternError::TooMany {
                pattern: pattern.to_owned(),
            });
        }
        all.extend(expanded.into_iter().map(|stem| stem + rest));
    }
    Ok(all)
}

struct Range {
    from: u64,
    to: u64,
    width: usize,
}

impl Range {
    fn parse(pattern: &str, braces: &str) -> Result<Self, PatternError> {
        let malformed = || PatternError::Range {
            pattern: pattern.to_owned(),
            range: braces.to_owned(),
        };
        let inside = &braces[1..braces.len() - 1];
        let (from, to) = inside.split_once("...").ok_or_else(malformed)?;
        let number = |text: &str| {
            if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
                return None;
            }
            text.parse::<u64>().ok()
        };
        let width = if from.len() > 1 && from.starts_with('0') {
            from.len()
        } else {
            1
        };
        let (from, to) = number(from).zip(number(to)).ok_or_else(malformed)?;
        if from > to {
            return Err(PatternError::Empty {
                pattern: pattern.to_owned(),
                range: braces.to_owned(),
            });
        }
        Ok(Self { from, to, width })
    }

    fn len(&self) -> u64 {
        (self.to - self.from).saturating_add(1)
    }
}

/// Splits `host:port`, `host`, `[v6]:port`, `[v6]` or a bare IPv6 address into the host (without
/// brackets) and the port, if given. `None` if it is none of these.
#[must_use]
pub fn split_port(authority: &str) -> Option<(&str, Option<u16>)> {
    let port = |text: &str| {
        let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        digits.then(|| text.parse().ok()).flatten()
    };
    if let Some(rest) = authority.strip_prefix('[') {
        let (host, after) = rest.split_once(']')?;
        host.parse::<std::net::Ipv6Addr>().ok()?;
        return match after.strip_prefix(':') {
            Some(text) => Some((host, Some(port(text)?))),
            None => after.is_empty().then_some((host, None)),
        };
    }
    if authority.parse::<std::net::Ipv6Addr>().is_ok() {
        return Some((authority, None));
    }
    let (host, port) = match authority.split_once(':') {
        Some((host, text)) => (host, Some(port(text)?)),
        None => (authority, None),
    };
    (!host.is_empty() && !host.contains(['[', ']', '/'])).then_some((host, port))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{MAX_HOSTS, PatternError, expand, split_port};

    #[test]
    fn patterns_expand() {
        assert_eq!(expand("h").unwrap(), ["h"]);
        assert_eq!(expand("h{3...3}").unwrap(), ["h3"]);
        assert_eq!(
            expand("{8...11}:9").unwrap(),
            ["8:9", "9:9", "10:9", "11:9"]
        );
        assert_eq!(expand("h{08...11}").unwrap(), ["h08", "h09", "h10", "h11"]);
        assert_eq!(
            expand("http://[::1]:{1...2} , b").unwrap(),
            ["http://[::1]:1", "http://[::1]:2", "b"]
        );
    }

    #[test]
    fn invalid_patterns_are_refused() {
        use PatternError as E;
        assert!(matches!(expand("h{1..8}"), Err(E::Range { .. })));
        assert!(matches!(expand("h{a...b}"), Err(E::Range { .. })));
        assert!(matches!(expand("h{+1...2}"), Err(E::Range { .. })));
        assert!(matches!(expand("h{...2}"), Err(E::Range { .. })));
        assert!(matches!(expand("h{2...1}"), Err(E::Empty { .. })));
        assert!(matches!(expand("h{1...2"), Err(E::Brace { .. })));
        assert!(matches!(expand("h1...2}"), Err(E::Brace { .. })));
        assert!(matches!(expand("h}{1...2}"), Err(E::Brace { .. })));
        assert!(matches!(expand("a,,b"), Err(E::Blank { .. })));
        assert!(matches!(expand(""), Err(E::Blank { .. })));
        assert_eq!(expand("h{1...65536}").unwrap().len(), MAX_HOSTS);
        for huge in [
            "{1...65537}",
            "{1...65536},x",
            "{1...300}{1...300}",
            "{0...18446744073709551615}",
        ] {
            assert!(matches!(expand(huge), Err(E::TooMany { .. })), "{huge}");
        }
    }

    #[test]
    fn ports_are_split_off() {
        assert_eq!(split_port("h:1"), Some(("h", Some(1))));
        assert_eq!(split_port("h"), Some(("h", None)));
        assert_eq!(split_port("[::1]:80"), Some(("::1", Some(80))));
        assert_eq!(split_port("[::1]"), Some(("::1", None)));
        assert_eq!(split_port("fe80::1"), Some(("fe80::1", None)));
        for wrong in [
            "", ":1", "h:", "h:x", "h:+1", "h:65536", "[::1", "[h]:1", "[::1]x", "h:1:2", "h/p",
        ] {
            assert_eq!(split_port(wrong), None, "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn every_number_appears_once_and_in_order(
            from in 0u64..1000, count in 1u64..50, pad in 0usize..6,
            before in "[a-z.:/]{0,6}", after in "[a-z.:/0-9]{0,6}",
        ) {
            let first = format!("{from:0pad$}");
            let pattern = format!("{before}{{{first}...{}}}{after}", from + count - 1);
            let expanded = expand(&pattern).unwrap();
            prop_assert_eq!(expanded.len() as u64, count);
            for (n, host) in (from..).zip(&expanded) {
                let middle = host
                    .strip_prefix(before.as_str())
                    .and_then(|rest| rest.strip_suffix(after.as_str()))
                    .unwrap();
                prop_assert_eq!(middle.parse::<u64>().unwrap(), n);
                prop_assert!(middle.len() >= first.len().min(pad.max(1)));
            }
        }

        #[test]
        fn no_input_panics(text in "[a-c{}.,0-9:\\[\\]]{0,40}") {
            let _ = expand(&text);
            let _ = split_port(&text);
        }

        #[test]
        fn text_without_braces_and_commas_is_unchanged(text in "[^{},\\s]{1,30}") {
            prop_assert_eq!(expand(&text).unwrap(), [text]);
        }
    }
}
