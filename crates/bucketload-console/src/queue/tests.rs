//! The state machine, without a clock and without processes.

use super::data_dir::DataDir;
use super::{JobId, JobState, MAX_JOBS, MAX_WAITING, NewJob, ProcessExit, Queue, QueueError};

fn submit(queue: &mut Queue, now_ms: u64) -> JobId {
    let id = queue.next_id(|_| false).unwrap();
    let job = NewJob {
        name: format!("job-{}", id.0),
        ..NewJob::default()
    };
    queue.submit(id, job, now_ms);
    id
}

fn order(queue: &Queue) -> Vec<u64> {
    queue.waiting().map(|job| job.id.0).collect()
}

fn state(queue: &Queue, id: JobId) -> JobState {
    queue.get(id).unwrap().state
}

#[test]
fn jobs_run_one_at_a_time_in_their_order() {
    let mut queue = Queue::default();
    let (a, b) = (submit(&mut queue, 1), submit(&mut queue, 2));
    assert_eq!(queue.start(10), Some(a));
    assert_eq!(queue.start(11), None, "one at a time");
    assert_eq!(queue.running().unwrap().started_ms, 10);
    queue.record_exit(a, ProcessExit::Code(0), String::new(), 20);
    assert_eq!(
        (state(&queue, a), queue.get(a).unwrap().ended_ms),
        (JobState::Finished, 20)
    );
    assert_eq!(queue.start(21), Some(b));
    assert_eq!(queue.start(22), None);
}

#[test]
fn exits_map_to_the_states_of_cosbench() {
    for (ended, word) in [
        (ProcessExit::Code(0), JobState::Finished),
        (ProcessExit::Code(1), JobState::Failed),
        (ProcessExit::Code(2), JobState::Terminated),
        (ProcessExit::Code(3), JobState::Terminated),
        (ProcessExit::Code(4), JobState::Terminated),
        (ProcessExit::Code(5), JobState::Finished),
        (ProcessExit::Code(130), JobState::Terminated),
        (ProcessExit::Signal(9), JobState::Terminated),
    ] {
        let mut queue = Queue::default();
        let id = submit(&mut queue, 0);
        queue.start(1);
        queue.record_exit(id, ended, "why".into(), 2);
        assert_eq!(state(&queue, id), word, "{ended:?}");
        assert_eq!(queue.get(id).unwrap().message, "why");
    }
}

#[test]
fn cancelling_depends_on_the_state() {
    let mut queue = Queue::default();
    let (a, b, c) = (
        submit(&mut queue, 0),
        submit(&mut queue, 0),
        submit(&mut queue, 0),
    );
    queue.start(1);
    assert_eq!(queue.cancel(b, 2), Ok(false), "no process must be stopped");
    assert_eq!(state(&queue, b), JobState::Cancelled);
    assert_eq!(queue.cancel(a, 3), Ok(true));
    assert_eq!(
        state(&queue, a),
        JobState::Processing,
        "until the process has exited"
    );
    queue.record_exit(a, ProcessExit::Code(130), String::new(), 4);
    assert_eq!(state(&queue, a), JobState::Cancelled);
    assert_eq!(
        queue.cancel(a, 5),
        Err(QueueError::Over(a, JobState::Cancelled))
    );
    assert_eq!(
        queue.cancel(JobId(99), 5),
        Err(QueueError::Unknown(JobId(99)))
    );
    // The run completed before the signal arrived.
    queue.start(6);
    assert_eq!(queue.cancel(c, 7), Ok(true));
    queue.record_exit(c, ProcessExit::Code(0), String::new(), 8);
    assert_eq!(state(&queue, c), JobState::Finished);
}

#[test]
fn waiting_jobs_can_be_moved() {
    let mut queue = Queue::default();
    let ids: Vec<JobId> = (0..4).map(|_| submit(&mut queue, 0)).collect();
    queue.start(1);
    assert_eq!(order(&queue), [2, 3, 4]);
    queue.shift(ids[3], -1).unwrap();
    assert_eq!(order(&queue), [2, 4, 3]);
    queue.shift(ids[1], 1).unwrap();
    assert_eq!(order(&queue), [4, 2, 3]);
    queue.shift(ids[2], i64::MIN).unwrap();
    assert_eq!(order(&queue), [3, 4, 2]);
    queue.shift(ids[2], i64::MAX).unwrap();
    assert_eq!(order(&queue), [4, 2, 3]);
    assert_eq!(
        queue.shift(ids[0], 1),
        Err(QueueError::NotWaiting(ids[0], JobState::Processing))
    );
}

#[test]
fn the_list_is_bounded_and_never_loses_jobs_that_have_not_ended() {
    let mut queue = Queue::default();
    let first = submit(&mut queue, 0);
    for n in 0..MAX_JOBS as u64 + 10 {
        let id = submit(&mut queue, n);
        queue.cancel(id, n).unwrap();
    }
    let last = submit(&mut queue, 0);
    assert!(queue.get(first).is_some() && queue.get(last).is_some());
    assert!(queue.history().count() <= MAX_JOBS);
    assert_eq!(order(&queue), [first.0, last.0]);
    let mut full = Queue::default();
    (0..MAX_WAITING).for_each(|_| {
        submit(&mut full, 0);
    });
    assert_eq!(full.next_id(|_| false), Err(QueueError::Full));
}

#[test]
fn only_jobs_use_up_ids() {
    let mut queue = Queue::default();
    for _ in 0..3 {
        assert_eq!(queue.next_id(|_| false), Ok(JobId(1)));
    }
    let first = submit(&mut queue, 0);
    queue.cancel(first, 1).unwrap();
    // An existing directory is not reused.
    assert_eq!(queue.next_id(|id| id.0 < 5), Ok(JobId(5)));
    assert_eq!(submit(&mut queue, 2), JobId(2));
}

#[test]
fn identifiers_are_those_of_cosbench() {
    assert_eq!("w12".parse::<JobId>(), Ok(JobId(12)));
    assert_eq!(JobId(12).to_string(), "w12");
    for text in [
        "", "w", "12", "W1", "w-1", "w+1", "w1/..", "../w1", "w1 ", "w0x1",
    ] {
        assert!(text.parse::<JobId>().is_err(), "{text}");
    }
}

#[test]
fn the_queue_survives_on_disk_and_belongs_to_one_controller() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let data_dir = DataDir::open(&data).unwrap();
    let mut queue = data_dir.load().unwrap();
    assert_eq!(queue, Queue::default());
    let a = submit(&mut queue, 5);
    submit(&mut queue, 6);
    queue.start(7);
    data_dir.save(&queue).unwrap();
    assert!(
        DataDir::open(&data)
            .unwrap_err()
            .contains("another controller")
    );
    drop(data_dir);
    let data_dir = DataDir::open(&data).unwrap();
    let again = data_dir.load().unwrap();
    assert_eq!(again, queue);
    assert_eq!(again.running().unwrap().id, a);
    std::fs::write(data.join("queue.json"), "{\"format\":99,\"queue\":{}}").unwrap();
    assert!(data_dir.load().unwrap_err().contains("newer version"));
    std::fs::write(data.join("queue.json"), "{\"format").unwrap();
    assert!(data_dir.load().unwrap_err().contains("move the file away"));
}
