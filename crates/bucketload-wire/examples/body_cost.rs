//! CPU time of a client thread per GiB of 64 MiB bodies: counted, passed to a closure and sent, each
//! also over TLS. The baseline is a bare blocking loop of 256 KiB calls to the same responder.
//!
//! ```text
//! cargo run --release -p bucketload-wire --example body_cost
//! ```

mod support;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use bucketload_wire::tls::{ClientTls, server_name};
use bucketload_wire::{Conn, Error, Sock, Step};
use support::{cpu_seconds, pin, runtime, summary};

const REPETITIONS: usize = 7;
const BODY: u64 = 64 << 20;
/// Bodies per measurement: 512 MiB.
const BODIES: u64 = 8;
const SLICE: usize = 256 * 1024;

type Failure = Box<dyn std::error::Error>;

/// Serves one-byte requests: `g` gets a body, `p` is followed by one.
async fn respond(mut conn: Conn) -> Result<(), Error> {
    let arena = vec![7u8; SLICE];
    loop {
        let request = |bytes: &[u8]| Ok::<_, Error>(Step::Done(1, bytes[0]));
        match conn.recv_with(request).await? {
            b'g' => conn.send_body(b"", BODY, |_| arena.as_slice()).await?,
            _ => {
                conn.discard(BODY).await?;
                conn.send(b"k", b"").await?;
            }
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Mode {
    Count,
    Show,
    Send,
}

/// CPU seconds per GiB through [`Conn`].
fn ours(addr: SocketAddr, tls: Option<&ClientTls>, mode: Mode) -> Result<f64, Failure> {
    let (runtime, local) = runtime();
    let arena = vec![7u8; SLICE];
    let mut spent = 0.0;
    local.block_on(&runtime, async {
        let sock = Sock::connect(addr, None).await?;
        let mut conn = match tls {
            None => Conn::plain(sock),
            Some(tls) => Conn::connect_tls(sock, tls, &server_name("localhost")?).await?,
        };
        let before = cpu_seconds();
        for _ in 0..BODIES {
            match mode {
                Mode::Count => {
                    conn.send(b"g", b"").await?;
                    conn.discard(BODY).await?;
                }
                Mode::Show => {
                    conn.send(b"g", b"").await?;
                    let sink = |_, bytes: &[u8]| {
                        std::hint::black_box(bytes);
                        Ok::<_, Error>(())
                    };
                    conn.recv_body(BODY, sink).await?;
                }
                Mode::Send => {
                    conn.send_body(b"p", BODY, |_| arena.as_slice()).await?;
                    conn.discard(1).await?;
                }
            }
        }
        spent = cpu_seconds() - before;
        Ok::<_, Failure>(())
    })?;
    Ok(spent / (BODIES * BODY) as f64 * (1u64 << 30) as f64)
}

/// CPU seconds per GiB of a blocking loop of 256 KiB calls.
fn bare(addr: SocketAddr, send: bool) -> Result<f64, Failure> {
    let mut stream = TcpStream::connect(addr)?;
    let mut buffer = vec![7u8; SLICE];
    let before = cpu_seconds();
    for _ in 0..BODIES {
        if send {
            stream.write_all(b"p")?;
            for _ in 0..BODY / SLICE as u64 {
                stream.write_all(&buffer)?;
            }
            stream.read_exact(&mut buffer[..1])?;
        } else {
            stream.write_all(b"g")?;
            let mut left = BODY;
            while left > 0 {
                left -= stream.read(&mut buffer)? as u64;
            }
        }
    }
    Ok((cpu_seconds() - before) / (BODIES * BODY) as f64 * (1u64 << 30) as f64)
}

fn main() -> Result<(), Failure> {
    let [plain, sealed] = support::serve(respond)?;
    let client = support::client_tls()?;
    pin(0);
    for mode in [Mode::Count, Mode::Show, Mode::Send] {
        let send = matches!(mode, Mode::Send);
        let (mut ratios, mut tls_ratios) = (Vec::new(), Vec::new());
        for _ in 0..REPETITIONS {
            let bare = bare(plain, send)?;
            let mine = ours(plain, None, mode)?;
            let tls = ours(sealed, Some(&client), mode)?;
            println!("{mode:?}: ours {mine:.3}  TLS {tls:.3}  bare loop {bare:.3} s/GiB");
            ratios.push(mine / bare);
            tls_ratios.push(tls / bare);
        }
        let (plain, tls) = (summary(&mut ratios), summary(&mut tls_ratios));
        println!("{mode:?}: {plain} of a bare loop; TLS {tls}");
    }
    Ok(())
}
