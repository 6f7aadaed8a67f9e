//! The lines of `intervals.jsonl`.

use std::collections::BTreeMap;

use bucketload_core::endpoint::EndpointTally;
use bucketload_core::error::ErrorKind;
use bucketload_core::histogram::Histogram;
use bucketload_core::op::OpClass;
use bucketload_core::record::Part;
use bucketload_core::tally::{
    Cell, Gauges, Interval, JobCounts, KvCounts, ReplayCounts, SizeCell, Tally,
};
use serde::{Deserialize, Serialize};

/// Exact figures of a histogram; its buckets are in the histogram log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Exact {
    pub(crate) n: u64,
    pub(crate) sum_ns: u128,
    pub(crate) min_ns: u64,
    pub(crate) max_ns: u64,
}

impl Exact {
    fn of(h: &Histogram) -> Option<Self> {
        (!h.is_empty()).then(|| Self {
            n: h.count(),
            sum_ns: h.sum_ns(),
            min_ns: h.min_ns(),
            max_ns: h.max_ns(),
        })
    }
}

/// A measured duration with histograms; its name is the last part of their tags.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) enum Metric {
    Response,
    Service,
    Ttfb,
    FailedResponse,
    Part(Part),
    Lag,
    Late,
    Dispatch,
    Blocked,
    Shaped,
    ConnectTcp,
    ConnectTls,
    ConnectDns,
    Makespan,
}

impl From<Metric> for String {
    fn from(metric: Metric) -> Self {
        metric.name().to_owned()
    }
}

impl TryFrom<String> for Metric {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        Self::from_name(&name).ok_or_else(|| format!("no such metric: `{name}`"))
    }
}

