use std::collections::BTreeSet;

use super::{CheckpointAction, CheckpointPart, CheckpointPlan, LanguageModel};
use crate::plan::ranks::Fraction;

/// Numbers of docs/spec/ai-checkpoints.md section "Checkpoints", in the order of the fields.
fn model(name: &str, n: [u64; 9], zero: u32) -> LanguageModel {
    let [
        layers,
        hidden,
        ffn,
        heads,
        kv_heads,
        tensor,
        pipeline,
        data,
        vocabulary,
    ] = n;
    LanguageModel {
        name: name.to_owned(),
        layers,
        hidden,
        ffn,
        heads,
        kv_heads,
        vocabulary,
        tensor,
        pipeline,
        data,
        zero,
        weight_bytes: 2,
        optimizer_bytes: 4,
    }
}

fn models() -> [LanguageModel; 4] {
    [
        model("8b", [32, 4096, 14336, 32, 8, 1, 1, 8, 128_256], 3),
        model("70b", [80, 8192, 28672, 128, 8, 8, 1, 8, 128_256], 3),
        model("405b", [126, 16384, 53248, 128, 8, 8, 32, 2, 128_256], 1),
        model("1t", [128, 25872, 98304, 192, 32, 8, 64, 2, 128_256], 1),
    ]
}

fn whole(model: LanguageModel) -> CheckpointPlan {
    CheckpointPlan {
        ranks: u32::try_from(model.ranks()).unwrap(),
        model,
        action: CheckpointAction::Write,
        number: 1,
        scale: Fraction { parts: 1, of: 1 },
        extension: "pt".to_owned(),
        piece_bytes: 0,
        lanes: 1,
        shift: 0,
        interval_ns: 0,
    }
}

fn names(plan: &CheckpointPlan) -> BTreeSet<String> {
    let mut out = BTreeSet::new();
    for rank in 0..plan.ranks {
        for object in plan.objects(rank) {
            let mut name = String::new();
            plan.model
                .push_name(u64::from(rank), object.part, &mut name);
            assert!(out.insert(name), "two objects have one name");
        }
    }
    out
}

/// docs/spec/ai-checkpoints.md section "Checkpoints", the table of results.
#[test]
fn totals_are_those_of_the_benchmark() {
    let expected: [(u128, u64, u64, u64, u64, u64); 4] = [
        (
            8_030_261_248,
            16_060_522_496,
            96_365_101_056,
            112_425_623_552,
            16,
            12_045_637_632,
        ),
        (
            69_882_617_856,
            139_783_700_480,
            838_622_871_552,
            978_406_572_032,
            128,
            13_103_482_368,
        ),
        (
            405_853_388_800,
            811_764_809_728,
            4_870_743_982_080,
            5_682_508_791_808,
            1544,
            9_513_171_840,
        ),
        (
            1_183_035_102_480,
            2_366_163_292_416,
            14_198_010_802_176,
            16_564_174_094_592,
            2072,
            13_865_244_924,
        ),
    ];
    for (model, (params, weights, optimizer, total, objects, per_rank)) in
        models().into_iter().zip(expected)
    {
        let plan = whole(model);
        assert_eq!(plan.model.params(), params);
        let sums = (0..plan.ranks).fold((0, 0), |sum, rank| {
            let (weights, optimizer) = plan.bytes(rank);
            assert_eq!(optimizer, per_rank);
            (sum.0 + weights, sum.1 + optimizer)
        });
        assert_eq!(sums, (weights, optimizer), "{}", plan.model.name);
        assert_eq!(plan.total(), (objects, total));
        assert_eq!(names(&plan).len() as u64, objects);
        plan.model.check().unwrap();
    }
}

#[test]
fn weights_per_rank_are_those_of_the_benchmark() {
    let [small, medium, large, huge] = models().map(whole);
    assert!((0..8).all(|rank| small.bytes(rank).0 == 2_007_565_312));
    assert!((0..64).all(|rank| medium.bytes(rank).0 == 2_184_120_320));
    let stage = |plan: &CheckpointPlan, stage: u32| {
        let of: BTreeSet<u64> = (0..8)
            .map(|tensor| plan.bytes(stage * 8 + tensor).0)
            .collect();
        assert_eq!(of.len(), 1, "the eight ranks of a stage are alike");
        of.into_iter().next().unwrap()
    };
    assert_eq!(stage(&large, 0), 3_713_269_760);
    assert!((1..30).all(|at| stage(&large, at) == 3_187_933_184));
    assert_eq!(
        (stage(&large, 30), stage(&large, 31)),
        (2_390_949_888, 2_916_319_232)
    );
    assert_eq!(stage(&huge, 0), 5_425_047_936);
    assert!((1..63).all(|at| stage(&huge, at) == 4_595_488_128));
    assert_eq!(stage(&huge, 63), 5_425_099_680);
    assert!(
        (256..512).all(|rank| large.bytes(rank).0 == 0),
        "data rank 1 has no weights"
    );
    let sizes =
        |plan: &CheckpointPlan, rank| plan.objects(rank).map(|o| o.bytes).collect::<Vec<_>>();
    assert_eq!(sizes(&large, 0)[..2], [525_336_576, 796_983_296]);
    let last = sizes(&huge, 511);
    assert_eq!(
        last[last.len() - 3..],
        [829_559_808, 51_744, 13_865_244_924]
    );
}

