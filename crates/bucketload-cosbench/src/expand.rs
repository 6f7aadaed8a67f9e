//! Turns the elements of a file into a [`Workload`]: inheritance, defaults, special works, validation
//! (specification sections 1.2 to 1.6).

use roxmltree::Node;

use crate::adapter::{Adapter, auth_types, storage_types};
use crate::config::{Config, join};
use crate::document::{Element, document};
use crate::error::{Location, Rejection, Warning};
use crate::model::{ConfiguredAdapter, Division, Operation, Stage, Work, WorkKind, Workload};
use crate::operation::{self, OperationKind};

/// A workload, and warnings about things that COSBench would silently ignore.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parsed {
    /// The workload.
    pub workload: Workload,
    /// Things that are ignored or interpreted unexpectedly.
    pub warnings: Vec<Warning>,
}

/// The largest 32-bit signed integer.
const MAX_INT: i64 = i32::MAX as i64;
const WORKLOAD: &[&str] = &["name", "description", "trigger", "config"];
const STAGE: &[&str] = &["name", "closuredelay", "trigger", "config"];
const WORK: &[&str] = &[
    "name",
    "type",
    "workers",
    "interval",
    "division",
    "runtime",
    "rampup",
    "rampdown",
    "totalOps",
    "totalBytes",
    "afr",
    "driver",
    "config",
    "maxIOPS",
    "maxBW",
];
const OPERATION: &[&str] = &["type", "ratio", "division", "config", "id"];

/// Storage types that support the fork's additional operations.
const FORK_STORAGES: [&str; 5] = ["s3", "sio", "siov1", "siov2", "gdas"];

/// Settings that a level passes on to the levels below.
#[derive(Clone)]
struct Inherited {
    auth: ConfiguredAdapter,
    storage: ConfiguredAdapter,
    /// Config strings, outermost first.
    configs: Vec<String>,
}

/// Parses a workload file.
///
/// # Errors
/// The first problem that COSBench would reject at submission or fail at later.
pub fn parse(text: &str) -> Result<Parsed, Rejection> {
    let document = document(text)?;
    let mut warnings = Vec::new();
    let workload = workload(document.root_element(), &mut warnings)?;
    Ok(Parsed { workload, warnings })
}

fn workload(node: Node<'_, '_>, warnings: &mut Vec<Warning>) -> Result<Workload, Rejection> {
    let none = |adapter| ConfiguredAdapter {
        adapter,
        config: Config::default(),
        location: Location::default(),
    };
    let none = Inherited {
        auth: none(&auth_types()[0]),
        storage: none(&storage_types()[0]),
        configs: Vec::new(),
    };
    let children = ["auth", "storage", "workflow"];
    let element = Element::new(node, WORKLOAD, &children, warnings);
    let name = required(&element, "name", "name the workload")?;
    if name.contains('/') {
        return Err(element.reject(
            "name",
            "a name cannot contain `/`",
            "it becomes a file name",
        ));
    }
    let description = element.text("description").unwrap_or("").to_owned();
    let trigger = trigger(&element);
    let config = element.text("config").unwrap_or("").to_owned();
    let Some(flow) = element.child("workflow") else {
        return Err(element.reject("", "there is no workflow", "put the stages into <workflow>"));
    };
    let inherited = none.level(&config);
    let adapters = (element.child("auth"), element.child("storage"));
    let inherited = inherited.adapters(adapters, warnings)?;
    let element = Element::new(flow, &["config"], &["workstage"], warnings);
    let workflow_config = element.text("config").unwrap_or("").to_owned();
    let inherited = inherited.level(&workflow_config);
    let nodes: Vec<_> = element.children("workstage").collect();
    if nodes.is_empty() {
        return Err(element.reject("", "there is no workstage", "add at least one"));
    }
    let stages: Result<Vec<Stage>, Rejection> = nodes
        .into_iter()
        .map(|node| stage(node, &inherited, warnings))
        .collect();
    Ok(Workload {
        name,
        description,
        trigger,
        config,
        workflow_config,
        stages: stages?,
    })
}

impl Inherited {
    /// The settings with the config string of one more level.
    fn level(&self, config: &str) -> Self {
        let mut deeper = self.clone();
        deeper.configs.push(config.to_owned());
        deeper
    }

    /// The settings with the adapters of a level, which replace inherited ones completely.
    fn adapters(
        mut self,
        (auth, storage): (Option<Node<'_, '_>>, Option<Node<'_, '_>>),
        warnings: &mut Vec<Warning>,
    ) -> Result<Self, Rejection> {
        if let Some(node) = auth {
            self.auth = adapter(node, auth_types(), "auth", warnings)?;
        }
        if let Some(node) = storage {
            self.storage = adapter(node, storage_types(), "storage", warnings)?;
        }
        Ok(self)
    }

