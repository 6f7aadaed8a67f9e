//! Helpers of the cost examples.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::mpsc;

use bucketload_wire::listen::Port;
use bucketload_wire::tls::{
    ClientOptions, ClientTls, ConfigError, Identity, Pem, ServerOptions, ServerTls,
};
use bucketload_wire::{Conn, Error};

/// Pins the calling thread to a core. If the machine has no such core, the thread runs unpinned.
pub(crate) fn pin(core: usize) {
    // SAFETY: an all-zero cpu_set_t is the empty set, and the set outlives the call.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(core, &mut set);
        libc::sched_setaffinity(0, size_of_val(&set), &raw const set);
    }
}

/// User and system CPU time of the calling thread in seconds.
pub(crate) fn cpu_seconds() -> f64 {
    let seconds = |t: libc::timeval| t.tv_sec as f64 + t.tv_usec as f64 * 1e-6;
    // SAFETY: an all-zero rusage is valid and the kernel fills it.
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage);
        seconds(usage.ru_utime) + seconds(usage.ru_stime)
    }
}

pub(crate) fn runtime() -> (tokio::runtime::Runtime, tokio::task::LocalSet) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()
        .expect("a runtime");
    (runtime, tokio::task::LocalSet::new())
}

/// Median, range and count of `ratios`. Sorts them.
pub(crate) fn summary(ratios: &mut [f64]) -> String {
    ratios.sort_by(f64::total_cmp);
    let n = ratios.len();
    format!(
        "{:.3} ({:.3}-{:.3}, n = {n})",
        ratios[n / 2],
        ratios[0],
        ratios[n - 1]
    )
}

/// Starts a responder on another thread. It serves plain connections at the first address returned
/// and TLS at the second.
pub(crate) fn serve<F>(respond: fn(Conn) -> F) -> io::Result<[SocketAddr; 2]>
where
    F: Future<Output = Result<(), Error>> + 'static,
{
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()])
        .map_err(io::Error::other)?;
    let identity = Identity {
        certificates: Pem::Text(made.cert.pem().into_bytes()),
        key: Pem::Text(made.signing_key.serialize_pem().into_bytes()),
    };
    let options = ServerOptions {
        identity,
        client_ca: None,
    };
    let tls = ServerTls::new(&options).map_err(io::Error::other)?;
    let bind = || Port::bind(([127, 0, 0, 1], 0).into());
    let (plain, sealed) = (bind()?, bind()?);
    let addrs = [plain.addr(), sealed.addr()];
    let (ready, is_ready) = mpsc::channel();
    std::thread::Builder::new()
        .name("responder".into())
        .spawn(move || {
            pin(1);
            let (runtime, local) = runtime();
            let result: io::Result<()> = local.block_on(&runtime, async {
                let (plain, sealed) = (plain.listen()?, sealed.listen()?);
                // Fails only if the main thread has ended.
                let _ = ready.send(());
                loop {
                    tokio::select! {
                        accepted = plain.accept() => {
                            tokio::task::spawn_local(respond(Conn::plain(accepted?.0)));
                        }
                        accepted = sealed.accept() => {
                            if let Ok(conn) = Conn::accept_tls(accepted?.0, &tls).await {
                                tokio::task::spawn_local(respond(conn));
                            }
                        }
                    }
                }
            });
            if let Err(e) = result {
                eprintln!("the responder failed: {e}");
            }
        })?;
    is_ready.recv().map_err(io::Error::other)?;
    Ok(addrs)
}

/// TLS settings of a client for the responder, whose certificate is self-signed.
pub(crate) fn client_tls() -> Result<ClientTls, ConfigError> {
    ClientTls::new(&ClientOptions {
        insecure: true,
        ..ClientOptions::default()
    })
}