impl Metric {
    /// Metrics of a cell.
    pub(crate) const OF_CELL: [Self; 13] = [
        Self::Response,
        Self::Service,
        Self::Ttfb,
        Self::FailedResponse,
        Self::Part(Part::Queue),
        Self::Part(Part::Retry),
        Self::Part(Part::Dns),
        Self::Part(Part::Connect),
        Self::Part(Part::Tls),
        Self::Part(Part::Build),
        Self::Part(Part::Send),
        Self::Part(Part::Wait),
        Self::Part(Part::Body),
    ];
    /// Metrics of a size cell.
    pub(crate) const OF_SIZE: [Self; 2] = [Self::Response, Self::Service];
    /// Metrics of a whole tally.
    pub(crate) const OF_TALLY: [Self; 8] = [
        Self::Lag,
        Self::Late,
        Self::Dispatch,
        Self::Blocked,
        Self::Shaped,
        Self::ConnectTcp,
        Self::ConnectTls,
        Self::ConnectDns,
    ];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Response => "response",
            Self::Service => "service",
            Self::Ttfb => "ttfb",
            Self::FailedResponse => "failed-response",
            Self::Part(Part::Queue) => "part-queue",
            Self::Part(Part::Retry) => "part-retry",
            Self::Part(Part::Dns) => "part-dns",
            Self::Part(Part::Connect) => "part-connect",
            Self::Part(Part::Tls) => "part-tls",
            Self::Part(Part::Build) => "part-build",
            Self::Part(Part::Send) => "part-send",
            Self::Part(Part::Wait) => "part-wait",
            Self::Part(Part::Body) => "part-body",
            Self::Lag => "lag",
            Self::Late => "late",
            Self::Dispatch => "dispatch",
            Self::Blocked => "blocked",
            Self::Shaped => "shaped",
            Self::Makespan => "makespan",
            Self::ConnectTcp => "connect-tcp",
            Self::ConnectTls => "connect-tls",
            Self::ConnectDns => "connect-dns",
        }
    }

    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::OF_CELL
            .into_iter()
            .chain(Self::OF_TALLY)
            .chain([Self::Makespan])
            .find(|metric| metric.name() == name)
    }

    /// The histogram of a cell metric, created if missing.
    ///
    /// # Panics
    /// For a metric of tallies.
    pub(crate) fn of_cell_mut(self, cell: &mut Cell) -> &mut Histogram {
        match self {
            Self::Response => &mut cell.response,
            Self::Service => &mut cell.service,
            Self::Ttfb => &mut cell.ttfb,
            Self::FailedResponse => &mut cell.failed_response,
            Self::Part(part) => cell.anatomy.part_mut(part),
            other => unreachable!("{} is not a metric of a cell", other.name()),
        }
    }

    /// The histogram of a tally metric.
    ///
    /// # Panics
    /// For a metric of cells.
    pub(crate) fn of_tally_mut(self, tally: &mut Tally) -> &mut Histogram {
        match self {
            Self::Lag => &mut tally.lag,
            Self::Late => &mut tally.late,
            Self::Dispatch => &mut tally.dispatch,
            Self::Blocked => &mut tally.blocked,
            Self::Shaped => &mut tally.shaped,
            Self::ConnectTcp => &mut tally.connect_tcp,
            Self::ConnectTls => &mut tally.connect_tls,
            Self::ConnectDns => &mut tally.connect_dns,
            other => unreachable!("{} is not a metric of a tally", other.name()),
        }
    }

    /// The histogram of a metric of size cells.
    ///
    /// # Panics
    /// For another metric.
    pub(crate) fn of_size_mut(self, cell: &mut SizeCell) -> &mut Histogram {
        match self {
            Self::Response => &mut cell.response,
            Self::Service => &mut cell.service,
            other => unreachable!("{} is not a metric of a size cell", other.name()),
        }
    }

    pub(crate) fn of_size(self, cell: &SizeCell) -> &Histogram {
        match self {
            Self::Response => &cell.response,
            Self::Service => &cell.service,
            other => unreachable!("{} is not a metric of a size cell", other.name()),
        }
    }

    /// The histogram of a cell metric; `None` for a part that never took any time.
    pub(crate) fn of_cell(self, cell: &Cell) -> Option<&Histogram> {
        Some(match self {
            Self::Response => &cell.response,
            Self::Service => &cell.service,
            Self::Ttfb => &cell.ttfb,
            Self::FailedResponse => &cell.failed_response,
            Self::Part(part) => return cell.anatomy.part(part),
            other => unreachable!("{} is not a metric of a cell", other.name()),
        })
    }

    pub(crate) fn of_tally(self, tally: &Tally) -> &Histogram {
        match self {
            Self::Lag => &tally.lag,
            Self::Late => &tally.late,
            Self::Dispatch => &tally.dispatch,
            Self::Blocked => &tally.blocked,
            Self::Shaped => &tally.shaped,
            Self::ConnectTcp => &tally.connect_tcp,
            Self::ConnectTls => &tally.connect_tls,
            Self::ConnectDns => &tally.connect_dns,
            other => unreachable!("{} is not a metric of a tally", other.name()),
        }
    }
}

/// The owner of a histogram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// A work and class.
    Cell(u16, OpClass),
    /// A part of a work's jobs.
    Span(u16, u16),
    /// A work, class and range of sizes.
    Size(u16, OpClass, u64, u64),
    /// The whole tally.
    Tally,
    /// One of several endpoints.
    Endpoint(usize),
}

impl Owner {
    /// Its histogram of `metric` in `tally`, created if missing; `None` for an endpoint that the tally does not have.
    ///
    /// # Panics
    /// If such an owner has no such metric.
    pub(crate) fn histogram_mut(self, tally: &mut Tally, metric: Metric) -> Option<&mut Histogram> {
        Some(match self {
            Self::Cell(work, class) => metric.of_cell_mut(tally.cell_mut(work, class)),
            Self::Span(work, part) => &mut tally.span_mut(work, part).makespan,
            Self::Size(work, class, from, to) => {
                metric.of_size_mut(tally.size_cell_mut(work, class, from, to))
            }
            Self::Tally => metric.of_tally_mut(tally),
            Self::Endpoint(index) => tally
                .endpoints
                .get_mut(index)?
                .service
                .get_or_insert_default(),
        })
    }
}

/// Load of one of several endpoints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct EndpointLine {
    pub(crate) ok: u64,
    pub(crate) failed: u64,
    pub(crate) bytes: u64,
    pub(crate) busy_ns: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) service: Option<Exact>,
}

impl EndpointLine {
    fn new(tally: &EndpointTally) -> Self {
        Self {
            ok: tally.ok,
            failed: tally.failed,
            bytes: tally.bytes,
            busy_ns: tally.busy_ns,
            service: tally.service.as_deref().and_then(Exact::of),
        }
    }
}

