//! Data sets that outlive the run that prepares them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::common::*;
use bucketload_core::error::ErrorKind;
use bucketload_core::op::OpClass;
use bucketload_core::plan::{KeyLaw, Limits, PhaseKind, Plan};
use bucketload_run::{
    DataSet, JOURNAL, PATIENCE, Purpose, RunEnd, RunError, RunOptions, StopHandle, now_ns, run,
};

const MEASURE: Purpose = Purpose::Measure { incomplete: false };

/// A plan: init, prepare 1000 objects of set 0, read them and write 100 fresh ones into set 1.
fn whole() -> Plan {
    let put = |keys, set| entry(OpClass::Put, 1.0, set, keys);
    plan(vec![
        phase(PhaseKind::Init, vec![], Limits::default()),
        phase(
            PhaseKind::Prepare,
            vec![work(closed(8), vec![put(KeyLaw::Sequential, 0)])],
            for_ops(1_000),
        ),
        phase(
            PhaseKind::Run,
            vec![work(closed(4), vec![put(KeyLaw::Fresh, 1)])],
            for_ops(100),
        ),
    ])
}

/// A session on the data set: its end, and how many objects it prepared.
fn session(
    driver: &Arc<Scripted>,
    purpose: Purpose,
    change: impl FnOnce(&mut RunOptions, &mut Plan),
    stop: &StopHandle,
) -> Result<(RunEnd, u64), RunError> {
    let mut plan = whole();
    let mut options = RunOptions {
        data_set: Some(DataSet {
            identity: "objects".to_owned(),
            purpose,
            check: 0,
            patience: PATIENCE / 100,
        }),
        phases: (!matches!(purpose, Purpose::Measure { .. })).then(|| vec![0, 1]),
        ..options(2)
    };
    change(&mut options, &mut plan);
    let driver = Arc::clone(driver).into();
    let end = run(&driver, &plan, &options, &mut Kept::default(), stop)?;
    let prepared = end.phases.iter().filter(|phase| phase.phase == 1);
    let prepared = prepared.map(|phase| phase.totals.ok).sum();
    Ok((end, prepared))
}

fn go(driver: &Arc<Scripted>, purpose: Purpose) -> Result<(RunEnd, u64), RunError> {
    session(driver, purpose, |_, _| (), &StopHandle::new())
}

fn refusal(driver: &Arc<Scripted>, purpose: Purpose) -> String {
    go(driver, purpose).unwrap_err().to_string()
}

/// How often each object was written.
fn writes(driver: &Scripted) -> BTreeMap<String, u32> {
    let mut writes = BTreeMap::new();
    for (_, class, key, _) in driver.log() {
        if class == OpClass::Put {
            *writes.entry(key).or_default() += 1;
        }
    }
    writes
}

#[test]
fn sessions_add_up_and_measurements_follow() {
    let stop = StopHandle::new();
    let user = stop.clone();
    // The eight workers of the first session never get an answer from call 400 on; then the user aborts.
    let script = move |call: &Call| {
        if call.nth < 400 || call.session >= 8 {
            return at_once();
        }
        if call.nth == 400 {
            user.stop();
            user.stop();
        }
        never()
    };
    let driver = Arc::new(Scripted::new(script).logged());
    let (end, first) = session(&driver, Purpose::Begin, |_, _| (), &stop).unwrap();
    assert_eq!(first, 400);
    let words = format!("key set `r` has {first} of 1000 objects");
    assert!(end.incomplete.unwrap().contains(&words));
    // Nobody measures on half of it unless told, and a refused run leaves no trace.
    let keys = driver.keys("b");
    let refused = refusal(&driver, MEASURE);
    assert!(refused.contains(&words) && refused.contains("--prepare-only"));
    assert_eq!(driver.keys("b"), keys);
    let (end, _) = go(&driver, Purpose::Measure { incomplete: true }).unwrap();
    assert_eq!(end.phases.len(), 2, "{end:?}");

    let (end, second) = go(&driver, Purpose::GoOn).unwrap();
    assert_eq!((first + second, end.incomplete), (1_000, None));
    let (end, third) = go(&driver, Purpose::GoOn).unwrap();
    assert_eq!((third, end.phases.len()), (0, 1), "nothing is left to do");
    let (end, prepared) = go(&driver, MEASURE).unwrap();
    assert_eq!((prepared, end.phases.len()), (0, 2));
    let writes = writes(&driver);
    // 1000 objects, and 100 fresh ones of each of two measurements.
    assert_eq!(writes.len(), 1_200);
    assert!(writes.values().all(|times| *times == 1), "{writes:?}");
}

