//! Lists of hosts as Slurm writes them: `n[1-3,7],gpu[01-02]`.

use crate::error::AgentsError;

/// Maximum number of hosts in a list.
const MAX_HOSTS: usize = 65_536;

/// Expands a list in Slurm's format (slurm.conf(5), "NodeName"; scontrol show hostnames): ranges in brackets
/// keep leading zeros, and several brackets multiply.
///
/// # Errors
/// When brackets are not closed, a range is malformed, or the list has more than 65,536 hosts.
pub fn expand(list: &str) -> Result<Vec<String>, AgentsError> {
    let wrong = || {
        AgentsError::usage(format!(
            "`{list}` is not a list of hosts; write for example n1,n2 or n[1-3,7]"
        ))
    };
    let mut hosts = Vec::new();
    for item in items(list).ok_or_else(wrong)? {
        let expanded = expand_one(item).ok_or_else(wrong)?;
        hosts.extend(expanded);
        if hosts.len() > MAX_HOSTS {
            return Err(wrong());
        }
    }
    Ok(hosts)
}

/// Splits at commas outside brackets.
fn items(list: &str) -> Option<Vec<&str>> {
    let (mut items, mut from, mut depth) = (Vec::new(), 0, 0u32);
    for (at, c) in list.char_indices() {
        match c {
            '[' => depth += 1,
            ']' => depth = depth.checked_sub(1)?,
            ',' if depth == 0 => {
                items.push(list.get(from..at)?.trim());
                from = at + 1;
            }
            _ => {}
        }
    }
    items.push(list.get(from..)?.trim());
    (depth == 0 && items.iter().all(|item| !item.is_empty())).then_some(items)
}

fn expand_one(item: &str) -> Option<Vec<String>> {
    let Some((stem, rest)) = item.split_once('[') else {
        return Some(vec![item.to_owned()]);
    };
    let (ranges, rest) = rest.split_once(']')?;
    let tails = expand_one(rest)?;
    let mut hosts = Vec::new();
    for range in ranges.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        if !digits(first) || !digits(last) {
            return None;
        }
        let (from, to): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
        let width = first.len();
        if from > to || to - from >= MAX_HOSTS as u64 {
            return None;
        }
        for n in from..=to {
            for tail in &tails {
                hosts.push(format!("{stem}{n:0width$}{tail}"));
            }
            if hosts.len() > MAX_HOSTS {
                return None;
            }
        }
    }
    Some(hosts)
}

#[cfg(test)]
mod tests {
    use super::expand;

    #[test]
    fn lists_as_slurm_writes_them() {
        for (list, hosts) in [
            ("n1", "n1"),
            ("n[1-2]", "n1 n2"),
            ("n[1-3,7],gpu[01-02]", "n1 n2 n3 n7 gpu01 gpu02"),
            ("a,b.example", "a b.example"),
            ("r[1-2]n[09-10]", "r1n09 r1n10 r2n09 r2n10"),
        ] {
            assert_eq!(expand(list).unwrap().join(" "), hosts, "{list}");
        }
        for list in [
            "",
            "n[1-",
            "n]1",
            "n[2-1]",
            "n[a]",
            "a,,b",
            "n[1-99999999]",
            "n[]",
        ] {
            assert!(expand(list).is_err(), "{list}");
        }
    }
}