/// Counters of one work and class.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct CellLine {
    pub(crate) work: u16,
    pub(crate) class: OpClass,
    pub(crate) ok: u64,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) failed: BTreeMap<ErrorKind, u64>,
    #[serde(default)]
    pub(crate) retries: u64,
    #[serde(default)]
    pub(crate) bytes: u64,
    #[serde(default)]
    pub(crate) exact: BTreeMap<Metric, Exact>,
}

/// Makespans of a part of jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SpanLine {
    pub(crate) work: u16,
    pub(crate) part: u16,
    #[serde(default)]
    pub(crate) failed: u64,
    pub(crate) exact: Exact,
}

/// True if all counts are 0; they are then not written.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Sums of squares of the counts at a hundredth and a tenth of the interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FineLine {
    /// Length of the shorter bins, nanoseconds.
    pub(crate) bin_ns: u64,
    pub(crate) offered: [u64; 2],
    pub(crate) completed: [u64; 2],
}

/// Counters of successful operations of one size class.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct SizeLine {
    pub(crate) work: u16,
    pub(crate) class: OpClass,
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) ok: u64,
    pub(crate) bytes: u64,
    pub(crate) exact: BTreeMap<Metric, Exact>,
}

/// One interval without histogram buckets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub(crate) struct IntervalLine {
    pub(crate) phase: u16,
    pub(crate) index: u64,
    pub(crate) start_ns: u64,
    pub(crate) end_ns: u64,
    pub(crate) offered: u64,
    pub(crate) offered_bytes: u64,
    pub(crate) issued: u64,
    pub(crate) connects: u64,
    pub(crate) capped: u64,
    pub(crate) cells: Vec<CellLine>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) spans: Vec<SpanLine>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) jobs: JobCounts,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) replay: ReplayCounts,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) kvcache: KvCounts,
    pub(crate) exact: BTreeMap<Metric, Exact>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) endpoints: Vec<EndpointLine>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) fine: Option<FineLine>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) sizes: Vec<SizeLine>,
    pub(crate) gauges: Gauges,
    /// Position of the histograms in the phase's log: first byte and number of bytes.
    pub(crate) hist: (u64, u64),
}

bucketload_core::serde_once!(IntervalLine);

impl IntervalLine {
    pub(crate) fn new(interval: &Interval, hist: (u64, u64)) -> Self {
        let tally = &interval.tally;
        Self {
            phase: interval.phase,
            index: interval.index,
            start_ns: interval.start_ns,
            end_ns: interval.end_ns,
            offered: tally.offered,
            offered_bytes: tally.offered_bytes,
            issued: tally.issued,
            connects: tally.connects,
            capped: tally.capped,
            cells: tally.cells.iter().map(cell_line).collect(),
            spans: tally
                .spans
                .iter()
                .filter_map(|span| {
                    Some(SpanLine {
                        work: span.work,
                        part: span.part,
                        failed: span.failed,
                        exact: Exact::of(&span.makespan)?,
                    })
                })
                .collect(),
            jobs: tally.jobs,
            replay: tally.replay,
            kvcache: tally.kvcache,
            exact: Metric::OF_TALLY
                .into_iter()
                .filter_map(|m| Some((m, Exact::of(m.of_tally(tally))?)))
                .collect(),
            endpoints: tally.endpoints.iter().map(EndpointLine::new).collect(),
            fine: (tally.fine.bin_ns() > 0).then(|| FineLine {
                bin_ns: tally.fine.bin_ns(),
                offered: tally.fine.offered_squares(),
                completed: tally.fine.completed_squares(),
            }),
            sizes: tally
                .sizes
                .iter()
                .filter(|cell| cell.ok > 0)
                .map(|cell| SizeLine {
                    work: cell.work,
                    class: cell.class,
                    from: cell.from,
                    to: cell.to,
                    ok: cell.ok,
                    bytes: cell.bytes,
                    exact: Metric::OF_SIZE
                        .into_iter()
                        .filter_map(|m| Some((m, Exact::of(m.of_size(cell))?)))
                        .collect(),
                })
                .collect(),
            gauges: interval.gauges,
            hist,
        }
    }

