//! The queue with a scripted process and virtual time.

use std::sync::Arc;

use bucketload_console::controller::{Controller, Source, SubmitError};
use bucketload_console::options::RunOptions;
use bucketload_console::queue::{JobId, JobState, ProcessExit};

use crate::support::{GRACE, Script, controller, state, until};

async fn submit(controller: &Controller, name: &str) -> JobId {
    let options = RunOptions::check([("rate".to_owned(), "5/s".to_owned())]).unwrap();
    controller
        .submit(Source::Builtin(name.to_owned()), options)
        .await
        .unwrap()
}

fn drive(controller: &Controller) -> tokio::task::JoinHandle<()> {
    let controller = controller.clone();
    tokio::spawn(async move { controller.drive().await })
}

#[tokio::test(start_paused = true)]
async fn workloads_run_one_after_the_other_in_their_order() {
    let dir = tempfile::tempdir().unwrap();
    let script = Script::new(false);
    let controller = controller(dir.path(), &script);
    let (a, b, c) = (
        submit(&controller, "get").await,
        submit(&controller, "put").await,
        submit(&controller, "mixed").await,
    );
    controller.shift(c, -1).unwrap();
    let driving = drive(&controller);
    let first = script.process(0).await;
    assert_eq!(first.task.workload, "get");
    assert_eq!(first.task.arguments, ["--rate=5/s"]);
    assert_eq!(script.count(), 1, "one at a time");
    first.end(ProcessExit::Code(0));
    assert_eq!(script.process(1).await.task.workload, "mixed");
    assert_eq!(state(&controller, a), JobState::Finished);
    script.process(1).await.end(ProcessExit::Code(1));
    script.process(2).await.end(ProcessExit::Signal(11));
    until(&controller, b, JobState::Terminated).await;
    assert_eq!(state(&controller, c), JobState::Failed);
    controller.stop();
    driving.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_run_is_asked_to_stop() {
    let dir = tempfile::tempdir().unwrap();
    let script = Script::new(false);
    let controller = controller(dir.path(), &script);
    let (a, b) = (
        submit(&controller, "get").await,
        submit(&controller, "put").await,
    );
    let _driving = drive(&controller);
    let process = script.process(0).await;
    controller.cancel(b).unwrap();
    assert_eq!(state(&controller, b), JobState::Cancelled);
    controller.cancel(a).unwrap();
    until(&controller, a, JobState::Cancelled).await;
    assert_eq!(process.signals(), ["INT"]);
    assert_eq!(script.count(), 1, "the cancelled job never ran");
}

#[tokio::test(start_paused = true)]
async fn a_run_that_does_not_stop_is_killed_after_the_grace_time() {
    let dir = tempfile::tempdir().unwrap();
    let script = Script::new(true);
    let controller = controller(dir.path(), &script);
    let a = submit(&controller, "get").await;
    let _driving = drive(&controller);
    let process = script.process(0).await;
    let before = tokio::time::Instant::now();
    controller.cancel(a).unwrap();
    until(&controller, a, JobState::Cancelled).await;
    assert_eq!(process.signals(), ["INT", "KILL"]);
    assert!(before.elapsed() >= GRACE);
}

#[tokio::test(start_paused = true)]
async fn a_stopped_controller_keeps_its_queue() {
    let dir = tempfile::tempdir().unwrap();
    let script = Script::new(false);
    let first = controller(dir.path(), &script);
    let (a, b) = (submit(&first, "get").await, submit(&first, "put").await);
    let driving = drive(&first);
    let process = script.process(0).await;
    first.stop();
    driving.await.unwrap();
    assert_eq!(process.signals(), ["INT"]);
    assert_eq!(state(&first, a), JobState::Terminated);
    drop(first);
    let second = controller(dir.path(), &script);
    assert_eq!(state(&second, b), JobState::Queuing);
    let _driving = drive(&second);
    assert_eq!(script.process(1).await.task.workload, "put");
}

#[tokio::test(start_paused = true)]
async fn a_run_whose_controller_died_is_terminated_and_the_next_one_runs() {
    let dir = tempfile::tempdir().unwrap();
    let script = Script::new(false);
    let first = controller(dir.path(), &script);
    let (a, b) = (submit(&first, "get").await, submit(&first, "put").await);
    let driving = drive(&first);
    script.process(0).await;
    // Like a SIGKILL: nothing of the controller runs any more.
    driving.abort();
    let _ = driving.await;
    drop(first);
    let second = controller(dir.path(), &script);
    assert_eq!(state(&second, a), JobState::Processing, "as the file says");
    let _driving = drive(&second);
    script.process(1).await;
    assert_eq!(state(&second, a), JobState::Terminated);
    let message = second.with_queue(|queue| queue.get(a).unwrap().message.clone());
    assert!(
        message.contains("what was measured until then is kept"),
        "{message}"
    );
    assert_eq!(state(&second, b), JobState::Processing);
}

#[tokio::test(start_paused = true)]
async fn a_refused_workload_leaves_nothing_behind() {
    let dir = tempfile::tempdir().unwrap();
    let script = Script::new(false);
    let controller = controller(dir.path(), &script);
    *script.refusal.lock().unwrap() = Some("x.toml:3:7: phases.run.rate: no rate".to_owned());
    let source = Source::File {
        name: "x.toml".to_owned(),
        bytes: b"name = \"x\"".to_vec(),
    };
    let refused = controller
        .submit(source.clone(), RunOptions::default())
        .await;
    assert_eq!(
        refused,
        Err(SubmitError::Refused(
            "x.toml:3:7: phases.run.rate: no rate".to_owned()
        ))
    );
    let count = |name: &str| {
        std::fs::read_dir(dir.path().join("data").join(name))
            .unwrap()
            .count()
    };
    assert_eq!((count("jobs"), count("incoming")), (0, 0));
    assert_eq!(controller.with_queue(|queue| queue.history().count()), 0);
    *script.refusal.lock().unwrap() = None;
    let id = controller
        .submit(source, RunOptions::default())
        .await
        .unwrap();
    assert_eq!(id, JobId(1), "a refused workload uses up no id");
    assert_eq!((count("jobs"), count("incoming")), (1, 0));
    let kept = controller.job_dir(id).join("x.toml");
    assert_eq!(std::fs::read(&kept).unwrap(), b"name = \"x\"");
    let again = controller.resubmit(id).await.unwrap();
    assert_ne!(again, id);
    assert!(controller.job_dir(again).join("x.toml").is_file());
    let unknown = controller
        .submit(Source::Builtin("../etc".to_owned()), RunOptions::default())
        .await;
    assert!(matches!(unknown, Err(SubmitError::Refused(_))));
}

#[tokio::test]
async fn leftovers_of_a_killed_controller_are_not_reused() {
    let dir = tempfile::tempdir().unwrap();
    let script = Script::new(false);
    // A submission that was being checked, and one that was about to be listed.
    let left = dir.path().join("data/incoming/7");
    std::fs::create_dir_all(&left).unwrap();
    std::fs::write(left.join("x.toml"), "x").unwrap();
    let half = dir.path().join("data/jobs/w1");
    std::fs::create_dir_all(&half).unwrap();
    std::fs::write(half.join("x.toml"), "another's").unwrap();
    let controller = controller(dir.path(), &script);
    assert!(!left.exists());
    assert_eq!(submit(&controller, "get").await, JobId(2));
    assert_eq!(
        std::fs::read_to_string(half.join("x.toml")).unwrap(),
        "another's"
    );
}

#[tokio::test]
async fn only_workloads_in_xml_have_an_archive() {
    let dir = tempfile::tempdir().unwrap();
    let script = Script::new(false);
    let controller = controller(dir.path(), &script);
    for (name, text) in [
        ("a.xml", "<workload name=\"a\"/>"),
        ("b.toml", "name = \"b\""),
    ] {
        let source = Source::File {
            name: name.to_owned(),
            bytes: text.as_bytes().to_vec(),
        };
        controller
            .submit(source, RunOptions::default())
            .await
            .unwrap();
    }
    submit(&controller, "get").await;
    let driving = drive(&controller);
    for (n, archive) in [
        (0, Some((dir.path().join("data/archive"), 1))),
        (1, None),
        (2, None),
    ] {
        let process = script.process(n).await;
        assert_eq!(process.task.archive, archive);
        process.end(ProcessExit::Code(0));
    }
    controller.stop();
    driving.await.unwrap();
}

#[tokio::test]
async fn files_of_jobs_are_for_their_owner_only() {
    use std::os::unix::fs::PermissionsExt as _;

    let dir = tempfile::tempdir().unwrap();
    let script = Script::new(false);
    let controller = controller(dir.path(), &script);
    let source = Source::File {
        name: "x.xml".to_owned(),
        bytes: b"<workload name=\"x\" config=\"secretkey=abc\"/>".to_vec(),
    };
    let id = controller
        .submit(source, RunOptions::default())
        .await
        .unwrap();
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
    let job = controller.job_dir(id);
    assert_eq!(mode(&dir.path().join("data")), 0o700);
    assert_eq!(mode(&job), 0o700);
    assert_eq!(mode(&job.join("x.xml")), 0o600);
    assert_eq!(mode(&dir.path().join("data/queue.json")), 0o600);
    let kept = Arc::new(std::fs::read_to_string(dir.path().join("data/queue.json")).unwrap());
    assert!(!kept.contains("secretkey"));
}