#[test]
fn failed_writes_are_missing_until_they_are_repeated() {
    let script = |call: &Call| match call.nth {
        100..105 => fail(ErrorKind::Server),
        _ => at_once(),
    };
    let driver = Arc::new(Scripted::new(script).logged());
    let (end, prepared) = go(&driver, Purpose::Begin).unwrap();
    assert_eq!(prepared, 995);
    assert!(end.incomplete.unwrap().contains("995 of 1000"));
    assert_eq!(go(&driver, Purpose::GoOn).unwrap().1, 5);
    assert_eq!(go(&driver, Purpose::GoOn).unwrap().1, 0);
}

#[test]
fn other_data_sets_are_refused() {
    let driver = Arc::new(Scripted::new(|_| at_once()));
    assert!(refusal(&driver, MEASURE).contains("holds no data set of run run-1"));
    assert!(refusal(&driver, Purpose::GoOn).contains("holds no data set"));
    go(&driver, Purpose::Begin).unwrap();
    let refused = |change: fn(&mut RunOptions, &mut Plan)| {
        let outcome = session(&driver, MEASURE, change, &StopHandle::new());
        outcome.unwrap_err().to_string()
    };
    let other = refused(|options, _| options.run_id = "run-2".to_owned());
    assert!(other.contains("holds no data set of run run-2"), "{other}");
    let other = refused(|options, plan| {
        options.data_set.as_mut().unwrap().identity = "others".to_owned();
        plan.keysets[0].count = 2_000;
    });
    assert!(other.contains("1000 objects in `r`") && other.contains("needs 2000"));
    let other = refused(|_, plan| {
        plan.phases
            .push(phase(PhaseKind::Cleanup, vec![], Limits::default()));
    });
    assert!(other.contains("must not be deleted"), "{other}");
    let body = b"{\"version\":1,\"identity\":\"objects\",\"runs\":0,\"keysets\":[{\"keyset\":0,\"name\":\"r\",\
                 \"count\":1000,\"done\":[[5,3]]}]}";
    let mut state = driver.0.state.lock().unwrap();
    let bucket = state.buckets.get_mut("b").unwrap();
    bucket.insert(format!("t/{JOURNAL}"), body.to_vec());
    drop(state);
    assert!(refusal(&driver, MEASURE).contains("is damaged"));
}

#[test]
fn a_check_finds_what_was_deleted() {
    let driver = Arc::new(Scripted::new(|_| at_once()).strict().verifies());
    go(&driver, Purpose::Begin).unwrap();
    let check = |count| {
        let change = |options: &mut RunOptions, _: &mut Plan| {
            options.data_set.as_mut().unwrap().check = count;
        };
        session(&driver, Purpose::GoOn, change, &StopHandle::new())
    };
    assert_eq!(check(10).unwrap().0.checked, 10);
    assert_eq!(check(5_000).unwrap().0.checked, 1_000);
    let key = driver.keys("b").into_iter().nth(500).unwrap();
    let mut state = driver.0.state.lock().unwrap();
    state.buckets.get_mut("b").unwrap().remove(&key);
    drop(state);
    let error = check(1_000).unwrap_err();
    assert!(matches!(
        error,
        RunError::Altered {
            wrong: 1,
            read: 1_000,
            ..
        }
    ));
    assert!(error.to_string().contains(&format!("`{key}`: ")), "{error}");
}

#[test]
fn drivers_that_cannot_compare_refuse_a_check() {
    let driver = Arc::new(Scripted::new(|_| at_once()));
    let change = |options: &mut RunOptions, _: &mut Plan| {
        options.data_set.as_mut().unwrap().check = 1;
    };
    let refused = session(&driver, Purpose::Begin, change, &StopHandle::new()).unwrap_err();
    assert!(matches!(refused, RunError::Unsupported { .. }), "{refused}");
    // It is known before anything is written.
    assert!(driver.keys("b").is_empty());
}

/// Waits until `ready`.
fn wait_for(what: &str, mut ready: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !ready() {
        assert!(begun.elapsed() < PATIENCE, "waited for {what} in vain");
        std::thread::yield_now();
    }
}

