#!/usr/bin/env bash
# Third-party S3 clients for testing the embedded
# server: boto3, the AWS CLI and s3cmd (PyPI), rclone (Debian) and mc (Go); and
# the client of OpenStack Swift (PyPI).
#
#   clients.sh install    install missing clients
#   clients.sh env        print KEY=VALUE lines: the path of each client
#
# The clients of Azure and of Google Cloud Storage (PyPI; the first is large):
#
#   clients.sh install-clouds
#   clients.sh env-clouds
#
# And readers of operation logs (PyPI): DuckDB, pandas.
#
#   clients.sh install-readers
#   clients.sh env-readers
set -euo pipefail

SERVERS_HOME=${SERVERS_HOME:-$HOME/.cache/bucketload-servers}
case $SERVERS_HOME in /*) ;; *) SERVERS_HOME=$PWD/$SERVERS_HOME ;; esac
DIR=$SERVERS_HOME/clients
MC_VERSION=${MC_VERSION:-v0.0.0-20250313080218-cf909e1063a9}
PYTHON_CLIENTS=(boto3==1.44.5 awscli==1.46.2 s3cmd==2.4.0 python-swiftclient==4.11.0)
STAMP="${PYTHON_CLIENTS[*]} $MC_VERSION"
CLOUDS=(azure-cli==2.91.0 gsutil==5.38)
READERS=(duckdb==1.4.1 pandas==2.3.3 pyarrow==21.0.0 zstandard==0.25.0)

die() { echo "clients: $*" >&2; exit 1; }

do_install() {
  mkdir -p "$DIR"
  exec 9>"$DIR/lock"
  flock 9
  if ! command -v rclone >/dev/null; then
    local o=(-o DPkg::Lock::Timeout=900 -y -q --no-install-recommends)
    DEBIAN_FRONTEND=noninteractive apt-get "${o[@]}" install rclone >&2 || {
      apt-get -o DPkg::Lock::Timeout=900 update -q >&2
      DEBIAN_FRONTEND=noninteractive apt-get "${o[@]}" install rclone >&2
    }
  fi
  if [ "$(cat "$DIR/installed" 2>/dev/null)" != "$STAMP" ]; then
    command -v python3 >/dev/null || die "needs python3 on PATH"
    command -v go >/dev/null || die "needs go on PATH"
    python3 -m venv "$DIR/venv"
    "$DIR/venv/bin/pip" install --quiet --disable-pip-version-check "${PYTHON_CLIENTS[@]}" >&2
    GOBIN=$DIR/bin nice -n 10 go install "github.com/minio/mc@$MC_VERSION" >&2
    echo "$STAMP" >"$DIR/installed"
  fi
}

do_install_readers() {
  mkdir -p "$DIR"
  exec 9>"$DIR/lock"
  flock 9
  if [ "$(cat "$DIR/readers-installed" 2>/dev/null)" != "${READERS[*]}" ]; then
    command -v python3 >/dev/null || die "needs python3 on PATH"
    python3 -m venv "$DIR/readers"
    "$DIR/readers/bin/pip" install --quiet --disable-pip-version-check "${READERS[@]}" >&2
    echo "${READERS[*]}" >"$DIR/readers-installed"
  fi
}

# Each in its own environment, because they need different versions of the same libraries.
do_install_clouds() {
  mkdir -p "$DIR"
  exec 9>"$DIR/lock"
  flock 9
  if [ "$(cat "$DIR/clouds-installed" 2>/dev/null)" != "${CLOUDS[*]}" ]; then
    command -v python3 >/dev/null || die "needs python3 on PATH"
    local client
    for client in "${CLOUDS[@]}"; do
      python3 -m venv "$DIR/${client%%=*}"
      "$DIR/${client%%=*}/bin/pip" install --quiet --disable-pip-version-check "$client" >&2
    done
    echo "${CLOUDS[*]}" >"$DIR/clouds-installed"
  fi
}

do_env_clouds() {
  [ "$(cat "$DIR/clouds-installed" 2>/dev/null)" = "${CLOUDS[*]}" ] || die "not installed: run '$0 install-clouds'"
  echo "AZ=$DIR/azure-cli/bin/az"
  echo "GSUTIL=$DIR/gsutil/bin/gsutil"
}

do_env_readers() {
  [ "$(cat "$DIR/readers-installed" 2>/dev/null)" = "${READERS[*]}" ] || die "not installed: run '$0 install-readers'"
  echo "READERS=$DIR/readers/bin/python"
}

do_env() {
  [ "$(cat "$DIR/installed" 2>/dev/null)" = "$STAMP" ] || die "not installed: run '$0 install'"
  echo "PYTHON=$DIR/venv/bin/python"
  echo "AWS=$DIR/venv/bin/aws"
  echo "S3CMD=$DIR/venv/bin/s3cmd"
  echo "SWIFT=$DIR/venv/bin/swift"
  echo "RCLONE=$(command -v rclone)"
  echo "MC=$DIR/bin/mc"
  echo "MC_VERSION=$MC_VERSION"
}

case ${1:-} in
  install) do_install ;;
  env) do_env ;;
  install-clouds) do_install_clouds ;;
  env-clouds) do_env_clouds ;;
  install-readers) do_install_readers ;;
  env-readers) do_env_readers ;;
  *) sed -n '2,18s/^# \{0,1\}//p' "$0"; exit 2 ;;
esac
