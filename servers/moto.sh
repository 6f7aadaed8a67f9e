#!/usr/bin/env bash
# moto's server, a fake of AWS in Python; it keeps objects in memory and does not check credentials.
NAME=moto API=s3
VERSION=${MOTO_VERSION:-5.2.5}
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

do_install() { pip_install "moto[s3,server]==$VERSION"; }

do_command() { CMD=("$SERVER_DIR/venv/bin/moto_server" -H 127.0.0.1 -p "$PORT"); }

do_env() { s3_env; }

main "$@"
