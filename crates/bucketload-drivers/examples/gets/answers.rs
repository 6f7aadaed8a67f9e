//! A thread that answers every request alike, so that nothing but the driver differs.

use std::io;
use std::rc::Rc;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::{Failure, SIZE, hadoop};

/// Core of the thread.
const CORE: usize = 1;

/// Addresses of a thread that answers.
pub(crate) struct Answers {
    /// Connections stay open.
    pub(crate) kept: String,
    /// As `kept`, but the addresses that it gives are on `closing`.
    pub(crate) leading: String,
    /// Every answer ends its connection.
    pub(crate) closing: String,
    /// A name node, whose blocks are with a data node of the same thread.
    pub(crate) name_node: String,
}

/// Starts a thread that answers every request with the same 4 KiB.
pub(crate) fn start() -> Result<Answers, Failure> {
    let listen = || -> io::Result<_> {
        let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?.to_string();
        Ok((listener, address))
    };
    let (kept, leading, closing) = (listen()?, listen()?, listen()?);
    let (name_node, data_node) = (listen()?, listen()?);
    let answers = Answers {
        kept: kept.1,
        leading: leading.1,
        closing: closing.1,
        name_node: name_node.1,
    };
    let at = data_node.0.local_addr()?;
    let (to_kept, to_closing) = (answers.kept.clone(), answers.closing.clone());
    std::thread::spawn(move || -> io::Result<()> {
        crate::cpu::pin(CORE);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let local = tokio::task::LocalSet::new();
        let listeners = [
            (kept.0, to_kept, false),
            (leading.0, to_closing.clone(), false),
            (closing.0, to_closing, true),
        ];
        runtime.block_on(local.run_until(async {
            let mut serving = Vec::new();
            for (listener, leads, ends) in listeners {
                let listener = TcpListener::from_std(listener)?;
                let fields = if ends { "Connection: close\r\n" } else { "" };
                let object = text(fields, &"x".repeat(SIZE));
                let location = format!(
                    r#"{{"Location":"http://{leads}/webhdfs/v1/bench?op=OPEN&namenoderpcaddress=a:1&offset=0"}}"#
                );
                let answers = [object, text("", &location)];
                serving.push(tokio::task::spawn_local(each(listener, move |stream| {
                    answer(stream, answers.clone(), ends)
                })));
            }
            let listener = TcpListener::from_std(name_node.0)?;
            serving.push(tokio::task::spawn_local(each(listener, move |stream| {
                hadoop::name_node(stream, at)
            })));
            let (listener, block) = (TcpListener::from_std(data_node.0)?, hadoop::block());
            serving.push(tokio::task::spawn_local(each(listener, move |stream| {
                hadoop::data_node(stream, Rc::clone(&block))
            })));
            for serving in serving {
                serving.await??;
            }
            Ok(())
        }))
    });
    Ok(answers)
}

fn text(fields: &str, body: &str) -> Rc<[u8]> {
    let text = format!(
        "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nETag: \"0\"\r\n{fields}\r\n{body}",
        body.len()
    );
    text.into_bytes().into()
}

/// Serves every connection to `listener`.
async fn each<F>(listener: TcpListener, serve: impl Fn(TcpStream) -> F) -> io::Result<()>
where
    F: Future<Output = io::Result<()>> + 'static,
{
    loop {
        let (stream, _) = listener.accept().await?;
        tokio::task::spawn_local(serve(stream));
    }
}

/// Answers with the object, or with its place where that is asked for. A client asks one of them on a
/// connection, so that the first request tells.
async fn answer(
    mut stream: TcpStream,
    [object, location]: [Rc<[u8]>; 2],
    ends: bool,
) -> io::Result<()> {
    const FIRST_STEP: &[u8] = b"noredirect=true";
    stream.set_nodelay(true)?;
    let mut buffer = vec![0; 16 << 10];
    let mut held = 0;
    let mut chosen: Option<&Rc<[u8]>> = None;
    loop {
        match stream.read(&mut buffer[held..]).await? {
            0 => return Ok(()),
            n => held += n,
        }
        if buffer[..held].ends_with(b"\r\n\r\n") {
            let text = *chosen.get_or_insert_with(|| {
                let mut parts = buffer[..held].windows(FIRST_STEP.len());
                match parts.any(|part| part == FIRST_STEP) {
                    true => &location,
                    false => &object,
                }
            });
            stream.write_all(text).await?;
            held = 0;
            if ends {
                return Ok(());
            }
        }
    }
}