    fn config(&self, more: &[&str]) -> String {
        let mut levels: Vec<&str> = self.configs.iter().map(String::as_str).collect();
        levels.extend_from_slice(more);
        join(&levels)
    }
}

fn adapter(
    node: Node<'_, '_>,
    all: &'static [Adapter],
    kind: &str,
    warnings: &mut Vec<Warning>,
) -> Result<ConfiguredAdapter, Rejection> {
    let mut element = Element::new(node, &["type", "config"], &[], warnings);
    let name = required(&element, "type", "name the type")?;
    let found = Adapter::find(all, &name, kind);
    let adapter = found.map_err(|(problem, remedy)| element.reject("type", problem, remedy))?;
    let config = Config::parse(element.text("config").unwrap_or(""));
    for (key, meant) in adapter.unknown(&config) {
        let meant = meant
            .map(|m| format!("; did you mean `{m}`?"))
            .unwrap_or_default();
        element.warn(
            "config",
            format!("{name} does not know the key `{key}`{meant}"),
        );
    }
    if !config.ignored().is_empty() {
        // The entry may be part of a secret, so its text is not repeated.
        element.warn("config", "an entry without `=` is ignored");
    }
    for key in adapter.mandatory {
        if config.get(key).is_none() {
            let problem = format!("no such key defined: {key}");
            return Err(element.reject("config", problem, format!("add {key}=… to the config")));
        }
    }
    Ok(ConfiguredAdapter {
        adapter,
        config,
        location: element.location(""),
    })
}

fn required(element: &Element<'_, '_>, name: &str, remedy: &str) -> Result<String, Rejection> {
    match element.text(name) {
        Some(text) if !text.trim().is_empty() => Ok(text.to_owned()),
        Some(_) => Err(element.reject(name, format!("`{name}` is empty"), remedy)),
        None => Err(element.reject("", format!("there is no attribute `{name}`"), remedy)),
    }
}

fn trigger(element: &Element<'_, '_>) -> Option<String> {
    element
        .text("trigger")
        .filter(|text| !text.is_empty())
        .map(str::to_owned)
}

fn stage(
    node: Node<'_, '_>,
    inherited: &Inherited,
    warnings: &mut Vec<Warning>,
) -> Result<Stage, Rejection> {
    let element = Element::new(node, STAGE, &["auth", "storage", "work"], warnings);
    let name = required(&element, "name", "name the stage")?;
    if name.contains(';') {
        return Err(element.reject("name", "a name cannot contain `;`", "use another character"));
    }
    let closure_delay_s = element.number("closuredelay", 0, 0, MAX_INT)? as u32;
    let config = element.text("config").unwrap_or("").to_owned();
    let trigger = trigger(&element);
    let inherited = inherited.level(&config);
    let nodes: Vec<_> = element.children("work").collect();
    if nodes.is_empty() {
        return Err(element.reject("", "there is no work", "add at least one"));
    }
    let adapters = (element.child("auth"), element.child("storage"));
    let inherited = inherited.adapters(adapters, warnings)?;
    let mut stage = Stage {
        name,
        closure_delay_s,
        trigger,
        config,
        works: Vec::new(),
    };
    let mut operations = 0;
    for node in nodes {
        let work = work(
            node,
            &inherited,
            stage.is_delay(),
            &mut operations,
            warnings,
        )?;
        stage.works.push(work);
    }
    Ok(stage)
}

/// The end conditions and number of workers of a work.
struct Numbers {
    workers: u32,
    runtime_s: u32,
    total_ops: u32,
    total_bytes: u64,
}

