//! What a request on a connection of its own costs a program that does nothing else: tasks that connect, send,
//! receive and close by the runtime's own sockets, as many at a time as the drivers' sessions, with about
//! as many bytes.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::load::Load;
use crate::{Failure, SIZE, cpu};

/// CPU time per turn, in nanoseconds.
pub(crate) async fn measure(load: Load, address: &str) -> Result<f64, Failure> {
    let address: SocketAddr = address.parse()?;
    let local = tokio::task::LocalSet::new();
    let before = cpu::thread_ns();
    let tasks = (0..load.workers).map(|_| local.spawn_local(turns(load.requests, address)));
    let tasks: Vec<_> = tasks.collect();
    local
        .run_until(async {
            for task in tasks {
                task.await??;
            }
            Ok::<_, Failure>(())
        })
        .await?;
    let spent = cpu::thread_ns() - before;
    Ok(spent as f64 / f64::from(load.workers * load.requests))
}

async fn turns(turns: u32, address: SocketAddr) -> std::io::Result<()> {
    let request = format!("GET /bench/key HTTP/1.1\r\nX: {}\r\n\r\n", "x".repeat(400));
    let mut buffer = vec![0; 2 * SIZE];
    for _ in 0..turns {
        let mut stream = TcpStream::connect(address).await?;
        stream.write_all(request.as_bytes()).await?;
        let mut received = 0;
        while received < SIZE {
            match stream.read(&mut buffer).await? {
                0 => return Err(std::io::ErrorKind::UnexpectedEof.into()),
                n => received += n,
            }
        }
    }
    Ok(())
}
