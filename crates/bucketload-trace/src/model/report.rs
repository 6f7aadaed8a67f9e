//! Formats a model and its goodness of fit as text.

use std::fmt;

use super::{Model, PopularityFit, SizeFit};

impl fmt::Display for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.span_ns as f64 / 1e9;
        writeln!(f, "{} requests over {seconds:.1} s", self.requests)?;
        writeln!(f, "\nMix")?;
        for (name, share) in &self.mix {
            writeln!(f, "  {name:<14} {:7.3} %", 100.0 * share)?;
        }
        let a = &self.arrivals;
        writeln!(f, "\nArrivals: {}   misfit {:.3}", a.law, a.misfit)?;
        match a.gap_cv_recorded {
            Some(cv) => writeln!(
                f,
                "  variation of gaps {cv:.3}, fitted {:.3}",
                a.gap_cv_fitted
            )?,
            None => writeln!(f, "  variation of gaps unknown: the clock is too coarse")?,
        }
        writeln!(
            f,
            "  {:>8} {:>8} {:>10} {:>10}",
            "window", "windows", "IDC", "fitted"
        )?;
        for row in &a.dispersion {
            let window = format!("{} s", row.window_ns as f64 / 1e9);
            let fitted = row
                .fitted
                .map_or_else(|| "-".to_owned(), |x| format!("{x:.3}"));
            writeln!(
                f,
                "  {window:>8} {:>8} {:>10.3} {fitted:>10}",
                row.windows, row.recorded
            )?;
        }
        let others: Vec<String> = a
            .candidates
            .iter()
            .filter(|other| other.law != a.law)
            .take(3)
            .map(|other| format!("{} {:.3}", other.law, other.misfit))
            .collect();
        if !others.is_empty() {
            writeln!(f, "  next best: {}", others.join("; "))?;
        }
        for (name, fit) in [
            ("Sizes read", &self.read_sizes),
            ("Sizes written", &self.write_sizes),
            ("Range lengths", &self.range_lengths),
        ] {
            if let Some(fit) = fit {
                sizes(name, fit, f)?;
            }
        }
        for (name, fit) in [
            ("Keys read", &self.reads),
            ("Keys overwritten", &self.overwrites),
        ] {
            if let Some(fit) = fit {
                keys(name, fit, f)?;
            }
        }
        for note in &self.notes {
            writeln!(f, "\nnote: {note}")?;
        }
        Ok(())
    }
}

fn sizes(name: &str, fit: &SizeFit, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    // A law by quantiles is too long to print.
    let law = if fit.law.len() > 60 {
        "by its quantiles"
    } else {
        &fit.law
    };
    writeln!(f, "\n{name}: {law}   largest difference {:.4}", fit.ks)?;
    writeln!(f, "  {:>8} {:>14} {:>14}", "", "recorded, B", "fitted, B")?;
    for row in &fit.quantiles {
        let p = format!("p{}", row.p * 100.0);
        writeln!(f, "  {p:>8} {:>14} {:>14}", row.recorded, row.fitted)?;
    }
    writeln!(
        f,
        "  {:>8} {:>14.0} {:>14.0}",
        "mean", fit.mean_recorded, fit.mean_fitted
    )
}

fn keys(name: &str, fit: &PopularityFit, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    writeln!(f, "\n{name}: {} over {} objects", fit.law, fit.objects)?;
    if let Some((low, high)) = fit.theta_interval {
        let ranks = fit.ranks;
        writeln!(
            f,
            "  exponent within {low:.3} and {high:.3} (95 %), from the first {ranks} ranks"
        )?;
    }
    let (recorded, fitted) = (fit.keys_recorded, fit.keys_fitted);
    writeln!(f, "  different keys {recorded}, fitted {fitted:.0}")?;
    for share in &fit.top {
        let top = format!("top {}", share.keys);
        let (recorded, fitted) = (100.0 * share.recorded, 100.0 * share.fitted);
        writeln!(f, "  {top:>8} {recorded:13.3} % {fitted:12.3} %")?;
    }
    Ok(())
}