#[test]
fn names_are_those_of_the_benchmark() {
    let [small, _, large, _] = models().map(whole);
    let small = names(&small);
    assert!(small.contains("zero_pp_rank_7_mp_rank_0_model_states"));
    assert!(small.contains("zero_pp_rank_0_mp_rank_0_optim_states"));
    let large_names = names(&large);
    for name in [
        "layer_0-model_0_model_states",
        "layer_128-model_255_model_states",
        "zero_pp_rank_1_mp_rank_255_optim_states",
    ] {
        assert!(large_names.contains(name), "{name}");
    }
    // One stage, so the weights of a rank are one object.
    let flat = whole(model("flat", [2, 64, 128, 4, 4, 2, 1, 2, 1000], 1));
    let flat_names = names(&flat);
    assert!(
        flat_names.contains("model_1_model_states"),
        "{flat_names:?}"
    );
    assert_eq!(flat.total().0, 2 + 4);
}

#[test]
fn a_scaled_plan_keeps_names_and_objects() {
    for model in models() {
        let plan = whole(model);
        let scaled = CheckpointPlan {
            scale: Fraction {
                parts: 1,
                of: 1_000_000,
            },
            ..plan.clone()
        };
        assert_eq!(names(&scaled), names(&plan));
        assert_eq!(scaled.total().0, plan.total().0);
        let ratio = plan.total().1 as f64 / scaled.total().1 as f64;
        assert!((0.99e6..1.01e6).contains(&ratio), "{ratio}");
        let tiny = CheckpointPlan {
            scale: Fraction {
                parts: 1,
                of: u64::MAX,
            },
            ..plan
        };
        // Six tensors of one element each.
        assert_eq!(tiny.bytes(tiny.ranks - 1).1, 6 * 4);
    }
}

#[test]
fn a_subset_writes_what_its_ranks_would_in_the_whole_job() {
    let whole = whole(models()[2].clone());
    let subset = CheckpointPlan {
        ranks: 8,
        ..whole.clone()
    };
    assert!((0..8).all(|rank| subset.bytes(rank) == whole.bytes(rank)));
    assert!(names(&subset).is_subset(&names(&whole)));
    assert_eq!(subset.total().0, 8 * 6, "five layers and the optimizer");
}

#[test]
fn a_shifted_rank_reads_what_another_wrote() {
    let plan = CheckpointPlan {
        action: CheckpointAction::Read,
        shift: 256,
        ..whole(models()[2].clone())
    };
    assert_eq!((plan.owner(0), plan.owner(300)), (256, 44));
    assert_eq!(plan.transfers(0), 9_513_171_840);
    let all: u64 = (0..plan.ranks).map(|rank| plan.transfers(rank)).sum();
    assert_eq!(all, plan.total().1);
}

#[test]
fn impossible_models_are_refused_by_field() {
    let good = models()[0].clone();
    let cases: [(&str, LanguageModel); 6] = [
        (
            "heads",
            LanguageModel {
                heads: 8192,
                ..good.clone()
            },
        ),
        (
            "layers",
            LanguageModel {
                layers: 0,
                ..good.clone()
            },
        ),
        (
            "pipeline",
            LanguageModel {
                pipeline: 33,
                ..good.clone()
            },
        ),
        (
            "zero",
            LanguageModel {
                zero: 2,
                ..good.clone()
            },
        ),
        (
            "kv-heads",
            LanguageModel {
                kv_heads: 33,
                ..good.clone()
            },
        ),
        (
            "data",
            LanguageModel {
                data: 1 << 20,
                tensor: 2,
                ..good
            },
        ),
    ];
    for (field, model) in cases {
        assert_eq!(model.check().unwrap_err().field, field);
    }
    assert_eq!(
        whole(models()[0].clone()).objects(0).next().unwrap().part,
        CheckpointPart::Weights
    );
}
