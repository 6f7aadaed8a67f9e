#!/usr/bin/env bash
# The compatibility tests for S3 of the Ceph project (github.com/ceph/s3-tests), for testing the embedded server: a
# clone at one commit, and pytest with boto3 (PyPI).
#
#   s3-tests.sh install    install what is missing
#   s3-tests.sh env        print KEY=VALUE lines: SOURCE, the clone, and PYTHON, which has pytest
#
# S3_TESTS_SOURCE names another repository to clone from, such as a mirror.
set -euo pipefail

SERVERS_HOME=${SERVERS_HOME:-$HOME/.cache/bucketload-servers}
case $SERVERS_HOME in /*) ;; *) SERVERS_HOME=$PWD/$SERVERS_HOME ;; esac
DIR=$SERVERS_HOME/s3-tests
SOURCE=${S3_TESTS_SOURCE:-https://github.com/ceph/s3-tests}
COMMIT=${S3_TESTS_COMMIT:-8f0ae7b404a3a2fcf7038bf1e6bf29544fe9b6a3}
PACKAGES=(boto3==1.44.8 pytest requests httplib2 lxml pytz isodate munch PyYAML)
STAMP="$COMMIT ${PACKAGES[*]}"

die() { echo "s3-tests: $*" >&2; exit 1; }

do_install() {
  mkdir -p "$DIR"
  exec 9>"$DIR/lock"
  flock 9
  if [ "$(cat "$DIR/installed" 2>/dev/null)" = "$STAMP" ]; then return 0; fi
  command -v git >/dev/null || die "needs git on PATH"
  command -v python3 >/dev/null || die "needs python3 on PATH"
  rm -rf "$DIR/src"
  git clone --quiet "$SOURCE" "$DIR/src" >&2
  git -C "$DIR/src" checkout --quiet "$COMMIT" >&2
  python3 -m venv "$DIR/venv"
  "$DIR/venv/bin/pip" install --quiet --disable-pip-version-check "${PACKAGES[@]}" >&2
  echo "$STAMP" >"$DIR/installed"
}

do_env() {
  [ "$(cat "$DIR/installed" 2>/dev/null)" = "$STAMP" ] || die "not installed: run '$0 install'"
  echo "SOURCE=$DIR/src"
  echo "PYTHON=$DIR/venv/bin/python"
}

case ${1:-} in
  install) do_install ;;
  env) do_env ;;
  *) sed -n '2,9s/^# \{0,1\}//p' "$0"; exit 2 ;;
esac
