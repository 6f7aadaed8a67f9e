# cluster.sh - sourced by the scripts that run several processes each; not run by itself.
#
# A script sets NAME and then sources this file, which provides
#   HOME_DIR S          the folder of all servers, and of this one ($HOME_DIR/$NAME)
#   say die             messages with the script's name
#   port_taken ports_free
#   apt_install P...    installs missing Debian packages
#   wait_for SECONDS WHAT CMD...
#   launch NAME CMD...  starts a process in its own session, log in $S/log, pidfile in $S/run
#   pid_of alive        pid and state of a launched process
#   stop_all SECONDS NAME...
# A script may define its own pid_of or stop_all afterwards. SC2034: the sourcing scripts use some of the variables.
# shellcheck shell=bash disable=SC2034

set -euo pipefail
export PATH=/usr/sbin:/usr/bin:/sbin:/bin:$PATH
export LC_ALL=C.UTF-8

HOME_DIR="${SERVERS_HOME:-$HOME/.cache/bucketload-servers}"
case "$HOME_DIR" in /*) ;; *) HOME_DIR="$PWD/$HOME_DIR" ;; esac
S="$HOME_DIR/$NAME"

say() { echo "$NAME: $*" >&2; }
die() { say "$*"; exit 1; }
port_taken() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }
ports_free() { local p; for p in "$@"; do if port_taken "$p"; then die "port $p is taken by another process"; fi; done; }

apt_install() {
  local missing=() p
  for p in "$@"; do
    dpkg-query -W -f='${Status}' "$p" 2>/dev/null | grep -q 'ok installed' || missing+=("$p")
  done
  [ ${#missing[@]} -eq 0 ] && return 0
  export DEBIAN_FRONTEND=noninteractive
  local o=(-o DPkg::Lock::Timeout=900 -y --no-install-recommends)
  nice -n 10 apt-get "${o[@]}" install "${missing[@]}" >&2 && return 0
  apt-get -o DPkg::Lock::Timeout=900 update >&2
  nice -n 10 apt-get "${o[@]}" install "${missing[@]}" >&2
}

# wait_for SECONDS WHAT CMD...
wait_for() {
  local end=$((SECONDS + $1)) what="$2"; shift 2
  until "$@" >/dev/null 2>&1; do
    [ "$SECONDS" -ge "$end" ] && { say "timed out waiting for $what (logs: $S)"; return 1; }
    sleep 0.2
  done
}

# A pidfile holds "pid starttime"; both must match a live process, so that a reused pid is never taken for ours.
started_at() { sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | cut -d' ' -f20; }
pid_of() {
  local p t
  read -r p t 2>/dev/null <"$S/run/$1.pid" || return 1
  [ -n "$p" ] && [ "$(started_at "$p")" = "$t" ] || return 1
  echo "$p"
}
alive() { pid_of "$1" >/dev/null; }

# launch NAME CMD...: in its own session, so that a signal reaches its workers as a group
launch() {
  local n="$1" p; shift
  alive "$n" && return 0
  setsid nohup "$@" </dev/null >>"$S/log/$n.log" 2>&1 &
  p=$!; disown "$p"
  echo "$p $(started_at "$p")" >"$S/run/$n.pid"
}

# stop_all SECONDS NAME...: TERM them together, KILL what is left after SECONDS
stop_all() {
  local limit=$1 n p end; shift
  local -A pids=()
  for n in "$@"; do
    if p=$(pid_of "$n"); then pids[$n]=$p; kill -TERM "$p" 2>/dev/null || true; fi
  done
  end=$((SECONDS + limit))
  for n in "${!pids[@]}"; do
    while alive "$n" && [ "$SECONDS" -lt "$end" ]; do sleep 0.1; done
    if alive "$n"; then kill -KILL "${pids[$n]}" 2>/dev/null || true; fi
  done
  for n in "$@"; do rm -f "$S/run/$n.pid"; done
}
