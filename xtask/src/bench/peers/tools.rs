//! The tools that are measured beside ours: where they come from, how they are called, and how their reports are read.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::server::home;
use crate::sh::{Result, cargo, cmd, need_programs, on_path, run};

/// Where a tool comes from if no path is given and none is on `PATH`.
pub(super) enum Source {
    /// A Debian package of the same name.
    Debian,
    /// A crate of crates.io.
    Crate(&'static str),
    /// A Go module, with its version.
    Module(&'static str),
    /// No registry has it: only by path.
    Path,
}

/// A load to create without a pause until it is stopped.
pub(super) struct Load<'a> {
    pub(super) address: &'a str,
    pub(super) access_key: &'a str,
    pub(super) secret_key: &'a str,
    pub(super) put: bool,
    /// Size of an object, bytes.
    pub(super) size: u64,
    pub(super) connections: u32,
    /// A directory of the tool's own. Its file `body` has the object's content, `put.lua` the same as a script for
    /// wrk, and `target` the request for vegeta.
    pub(super) dir: &'a str,
}

impl Load<'_> {
    /// `line` with this load in place of `{address}`, `{access_key}`, `{secret_key}`, `{size}` (bytes), `{connections}` and
    /// `{dir}`.
    pub(super) fn filled(&self, line: &str) -> String {
        line.replace("{address}", self.address)
            .replace("{access_key}", self.access_key)
            .replace("{secret_key}", self.secret_key)
            .replace("{size}", &self.size.to_string())
            .replace("{connections}", &self.connections.to_string())
            .replace("{dir}", self.dir)
    }
}

/// Reads of small objects at a rate, for a time.
pub(super) struct Paced<'a> {
    pub(super) address: &'a str,
    pub(super) access_key: &'a str,
    pub(super) secret_key: &'a str,
    /// Requests per second.
    pub(super) rate: u32,
    pub(super) seconds: u32,
    /// Connections that reach the rate as a closed loop, if no answer is late.
    pub(super) closed: u32,
    /// As in [`Load`].
    pub(super) dir: &'a str,
}

/// What a tool reports, in seconds.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Reported {
    /// Correct answers that it counts.
    pub(super) answers: Option<u64>,
    pub(super) p50: Option<f64>,
    pub(super) p95: Option<f64>,
    pub(super) p99: Option<f64>,
    pub(super) p999: Option<f64>,
    pub(super) max: Option<f64>,
}

