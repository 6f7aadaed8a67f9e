//! A name node and two data nodes in memory that speak Hadoop's RPC and data transfer protocols to the extent
//! that reads need. They run on separate threads; tests add the files.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// Bytes per checksum.
const CHUNK: usize = 512;
/// Bytes of data per packet.
const PACKET: usize = 64 * CHUNK;

/// Methods of the name node.
const METHODS: [&str; 3] = ["getServerDefaults", "getFileInfo", "getBlockLocations"];

/// A file.
#[derive(Clone, Default)]
pub struct File {
    /// Content.
    pub content: Vec<u8>,
    /// Bytes per block.
    pub block: usize,
    /// Whether the file is still being written.
    pub under_construction: bool,
}

/// How a data node behaves.
#[derive(Default)]
pub struct NodeBehaviour {
    /// Whether it closes the connection after every read.
    pub closes: AtomicBool,
    /// If above 0, its checksums are wrong from this byte of a block on.
    pub corrupt_from: AtomicUsize,
    /// Whether it refuses every read.
    pub refuses: AtomicBool,
    /// Connections so far.
    pub connections: AtomicUsize,
    /// Reads so far.
    pub reads: AtomicUsize,
}

/// State that all threads share.
#[derive(Default)]
pub struct State {
    /// Files by path.
    pub files: Mutex<HashMap<String, File>>,
    /// User and method of every call.
    pub calls: Mutex<Vec<String>>,
    /// Class of the exception that answers every call; empty for none.
    pub exception: Mutex<&'static str>,
    /// Whether the cluster requires encrypted transfers.
    pub encrypts: AtomicBool,
    /// How each data node behaves.
    pub nodes: [NodeBehaviour; 2],
    /// Addresses of the data nodes in the name node's answers.
    addresses: Mutex<Vec<SocketAddr>>,
}

/// A cluster.
pub struct FakeHdfs {
    /// `hdfs://127.0.0.1:PORT` of the name node.
    pub url: String,
    /// State to set and inspect during a test.
    pub state: Arc<State>,
}

impl FakeHdfs {
    /// Starts the name node and both data nodes.
    pub fn start() -> Self {
        let state = Arc::new(State::default());
        for number in 0..2 {
            let shared = Arc::clone(&state);
            let address = listen(move |stream| data_node(stream, &shared, number));
            state.addresses.lock().unwrap().push(address);
        }
        let shared = Arc::clone(&state);
        let address = listen(move |stream| name_node(stream, &shared));
        Self {
            url: format!("hdfs://{address}"),
            state,
        }
    }

    /// Adds the file `path` with blocks of `block` bytes.
    pub fn add_file(&self, path: &str, content: &[u8], block: usize) {
        let file = File {
            content: content.to_vec(),
            block,
            under_construction: false,
        };
        self.state
            .files
            .lock()
            .unwrap()
            .insert(path.to_owned(), file);
    }

    /// Gives the first data node an address without a listener.
    pub fn lose_first_node(&self) {
        let nowhere = TcpListener::bind("127.0.0.1:0").unwrap();
        self.state.addresses.lock().unwrap()[0] = nowhere.local_addr().unwrap();
    }

    /// The behaviour of data node `number` (0 or 1).
    pub fn node(&self, number: usize) -> &NodeBehaviour {
        &self.state.nodes[number]
    }
}

fn listen(serve: impl Fn(TcpStream) -> io::Result<()> + Clone + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        while let Ok((stream, _)) = listener.accept() {
            let serve = serve.clone();
            std::thread::spawn(move || {
                let _ = stream.set_nodelay(true);
                serve(stream)
            });
        }
    });
    address
}

fn varint(at: &mut &[u8]) -> u64 {
    let (mut value, mut shift) = (0, 0);
    loop {
        let byte = at[0];
        *at = &at[1..];
        value |= u64::from(byte & 127) << shift;
        shift += 7;
        if byte < 128 {
            return value;
        }
    }
}

/// The fields of a message: number, value, bytes.
fn fields(mut at: &[u8]) -> HashMap<u64, (u64, Vec<u8>)> {
    let mut all = HashMap::new();
    while !at.is_empty() {
        let tag = varint(&mut at);
        let value = varint(&mut at);
        let mut bytes = Vec::new();
        if tag & 7 == 2 {
            bytes = at[..value as usize].to_vec();
            at = &at[value as usize..];
        }
        all.insert(tag >> 3, (value, bytes));
    }
    all
}

