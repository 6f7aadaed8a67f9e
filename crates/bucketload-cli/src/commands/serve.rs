//! `bucketload serve`: an S3 server over memory, a directory or nothing.

use std::sync::Arc;

use bucketload_server::{Access, KeyPair, Server, ServerConfig};
use bucketload_store::{
    Durability, EtagMode, MemoryOptions, MemoryStore, NullOptions, NullStore, PosixOptions,
    PosixStore, Store,
};
use bucketload_wire::tls::{Identity, Pem, ServerOptions};

use crate::cli::serve::{ServeArgs, StoreKind};
use crate::cli::values::CoreList;
use crate::embedded::{
    ACCESS_KEY_ENV, Announcement, SECRET_KEY_ENV, random_hex, wait_for_stdin_end,
};
use crate::exit::{Exit, Failure, OrFail};

/// Serves until the process is ended or, with `--exit-with-stdin`, standard input closes.
pub(crate) fn execute(args: &ServeArgs) -> Result<Exit, Failure> {
    args.check().or_usage()?;
    let (keys, generated) = keys()?;
    let mut config = ServerConfig::new(keys);
    config.address = args.listen;
    config.threads = usize::from(args.threads);
    config.access = match (args.no_signature_check, args.anonymous) {
        (true, _) => Access::Unchecked,
        (false, true) => Access::Anonymous,
        (false, false) => Access::Signed,
    };
    config.region.clone_from(&args.region);
    config.domain.clone_from(&args.domain);
    config.stats_page = args.stats_page;
    config.fault_log.clone_from(&args.fault_log);
    config.quirks = args.quirk.iter().copied().collect();
    for rule in &args.fault {
        let parsed = rule
            .parse()
            .map_err(|e| Failure::usage(format!("--fault {rule}: {e}")))?;
        config.faults.push(parsed);
    }
    if let (Some(cert), Some(key)) = (&args.tls_cert, &args.tls_key) {
        let identity = Identity {
            certificates: Pem::File(cert.clone()),
            key: Pem::File(key.clone()),
        };
        config.tls = Some(ServerOptions {
            identity,
            client_ca: None,
        });
    }
    let scheme = if config.tls.is_some() {
        "https"
    } else {
        "http"
    };
    pin("serve", args.cores.as_ref())?;
    let shown = generated.then(|| {
        (
            config.keys.access_key.clone(),
            config.keys.secret_key.clone(),
        )
    });
    let store = store(args)?;
    let server = Server::start(config, store)
        .map_err(|e| Failure::usage(format!("serve --listen {}: {e}", args.listen)))?;
    let listening = server.address();
    if args.announce {
        Announcement::print(listening).map_err(|e| Failure::aborted(format!("serve: {e}")))?;
    } else {
        eprintln!(
            "bucketload: serving S3 at {scheme}://{listening}, region {}",
            server.region()
        );
        if let Some((access, secret)) = shown {
            eprintln!(
                "bucketload: generated keys: AWS_ACCESS_KEY_ID={access} AWS_SECRET_ACCESS_KEY={secret}"
            );
        }
    }
    if let Some(warning) = overheard(listening.ip().is_loopback(), args) {
        eprintln!("bucketload: warning: {warning}");
    }
    if args.exit_with_stdin {
        wait_for_stdin_end();
        server.stop();
    } else {
        server.wait();
    }
    Ok(Exit::Ok)
}

/// What others on the network can do, if the server listens there; `None` on loopback or when nothing is open.
fn overheard(is_loopback: bool, args: &ServeArgs) -> Option<String> {
    let mut open = Vec::new();
    if args.tls_cert.is_none() {
        open.push(
            "requests and objects cross the network without TLS: everyone on the way can read and change them (the \
             secret key itself is never sent); add --tls-cert and --tls-key, or listen on 127.0.0.1",
        );
    }
    if args.stats_page {
        open.push("the counters of --stats-page need no signature");
    }
    (!is_loopback && !open.is_empty()).then(|| {
        format!(
            "{} can be reached from other hosts: {}",
            args.listen,
            open.join("; ")
        )
    })
}

/// The key pair from the environment, or a random one. The flag is true for a random one.
fn keys() -> Result<(KeyPair, bool), Failure> {
    let given = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    match (given(ACCESS_KEY_ENV), given(SECRET_KEY_ENV)) {
        (Some(access_key), Some(secret_key)) => Ok((
            KeyPair {
                access_key,
                secret_key,
            },
            false,
        )),
        (None, None) => {
            let random = |bytes| random_hex(bytes).or_aborted();
            Ok((
                KeyPair {
                    access_key: random(10)?,
                    secret_key: random(20)?,
                },
                true,
            ))
        }
        _ => Err(Failure::usage(format!(
            "serve: set both {ACCESS_KEY_ENV} and {SECRET_KEY_ENV}, or neither"
        ))),
    }
}

fn store(args: &ServeArgs) -> Result<Arc<dyn Store>, Failure> {
    let etag = if args.fast_etags {
        EtagMode::Opaque
    } else {
        EtagMode::Md5
    };
    Ok(match &args.store {
        StoreKind::Memory => Arc::new(MemoryStore::new(MemoryOptions {
            limit_bytes: args.memory_limit.unwrap_or(u64::MAX),
            etag,
            ..MemoryOptions::default()
        })),
        StoreKind::Posix(root) => {
            let mut options = PosixOptions::new(root);
            options.etag = etag;
            if args.fsync {
                options.durability = Durability::FileAndDirectory;
            }
            let at = |e| Failure::usage(format!("serve --store posix:{}: {e}", root.display()));
            Arc::new(PosixStore::open(options).map_err(at)?)
        }
        // Nothing is stored, so no client can compare an entity tag with the content.
        StoreKind::Null => Arc::new(NullStore::new(&NullOptions {
            object_bytes: args.null_size.unwrap_or(4096),
            etag: EtagMode::Opaque,
        })),
    })
}

/// Restricts the process to the given cores.
pub(crate) fn pin(command: &str, cores: Option<&CoreList>) -> Result<(), Failure> {
    let Some(CoreList::These(list)) = cores else {
        return Ok(());
    };
    let mut set = rustix::thread::CpuSet::new();
    for &core in list {
        if core >= rustix::thread::CpuSet::MAX_CPU {
            return Err(Failure::usage(format!(
                "{command} --cores: there is no core {core}"
            )));
        }
        set.set(core);
    }
    rustix::thread::sched_setaffinity(None, &set).map_err(|e| {
        Failure::usage(format!(
            "{command} --cores: {e}; name cores of this machine"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::overheard;
    use crate::cli::serve::ServeArgs;
    use crate::cli::{Command, command};

    #[test]
    fn listening_on_the_network_without_tls_is_warned_of() {
        let args = |line: &str| -> ServeArgs {
            match command(&format!("bucketload serve {line}")).unwrap() {
                Command::Serve(args) => args,
                other => panic!("{other:?}"),
            }
        };
        let open = args("--listen 0.0.0.0:9000");
        assert_eq!(overheard(true, &open), None);
        let warning = overheard(false, &open).unwrap();
        assert!(
            warning.contains("0.0.0.0:9000") && warning.contains("--tls-cert"),
            "{warning}"
        );
        let closed = "--listen 0.0.0.0:9000 --tls-cert c --tls-key k";
        assert_eq!(overheard(false, &args(closed)), None);
        let counted = overheard(false, &args(&format!("{closed} --stats-page"))).unwrap();
        assert!(
            counted.contains("--stats-page") && !counted.contains("TLS"),
            "{counted}"
        );
    }
}