/// A way to measure response times with a tool.
pub(super) struct Pace {
    /// What distinguishes the way, such as a flag; shown behind the tool's name.
    pub(super) how: &'static str,
    /// The command line, for a shell.
    pub(super) line: fn(&str, &Paced<'_>) -> String,
    pub(super) read: fn(&str) -> Option<Reported>,
}

/// A tool.
pub(super) struct Tool {
    pub(super) name: &'static str,
    pub(super) sends: &'static str,
    pub(super) source: Source,
    /// The arguments that create a load.
    pub(super) load: fn(&Load<'_>) -> String,
    pub(super) paces: &'static [Pace],
}

/// The tools that have command lines here.
pub(super) const TOOLS: [Tool; 5] = [
    Tool {
        name: "wrk",
        sends: "HTTP, one constant request, unsigned",
        source: Source::Debian,
        load: |l| {
            let script = if l.put {
                format!("-s {}/put.lua", l.dir)
            } else {
                String::new()
            };
            let (c, address) = (l.connections, l.address);
            format!("-t1 -c{c} -d 3600s --timeout 60s {script} http://{address}/bench/k")
        },
        paces: &[Pace {
            how: "closed loop",
            line: |program, p| {
                let (c, s, address) = (p.closed, p.seconds, p.address);
                format!(
                    "{program} -t1 -c{c} -d {s}s --timeout 10s --latency http://{address}/bench/k"
                )
            },
            read: wrk,
        }],
    },
    Tool {
        name: "oha",
        sends: "HTTP, one constant request, unsigned",
        source: Source::Crate("1.16.0"),
        load: |l| {
            let body = if l.put {
                format!("-m PUT -D {}/body", l.dir)
            } else {
                String::new()
            };
            let (c, address) = (l.connections, l.address);
            format!("-z 3600s -c {c} --no-tui --output-format json {body} http://{address}/bench/k")
        },
        paces: &[
            Pace {
                how: "-q",
                line: |program, p| oha_paced(program, p, ""),
                read: oha,
            },
            Pace {
                how: "-q --latency-correction",
                line: |program, p| oha_paced(program, p, "--latency-correction"),
                read: oha,
            },
        ],
    },
    Tool {
        name: "vegeta",
        sends: "HTTP, one constant request, unsigned",
        source: Source::Module("github.com/tsenart/vegeta/v12@v12.13.0"),
        load: |l| {
            let (c, dir) = (l.connections, l.dir);
            format!(
                "attack -rate=0 -max-workers={c} -workers={c} -duration=0 -max-body=0 -timeout=60s \
                 -targets={dir}/target -output=/dev/null"
            )
        },
        paces: &[Pace {
            how: "attack -rate",
            line: |program, p| {
                let (rate, s, dir) = (p.rate, p.seconds, p.dir);
                format!(
                    "{program} attack -rate={rate}/1s -duration={s}s -targets={dir}/target -max-body=0 -output={dir}/out \
                     && {program} report -type=json {dir}/out"
                )
            },
            read: vegeta,
        }],
    },
    Tool {
        name: "hey",
        sends: "HTTP, one constant request, unsigned",
        source: Source::Debian,
        load: |l| {
            let body = if l.put {
                format!("-m PUT -D {}/body", l.dir)
            } else {
                String::new()
            };
            let (c, address) = (l.connections, l.address);
            format!("-z 3600s -c {c} -t 60 {body} http://{address}/bench/k")
        },
        paces: &[Pace {
            how: "-q",
            line: |program, p| {
                // Its rate is per worker.
                let (n, each, address) = (p.rate * p.seconds, p.rate / WORKERS, p.address);
                format!("{program} -n {n} -c {WORKERS} -q {each} http://{address}/bench/k")
            },
            read: hey,
        }],
    },
    Tool {
        name: "warp",
        sends: "S3, signed",
        source: Source::Path,
        load: |l| {
            let verb = if l.put { "put" } else { "get --objects 64" };
            let size = l.size;
            format!(
                "{verb} {} --obj.size {size} --duration 1h --noclear",
                s3_flags(l.address, l.access_key, l.secret_key, l.connections)
            )
        },
        paces: &[Pace {
            how: "get --rps-limit",
            line: |program, p| {
                let flags = s3_flags(p.address, p.access_key, p.secret_key, WORKERS);
                let (rate, s) = (p.rate, p.seconds);
                format!(
                    "{program} get --objects 64 {flags} --obj.size 4096 --duration {s}s --rps-limit {rate} --noclear \
                     --no-color --benchdata {}/out",
                    p.dir
                )
            },
            read: warp,
        }],
    },
];

/// Tools of the field that neither a registry has nor a command line here.
pub(super) const OTHERS: [(&str, &str); 5] = [
    (
        "elbencho",
        "its S3 client is a build of the AWS SDK for C++",
    ),
    ("hsbench", "the Go module proxy does not serve it"),
    ("s3-benchmark", "the Go module proxy does not serve it"),
    ("sai3-bench", "crates.io does not have it"),
    ("k6", "under the AGPL; not installed from here"),
];

/// Workers of the tools that limit the rate of a closed loop: twice what the rate needs.
const WORKERS: u32 = 20;

fn s3_flags(address: &str, access: &str, secret: &str, connections: u32) -> String {
    format!(
        "--host {address} --access-key {access} --secret-key {secret} --bucket bench --concurrent {connections}"
    )
}

/// A number of requests, not a time: at the end of its time oha drops the requests that are on their way.
fn oha_paced(program: &str, p: &Paced<'_>, more: &str) -> String {
    let (n, rate, address) = (p.rate * p.seconds, p.rate, p.address);
    format!(
        "{program} -n {n} -q {rate} -c {WORKERS} {more} --no-tui --output-format json http://{address}/bench/k"
    )
}

impl Tool {
    /// The tool's program: `given`, or found on `PATH`, or installed from its registry.
    pub(super) fn program(&self, given: Option<&Path>) -> Result<PathBuf> {
        if let Some(path) = given {
            return std::path::absolute(path).map_err(|e| format!("{}: {e}", path.display()));
        }
        if on_path(self.name) {
            return Ok(self.name.into());
        }
        let place = home().join("peers");
        let program = place.join("bin").join(self.name);
        if program.exists() {
            return Ok(program);
        }
        match self.source {
            Source::Debian => {
                need_programs(&[(self.name, self.name)])?;
                return Ok(self.name.into());
            }
            Source::Crate(version) => {
                let name = self.name;
                let mut install = cargo(&format!("install --locked {name} --version {version}"));
                run(install.arg("--root").arg(&place))?;
            }
            Source::Module(module) => {
                let mut install = cmd("go", ["install", module]);
                run(install.env("GOBIN", place.join("bin")))?;
            }
            Source::Path => {
                let name = self.name;
                return Err(format!(
                    "no registry has it; give its program with --tool {name}=PATH"
                ));
            }
        }
        Ok(program)
    }

