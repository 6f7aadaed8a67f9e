"""Tests an S3 endpoint with boto3, a third-party client.

Endpoint and credentials come from the AWS environment variables. Prints one line per
check and ends with the number of checks; any failure is an uncaught exception.
"""
import hashlib
import io
import os
import sys
import urllib.request

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

CHECKS = 0


def check(name, condition=True):
    global CHECKS
    if not condition:
        raise AssertionError(name)
    CHECKS += 1
    print("ok", name, flush=True)


def refused(name, code, call, **arguments):
    try:
        call(**arguments)
    except ClientError as error:
        got = error.response["Error"]["Code"]
        check(f"{name}: {got}", got in code)
        return
    raise AssertionError(f"{name}: was not refused")


def client(**settings):
    return boto3.client("s3", config=Config(s3={"addressing_style": "path"}, retries={"max_attempts": 1}, **settings))


def main():
    s3 = client()
    bucket = "conformance-boto3"
    s3.create_bucket(Bucket=bucket)
    check("bucket is listed", bucket in [b["Name"] for b in s3.list_buckets()["Buckets"]])
    s3.head_bucket(Bucket=bucket)
    refused("absent bucket", ("404", "NoSuchBucket"), s3.head_bucket, Bucket="no-such-bucket-here")

    body = os.urandom(300_000)
    put = s3.put_object(Bucket=bucket, Key="dir/a b+c%.bin", Body=body, ContentType="x/y", Metadata={"color": "blue"})
    check("etag is the MD5", put["ETag"].strip('"') == hashlib.md5(body).hexdigest())
    got = s3.get_object(Bucket=bucket, Key="dir/a b+c%.bin")
    check("bytes come back", got["Body"].read() == body)
    check("metadata and type come back", got["Metadata"] == {"color": "blue"} and got["ContentType"] == "x/y")
    head = s3.head_object(Bucket=bucket, Key="dir/a b+c%.bin")
    check("head agrees", head["ContentLength"] == len(body) and head["ETag"] == put["ETag"])
    part = s3.get_object(Bucket=bucket, Key="dir/a b+c%.bin", Range="bytes=100-199")
    check("range", part["Body"].read() == body[100:200] and part["ContentRange"] == f"bytes 100-199/{len(body)}")
    check("suffix range", s3.get_object(Bucket=bucket, Key="dir/a b+c%.bin", Range="bytes=-7")["Body"].read() == body[-7:])
    refused("range past the end", ("InvalidRange",), s3.get_object, Bucket=bucket, Key="dir/a b+c%.bin", Range="bytes=400000-")
    refused("absent key", ("NoSuchKey",), s3.get_object, Bucket=bucket, Key="nothing")
    refused("If-Match", ("PreconditionFailed", "412"), s3.get_object, Bucket=bucket, Key="dir/a b+c%.bin", IfMatch='"x"')
    refused("If-None-Match", ("304", "NotModified"), s3.get_object, Bucket=bucket, Key="dir/a b+c%.bin", IfNoneMatch=put["ETag"])
    refused("PUT If-None-Match *", ("PreconditionFailed", "412"), s3.put_object, Bucket=bucket, Key="dir/a b+c%.bin", Body=b"", IfNoneMatch="*")
    s3.put_object(Bucket=bucket, Key="empty", Body=b"")
    check("empty object", s3.get_object(Bucket=bucket, Key="empty")["Body"].read() == b"")
    for algorithm in ("CRC32", "SHA1", "SHA256"):
        s3.put_object(Bucket=bucket, Key=f"sum-{algorithm}", Body=body, ChecksumAlgorithm=algorithm)
        answer = s3.get_object(Bucket=bucket, Key=f"sum-{algorithm}", ChecksumMode="ENABLED")
        check(f"checksum {algorithm}", answer["Body"].read() == body and answer.get(f"Checksum{algorithm}"))
    refused("wrong checksum", ("BadDigest", "XAmzContentChecksumMismatch", "InvalidRequest"), s3.put_object, Bucket=bucket, Key="bad", Body=body, ChecksumCRC32="AAAAAA==")

    keys = [f"list/{i // 10}/{i:03}" for i in range(57)] + ["list/ü€", "list/z&<>"]
    for key in keys:
        s3.put_object(Bucket=bucket, Key=key, Body=b"x")
    paginator = s3.get_paginator("list_objects_v2")
    seen = [o["Key"] for page in paginator.paginate(Bucket=bucket, Prefix="list/", PaginationConfig={"PageSize": 10}) for o in page["Contents"]]
    check("paged listing V2", seen == sorted(keys, key=lambda k: k.encode()))
    paginator = s3.get_paginator("list_objects")
    seen = [o["Key"] for page in paginator.paginate(Bucket=bucket, Prefix="list/", PaginationConfig={"PageSize": 7}) for o in page["Contents"]]
    check("paged listing V1", seen == sorted(keys, key=lambda k: k.encode()))
    page = s3.list_objects_v2(Bucket=bucket, Prefix="list/", Delimiter="/")
    check("delimiter", [p["Prefix"] for p in page["CommonPrefixes"]] == [f"list/{i}/" for i in range(6)] and len(page["Contents"]) == 2)
    page = s3.list_objects_v2(Bucket=bucket, Prefix="list/", StartAfter="list/5/055")
    check("start-after", [o["Key"] for o in page["Contents"]][0] == "list/5/056")

    s3.copy_object(Bucket=bucket, Key="copy", CopySource={"Bucket": bucket, "Key": "dir/a b+c%.bin"})
    check("copy", s3.get_object(Bucket=bucket, Key="copy")["Body"].read() == body)
    s3.put_object_tagging(Bucket=bucket, Key="copy", Tagging={"TagSet": [{"Key": "k", "Value": "v w"}]})
    check("tags", s3.get_object_tagging(Bucket=bucket, Key="copy")["TagSet"] == [{"Key": "k", "Value": "v w"}])
    s3.delete_object_tagging(Bucket=bucket, Key="copy")
    check("no tags", s3.get_object_tagging(Bucket=bucket, Key="copy")["TagSet"] == [])

    big = os.urandom(12 << 20)
    s3.upload_fileobj(io.BytesIO(big), bucket, "big", Config=boto3.s3.transfer.TransferConfig(multipart_threshold=5 << 20, multipart_chunksize=5 << 20))
    check("multipart upload", s3.head_object(Bucket=bucket, Key="big")["ETag"].endswith('-3"'))
    out = io.BytesIO()
    s3.download_fileobj(bucket, "big", out)
    check("multipart bytes", out.getvalue() == big)
    upload = s3.create_multipart_upload(Bucket=bucket, Key="mp")["UploadId"]
    check("upload is listed", upload in [u["UploadId"] for u in s3.list_multipart_uploads(Bucket=bucket)["Uploads"]])
    one = s3.upload_part(Bucket=bucket, Key="mp", UploadId=upload, PartNumber=1, Body=big[: 5 << 20])
    two = s3.upload_part_copy(Bucket=bucket, Key="mp", UploadId=upload, PartNumber=2, CopySource={"Bucket": bucket, "Key": "big"}, CopySourceRange="bytes=0-99")
    check("parts are listed", len(s3.list_parts(Bucket=bucket, Key="mp", UploadId=upload)["Parts"]) == 2)
    s3.complete_multipart_upload(Bucket=bucket, Key="mp", UploadId=upload, MultipartUpload={"Parts": [
        {"PartNumber": 1, "ETag": one["ETag"]}, {"PartNumber": 2, "ETag": two["CopyPartResult"]["ETag"]}]})
    check("part copy", s3.get_object(Bucket=bucket, Key="mp")["Body"].read() == big[: 5 << 20] + big[:100])
    upload = s3.create_multipart_upload(Bucket=bucket, Key="gone")["UploadId"]
    s3.abort_multipart_upload(Bucket=bucket, Key="gone", UploadId=upload)
    refused("aborted upload", ("NoSuchUpload",), s3.list_parts, Bucket=bucket, Key="gone", UploadId=upload)

    url = s3.generate_presigned_url("get_object", Params={"Bucket": bucket, "Key": "copy"}, ExpiresIn=60)
    check("presigned GET", urllib.request.urlopen(url).read() == body)
    wrong = boto3.client("s3", aws_access_key_id=os.environ["AWS_ACCESS_KEY_ID"], aws_secret_access_key="wrong", config=Config(s3={"addressing_style": "path"}, retries={"max_attempts": 1}))
    refused("wrong secret", ("SignatureDoesNotMatch",), wrong.list_buckets)

    refused("bucket not empty", ("BucketNotEmpty",), s3.delete_bucket, Bucket=bucket)
    while True:
        page = s3.list_objects_v2(Bucket=bucket, MaxKeys=40)
        if not page.get("Contents"):
            break
        answer = s3.delete_objects(Bucket=bucket, Delete={"Objects": [{"Key": o["Key"]} for o in page["Contents"]]})
        check("bulk delete", len(answer["Deleted"]) == len(page["Contents"]) and not answer.get("Errors"))
    s3.delete_bucket(Bucket=bucket)
    refused("deleted bucket", ("404", "NoSuchBucket"), s3.head_bucket, Bucket=bucket)
    print(f"{CHECKS} checks", file=sys.stderr)


main()
