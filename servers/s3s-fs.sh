#!/usr/bin/env bash
# s3s-fs, the sample server of the Rust crate s3s: objects are files of a folder.
NAME=s3s-fs API=s3
VERSION=${S3S_FS_VERSION:-0.14.1}
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

do_install() { cargo_install s3s-fs --features binary; }

do_command() {
  CMD=("$SERVER_DIR/bin/s3s-fs" --host 127.0.0.1 --port "$PORT"
    --access-key "$ACCESS_KEY" --secret-key "$SECRET_KEY")
  if [ -n "${VIRTUAL_DOMAIN:-}" ]; then CMD+=(--domain "$VIRTUAL_DOMAIN"); fi
  CMD+=("$DATA_DIR")
}

do_env() { s3_env; }

main "$@"