    /// The exact figures of all histograms of the interval.
    pub(crate) fn exacts(&self) -> impl Iterator<Item = (Owner, Metric, &Exact)> {
        let cells = self.cells.iter().flat_map(|cell| {
            let owner = Owner::Cell(cell.work, cell.class);
            cell.exact.iter().map(move |(m, exact)| (owner, *m, exact))
        });
        let spans = self.spans.iter().map(|span| {
            let owner = Owner::Span(span.work, span.part);
            (owner, Metric::Makespan, &span.exact)
        });
        let sizes = self.sizes.iter().flat_map(|size| {
            let owner = Owner::Size(size.work, size.class, size.from, size.to);
            size.exact.iter().map(move |(m, exact)| (owner, *m, exact))
        });
        let all = self
            .exact
            .iter()
            .map(|(m, exact)| (Owner::Tally, *m, exact));
        let endpoints = self.endpoints.iter().enumerate().filter_map(|(i, line)| {
            let exact = line.service.as_ref()?;
            Some((Owner::Endpoint(i), Metric::Service, exact))
        });
        cells.chain(spans).chain(sizes).chain(all).chain(endpoints)
    }

    /// Operations that succeeded.
    pub(crate) fn ok(&self) -> u64 {
        self.cells.iter().map(|c| c.ok).sum()
    }

    /// Object bytes of operations that succeeded.
    pub(crate) fn bytes(&self) -> u64 {
        self.cells.iter().map(|c| c.bytes).sum()
    }

    /// Operations that failed, without cancelled ones.
    pub(crate) fn failures(&self) -> u64 {
        self.cells
            .iter()
            .flat_map(|c| &c.failed)
            .filter(|(kind, _)| **kind != ErrorKind::Cancelled)
            .map(|(_, n)| n)
            .sum()
    }

    /// Length, nanoseconds, at least 1.
    pub(crate) fn len_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.start_ns).max(1)
    }

    /// Replaces counters and gauges of `interval`, and empties its histograms.
    pub(crate) fn fill(&self, interval: &mut Interval) {
        interval.tally.clear();
        interval.phase = self.phase;
        interval.index = self.index;
        interval.start_ns = self.start_ns;
        interval.end_ns = self.end_ns;
        interval.gauges = self.gauges;
        let tally = &mut interval.tally;
        tally.offered = self.offered;
        tally.offered_bytes = self.offered_bytes;
        tally.issued = self.issued;
        tally.connects = self.connects;
        tally.capped = self.capped;
        tally.endpoints.truncate(self.endpoints.len());
        tally
            .endpoints
            .resize_with(self.endpoints.len(), EndpointTally::default);
        for (endpoint, line) in tally.endpoints.iter_mut().zip(&self.endpoints) {
            endpoint.ok = line.ok;
            endpoint.failed = line.failed;
            endpoint.bytes = line.bytes;
            endpoint.busy_ns = line.busy_ns;
        }
        tally.jobs = self.jobs;
        tally.replay = self.replay;
        tally.kvcache = self.kvcache;
        for line in &self.spans {
            tally.span_mut(line.work, line.part).failed = line.failed;
        }
        for line in &self.cells {
            let cell = tally.cell_mut(line.work, line.class);
            cell.ok = line.ok;
            cell.retries = line.retries;
            cell.bytes = line.bytes;
            for (kind, n) in &line.failed {
                cell.failed[*kind as usize] = *n;
            }
        }
        for line in &self.sizes {
            let cell = tally.size_cell_mut(line.work, line.class, line.from, line.to);
            cell.ok = line.ok;
            cell.bytes = line.bytes;
        }
    }
}

fn cell_line(cell: &Cell) -> CellLine {
    CellLine {
        work: cell.work,
        class: cell.class,
        ok: cell.ok,
        failed: ErrorKind::ALL
            .into_iter()
            .map(|kind| (kind, cell.failed[kind as usize]))
            .filter(|&(_, n)| n > 0)
            .collect(),
        retries: cell.retries,
        bytes: cell.bytes,
        exact: Metric::OF_CELL
            .into_iter()
            .filter_map(|m| Some((m, Exact::of(m.of_cell(cell)?)?)))
            .collect(),
    }
}
