"""Prints a shared access signature for a whole storage account, valid until the given time.

Follows "Create an account SAS" (Azure Storage REST API reference), with account and key from the
environment.
"""
import base64
import hashlib
import hmac
import os
import sys
import urllib.parse

expiry = sys.argv[1]
account = os.environ["AZURE_STORAGE_ACCOUNT"]
key = base64.b64decode(os.environ["AZURE_STORAGE_KEY"])
version, permissions = "2022-11-02", "rwdlacup"
lines = [account, permissions, "b", "sco", "", expiry, "", "", version, "", ""]
digest = hmac.new(key, "\n".join(lines).encode(), hashlib.sha256).digest()
fields = {
    "sv": version,
    "ss": "b",
    "srt": "sco",
    "sp": permissions,
    "se": expiry,
    "sig": base64.b64encode(digest).decode(),
}
print(urllib.parse.urlencode(fields))