fn work(
    node: Node<'_, '_>,
    inherited: &Inherited,
    in_delay: bool,
    operations: &mut u32,
    warnings: &mut Vec<Warning>,
) -> Result<Work, Rejection> {
    let mut element = Element::new(node, WORK, &["auth", "storage", "operation"], warnings);
    let type_name = element
        .text("type")
        .filter(|t| !t.is_empty())
        .unwrap_or("normal");
    let kind = WorkKind::from_name(type_name);
    if kind == WorkKind::Normal && type_name != "normal" {
        element.warn(
            "type",
            format!("there is no work type `{type_name}`; the work is treated as a normal one"),
        );
    }
    if kind == WorkKind::Delay && !in_delay {
        return Err(element.reject(
            "type",
            "a delay must be in a stage called `delay` with a closuredelay",
            "write <workstage name=\"delay\" closuredelay=\"60\">",
        ));
    }
    let name = match (element.text("name"), kind) {
        (Some(name), _) if !name.is_empty() => name.to_owned(),
        (_, WorkKind::Normal) => required(&element, "name", "name the work")?,
        (_, special) => special.name().to_owned(),
    };
    let numbers = numbers(&mut element, kind)?;
    let division = match (kind, element.text("division").filter(|d| !d.is_empty())) {
        (WorkKind::Init | WorkKind::Dispose, _) => Division::Container,
        (WorkKind::Prepare | WorkKind::MultipartPrepare | WorkKind::Cleanup, _) => Division::Object,
        (_, None) => Division::None,
        (_, Some(text)) => division(&element, text)?,
    };
    let timed = |name| -> Result<u32, Rejection> {
        let seconds = element.number(name, 0, 0, MAX_INT)? as u32;
        Ok(if numbers.runtime_s == 0 { 0 } else { seconds })
    };
    let (rampup_s, rampdown_s) = (timed("rampup")?, timed("rampdown")?);
    let default_afr = if kind == WorkKind::Normal { 200_000 } else { 0 };
    let driver = element
        .text("driver")
        .filter(|d| !d.is_empty() && *d != "none");
    let config = element.text("config").unwrap_or("").to_owned();
    let inherited = inherited.level(&config);
    let mut work = Work {
        name,
        kind,
        workers: numbers.workers,
        interval_s: element.number("interval", 5, 1, MAX_INT)? as u32,
        division,
        runtime_s: numbers.runtime_s,
        rampup_s,
        rampdown_s,
        total_ops: numbers.total_ops,
        total_bytes: numbers.total_bytes,
        afr: element.number("afr", default_afr, 0, 1_000_000)? as u32,
        max_iops: element.number("maxIOPS", 0, 0, MAX_INT)? as u32,
        max_bytes_per_s: element.number("maxBW", 0, 0, i64::MAX)?.cast_unsigned(),
        driver: driver.map(str::to_owned),
        config,
        auth: inherited.auth.clone(),
        storage: inherited.storage.clone(),
        operations: Vec::new(),
        location: element.location(""),
    };
    let nodes: Vec<_> = element.children("operation").collect();
    let location = work.location.clone();
    let adapters = (element.child("auth"), element.child("storage"));
    if kind != WorkKind::Normal && !nodes.is_empty() {
        element.warn("", "the operations of a special work are ignored");
    }
    let special = kind.operation().map(|op| {
        let config = special_config(kind, &inherited);
        (op, Config::parse(&config))
    });
    let checked = special.map(|(op, config)| {
        let read = operation::read(op, &config);
        (
            op,
            config,
            read.map_err(|(problem, remedy)| element.reject("config", problem, remedy)),
        )
    });
    if let Some((op, config, read)) = checked {
        let read = if op == OperationKind::Delay {
            operation::Read {
                target: operation::Target::default(),
                notes: Vec::new(),
            }
        } else {
            read?
        };
        for note in read.notes {
            element.warn("config", note);
        }
        *operations += 1;
        work.operations.push(Operation {
            id: format!("op{operations}"),
            kind: op,
            ratio: 100,
            division: work.division,
            display_name: config.get("name").map_or(op.name().to_owned(), Into::into),
            config,
            target: read.target,
            location,
        });
        let inherited = inherited.adapters(adapters, warnings)?;
        (work.auth, work.storage) = (inherited.auth, inherited.storage);
        return Ok(work);
    }
    let inherited = inherited.adapters(adapters, warnings)?;
    (work.auth, work.storage) = (inherited.auth.clone(), inherited.storage.clone());
    for node in nodes {
        if let Some(op) = normal_operation(node, &work, &inherited, *operations + 1, warnings)? {
            *operations += 1;
            work.operations.push(op);
        }
    }
    let sum: u32 = work.operations.iter().map(|op| op.ratio).sum();
    if sum != 100 {
        let problem = match work.operations.is_empty() {
            true => "there is no operation".to_owned(),
            false => format!("the ratios of its operations sum to {sum}"),
        };
        return Err(Rejection::new(
            &location,
            problem,
            "make the ratios sum to 100",
        ));
    }
    number_equal_names(&mut work);
    Ok(work)
}