/// The journal in the store.
fn journal(driver: &Scripted) -> serde_json::Value {
    let state = driver.0.state.lock().unwrap();
    let body = state
        .buckets
        .get("b")
        .and_then(|b| b.get(&format!("t/{JOURNAL}")));
    body.map_or(serde_json::Value::Null, |body| {
        serde_json::from_slice(body).unwrap()
    })
}

/// Aborts a session when dropped, so that a failed test ends.
struct Aborts<'a>(&'a StopHandle);

impl Drop for Aborts<'_> {
    fn drop(&mut self) {
        self.0.stop();
        self.0.stop();
    }
}

/// Makes somebody else the holder of the data set.
fn usurp(driver: &Scripted) {
    let mut journal = journal(driver);
    journal["lease"] = serde_json::json!({
        "session": "another-boot pid:[1] 7 9 0", "host": "elsewhere", "pid": 7, "beat": 3, "written_unix_s": 0
    });
    let mut state = driver.0.state.lock().unwrap();
    let body = serde_json::to_vec(&journal).unwrap();
    let bucket = state.buckets.get_mut("b").unwrap();
    bucket.insert(format!("t/{JOURNAL}"), body);
}

#[test]
fn a_second_session_is_refused_while_the_first_lives() {
    // The eight workers of the first session never get an answer from call 400 on.
    let script = |call: &Call| match call.nth < 400 || call.session >= 8 {
        true => at_once(),
        false => never(),
    };
    let driver = Arc::new(Scripted::new(script).logged());
    let stop = StopHandle::new();
    std::thread::scope(|scope| {
        let first = scope.spawn(|| session(&driver, Purpose::Begin, |_, _| (), &stop).unwrap());
        let aborts = Aborts(&stop);
        wait_for("the first session", || driver.log().len() == 400);
        let change = |options: &mut RunOptions, _: &mut Plan| {
            options.data_set.as_mut().unwrap().patience = PATIENCE;
        };
        let refused = session(&driver, Purpose::GoOn, change, &StopHandle::new()).unwrap_err();
        let own = format!("process {} on ", std::process::id());
        let text = refused.to_string();
        assert!(
            text.contains(&own) && text.contains("wait until it has ended"),
            "{text}"
        );
        assert_eq!(driver.log().len(), 400, "it wrote nothing");
        // A measurement beside it takes a number, and the preparation keeps that.
        go(&driver, Purpose::Measure { incomplete: true }).unwrap();
        drop(aborts);
        assert_eq!(first.join().unwrap().1, 400);
    });
    let known = journal(&driver);
    assert_eq!(
        (&known["runs"], &known["lease"]),
        (&1.into(), &serde_json::Value::Null)
    );
    assert_eq!(go(&driver, Purpose::GoOn).unwrap().1, 600);
    assert!(writes(&driver).values().all(|times| *times == 1));
}

#[test]
fn a_silent_session_is_replaced_and_a_replaced_one_stops() {
    let driver = Arc::new(Scripted::new(|_| until(now_ns() + 60_000_000)).logged());
    let stop = StopHandle::new();
    std::thread::scope(|scope| {
        let first = scope.spawn(|| session(&driver, Purpose::Begin, |_, _| (), &stop));
        let _aborts = Aborts(&stop);
        wait_for("the first session", || driver.log().len() > 8);
        usurp(&driver);
        let error = first.join().unwrap().unwrap_err();
        assert!(matches!(error, RunError::TakenOver { .. }), "{error}");
        assert!(
            error.to_string().contains("process 7 on elsewhere"),
            "{error}"
        );
    });
    let began = driver.log().len();
    assert!(began < 1_000, "it stopped");
    let mut kept = Kept::default();
    let options = RunOptions {
        data_set: Some(DataSet {
            identity: "objects".to_owned(),
            purpose: Purpose::GoOn,
            check: 0,
            patience: Duration::from_millis(60),
        }),
        phases: Some(vec![0, 1]),
        ..options(2)
    };
    let any = Arc::clone(&driver).into();
    let end = run(&any, &whole(), &options, &mut kept, &StopHandle::new()).unwrap();
    assert_eq!(end.incomplete, None);
    let warned = kept
        .warnings()
        .iter()
        .any(|w| w.contains("process 7 on elsewhere"));
    assert!(warned, "{:?}", kept.warnings());
    assert_eq!(journal(&driver)["lease"], serde_json::Value::Null);
}
