//! The archive, byte for byte: headers and number formats of specification section 5.

use bucketload_cosbench::artifacts::{
    DriverRecord, Figures, HISTORY_HEADER, LogLine, OperationLine, Record, Row, Snapshot,
    StageRecord, State, WORKLOADS_HEADER,
};

const START: u64 = 1_769_903_999_000;

fn state(name: &'static str, seconds: u64) -> State {
    State {
        name,
        at_ms: START + seconds * 1000,
    }
}

fn figures(ops: u64, bytes: u64) -> Figures {
    Figures {
        ops,
        bytes,
        response_ms: 12.345,
        processing_ms: 11.1,
        throughput: 99.999,
        bandwidth: 6_399_936.0,
        success: Some(0.9512),
    }
}

fn row(name: &str, kind: &'static str, sample: &'static str) -> Row {
    Row {
        work: 0,
        work_name: "main".into(),
        name: name.into(),
        kind,
        sample,
        workers: 4,
        figures: figures(1000, 64_000_000),
        percentiles: Some([10.0, 20.0, 20.0, 30.0, 1240.0, 500_010.0]),
        histogram: vec![(0, 600), (1, 399), (50_000, 1)],
        ratio: 80,
        config: "containers=u(1,2);objects=u(1,5)".into(),
    }
}

fn line(ops: u64, bytes: u64) -> OperationLine {
    OperationLine {
        kind: "read",
        sample: "read",
        figures: figures(ops, bytes),
    }
}

fn record() -> Record {
    let done = |at| {
        vec![
            state("waiting", 0),
            state("running", at),
            state("completed", at + 5),
        ]
    };
    let mut init = row("init", "init", "write");
    init.figures = Figures::default();
    init.percentiles = None;
    let names = vec!["read".to_owned(), "1-read-read".to_owned()];
    Record {
        number: 7,
        name: "a, b".into(),
        states: vec![
            state("queuing", 0),
            state("processing", 1),
            state("finished", 20),
        ],
        utc_offset_s: 0,
        drivers: vec![DriverRecord {
            name: "driver1".into(),
            url: String::new(),
            lines: vec![line(1000, 64_000_000), line(250, 16)],
        }],
        stages: vec![
            StageRecord {
                name: "init".into(),
                states: done(1),
                rows: vec![init],
                ..StageRecord::default()
            },
            StageRecord {
                name: "main".into(),
                states: done(6),
                rows: vec![row("read", "read", "read"), row("1-read", "read", "read")],
                snapshots: vec![Snapshot {
                    at_ms: START + 11_000,
                    figures: vec![figures(500, 5), Figures::default()],
                    names,
                }],
                workers: vec![line(250, 16)],
                missions: vec![0],
                log: vec![LogLine {
                    at_ms: START,
                    driver: 0,
                    text: "[ERROR] [get] - myobjects1: timeout".into(),
                }],
            },
            StageRecord {
                name: "delay".into(),
                states: vec![
                    state("waiting", 0),
                    state("sleeping", 12),
                    state("completed", 20),
                ],
                ..StageRecord::default()
            },
        ],
    }
}

fn file(name: &str) -> String {
    let files = record().files("<workload/>".into());
    let found = files.files.into_iter().find(|(known, _)| known == name);
    found.unwrap_or_else(|| panic!("no {name}")).1
}

#[test]
fn the_layout_of_the_directory() {
    let files = record().files("<workload/>".into());
    assert_eq!(files.directory, "w7-a, b");
    let names: Vec<&str> = files.files.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        names,
        [
            "w7-a, b.csv",
            "w7-a, b-rt-histogram.csv",
            "workload-config.xml",
            "workload.log",
            "driver1.csv",
            "s1-init.csv",
            "s1-init-worker.csv",
            "s2-main.csv",
            "s2-main-worker.csv",
            "s3-delay.csv",
            "s3-delay-worker.csv"
        ]
    );
}

#[test]
fn run_history() {
    assert_eq!(
        HISTORY_HEADER,
        "Id,Name,Submitted-At,Started-At,Stopped-At,Op-Info,State,Detailed State\n"
    );
    // Cells are never quoted, so a comma in a name is replaced.
    assert_eq!(
        record().files(String::new()).history,
        "w7,a- b,2026-01-31 23:59:59,2026-02-01 00:00:00,2026-02-01 00:00:19,init read,finished,\
         queuing @ 2026-01-31 23:59:59,processing @ 2026-02-01 00:00:00,finished @ 2026-02-01 00:00:19\n"
    );
}

#[test]
fn the_final_metrics() {
    assert_eq!(
        file("w7-a, b.csv"),
        "Stage,Op-Name,Op-Type,Op-Count,Byte-Count,Avg-ResTime,Avg-ProcTime,60%-ResTime,80%-ResTime,\
         90%-ResTime,95%-ResTime,99%-ResTime,100%-ResTime,Throughput,Bandwidth,Succ-Ratio,Status,Detailed Status\n\
         s1-init,init-write,init,0,0,N/A,N/A,N/A,N/A,N/A,N/A,N/A,N/A,0,0,N/A,completed,\
         waiting @ 2026-01-31 23:59:59,running @ 2026-02-01 00:00:00,completed @ 2026-02-01 00:00:05\n\
         s2-main,read,read,1000,64000000,12.35,11.1,10,20,20,30,1240,500010,100,6399936,95.12%,completed,\
         waiting @ 2026-01-31 23:59:59,running @ 2026-02-01 00:00:05,completed @ 2026-02-01 00:00:10\n\
         s2-main,1-read-read,read,1000,64000000,12.35,11.1,10,20,20,30,1240,500010,100,6399936,95.12%,completed,\
         waiting @ 2026-01-31 23:59:59,running @ 2026-02-01 00:00:05,completed @ 2026-02-01 00:00:10\n\
         delay,N/A,N/A,N/A,N/A,N/A,N/A,N/A,N/A,N/A,N/A,N/A,N/A,N/A,N/A,N/A,completed,\
         waiting @ 2026-01-31 23:59:59,sleeping @ 2026-02-01 00:00:11,completed @ 2026-02-01 00:00:19\n"
    );
}