/// Reads a work's end conditions and number of workers.
fn numbers(element: &mut Element<'_, '_>, kind: WorkKind) -> Result<Numbers, Rejection> {
    if kind == WorkKind::Delay {
        return Ok(Numbers {
            workers: 1,
            runtime_s: 0,
            total_ops: 1,
            total_bytes: 0,
        });
    }
    if element
        .text("workers")
        .is_none_or(|text| text.trim().is_empty())
    {
        return Err(element.reject(
            "",
            "there is no attribute `workers`",
            "set the number of workers",
        ));
    }
    let workers = element.number("workers", 0, 1, MAX_INT)? as u32;
    if kind != WorkKind::Normal {
        // A special work is one loop per worker, regardless of its attributes.
        for name in ["runtime", "totalOps", "totalBytes", "division"] {
            if element.text(name).is_some() {
                element.warn(
                    name,
                    format!("`{name}` is ignored: a special work goes through its slice once"),
                );
            }
        }
        return Ok(Numbers {
            workers,
            runtime_s: 0,
            total_ops: workers,
            total_bytes: 0,
        });
    }
    let numbers = Numbers {
        workers,
        runtime_s: element.number("runtime", 0, 0, MAX_INT)? as u32,
        total_ops: element.number("totalOps", 0, 0, MAX_INT)? as u32,
        total_bytes: element
            .number("totalBytes", 0, 0, i64::MAX)?
            .cast_unsigned(),
    };
    if numbers.runtime_s == 0 && numbers.total_ops == 0 && numbers.total_bytes == 0 {
        return Err(element.reject(
            "",
            "the work would never end",
            "set runtime, totalOps or totalBytes above 0",
        ));
    }
    if numbers.total_ops > 0 && workers > numbers.total_ops {
        return Err(element.reject(
            "totalOps",
            format!("{workers} workers share {} operations", numbers.total_ops),
            "give every worker at least one operation",
        ));
    }
    Ok(numbers)
}

fn division(element: &Element<'_, '_>, text: &str) -> Result<Division, Rejection> {
    text.parse().map_err(|_| {
        element.reject(
            "division",
            format!("there is no division `{text}`"),
            "use none, container or object",
        )
    })
}

/// The config of a special work's operation: required settings first, then the user's.
fn special_config(kind: WorkKind, inherited: &Inherited) -> String {
    let config = inherited.config(&[]);
    let injected = match kind {
        WorkKind::Init | WorkKind::Dispose => "objects=r(0,0);sizes=c(0)B",
        WorkKind::Prepare | WorkKind::MultipartPrepare if !config.contains("createContainer=") => {
            "createContainer=false"
        }
        WorkKind::Cleanup if !config.contains("deleteContainer=") => "deleteContainer=false",
        _ => "",
    };
    join(&[injected, &config])
}

fn normal_operation(
    node: Node<'_, '_>,
    work: &Work,
    inherited: &Inherited,
    number: u32,
    warnings: &mut Vec<Warning>,
) -> Result<Option<Operation>, Rejection> {
    let mut element = Element::new(node, OPERATION, &[], warnings);
    let name = required(&element, "type", "set the operation type")?;
    let ratio = element.number("ratio", 100, 0, 100)? as u32;
    if ratio == 0 {
        return Ok(None);
    }
    let Some(kind) = OperationKind::from_name(&name) else {
        let known = OperationKind::names();
        let remedy = match crate::error::near(&name, &known) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => format!("use one of {}", known.join(", ")),
        };
        return Err(element.reject("type", format!("there is no operation `{name}`"), remedy));
    };
    let fork = matches!(
        kind,
        OperationKind::Head
            | OperationKind::MultipartWrite
            | OperationKind::MultipartFileWrite
            | OperationKind::Restore
            | OperationKind::LocalWrite
    );
    let storage = work.storage.adapter.name;
    if fork && !FORK_STORAGES.contains(&storage) {
        return Err(element.reject(
            "type",
            format!("`{name}` does not work with storage `{storage}`"),
            format!("use one of {}", FORK_STORAGES.join(", ")),
        ));
    }
    let division = match element.text("division").filter(|d| !d.is_empty()) {
        None => work.division,
        Some(text) => division(&element, text)?,
    };
    let config = Config::parse(&inherited.config(&[element.text("config").unwrap_or("")]));
    let read = operation::read(kind, &config);
    let read = read.map_err(|(problem, remedy)| element.reject("config", problem, remedy))?;
    for note in read.notes {
        element.warn("config", note);
    }
    operation::divided(kind, division, &read.target, work.workers)
        .map_err(|(problem, remedy)| element.reject("config", problem, remedy))?;
    let id = element
        .text("id")
        .filter(|id| !id.is_empty() && *id != "none");
    Ok(Some(Operation {
        id: id.map_or_else(|| format!("op{number}"), str::to_owned),
        kind,
        ratio,
        division,
        display_name: config
            .get("name")
            .map_or(kind.name().to_owned(), Into::into),
        config,
        target: read.target,
        location: element.location("config"),
    }))
}

/// If several operations share a type, those without a custom name are called `1-read`, `2-read`.
fn number_equal_names(work: &mut Work) {
    let kinds: Vec<OperationKind> = work.operations.iter().map(|op| op.kind).collect();
    let shared = |kind| kinds.iter().filter(|other| **other == kind).count() > 1;
    if !kinds.iter().any(|kind| shared(*kind)) {
        return;
    }
    for i in 0..kinds.len() {
        let number = kinds[..=i].iter().filter(|kind| **kind == kinds[i]).count();
        let op = &mut work.operations[i];
        if !op.config.text().contains("name") {
            op.display_name = format!("{number}-{}", op.kind.name());
        }
    }
}
