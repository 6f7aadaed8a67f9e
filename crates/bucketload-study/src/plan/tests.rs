use std::collections::BTreeSet;
use std::convert::Infallible;

use super::{PlanOptions, plan};
use crate::model::{Order, Plan, Study};
use crate::spec::parse;

const SECOND: u64 = 1_000_000_000;

fn study(more: &str) -> Study {
    let text = format!(
        "name = \"s\"\nseed = 3\nrepetitions = 4\nrecovery = \"1s\"\n{more}\n\
         [[target]]\nname = \"a\"\nurl = \"mem:\"\n[[target]]\nname = \"b\"\nurl = \"null:\"\n\
         options = {{ threads = 1 }}\n\
         [[experiment]]\nname = \"sweep\"\nworkload = \"get\"\nfield = \"workers\"\nvalues = [1, 2, 4]\n\
         options = {{ duration = \"10s\", verify = true, set = [\"x=1\", \"y=2\"] }}\n\
         [[experiment]]\nname = \"once\"\nworkload = \"put\"\nrepetitions = 1\ntargets = [\"b\"]\n"
    );
    parse("s.toml", &text, false).unwrap_or_else(|e| panic!("{e}"))
}

fn planned(study: &Study, options: PlanOptions) -> Plan {
    plan(study, options, "1", |_| Ok::<u64, Infallible>(10 * SECOND)).unwrap()
}

#[test]
fn blocks_are_complete_and_random_and_the_seed_decides() {
    let study = study("");
    let plan_1 = planned(&study, PlanOptions::default());
    assert_eq!(plan_1, planned(&study, PlanOptions::default()));
    assert_eq!(plan_1.cells.len(), 4 * 6 + 1);
    let ids: BTreeSet<&String> = plan_1.cells.iter().map(|c| &c.id).collect();
    assert_eq!(ids.len(), plan_1.cells.len());
    let mut orders = BTreeSet::new();
    for block in 1..=4 {
        let cells = plan_1
            .cells
            .iter()
            .filter(|c| c.block == block && c.experiment == "sweep");
        let cells: Vec<(&str, &str)> = cells
            .map(|c| (c.target.as_str(), c.value.as_str()))
            .collect();
        let mut sorted = cells.clone();
        sorted.sort_unstable();
        let all = [
            ("a", "1"),
            ("a", "2"),
            ("a", "4"),
            ("b", "1"),
            ("b", "2"),
            ("b", "4"),
        ];
        assert_eq!(sorted, all, "block {block}");
        orders.insert(cells);
    }
    assert!(orders.len() > 1, "every block has the same order");
    let other = planned(&Study { seed: 4, ..study }, PlanOptions::default());
    assert_ne!(plan_1.cells, other.cells);
}

#[test]
fn arguments_are_options_the_swept_value_and_a_seed_per_repetition() {
    let plan = planned(&study(""), PlanOptions::default());
    let of = |target: &str, repetition: u32| {
        let cell = plan.cells.iter().find(|c| {
            (c.target.as_str(), c.value.as_str(), c.repetition) == (target, "2", repetition)
        });
        cell.unwrap().args.clone()
    };
    let args = of("b", 1);
    let seed = args.last().unwrap();
    let expected = [
        "get",
        "--duration=10s",
        "--set=x=1",
        "--set=y=2",
        "--threads=1",
        "--verify",
        "--workers=2",
        seed,
    ];
    assert_eq!(args, expected);
    assert!(seed.starts_with("--seed="));
    // Targets share schedules, repetitions do not.
    assert_eq!(of("a", 1).last(), of("b", 1).last());
    assert_ne!(of("a", 1).last(), of("a", 2).last());
}

#[test]
fn abba_goes_forwards_and_backwards() {
    let plan = planned(
        &Study {
            order: Order::Abba,
            ..study("")
        },
        PlanOptions::default(),
    );
    let block = |n: u32| -> Vec<(String, String)> {
        let cells = plan
            .cells
            .iter()
            .filter(|c| c.block == n && c.experiment == "sweep");
        cells.map(|c| (c.target.clone(), c.value.clone())).collect()
    };
    let backwards: Vec<_> = block(2).into_iter().rev().collect();
    assert_eq!(block(1), backwards);
    assert_eq!(block(1), block(3));
}

#[test]
fn servers_stay_together_inside_a_block() {
    let mut study = study("");
    study.targets[0].url.clear();
    study.targets[0].server = "minio".to_owned();
    let plan = planned(&study, PlanOptions::default());
    for block in 1..=4 {
        let mut targets: Vec<&str> = plan
            .cells
            .iter()
            .filter(|c| c.block == block)
            .map(|c| c.target.as_str())
            .collect();
        targets.dedup();
        assert_eq!(targets.len(), 2, "block {block}: {targets:?}");
    }
    assert!(
        plan.notes[0].contains("one after another"),
        "{:?}",
        plan.notes
    );
}

#[test]
fn a_budget_decides_the_repetitions_and_says_so() {
    let study = study("");
    // Six cells and one more of 10 s + 1 s pause + 1.5 s each.
    let per_block = 6 * 12_500_000_000;
    let with = |budget_ns: u64| {
        planned(
            &study,
            PlanOptions {
                budget_ns: Some(budget_ns),
                repetitions: None,
            },
        )
    };
    let blocks = |plan: &Plan| plan.cells.iter().map(|c| c.block).max().unwrap();
    let plan = with(3 * per_block + 12_500_000_000);
    assert_eq!(blocks(&plan), 3);
    assert!(plan.estimate_ns <= plan.budget_ns.unwrap());
    // An experiment's own repetitions are kept.
    assert_eq!(
        plan.cells.iter().filter(|c| c.experiment == "once").count(),
        1
    );
    assert!(
        plan.notes.iter().any(|n| n.contains("holds 3 repetitions")),
        "{:?}",
        plan.notes
    );

    let plan = with(2 * per_block + 12_500_000_000);
    assert_eq!(blocks(&plan), 2);
    assert!(
        plan.notes
            .iter()
            .any(|n| n.contains("no confidence interval")),
        "{:?}",
        plan.notes
    );

    let plan = with(SECOND);
    assert_eq!(blocks(&plan), 1);
    assert!(
        plan.notes
            .iter()
            .any(|n| n.contains("more than the budget")),
        "{:?}",
        plan.notes
    );
}

#[test]
fn an_impossible_cell_cannot_be_planned() {
    let refused = plan(&study(""), PlanOptions::default(), "1", |cell| {
        match cell.value.as_str() {
            "4" => Err(format!("{}: no", cell.experiment)),
            _ => Ok(0),
        }
    });
    assert_eq!(refused.unwrap_err(), "sweep: no");
}
