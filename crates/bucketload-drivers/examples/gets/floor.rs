//! The least that a request on a connection of its own costs: a loop of connect, send, receive and close,
//! by blocking calls, with the bytes that the S3 driver moves.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

use crate::{Failure, SIZE, cpu};

/// Turns of the loop.
const TURNS: u32 = 4_000;

/// CPU time per turn, in nanoseconds.
pub(crate) fn measure(address: &str) -> Result<f64, Failure> {
    let address: SocketAddr = address.parse()?;
    let request = format!("GET /bench/key HTTP/1.1\r\nX: {}\r\n\r\n", "x".repeat(400));
    let mut buffer = vec![0; 2 * SIZE];
    let before = cpu::thread_ns();
    for _ in 0..TURNS {
        let mut stream = TcpStream::connect(address)?;
        stream.write_all(request.as_bytes())?;
        let mut received = 0;
        while received < SIZE {
            match stream.read(&mut buffer)? {
                0 => return Err("the answer is too short".into()),
                n => received += n,
            }
        }
    }
    let spent = cpu::thread_ns() - before;
    Ok(spent as f64 / f64::from(TURNS))
}