#[test]
fn the_rows_of_all_workloads() {
    assert_eq!(
        WORKLOADS_HEADER,
        "Id,Op-Name,Op-Count,Byte-Count,Worker-Count,Avg-ResTime,Avg-ProcTime,60%-ResTime,80%-ResTime,\
         90%-ResTime,95%-ResTime,99%-ResTime,100%-ResTime,Throughput,Bandwidth,Succ-Ratio,Config-Info\n"
    );
    let lines = record().files(String::new()).workloads;
    assert_eq!(
        lines.lines().nth(1),
        Some(
            "w7-s2-main-1,read,1000,64000000,4,12.35,11.1,10,20,20,30,1240,500010,100,6399936,95.12%,\
             80% containers=u(1-2) objects=u(1-5)"
        )
    );
}

#[test]
fn the_timeline_of_a_stage() {
    assert_eq!(
        file("s2-main.csv"),
        "Timestamp,Op-Count,,Byte-Count,,Avg-ResTime,,Avg-ProcTime,,Throughput,,Bandwidth,,Succ-Ratio,,Version-Info,,\n\
         ,read,1-read-read,read,1-read-read,read,1-read-read,read,1-read-read,read,1-read-read,read,1-read-read,\
         read,1-read-read,Min-Version,Version,Max-Version\n\
         00:00:10,500,0,5,0,12.35,N/A,11.1,N/A,100,0,6399936,0,95.12%,N/A,1,1,1\n"
    );
    assert_eq!(file("s3-delay.csv"), "");
}

#[test]
fn the_histogram_of_response_times() {
    let text = file("w7-a, b-rt-histogram.csv");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 50_002);
    assert_eq!(lines[0], "ResTime,s2-main-w1-main-read,(%)");
    assert_eq!(lines[1], "0~10,600,60%");
    assert_eq!(lines[2], "10~20,399,99.9%");
    assert_eq!(lines[3], "20~30,0,99.9%");
    assert_eq!(lines[50_000], "499990~500000,0,99.9%");
    assert_eq!(lines[50_001], "500000~+INF,1,100%");
}

#[test]
fn drivers_workers_and_log() {
    let header = "Op-Type,Sample-Type,Op-Count,Byte-Count,Avg-ResTime,Avg-ProcTime,Throughput,Bandwidth,Succ-Ratio\n";
    assert_eq!(
        file("s2-main-worker.csv"),
        format!("{header}read,read,250,16,12.35,11.1,100,6399936,95.12%\n")
    );
    assert_eq!(
        file("driver1.csv"),
        format!(
            "{header}read,read,1000,64000000,12.35,11.1,100,6399936,95.12%\n\
             read,read,250,16,12.35,11.1,100,6399936,95.12%\n"
        )
    );
    let rule =
        |sign: &str, title: &str| format!("{} {title} {}\n", sign.repeat(25), sign.repeat(25));
    let log = file("workload.log");
    assert!(log.starts_with(&rule("=", "stage: s1-init")), "{log}");
    assert!(
        log.contains(&format!(
            "{}2026-01-31 23:59:59 [ERROR] [get] - myobjects1: timeout\n",
            rule("-", "mission: M2, driver: driver1")
        )),
        "{log}"
    );
}

/// Agents are drivers: each has a file, its missions in the log, and a line in the list of all drivers.
#[test]
fn several_drivers() {
    let mut record = record();
    record.drivers.push(DriverRecord {
        name: "driver2".into(),
        url: "h2:7400".into(),
        lines: vec![line(1, 2)],
    });
    // Without workers it has no mission.
    record.drivers.push(DriverRecord {
        name: "driver3".into(),
        ..DriverRecord::default()
    });
    record.stages[1].log.push(LogLine {
        at_ms: START,
        driver: 1,
        text: "[ERROR] [get] - myobjects2: reset".into(),
    });
    let files = record.files(String::new()).files;
    let file = |name: &str| &files.iter().find(|(known, _)| known == name).unwrap().1;
    assert_eq!(
        file("all-drivers.csv"),
        "Driver,URL\ndriver1,\ndriver2,h2:7400\ndriver3,\n"
    );
    assert_eq!(file("driver1.csv").lines().count(), 3);
    assert!(file("driver2.csv").ends_with("\nread,read,1,2,12.35,11.1,100,6399936,95.12%\n"));
    let rule = "-".repeat(25);
    assert!(file("workload.log").contains(&format!(
        "{rule} mission: M4, driver: driver1 {rule}\n2026-01-31 23:59:59 [ERROR] [get] - myobjects1: timeout\n\
         {rule} mission: M5, driver: driver2 {rule}\n2026-01-31 23:59:59 [ERROR] [get] - myobjects2: reset\n"
    )));
    assert!(!file("workload.log").contains("M6"));
}
