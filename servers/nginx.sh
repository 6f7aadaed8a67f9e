#!/usr/bin/env bash
# nginx as a proxy in front of an S3 server, PROXY_TO=http://127.0.0.1:9000. PROXY_CACHE=yes caches answers to GET for
# ten minutes. The package is unpacked, not installed, so that no service of the machine starts.
NAME=nginx API=s3
VERSION=${NGINX_VERSION:-debian}
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

PROXY_TO=${PROXY_TO:-}
PROXY_CACHE=${PROXY_CACHE:-no}

do_install() {
  need apt-get
  need dpkg
  local at
  at=$(mktemp -d "$SERVER_DIR/download.XXXX")
  (cd "$at" && { apt-get -q download nginx || { apt-get -q update && apt-get -q download nginx; }; })
  dpkg -x "$at"/nginx_*.deb "$SERVER_DIR/root"
  rm -r "$at"
}

do_prepare() {
  [ -n "$PROXY_TO" ] || die "PROXY_TO is not set: name the server behind the proxy, such as http://127.0.0.1:9000"
  local cache= use= user=
  mkdir -p "$RUN_DIR/tmp"
  if [ "$PROXY_CACHE" = yes ]; then
    cache="proxy_cache_path $RUN_DIR/cache levels=1:2 keys_zone=objects:16m max_size=4g inactive=10m use_temp_path=off;
  map \$args \$fresh { \"\" 0; default 1; }"
    # Listings and other requests with parameters are never cached, because they would show deleted objects. The key
    # has everything that the answer depends on; signatures are not part of it.
    use='proxy_cache objects; proxy_cache_methods GET; proxy_cache_convert_head off; proxy_cache_valid 200 206 10m;
      proxy_cache_key "$request_method$uri$is_args$args$http_range"; proxy_cache_bypass $fresh; proxy_no_cache $fresh;'
  else
    use='proxy_buffering off;'
  fi
  # nginx's workers write below this user's folder.
  if [ "$(id -u)" = 0 ]; then user="user root root;"; fi
  cat >"$RUN_DIR/nginx.conf" <<CONF
$user
worker_processes auto;
pid $RUN_DIR/tmp/nginx.pid;
error_log $RUN_DIR/log warn;
events { worker_connections 4096; }
http {
  access_log off;
  client_body_temp_path $RUN_DIR/tmp/body;
  proxy_temp_path $RUN_DIR/tmp/proxy;
  fastcgi_temp_path $RUN_DIR/tmp/fastcgi;
  uwsgi_temp_path $RUN_DIR/tmp/uwsgi;
  scgi_temp_path $RUN_DIR/tmp/scgi;
  keepalive_requests 1000000;
  client_max_body_size 0;
  $cache
  upstream store { server ${PROXY_TO#http://}; keepalive 64; }
  server {
    listen 127.0.0.1:$PORT;
    location / {
      proxy_pass http://store;
      proxy_http_version 1.1;
      # The signature covers the host that the client addressed.
      proxy_set_header Host \$http_host;
      proxy_set_header Connection "";
      proxy_request_buffering off;
      $use
    }
  }
}
CONF
}

do_command() {
  CMD=("$SERVER_DIR/root/usr/sbin/nginx" -p "$RUN_DIR" -c "$RUN_DIR/nginx.conf" -e "$RUN_DIR/log" -g "daemon off;")
}

do_env() { echo "AWS_ENDPOINT_URL=http://127.0.0.1:$PORT"; }

main "$@"
