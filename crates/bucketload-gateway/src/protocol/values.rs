//! The store's plain values as bytes, both ways.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bucketload_store::{
    Checksum, ChecksumAlgorithm, ChecksumKind, Commit, Condition, ETag, Headers, ReadConditions,
    Tags,
};

use super::codec::{Decoder, Malformed, put_list, put_number, put_option, put_text};

type Decoded<T> = Result<T, Malformed>;

pub(crate) fn put_etag(out: &mut Vec<u8>, etag: &ETag) {
    let (digest, parts) = etag.to_raw();
    out.extend_from_slice(&digest);
    put_number(out, u64::from(parts));
}

pub(crate) fn etag(decoder: &mut Decoder<'_>) -> Decoded<ETag> {
    Ok(ETag::from_raw(decoder.array()?, decoder.small()?))
}

/// Appends a time: nanoseconds since the epoch, modulo 2^64, which is good until 2554.
pub(crate) fn put_time(out: &mut Vec<u8>, time: &SystemTime) {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    out.extend_from_slice(&(since.as_nanos() as u64).to_le_bytes());
}

pub(crate) fn time(decoder: &mut Decoder<'_>) -> Decoded<SystemTime> {
    Ok(UNIX_EPOCH + Duration::from_nanos(u64::from_le_bytes(decoder.array()?)))
}

fn put_pair(out: &mut Vec<u8>, (name, value): &(String, String)) {
    put_text(out, name);
    put_text(out, value);
}

fn pair(decoder: &mut Decoder<'_>) -> Decoded<(String, String)> {
    Ok((decoder.text()?.to_owned(), decoder.text()?.to_owned()))
}

pub(crate) fn put_headers(out: &mut Vec<u8>, headers: &Headers) {
    put_option(out, headers.content_type.as_ref(), |out, text| {
        put_text(out, text)
    });
    put_list(out, &headers.system, put_pair);
    put_list(out, &headers.user, put_pair);
}

pub(crate) fn headers(decoder: &mut Decoder<'_>) -> Decoded<Headers> {
    Ok(Headers {
        content_type: decoder.option(|d| d.text().map(str::to_owned))?,
        system: decoder.list(pair)?,
        user: decoder.list(pair)?,
    })
}

pub(crate) fn put_tags(out: &mut Vec<u8>, tags: &Tags) {
    put_list(out, tags, put_pair);
}

pub(crate) fn tags(decoder: &mut Decoder<'_>) -> Decoded<Tags> {
    decoder.list(pair)
}

/// Algorithms by their numbers.
const ALGORITHMS: [ChecksumAlgorithm; 5] = [
    ChecksumAlgorithm::Crc32,
    ChecksumAlgorithm::Crc32c,
    ChecksumAlgorithm::Crc64Nvme,
    ChecksumAlgorithm::Sha1,
    ChecksumAlgorithm::Sha256,
];

pub(crate) fn put_algorithm(out: &mut Vec<u8>, algorithm: &ChecksumAlgorithm) {
    let number = ALGORITHMS.iter().position(|known| known == algorithm);
    out.push(number.expect("every algorithm has a number") as u8);
}

pub(crate) fn algorithm(decoder: &mut Decoder<'_>) -> Decoded<ChecksumAlgorithm> {
    ALGORITHMS
        .get(usize::from(decoder.byte()?))
        .copied()
        .ok_or(Malformed("an unknown checksum algorithm"))
}

pub(crate) fn put_kind(out: &mut Vec<u8>, kind: ChecksumKind) {
    out.push(u8::from(kind == ChecksumKind::Composite));
}

pub(crate) fn kind(decoder: &mut Decoder<'_>) -> Decoded<ChecksumKind> {
    Ok(match decoder.flag()? {
        true => ChecksumKind::Composite,
        false => ChecksumKind::FullObject,
    })
}

pub(crate) fn put_checksum(out: &mut Vec<u8>, checksum: &Checksum) {
    put_algorithm(out, &checksum.algorithm);
    put_kind(out, checksum.kind);
    put_text(out, &checksum.value);
}

pub(crate) fn checksum(decoder: &mut Decoder<'_>) -> Decoded<Checksum> {
    Ok(Checksum {
        algorithm: algorithm(decoder)?,
        kind: kind(decoder)?,
        value: decoder.text()?.to_owned(),
    })
}

pub(crate) fn put_condition(out: &mut Vec<u8>, condition: &Condition) {
    match condition {
        Condition::None => out.push(0),
        Condition::Absent => out.push(1),
        Condition::Present => out.push(2),
        Condition::Match(tags) => {
            out.push(3);
            put_list(out, tags, put_etag);
        }
    }
}

pub(crate) fn condition(decoder: &mut Decoder<'_>) -> Decoded<Condition> {
    Ok(match decoder.byte()? {
        0 => Condition::None,
        1 => Condition::Absent,
        2 => Condition::Present,
        3 => Condition::Match(decoder.list(etag)?),
        _ => return Err(Malformed("an unknown condition")),
    })
}

/// Appends what is known of an object beside its content; the usual "nothing" is one byte.
pub(crate) fn put_commit(out: &mut Vec<u8>, commit: &Commit) {
    let plain = commit.headers == Headers::default()
        && commit.checksums.is_empty()
        && commit.tags.is_empty()
        && commit.condition == Condition::None;
    out.push(u8::from(!plain));
    if !plain {
        put_headers(out, &commit.headers);
        put_list(out, &commit.checksums, put_checksum);
        put_tags(out, &commit.tags);
        put_condition(out, &commit.condition);
    }
}

pub(crate) fn commit(decoder: &mut Decoder<'_>) -> Decoded<Commit> {
    if !decoder.flag()? {
        return Ok(Commit::default());
    }
    Ok(Commit {
        headers: headers(decoder)?,
        checksums: decoder.list(checksum)?,
        tags: tags(decoder)?,
        condition: condition(decoder)?,
    })
}

pub(crate) fn put_conditions(out: &mut Vec<u8>, conditions: &ReadConditions) {
    let ReadConditions {
        if_match,
        if_none_match,
        if_modified_since,
        if_unmodified_since,
    } = conditions;
    let plain = if_match.is_none()
        && if_none_match.is_none()
        && if_modified_since.is_none()
        && if_unmodified_since.is_none();
    out.push(u8::from(!plain));
    if !plain {
        for tags in [if_match, if_none_match] {
            put_option(out, tags.as_ref(), |out, tags| {
                put_list(out, tags, put_etag)
            });
        }
        for instant in [if_modified_since, if_unmodified_since] {
            put_option(out, instant.as_ref(), put_time);
        }
    }
}

pub(crate) fn conditions(decoder: &mut Decoder<'_>) -> Decoded<ReadConditions> {
    if !decoder.flag()? {
        return Ok(ReadConditions::default());
    }
    Ok(ReadConditions {
        if_match: decoder.option(|d| d.list(etag))?,
        if_none_match: decoder.option(|d| d.list(etag))?,
        if_modified_since: decoder.option(time)?,
        if_unmodified_since: decoder.option(time)?,
    })
}
