//! Framed bodies, checked with the wire layer's decoder.

use bucketload_core::payload::{Arena, PayloadKind};
use bucketload_wire::http::{ChunkedDecoder, Event};
use proptest::prelude::*;

use super::{BodyPieces, ChecksumAlgorithm, Layout, PayloadMode, Signer, Span};

fn body(mode: PayloadMode, span: Span<'_>, signer: &Signer) -> (Vec<u8>, Layout) {
    let algorithm = ChecksumAlgorithm::Crc32c;
    let layout = Layout::new(mode, Some(algorithm), span.len);
    let mut frames = Vec::new();
    let checksum = algorithm.of(span);
    let mut digests = Vec::new();
    layout.digest(span, &mut digests);
    layout.render(
        &mut frames,
        &digests,
        Some(&checksum),
        Some((signer, [b'0'; 64])),
    );
    let mut pieces = BodyPieces::new(span, &frames);
    assert_eq!(pieces.wire_len(), layout.wire_len());
    let mut wire = Vec::new();
    loop {
        let piece = pieces.next(100_000);
        if piece.as_ref().is_empty() {
            return (wire, layout);
        }
        wire.extend_from_slice(piece.as_ref());
    }
}

fn decoded(mut wire: &[u8]) -> Vec<u8> {
    let mut decoder = ChunkedDecoder::new();
    let mut data = Vec::new();
    loop {
        let (n, event) = decoder.decode(wire).unwrap();
        match event {
            Event::Data { len } => data.extend_from_slice(&wire[n - len..n]),
            Event::NeedMore => panic!("the body ends early"),
            Event::End => {
                assert_eq!(wire.len(), n, "nothing follows the end");
                return data;
            }
            Event::Chunk { .. } | Event::ChunkEnd => {}
        }
        wire = &wire[n..];
    }
}

#[test]
fn the_published_body() {
    // 66 560 data bytes make 66 824 bytes on the wire when signed ("Content-Length: 66824").
    let layout = Layout::new(PayloadMode::Streaming, None, 66_560);
    assert_eq!(layout.wire_len(), 66_824);
}

#[test]
fn large_objects_have_few_chunks() {
    let layout = Layout::new(PayloadMode::Streaming, None, 5 << 30);
    assert_eq!(layout.chunk, 5 << 20);
    let layout = Layout::new(PayloadMode::Streaming, None, 5 << 40);
    assert_eq!(layout.chunk, super::MAX_CHUNK);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn length_is_exact_and_data_survives(
        size in prop_oneof![0u64..200_000, Just(65_536), Just(131_072), Just(0)],
        offset in 0u64..300_000, mode in 2usize..5,
    ) {
        let arena = Arena::new(PayloadKind::Random, 1);
        let content = arena.content(0, 1, 0, offset + size);
        let span = Span { content: &content, offset, len: size };
        let mut signer = Signer::new("id", "key", "", "us-east-1");
        signer.at(0);
        let mode = PayloadMode::ALL[mode];
        let (wire, layout) = body(mode, span, &signer);
        prop_assert_eq!(wire.len() as u64, layout.wire_len());
        let mut want = vec![0; size as usize];
        content.fill(offset, &mut want);
        prop_assert!(decoded(&wire) == want);
        let tail = String::from_utf8_lossy(&wire[wire.len().saturating_sub(260)..]).into_owned();
        prop_assert_eq!(tail.contains("x-amz-checksum-crc32c:"), mode.has_trailer());
        prop_assert_eq!(tail.contains("x-amz-trailer-signature:"), mode == PayloadMode::StreamingTrailer);
        prop_assert_eq!(tail.contains("chunk-signature="), mode != PayloadMode::UnsignedTrailer);
    }
}
