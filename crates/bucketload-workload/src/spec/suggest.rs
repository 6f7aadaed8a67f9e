//! Suggests the known name closest to a misspelt one.

use strsim::osa_distance;

/// The field about the warm-up, which other programs want to be told.
const STEADY: &str = "steady-state";

/// The candidate closest to `name`, if one is close enough to be a likely typing error.
#[must_use]
pub fn closest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Names longer than any known one cost time and cannot be typing errors.
    if name.chars().count() > 40 {
        return None;
    }
    let normal = normalise(name);
    candidates
        .into_iter()
        .map(|candidate| (osa_distance(&normal, &normalise(candidate)), candidate))
        .filter(|(distance, candidate)| *distance <= 1.max(candidate.len() / 3))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// "did you mean `x`?", or a list of all possible values.
pub(crate) fn advice<'a>(
    name: &str,
    candidates: impl IntoIterator<Item = &'a str> + Clone,
) -> String {
    let warm_up = matches!(normalise(name).as_str(), "warmup" | "warm-up" | "ramp-up");
    if warm_up && candidates.clone().into_iter().any(|c| c == STEADY) {
        return format!(
            "the warm-up is found and left out by itself; remove the field ({STEADY} = false keeps the warm-up)"
        );
    }
    if let Some(candidate) = closest(name, candidates.clone()) {
        return format!("did you mean `{candidate}`?");
    }
    let all: Vec<&str> = candidates.into_iter().collect();
    if all.is_empty() {
        String::new()
    } else {
        format!("possible values: {}", all.join(", "))
    }
}

fn normalise(name: &str) -> String {
    name.replace('_', "-").to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::{advice, closest};

    #[test]
    fn finds_typing_errors_only() {
        let names = ["duration", "ops", "max-in-flight", "keys"];
        assert_eq!(closest("duraton", names), Some("duration"));
        assert_eq!(closest("max_in_flight", names), Some("max-in-flight"));
        assert_eq!(closest("kyes", names), Some("keys"));
        assert_eq!(closest("OPS", names), Some("ops"));
        assert_eq!(closest("colour", names), None);
        assert_eq!(closest(&"d".repeat(100_000), names), None);
        assert!(advice("colour", names).contains("duration, ops"));
        assert_eq!(advice("x", []), "");
        assert!(advice("warm_up", ["ops", "steady-state"]).contains("steady-state = false"));
        assert!(!advice("warmup", names).contains("steady-state"));
    }
}
