//! Campaigns on the null target; those on real stores are in `tests/it/compare.rs`.

use std::path::Path;

use bucketload_core::verdict::Word;
use bucketload_results::rundir::{Manifest, RunDir};
use bucketload_run::StopHandle;
use bucketload_workload::resolve::{Field, Override, Overrides};
use bucketload_workload::spec::WorkloadFile;

use super::{Campaign, CampaignSpec};
use crate::cli::run::LoadArgs;
use crate::cli::target::TargetArgs;
use crate::connection::Connection;
use crate::exit::Exit;
use crate::target::Target;

fn spec(dir: &Path, stop: &StopHandle) -> CampaignSpec {
    let load = LoadArgs {
        threads: Some(1),
        no_calibration: true,
        ..LoadArgs::default()
    };
    let settings = [
        (Field::Ops, "300"),
        (Field::Objects, "50"),
        (Field::Workers, "2"),
    ];
    CampaignSpec {
        file: WorkloadFile::builtin("get").unwrap(),
        overrides: Overrides {
            profile: None,
            settings: settings
                .into_iter()
                .map(|(field, value)| Override::new(field, value))
                .collect(),
        },
        connection: Connection::open(Target::Null, &TargetArgs::default(), &load).unwrap(),
        load,
        dir: dir.join("campaign"),
        resumed: None,
        independent: false,
        quiet: true,
        stop: stop.clone(),
    }
}

fn set(field: Field, value: &str) -> [Override; 1] {
    [Override::new(field, value)]
}

#[test]
fn each_trial_has_its_own_run_directory_and_may_change_any_setting() {
    let dir = tempfile::tempdir().unwrap();
    let mut campaign = Campaign::open(spec(dir.path(), &StopHandle::new())).unwrap();
    campaign.prepare(&[]).unwrap();
    let first = campaign.trial("base", &[]).unwrap();
    assert_eq!(first.dir.parent(), Some(campaign.dir()));
    let slow = campaign.trial("rate", &set(Field::Rate, "1000/s")).unwrap();
    // Needs another data set, which replaces the present one.
    let large = campaign.trial("size", &set(Field::Size, "8KiB")).unwrap();
    campaign.close().unwrap();
    let mut hashes = Vec::new();
    for (trial, name, number) in [
        (&first, "001-base", 1),
        (&slow, "002-rate", 2),
        (&large, "003-size", 3),
    ] {
        assert_eq!(trial.exit, Exit::Ok);
        assert!(trial.dir.ends_with(name), "{:?}", trial.dir);
        assert_ne!(trial.result.verdict.word, Word::Incomplete, "{name}");
        let measured: Vec<_> = trial
            .result
            .phases
            .iter()
            .map(|p| p.name.as_str())
            .collect();
        assert_eq!(measured, ["run"], "only the measurement is recorded");
        assert_eq!(trial.result.phases[0].totals.ok, 300);
        let manifest = Manifest::read(&trial.dir).unwrap();
        assert!(manifest.run_id.ends_with(&format!(".{number}")));
        assert!(RunDir::open(&trial.dir).is_ok());
        hashes.push(manifest.scenario_hash);
    }
    hashes.sort();
    hashes.dedup();
    assert_eq!(hashes.len(), 3);
}

#[test]
fn a_used_directory_and_wrong_settings_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let stop = StopHandle::new();
    let mut campaign = Campaign::open(spec(dir.path(), &stop)).unwrap();
    let refused = campaign.trial("x", &set(Field::Rate, "-5")).err().unwrap();
    assert!(refused.message.contains("--rate -5"), "{}", refused.message);
    assert!(!dir.path().join("campaign").exists(), "nothing was written");
    campaign.trial("x", &[]).unwrap();
    let refused = Campaign::open(spec(dir.path(), &stop)).err().unwrap();
    assert_eq!(refused.exit, Exit::Usage);
}

#[test]
fn a_stopped_campaign_refuses_further_trials() {
    let dir = tempfile::tempdir().unwrap();
    let stop = StopHandle::new();
    let mut campaign = Campaign::open(spec(dir.path(), &stop)).unwrap();
    campaign.trial("x", &[]).unwrap();
    stop.stop();
    campaign.pause(std::time::Duration::from_secs(3600));
    let refused = campaign.trial("y", &[]).err().unwrap();
    assert_eq!(refused.exit, Exit::Interrupted);
    campaign.close().unwrap();
    assert!(!dir.path().join("campaign/002-y").exists());
}