fn push_varint(out: &mut Vec<u8>, mut value: u64) {
    while value > 127 {
        out.push(value as u8 | 128);
        value >>= 7;
    }
    out.push(value as u8);
}

fn number(field: u8, value: u64) -> Vec<u8> {
    let mut out = vec![field << 3];
    push_varint(&mut out, value);
    out
}

fn bytes(field: u8, value: &[u8]) -> Vec<u8> {
    let mut out = vec![field << 3 | 2];
    push_varint(&mut out, value.len() as u64);
    out.extend_from_slice(value);
    out
}

fn delimited(message: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    push_varint(&mut out, message.len() as u64);
    out.extend_from_slice(message);
    out
}

fn take_delimited<'a>(at: &mut &'a [u8]) -> &'a [u8] {
    let length = varint(at) as usize;
    let (message, rest) = at.split_at(length);
    *at = rest;
    message
}

fn frame(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let mut frame = vec![0; u32::from_be_bytes(length) as usize];
    stream.read_exact(&mut frame)?;
    Ok(frame)
}

fn name_node(mut stream: TcpStream, state: &State) -> io::Result<()> {
    let mut greeting = [0; 7];
    stream.read_exact(&mut greeting)?;
    assert_eq!(&greeting, b"hrpc\x09\0\0");
    let context = frame(&mut stream)?;
    let mut at = &context[..];
    take_delimited(&mut at);
    let context = fields(take_delimited(&mut at));
    let user = fields(&context[&2].1)[&1].1.clone();
    let user = String::from_utf8(user).unwrap();
    loop {
        let call = frame(&mut stream)?;
        let mut at = &call[..];
        let header = fields(take_delimited(&mut at));
        let method = fields(take_delimited(&mut at))[&1].1.clone();
        let request = fields(take_delimited(&mut at));
        let method = String::from_utf8(method).unwrap();
        state.calls.lock().unwrap().push(format!("{user} {method}"));
        let id = header[&3].0 >> 1;
        let mut exception = *state.exception.lock().unwrap();
        if !METHODS.contains(&method.as_str()) {
            exception = "java.lang.UnsupportedOperationException";
        }
        let mut answer = Vec::new();
        if exception.is_empty() {
            answer.extend(delimited(&[number(1, id), number(2, 0)].concat()));
            answer.extend(delimited(&response(&method, &request, state)));
        } else {
            let response = [bytes(4, exception.as_bytes()), bytes(5, b"m\n\tat java")].concat();
            answer.extend(delimited(&[number(1, id), number(2, 1), response].concat()));
        }
        let mut text = (answer.len() as u32).to_be_bytes().to_vec();
        text.extend(answer);
        stream.write_all(&text)?;
    }
}

fn response(method: &str, request: &HashMap<u64, (u64, Vec<u8>)>, state: &State) -> Vec<u8> {
    let path = request
        .get(&1)
        .map(|(_, path)| String::from_utf8(path.clone()).unwrap());
    let files = state.files.lock().unwrap();
    let file = path.as_ref().and_then(|path| files.get(path));
    match method {
        "getServerDefaults" => {
            let encrypts = state.encrypts.load(Ordering::Relaxed);
            bytes(
                1,
                &[number(1, 1 << 27), number(6, encrypts.into())].concat(),
            )
        }
        "getFileInfo" => match (file, path.as_deref()) {
            (Some(file), _) => bytes(
                1,
                &[number(1, 2), number(3, file.content.len() as u64)].concat(),
            ),
            (None, Some("/dir")) => bytes(1, &[number(1, 1), number(3, 0)].concat()),
            _ => Vec::new(),
        },
        "getBlockLocations" => match file {
            Some(file) => {
                let path = path.as_deref().unwrap_or_default();
                let range = (request[&2].0 as usize, request[&3].0 as usize);
                bytes(1, &locations(path, file, range, state))
            }
            None => Vec::new(),
        },
        _ => Vec::new(),
    }
}