    /// The version that its registry gave.
    pub(super) fn version(&self) -> String {
        match self.source {
            Source::Crate(version) => version.to_owned(),
            Source::Module(module) => {
                let version = module.rsplit_once('@').map_or("", |(_, version)| version);
                version.to_owned()
            }
            Source::Debian => {
                let mut query = cmd("dpkg-query", ["-W", "-f", "${Version}", self.name]);
                let text = query
                    .output()
                    .map(|out| String::from_utf8_lossy(&out.stdout).into_owned());
                text.unwrap_or_default()
            }
            Source::Path => String::new(),
        }
    }
}

fn oha(text: &str) -> Option<Reported> {
    let value: Value = serde_json::from_str(text).ok()?;
    let at = |name: &str| value["latencyPercentiles"][name].as_f64();
    Some(Reported {
        answers: Some(value["statusCodeDistribution"]["200"].as_u64()?),
        p50: at("p50"),
        p95: at("p95"),
        p99: at("p99"),
        p999: at("p99.9"),
        max: value["summary"]["slowest"].as_f64(),
    })
}

fn vegeta(text: &str) -> Option<Reported> {
    let value: Value = serde_json::from_str(text).ok()?;
    let at = |name: &str| value["latencies"][name].as_f64().map(|ns| ns / 1e9);
    Some(Reported {
        answers: Some(value["status_codes"]["200"].as_u64()?),
        p50: at("50th"),
        p95: at("95th"),
        p99: at("99th"),
        p999: None,
        max: at("max"),
    })
}

fn hey(text: &str) -> Option<Reported> {
    let line = |begin: &str| {
        let rest = text
            .lines()
            .find_map(|line| line.trim().strip_prefix(begin));
        rest.and_then(|rest| rest.split_whitespace().next())
    };
    let seconds = |begin: &str| line(begin)?.parse().ok();
    Some(Reported {
        answers: line("[200]")?.parse().ok(),
        p50: seconds("50% in"),
        p95: seconds("95% in"),
        p99: seconds("99% in"),
        p999: None,
        max: seconds("Slowest:"),
    })
}

fn wrk(text: &str) -> Option<Reported> {
    let line = |begin: &str| {
        text.lines()
            .find_map(|line| line.trim().strip_prefix(begin))
    };
    let word = |begin: &str, at| line(begin)?.split_whitespace().nth(at);
    let requests = text.lines().find(|line| line.contains(" requests in "))?;
    Some(Reported {
        answers: requests.split_whitespace().next()?.parse().ok(),
        p50: word("50%", 0).and_then(duration),
        p95: None,
        p99: word("99%", 0).and_then(duration),
        p999: None,
        // The first of its lines that begins so has average, deviation and largest.
        max: word("Latency", 2).and_then(duration),
    })
}

/// Reads the line of request times, such as `* Reqs: Avg: 2.0ms, 50%: 1.9ms, 99%: 4.2ms, Slowest: 15.2ms`. The reads
/// are reported last, after the writes that prepare them.
fn warp(text: &str) -> Option<Reported> {
    let line = text.lines().rfind(|line| line.contains("Reqs:"))?;
    let at = |name: &str| {
        let (_, rest) = line.split_once(name)?;
        duration(rest.trim_start_matches(':').trim().split(',').next()?)
    };
    Some(Reported {
        answers: None,
        p50: at("50%"),
        p95: None,
        p99: at("99%"),
        p999: None,
        max: at("Slowest"),
    })
}

/// Seconds of a time such as `20.11ms`, `950us`, `1.02s` or `1.5m`.
fn duration(text: &str) -> Option<f64> {
    const UNITS: [(&str, f64); 5] = [
        ("us", 1e-6),
        ("µs", 1e-6),
        ("ms", 1e-3),
        ("s", 1.0),
        ("m", 60.0),
    ];
    UNITS
        .iter()
        .find_map(|(unit, s)| Some(text.strip_suffix(unit)?.parse::<f64>().ok()? * s))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(answers: Option<u64>, [p50, p99, max]: [f64; 3]) -> Option<Reported> {
        Some(Reported {
            answers,
            p50: Some(p50),
            p95: None,
            p99: Some(p99),
            p999: None,
            max: Some(max),
        })
    }

    #[test]
    fn reports_are_read_in_seconds() {
        let text = "  Slowest:\t1.0110 secs\nLatency distribution:\n  50% in 0.0206 secs\n  99% in 0.5000 secs\n\
                    Status code distribution:\n  [200]\t14999 responses\n";
        assert_eq!(hey(text), all(Some(14999), [0.0206, 0.5, 1.011]));
        let text = "  Thread Stats   Avg      Stdev     Max   +/- Stdev\n    Latency    21.22ms   10.00ms   1.02s    98.00%\n    \
                    Req/Sec   480.00   20.00   500.00   90.00%\n  Latency Distribution\n     50%  950.00us\n     99%   \
                    20.50ms\n  13500 requests in 30.02s, 57.00MB read\n";
        assert_eq!(wrk(text), all(Some(13500), [950e-6, 0.0205, 1.02]));
        let text = r#"{"latencies":{"50th":20000000,"99th":900000000,"max":1000000000},"status_codes":{"200":15000}}"#;
        assert_eq!(vegeta(text), all(Some(15000), [0.02, 0.9, 1.0]));
        let text = r#"{"summary":{"slowest":1.0},"latencyPercentiles":{"p50":0.02,"p99":0.9},"statusCodeDistribution":{"200":15000}}"#;
        assert_eq!(oha(text), all(Some(15000), [0.02, 0.9, 1.0]));
        let text = " * Reqs: Avg: 1.0ms, 50%: 9.0ms, 99%: 9.0ms, Slowest: 9.0ms\n\
                    * Reqs: Avg: 2.0ms, 50%: 1.9ms, 90%: 2.9ms, 99%: 4.0ms, Fastest: 0.5ms, Slowest: 1.5s, StdDev: 1ms\n";
        assert_eq!(warp(text), all(None, [0.0019, 0.004, 1.5]));
    }

    #[test]
    fn what_is_not_a_report_is_not_read() {
        for read in TOOLS
            .iter()
            .flat_map(|tool| tool.paces)
            .map(|pace| pace.read)
        {
            assert_eq!(read("connection refused"), None);
        }
    }
}
