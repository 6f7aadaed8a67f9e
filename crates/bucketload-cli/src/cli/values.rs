//! Parsers for values of flags that are not part of a workload.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use bucketload_core::units;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

/// The values of a flag: name, help text and meaning of each.
pub(crate) type Choices<T> = [(&'static str, &'static str, T)];

/// Reads one of `choices` by its name.
pub(crate) fn choice<T>(choices: &'static Choices<T>) -> impl TypedValueParser<Value = T>
where
    T: Copy + Send + Sync + 'static,
{
    let names = choices.iter();
    let names = names.map(|(name, help, _)| PossibleValue::new(*name).help(*help));
    PossibleValuesParser::new(names).try_map(|text| {
        let mut rows = choices.iter();
        let row = rows.find(|(name, ..)| *name == text);
        row.map(|row| row.2).ok_or("unknown value")
    })
}

/// Reads a size such as `512MiB`.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    units::parse_size(text).map_err(|invalid| invalid.to_string())
}

/// Reads bytes per second, such as `2GiB/s`.
pub(crate) fn byte_rate(text: &str) -> Result<u64, String> {
    size(text.strip_suffix("/s").unwrap_or(text))
}

/// Reads a fact such as `durability=3-copies`.
pub(crate) fn fact(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() && !value.trim().is_empty() => {
            Ok((name.trim().to_owned(), value.trim().to_owned()))
        }
        _ => Err(format!(
            "`{text}` is not a fact; write NAME=VALUE such as durability=3-copies"
        )),
    }
}

/// Reads a duration such as `30s` or `72h`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let ns = units::parse_duration(text).map_err(|invalid| invalid.to_string())?;
    Ok(Duration::from_nanos(ns))
}

/// Reads a margin such as `5%`: above 0 and below 100 %.
pub(crate) fn margin(text: &str) -> Result<f64, String> {
    let share = units::parse_share(text).map_err(|invalid| invalid.to_string())?;
    if share > 0.0 && share < 1.0 {
        Ok(share)
    } else {
        Err(format!("`{text}` is not a margin; write one such as 5%"))
    }
}

/// Splits an argument that contains several flags into words, with quotes as in a shell.
pub(crate) fn words(text: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for c in text.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '"' | '\'') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    if quote.is_some() {
        return Err(format!("`{text}` has an unclosed quote"));
    }
    words.extend(word);
    Ok(words)
}

/// Reads an address to listen on: `HOST:PORT`, or `PORT` or `:PORT` for loopback. The host is an IP address or
/// `localhost`.
pub(crate) fn listen_address(text: &str) -> Result<SocketAddr, String> {
    let wrong = || {
        format!(
            "`{text}` is not an address; write PORT for loopback, or ADDRESS:PORT such as 0.0.0.0:9000"
        )
    };
    let port = |text: &str| text.parse::<u16>().map_err(|_| wrong());
    let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
    match text.rsplit_once(':') {
        None => Ok(SocketAddr::new(loopback, port(text)?)),
        Some(("" | "localhost", number)) => Ok(SocketAddr::new(loopback, port(number)?)),
        Some(_) => text.parse().map_err(|_| wrong()),
    }
}

/// Cores to pin load threads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CoreList {
    /// Do not pin.
    None,
    /// These cores, in this order.
    These(Vec<usize>),
}

/// Highest core number that is accepted.
const MAX_CORE: usize = 65_535;

impl CoreList {
    /// Reads `none` or a list such as `0-3,8`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if text == "none" {
            return Ok(Self::None);
        }
        let wrong = || format!("`{text}` is not a list of cores; write it such as 0-3,8, or none");
        let core = |text: &str| {
            let number = text.trim().parse().map_err(|_| wrong())?;
            if number > MAX_CORE {
                return Err(wrong());
            }
            Ok(number)
        };
        let mut cores = Vec::new();
        for part in text.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last): (usize, usize) = (core(first)?, core(last)?);
            if first > last {
                return Err(wrong());
            }
            cores.extend(first..=last);
        }
        for (i, core) in cores.iter().enumerate() {
            if cores[..i].contains(core) {
                return Err(format!("core {core} is named twice in `{text}`"));
            }
        }
        Ok(Self::These(cores))
    }
}

#[cfg(test)]
mod tests {
    use super::{CoreList, fact, listen_address, size};

    #[test]
    fn facts_have_a_name_and_a_value() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(fact("a=b=c"), Ok(pair("a", "b=c")));
        assert_eq!(
            fact(" durability = 3 copies"),
            Ok(pair("durability", "3 copies"))
        );
        for text in ["", "a", "a=", "=b", " = "] {
            assert!(fact(text).unwrap_err().contains("NAME=VALUE"), "{text}");
        }
    }

    #[test]
    fn addresses_are_on_loopback_by_default() {
        for (text, address) in [
            ("9000", "127.0.0.1:9000"),
            (":9000", "127.0.0.1:9000"),
            ("localhost:0", "127.0.0.1:0"),
            ("0.0.0.0:80", "0.0.0.0:80"),
            ("[::1]:80", "[::1]:80"),
        ] {
            assert_eq!(listen_address(text).unwrap().to_string(), address);
        }
        for text in ["", "host:80", "70000", "1.2.3.4", "::1", "1.2.3.4:x"] {
            assert!(
                listen_address(text).unwrap_err().contains("ADDRESS:PORT"),
                "{text}"
            );
        }
    }

    #[test]
    fn core_lists() {
        let these = |list: &[usize]| Ok(CoreList::These(list.to_vec()));
        assert_eq!(CoreList::parse("none"), Ok(CoreList::None));
        assert_eq!(CoreList::parse("0"), these(&[0]));
        assert_eq!(CoreList::parse("0-2,5"), these(&[0, 1, 2, 5]));
        for text in ["", "x", "3-1", "0,,1", "0-", "0,0", "1-3,2", "99999999"] {
            assert!(CoreList::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn sizes_have_units() {
        assert_eq!(size("512MiB"), Ok(512 << 20));
        assert!(size("many").unwrap_err().contains("4KiB"));
    }
}
