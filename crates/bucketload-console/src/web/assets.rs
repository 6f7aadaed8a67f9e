//! Style sheet, scripts and icon, embedded in the program.

use axum::extract::Path;
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse as _, Response};

use bucketload_results::kit::{page, svg};

use super::guard::plain;

const CSS: &str = "text/css; charset=utf-8";
const JS: &str = "text/javascript; charset=utf-8";

/// Serves one of the files.
pub(super) async fn serve(Path(name): Path<String>) -> Response {
    let (kind, text) = match name.as_str() {
        "console.css" => (CSS, include_str!("../assets/console.css")),
        "console.js" => (JS, include_str!("../assets/console.js")),
        "hover.js" => (JS, page::HOVER),
        "charts.css" => return asset(CSS, svg::colours() + svg::CSS),
        "icon.svg" => ("image/svg+xml", include_str!("../assets/icon.svg")),
        _ => return plain(StatusCode::NOT_FOUND, "there is no such file"),
    };
    asset(kind, text.to_owned())
}

fn asset(kind: &'static str, text: String) -> Response {
    // Another version of the program may have a different file.
    ([(CONTENT_TYPE, kind), (CACHE_CONTROL, "no-cache")], text).into_response()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use bucketload_results::kit::{page, svg};

    const CONSOLE: &str = include_str!("../assets/console.css");

    /// The colours of a scheme: the first block of custom properties is the light scheme, the second the dark one.
    fn colours(block: usize) -> BTreeMap<&'static str, [f64; 3]> {
        let text = CONSOLE.split(":root {").nth(block + 1).unwrap();
        let text = text.split('}').next().unwrap();
        let own = text
            .split(';')
            .filter_map(|pair| pair.split_once(':'))
            .map(|(name, value)| (name.trim(), value.trim()));
        let lines = [
            "--s0", "--s1", "--s2", "--s3", "--s4", "--s5", "--s6", "--s7",
        ];
        let of_reports = [svg::COLOURS, svg::DARK_COLOURS][block];
        own.chain(lines.into_iter().zip(of_reports))
            .map(|(name, value)| {
                let value = value.strip_prefix('#').unwrap();
                let part = |at: usize| {
                    let byte = u8::from_str_radix(&value[2 * at..2 * at + 2], 16).unwrap();
                    let c = f64::from(byte) / 255.0;
                    // Relative luminance: WCAG 2.2.
                    if c <= 0.04045 {
                        c / 12.92
                    } else {
                        ((c + 0.055) / 1.055).powf(2.4)
                    }
                };
                (name, [part(0), part(1), part(2)])
            })
            .collect()
    }

    fn contrast(a: [f64; 3], b: [f64; 3]) -> f64 {
        let luminance = |c: [f64; 3]| 0.2126 * c[0] + 0.7152 * c[1] + 0.0722 * c[2];
        let (a, b) = (luminance(a), luminance(b));
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    #[test]
    fn text_and_marks_have_enough_contrast_in_light_and_dark() {
        for block in [0, 1] {
            let c = colours(block);
            let text = ["--fg", "--muted", "--accent", "--good", "--warn", "--bad"];
            for (front, back, required) in text
                .iter()
                .flat_map(|front| [(*front, "--bg", 4.5), (*front, "--panel", 4.5)])
                .chain([("--on-accent", "--accent", 4.5), ("--edge", "--bg", 3.0)])
                .chain(
                    ["--s0", "--s1", "--s2", "--s3", "--s4", "--s5", "--s6"]
                        .map(|s| (s, "--panel", 3.0)),
                )
            {
                let found = contrast(c[front], c[back]);
                assert!(
                    found >= required,
                    "{front} on {back}: {found:.2} in scheme {block}"
                );
            }
        }
    }

    #[test]
    fn scripts_treat_only_rendered_parts_as_html() {
        // The page's script uses these functions of the reports' script.
        let scripts = [include_str!("../assets/console.js"), page::HOVER];
        for function in ["function scale(", "function vertices("] {
            assert!(page::HOVER.contains(function), "{function}");
        }
        let uses: usize = scripts
            .iter()
            .map(|script| script.matches("innerHTML").count())
            .sum();
        assert_eq!(
            uses, 1,
            "one use, for parts that the templates and drawings escape"
        );
        for script in scripts {
            for bad in [
                "eval(",
                "document.write",
                "insertAdjacentHTML",
                "outerHTML",
                ".style",
            ] {
                assert!(!script.contains(bad), "{bad}");
            }
        }
    }
}
