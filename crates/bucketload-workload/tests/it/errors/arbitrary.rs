//! Arbitrary input never panics.

use bucketload_workload::resolve::{
    DryRun, EMBEDDED_MEMORY_BUDGET, Field, Override, Overrides, ResolveContext, resolve,
};
use bucketload_workload::spec::WorkloadFile;
use proptest::prelude::*;

use super::{GOOD, run};

proptest! {
    #[test]
    fn arbitrary_text_never_panics(text in "\\PC*") {
        let _ = run(&text, &Overrides::default());
    }

    /// Cuts, repeats and overwrites parts of valid workloads.
    #[test]
    fn mutated_workloads_never_panic(
        which in 0usize..16, from in 0usize..2000, len in 0usize..40, to in 0usize..2000,
        insert in "[\\[\\]{}=\"'.,()%/:0-9a-z\n -]{0,12}",
    ) {
        let builtins = bucketload_workload::spec::BUILTIN_WORKLOADS;
        let mut text: Vec<char> = builtins[which % builtins.len()].1.chars().collect();
        let from = from % text.len();
        let cut: Vec<char> = text.drain(from..(from + len).min(text.len())).collect();
        let to = to % (text.len() + 1);
        let new: Vec<char> = insert.chars().chain(cut).collect();
        text.splice(to..to, new);
        let text: String = text.into_iter().collect();
        let in_memory = ResolveContext { memory_budget: Some(EMBEDDED_MEMORY_BUDGET) };
        let resolved = WorkloadFile::parse("w.toml", &text)
            .and_then(|file| resolve(&file, &Overrides::default(), &in_memory));
        match resolved {
            Ok(resolved) => {
                // A workload that resolves can be generated.
                let outlook = DryRun::new(&resolved.plan);
                let outlook = outlook.map_err(|e| TestCaseError::fail(e.to_string()))?;
                prop_assert!(!outlook.to_string().is_empty());
            }
            Err(error) => {
                prop_assert!(!error.problems().is_empty());
                prop_assert!(!error.to_string().is_empty());
            }
        }
    }

    #[test]
    fn arbitrary_settings_never_panic(
        path in "(phases|keysets|target|seed|profile)(\\.(run|data|mix|get|works|keys|size|rate)){0,4}",
        value in "\\PC{0,30}",
    ) {
        let overrides = Overrides {
            profile: None,
            settings: vec![Override::new(Field::Path(path), &value)],
        };
        let _ = run(GOOD, &overrides);
    }
}
