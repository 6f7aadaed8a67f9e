//! scratch
use std::sync::Arc;
use bucketload_core::sink::{Event, RunSink};
use bucketload_core::tally::{Interval, Tally};
use bucketload_core::spec::WorkloadFile;
use bucketload_core::resolve::*;
use bucketload_drivers::s3::*;
use bucketload_run::*;
use bucketload_store::server::*;
use bucketload_store::*;
struct S(Tally, u64, u64, u64, u64);
impl RunSink for S {
    fn event(&mut self, e: &Event) { if !matches!(e, Event::Failure{..}) {eprintln!("{e:?}");} else {eprintln!("{e:?}");} }
    fn interval(&mut self, i: &Interval) {
        if i.phase < 2 { return; }
        if i.index == 0 { self.1 = i.gauges.load_cpu_ns; self.3 = i.gauges.process_cpu_ns; return; }
        self.0.merge(&i.tally); self.2 = i.gauges.load_cpu_ns; self.4 = i.gauges.process_cpu_ns;
    }
}
fn main() {
    let a: Vec<String> = std::env::args().collect();
    if a[1] == "serve" {
        let mut c = ServerConfig::new(KeyPair{access_key:"k".into(), secret_key:"s".into()});
        c.anonymous = true;
        c.address = format!("127.0.0.1:{}", a[2]).parse().unwrap();
        let _s = Server::start(c, Arc::new(MemoryStore::new(MemoryOptions::default()))).unwrap();
        std::thread::park();
    }
    let url = format!("http://127.0.0.1:{}", a[2]);
    let mut o = Overrides::default();
    for s in &a[4..] { o.settings.push(Override::parse(s).unwrap()); }
    let f = WorkloadFile::builtin(&a[3]).unwrap();
    let r = resolve(&f, &o, &ResolveContext::default()).unwrap_or_else(|e| panic!("{e}"));
    let creds = Credentials { access_key: "k".into(), secret_key: Secret::new("s"), session_token: None };
    let d = S3Driver::new(S3Config::new(Endpoint::parse_list(&url, "x").unwrap(), "us-east-1", Some(creds))).unwrap();
    let mut opt = RunOptions::default();
    opt.run_id = "x".into(); opt.bucket = "bench".into(); opt.prefix = "p/".into(); opt.threads = Some(1); opt.create_bucket = true;
    let mut s = S(Tally::new(),0,0,0,0);
    run(Arc::new(d), &r.plan, &opt, &mut s, &StopHandle::new()).unwrap_or_else(|e| panic!("{e}"));
    let n = s.0.ended();
    println!("ops {n} failures {} load {:.3} us/op process {:.3} us/op", s.0.failures(), (s.2-s.1) as f64/n as f64/1e3, (s.4-s.3) as f64/n as f64/1e3);
    println!("late p50 {} p99 {}", s.0.late.quantile_ns(0.5), s.0.late.quantile_ns(0.99));
}
