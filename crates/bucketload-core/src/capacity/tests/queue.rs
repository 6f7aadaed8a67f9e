//! Theory of a queue with Poisson arrivals, one server and first come, first served: the known results
//! against which measurements are tested.
//!
//! With arrivals λ and a server that can serve μ per second, λ < μ, the response time is
//! - exponential with rate μ - λ when service times are exponential (M/M/1; Kleinrock, *Queueing
//!   Systems* vol. 1, section 5.8);
//! - a wait with the distribution function of Erlang (1909) plus the service time D = 1/μ when they
//!   are all equal (M/D/1; Gross and Harris, *Fundamentals of Queueing Theory*, section 5.1.5):
//!   P(W ≤ t) = (1-λD) Σ_{k=0}^{⌊t/D⌋} [λ(kD-t)]^k / k! · exp(-λ(kD-t)).

/// Distribution of service times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ServiceLaw {
    /// Exponentially distributed: M/M/1.
    Exponential,
    /// All equal: M/D/1.
    Deterministic,
}

/// P(response ≤ `t_s` seconds) for `arrivals_per_s` at a server of `service_per_s`; 0 for an unstable queue.
/// For M/D/1 the terms of the sum alternate, so `t_s` may be at most 20 service times.
fn response_cdf(law: ServiceLaw, arrivals_per_s: f64, service_per_s: f64, t_s: f64) -> f64 {
    if arrivals_per_s >= service_per_s || t_s <= 0.0 {
        return 0.0;
    }
    match law {
        ServiceLaw::Exponential => 1.0 - (-(service_per_s - arrivals_per_s) * t_s).exp(),
        ServiceLaw::Deterministic => {
            let service = 1.0 / service_per_s;
            let wait = t_s - service;
            if wait < 0.0 {
                return 0.0;
            }
            let mut sum = 0.0;
            for k in 0..=(wait / service).floor() as u32 {
                let x = arrivals_per_s * (f64::from(k) * service - wait);
                let power: f64 = (1..=k).map(|i| x / f64::from(i)).product();
                sum += power * (-x).exp();
            }
            (1.0 - arrivals_per_s * service) * sum
        }
    }
}

/// The highest arrival rate at which the `q`-quantile of the response stays below `bound_s` seconds; `None`
/// if even an idle server takes longer.
///
/// # Panics
/// If `q` is not inside 0..1.
pub(super) fn capacity(law: ServiceLaw, service_per_s: f64, q: f64, bound_s: f64) -> Option<f64> {
    assert!(q > 0.0 && q < 1.0, "quantile {q} is outside 0..1");
    let meets = |rate: f64| response_cdf(law, rate, service_per_s, bound_s) >= q;
    let (mut low, mut high) = (service_per_s * 1e-9, service_per_s);
    if !meets(low) {
        return None;
    }
    for _ in 0..100 {
        let middle = f64::midpoint(low, high);
        if meets(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    Some(low)
}

#[cfg(test)]
mod tests {
    use super::{ServiceLaw, capacity, response_cdf};
    use crate::stats::testing::Noise;

    #[test]
    fn closed_forms() {
        // lambda = mu - ln(1/(1-q))/x.
        let found = capacity(ServiceLaw::Exponential, 400.0, 0.99, 0.05).unwrap();
        assert!(
            (found - (400.0 - 100f64.ln() / 0.05)).abs() < 1e-6,
            "{found}"
        );
        // An arrival does not wait with probability 1 - rho; it waits at most one service time with
        // probability (1 - rho) e^rho.
        let at = |t: f64| response_cdf(ServiceLaw::Deterministic, 80.0, 100.0, t);
        assert!((at(0.01) - 0.2).abs() < 1e-12);
        assert!((at(0.02 - 1e-9) - 0.2 * 0.8f64.exp()).abs() < 1e-6);
        assert_eq!(at(0.009), 0.0);
        assert_eq!(capacity(ServiceLaw::Exponential, 10.0, 0.99, 0.01), None);
        assert_eq!(response_cdf(ServiceLaw::Exponential, 10.0, 10.0, 1.0), 0.0);
    }

    #[test]
    fn erlang_agrees_with_a_simulated_queue() {
        let mut noise = Noise::new(31);
        let (mut wait, mut below, n) = (0.0f64, 0, 400_000);
        let t = 0.06;
        for _ in 0..n {
            // Lindley: the next wait is the part of wait and service that remains after the gap.
            below += u32::from(wait + 0.01 <= t);
            wait = (wait + 0.01 + noise.uniform().ln() / 80.0).max(0.0);
        }
        let expected = response_cdf(ServiceLaw::Deterministic, 80.0, 100.0, t);
        let got = f64::from(below) / f64::from(n);
        // Waits are correlated over about 1/(1-rho)^2 = 25 arrivals: four standard errors of n/50 independent
        // ones.
        let error = 4.0 * (expected * (1.0 - expected) / f64::from(n) * 50.0).sqrt();
        assert!(
            (got - expected).abs() < error,
            "{got} for {expected} ± {error}"
        );
    }
}
