#!/usr/bin/env bash
# SeaweedFS's own HTTP interfaces: master, volume server and filer of the `weed` on PATH, or else our fake, which
# follows SeaweedFS's documentation (no package registry offers it by name). SEAWEEDFS_KIND selects weed or fake.
NAME=seaweedfs API=seaweedfs
KIND=${SEAWEEDFS_KIND:-$(command -v weed >/dev/null 2>&1 && echo weed || echo fake)}
VERSION=$KIND
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
EXTRA_PORTS=5 # master, its gRPC, volume server, its gRPC, the filer's gRPC

do_install() {
  if [ "$KIND" = weed ]; then need weed; fi
}

do_prepare() {
  [ "$KIND" = fake ] || return 0
  [ -f "$ROOT/Cargo.toml" ] || die "needs weed on PATH; the fake can be built only in a clone of the repository"
  need cargo
  (cd "$ROOT" && cargo build --quiet --locked -p bucketload-drivers --features conformance \
    --example fake-seaweedfs) >&2
}

do_command() {
  if [ "$KIND" = fake ]; then
    CMD=("${CARGO_TARGET_DIR:-$ROOT/target}/debug/examples/fake-seaweedfs" "$PORT" "${XPORT[0]}")
    return
  fi
  mkdir -p "$DATA_DIR/volumes"
  CMD=(weed server -dir="$DATA_DIR/volumes" -ip=127.0.0.1 -ip.bind=127.0.0.1
    -master.port="${XPORT[0]}" -master.port.grpc="${XPORT[1]}" -master.volumeSizeLimitMB=256
    -volume.port="${XPORT[2]}" -volume.port.grpc="${XPORT[3]}" -volume.max=100
    -filer -filer.port="$PORT" -filer.port.grpc="${XPORT[4]}")
}

do_env() {
  echo "SEAWEEDFS_KIND=$KIND"
  echo "SEAWEEDFS_FILER_URL=http://127.0.0.1:$PORT"
  echo "SEAWEEDFS_MASTER_URL=http://127.0.0.1:${XPORT[0]}"
}

main "$@"
