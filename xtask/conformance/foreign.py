"""Plants objects that do not belong to a run, and checks later that all still exist.

usage: foreign.py plant|check BUCKET PREFIX   (endpoint and credentials from the AWS environment)
"""
import sys

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

verb, bucket, prefix = sys.argv[1:4]
s3 = boto3.client("s3", config=Config(s3={"addressing_style": "path"},
                                      request_checksum_calculation="when_required",
                                      response_checksum_validation="when_required"))
KEYS = [f"foreign/{i:03}" for i in range(40)] + [
    f"{prefix}/precious", f"{prefix}/bucketload-0/data", f"{prefix}-neighbour", "bucketload-1/x"]


def listing():
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket)
    return {o["Key"]: o["ETag"] for page in pages for o in page.get("Contents", [])}


if verb == "plant":
    try:
        s3.create_bucket(Bucket=bucket)
    except ClientError as error:
        if error.response["Error"]["Code"] != "BucketAlreadyOwnedByYou":
            raise
    for key in KEYS:
        s3.put_object(Bucket=bucket, Key=key, Body=key.encode())
else:
    left = listing()
    lost = [key for key in KEYS if key not in left]
    litter = [key for key in left if key not in KEYS]
    if lost or litter:
        sys.exit(f"lost {lost[:5]}, left behind {litter[:5]} ({len(lost)} and {len(litter)})")
    for key in KEYS:
        assert s3.get_object(Bucket=bucket, Key=key)["Body"].read() == key.encode(), key
    print(f"all {len(KEYS)} foreign objects are there, and nothing else")
