#!/usr/bin/env bash
# rclone serve s3 over a folder.
NAME=rclone-s3 API=s3
VERSION=${RCLONE_VERSION:-v1.75.1}
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

PROGRAM=rclone

do_install() { go_install github.com/rclone/rclone; }

do_prepare() {
  mkdir -p "$DATA_DIR" "$RUN_DIR/cache"
  : >"$RUN_DIR/rclone.conf"
  SETENV=(RCLONE_CONFIG="$RUN_DIR/rclone.conf" RCLONE_CACHE_DIR="$RUN_DIR/cache"
    RCLONE_VFS_CACHE_MODE="${RCLONE_VFS_CACHE_MODE:-off}"
    RCLONE_AUTH_KEY="\"$ACCESS_KEY,$SECRET_KEY\"")
}

do_command() {
  CMD=("$SERVER_DIR/bin/rclone" serve s3 --addr "127.0.0.1:$PORT" "$DATA_DIR")
}

do_env() { s3_env; }

main "$@"
