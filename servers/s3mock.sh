#!/usr/bin/env bash
# Adobe S3Mock: S3 over a folder on this machine, for tests. It checks no credentials.
NAME=s3mock API=s3
VERSION=${S3MOCK_VERSION:-5.2.0}
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

do_install() { mvn_install com.adobe.testing s3mock exec; }

do_command() {
  local root=com.adobe.testing.s3mock
  # It deletes a root that it made when it ends.
  mkdir -p "$DATA_DIR/objects"
  CMD=(java -Xmx"${JAVA_HEAP:-512m}" -jar "$SERVER_DIR/lib/s3mock-$VERSION-exec.jar"
    --server.address=127.0.0.1 --server.port=0 "--$root.http-port=$PORT" "--$root.store.root=$DATA_DIR/objects"
    "--$root.store.retain-files-on-exit=true" "--$root.store.region=$REGION" --logging.level.root=WARN)
}

do_env() { s3_env; }

main "$@"
