#!/usr/bin/env bash
# The functional tests of MinIO's clients, which MinIO runs together as "mint", for testing the embedded server: those
# that a package registry serves with their client, namely minio-go and mc (Go modules) and minio-py (PyPI).
#
#   mint.sh install    install what is missing, and the clients of clients.sh
#   mint.sh env        print KEY=VALUE lines: MINIO_GO, a program; MINIO_PY, a script for PYTHON; MC_TESTS, a script for
#                      the MC of clients.sh, which needs jq
set -euo pipefail

SERVERS_HOME=${SERVERS_HOME:-$HOME/.cache/bucketload-servers}
case $SERVERS_HOME in /*) ;; *) SERVERS_HOME=$PWD/$SERVERS_HOME ;; esac
DIR=$SERVERS_HOME/mint
CLIENTS=$(dirname "${BASH_SOURCE[0]}")/clients.sh
MINIO_GO_VERSION=${MINIO_GO_VERSION:-v7.4.1}
MINIO_PY_VERSION=${MINIO_PY_VERSION:-7.2.20}

die() { echo "mint: $*" >&2; exit 1; }
stamp() { echo "$MINIO_GO_VERSION $MINIO_PY_VERSION $(mc_version)"; }
mc_version() { "$CLIENTS" env | sed -n 's/^MC_VERSION=//p'; }

# module PATH VERSION FOLDER: a writable copy of a Go module
module() {
  local from
  from=$(go mod download -json "$1@$2" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p')
  cp -r "$from" "$DIR/$3"
  chmod -R u+w "$DIR/$3"
}

do_install() {
  "$CLIENTS" install
  mkdir -p "$DIR"
  exec 9>"$DIR/lock"
  flock 9
  if [ "$(cat "$DIR/installed" 2>/dev/null)" = "$(stamp)" ]; then return 0; fi
  rm -rf "$DIR/minio-go" "$DIR/mc" "$DIR/minio-py" "$DIR/venv"
  module github.com/minio/minio-go/v7 "$MINIO_GO_VERSION" minio-go
  (
    # It is a program among the files of a library.
    cd "$DIR/minio-go"
    mkdir mint
    mv functional_tests.go mint/
    nice -n 10 go build -tags mint -o functional-tests ./mint >&2
  )
  module github.com/minio/mc "$(mc_version)" mc
  python3 -m venv "$DIR/venv"
  local pip=("$DIR/venv/bin/pip" --quiet --disable-pip-version-check)
  "${pip[@]}" install "minio==$MINIO_PY_VERSION" setuptools >&2
  # Only the source package has the tests.
  "${pip[@]}" download --no-deps --no-binary :all: --dest "$DIR/minio-py" "minio==$MINIO_PY_VERSION" >&2
  tar -xzf "$DIR/minio-py/minio-$MINIO_PY_VERSION.tar.gz" -C "$DIR/minio-py" --strip-components 1
  stamp >"$DIR/installed"
}

do_env() {
  [ "$(cat "$DIR/installed" 2>/dev/null)" = "$(stamp)" ] || die "not installed: run '$0 install'"
  echo "MINIO_GO=$DIR/minio-go/functional-tests"
  echo "MC_TESTS=$DIR/mc/functional-tests.sh"
  echo "MINIO_PY=$DIR/minio-py/tests/functional/tests.py"
  echo "PYTHON=$DIR/venv/bin/python"
}

case ${1:-} in
  install) do_install ;;
  env) do_env ;;
  *) sed -n '2,8s/^# \{0,1\}//p' "$0"; exit 2 ;;
esac