/// `LocatedBlocksProto`. A block's number is its offset; its pool is the file's path.
fn locations(path: &str, file: &File, (from, length): (usize, usize), state: &State) -> Vec<u8> {
    let mut out = number(1, file.content.len() as u64);
    for begin in (0..file.content.len()).step_by(file.block) {
        let end = (begin + file.block).min(file.content.len());
        if end <= from || begin >= from.saturating_add(length) {
            continue;
        }
        let id = [
            bytes(1, path.as_bytes()),
            number(2, begin as u64),
            number(3, 1001),
            number(4, (end - begin) as u64),
        ]
        .concat();
        let mut block = [bytes(1, &id), number(2, begin as u64)].concat();
        for address in &*state.addresses.lock().unwrap() {
            let id = [
                bytes(1, address.ip().to_string().as_bytes()),
                bytes(2, b"host"),
                bytes(3, b"uuid"),
                number(4, address.port().into()),
                number(5, 1),
                number(6, 1),
            ]
            .concat();
            block.extend(bytes(3, &[bytes(1, &id), number(2, 1 << 40)].concat()));
        }
        let token = [bytes(1, b""), bytes(2, b""), bytes(3, b""), bytes(4, b"")].concat();
        block.extend(number(4, 0));
        block.extend(bytes(5, &token));
        out.extend(bytes(2, &block));
    }
    out.extend(number(3, file.under_construction.into()));
    out.extend(number(5, 1));
    out
}

fn data_node(mut stream: TcpStream, state: &State, which: usize) -> io::Result<()> {
    let behaviour = &state.nodes[which];
    behaviour.connections.fetch_add(1, Ordering::Relaxed);
    loop {
        let mut head = [0; 3];
        stream.read_exact(&mut head)?;
        assert_eq!(head, [0, 28, 81]);
        let mut length = vec![0];
        stream.read_exact(&mut length)?;
        while length.last().is_some_and(|byte| *byte > 127) {
            let mut byte = [0];
            stream.read_exact(&mut byte)?;
            length.push(byte[0]);
        }
        let mut request = vec![0; varint(&mut &length[..]) as usize];
        stream.read_exact(&mut request)?;
        let request = fields(&request);
        let base = fields(&fields(&request[&1].1)[&1].1);
        let block = fields(&base[&1].1);
        let (from, length) = (request[&2].0 as usize, request[&3].0 as usize);
        behaviour.reads.fetch_add(1, Ordering::Relaxed);
        if behaviour.refuses.load(Ordering::Relaxed) {
            let refusal = [number(1, 1), bytes(5, b"Replica not found")].concat();
            stream.write_all(&delimited(&refusal))?;
            return Ok(());
        }
        let path = String::from_utf8(block[&1].1.clone()).unwrap();
        let begin = block[&2].0 as usize;
        let content = {
            let files = state.files.lock().unwrap();
            files[&path].content[begin..begin + block[&4].0 as usize].to_vec()
        };
        let start = from / CHUNK * CHUNK;
        let end = (from + length).next_multiple_of(CHUNK).min(content.len());
        let checksum = [number(1, 2), number(2, CHUNK as u64)].concat();
        let info = [bytes(1, &checksum), number(2, start as u64)].concat();
        // In several writes, like Hadoop.
        stream.write_all(&delimited(&[number(1, 0), bytes(4, &info)].concat()))?;
        let wrong = behaviour.corrupt_from.load(Ordering::Relaxed);
        for at in (start..end).step_by(PACKET) {
            let data = &content[at..end.min(at + PACKET)];
            stream.write_all(&packet_head(at, data, wrong))?;
            stream.write_all(data)?;
        }
        stream.write_all(&packet_head(end, b"", 0))?;
        let mut status = [0; 3];
        stream.read_exact(&mut status)?;
        assert_eq!(status, [2, 8, 6]);
        if behaviour.closes.load(Ordering::Relaxed) {
            return Ok(());
        }
    }
}

fn packet_head(offset: usize, data: &[u8], wrong: usize) -> Vec<u8> {
    let mut sums = Vec::new();
    for (i, chunk) in data.chunks(CHUNK).enumerate() {
        let mut sum = crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, chunk) as u32;
        if wrong > 0 && offset + i * CHUNK >= wrong {
            sum ^= 1;
        }
        sums.extend(sum.to_be_bytes());
    }
    let mut out = ((4 + sums.len() + data.len()) as u32)
        .to_be_bytes()
        .to_vec();
    out.extend([0, 25, 0x09]);
    out.extend((offset as u64).to_le_bytes());
    out.extend([
        0x11,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        0x18,
        u8::from(data.is_empty()),
        0x25,
    ]);
    out.extend((data.len() as u32).to_le_bytes());
    out.extend(sums);
    out
}
