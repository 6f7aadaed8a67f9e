//! The course of a drill: what its journal says of baseline, faults and hooks.

use bucketload_core::drill::{DrillPlan, Entry};

use super::figures::{FaultSpan, SECOND};

/// What the journal says.
pub(super) struct Course<'j> {
    pub(super) plan: &'j DrillPlan,
    pub(super) began: u64,
    pub(super) valid: Option<bool>,
    pub(super) why: String,
    /// Fault, start and end of each time that something was broken.
    pub(super) broken: Vec<(usize, u64, Option<u64>)>,
    pub(super) first_break: Option<u64>,
    pub(super) last_mend: Option<u64>,
    pub(super) hooks: Vec<String>,
    /// CPU time (nanoseconds) and bytes of the fault line while the load ran, and all its connections.
    pub(super) cost: Option<(u64, u64, u64)>,
}

impl<'j> Course<'j> {
    /// `None` without a plan or a start.
    pub(super) fn of(journal: &'j [Entry]) -> Option<Self> {
        let plan = journal.iter().find_map(|entry| match entry {
            Entry::Plan { drill, .. } => Some(drill),
            _ => None,
        })?;
        let mut course = Self {
            plan,
            began: 0,
            valid: None,
            why: String::new(),
            broken: Vec::new(),
            first_break: None,
            last_mend: None,
            hooks: Vec::new(),
            cost: None,
        };
        // What it had cost when the load began; journals of earlier versions lack it.
        let mut before = (0, 0);
        for entry in journal {
            match entry {
                Entry::Began { at_ns } => course.began = *at_ns,
                Entry::Baseline { valid, why, .. } => {
                    course.valid = Some(*valid);
                    course.why.clone_from(why);
                }
                Entry::Broke { fault, at_ns, .. } => {
                    course.broken.push((*fault, *at_ns, None));
                    course.first_break.get_or_insert(*at_ns);
                }
                Entry::Mended { fault, at_ns, .. } => {
                    let mut open = course.broken.iter_mut().rev();
                    if let Some(span) = open.find(|(index, _, to)| index == fault && to.is_none()) {
                        span.2 = Some(*at_ns);
                    }
                    course.last_mend = Some(*at_ns);
                }
                Entry::Ran {
                    fault,
                    hook,
                    outcome,
                    ..
                } if outcome != "ok" => {
                    let name = plan
                        .faults
                        .get(*fault)
                        .map(|fault| fault.name.as_str())
                        .unwrap_or_default();
                    course.hooks.push(format!("`{hook}` of {name}: {outcome}"));
                }
                Entry::Cost {
                    cpu_ns,
                    bytes,
                    connections,
                } => match course.valid {
                    None => before = (*cpu_ns, *bytes),
                    Some(_) => {
                        let spent = cpu_ns.saturating_sub(before.0);
                        course.cost = Some((spent, bytes.saturating_sub(before.1), *connections));
                    }
                },
                Entry::Plan { .. } | Entry::Owed { .. } | Entry::Ran { .. } => {}
            }
        }
        // Something that was never mended lasts to the end.
        if course.broken.iter().any(|(.., to)| to.is_none()) {
            course.last_mend = None;
        }
        (course.began > 0).then_some(course)
    }

    /// What was broken, and when; what was never mended lasts to `end`.
    pub(super) fn spans(&self, end: u64) -> Vec<FaultSpan> {
        let s = |ns: u64| ns.saturating_sub(self.began) as f64 / SECOND;
        let span = |&(fault, from, to): &(usize, u64, Option<u64>)| {
            let fault = self.plan.faults.get(fault)?;
            Some(FaultSpan {
                name: fault.name.clone(),
                what: fault.what.word().to_owned(),
                from_s: s(from),
                to_s: s(to.unwrap_or(end)),
            })
        };
        self.broken.iter().filter_map(span).collect()
    }
}
