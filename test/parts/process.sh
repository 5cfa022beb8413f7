#!/usr/bin/env bash
# Functions that await and stop long-running programs, for control-plane.sh and node.sh. Each program has $LAB_DIR/NAME.pid and
# $LAB_DIR/NAME.log. The script that sources this file sets LAB_DIR and defines die.

close_inherited() { # a daemon must not keep its caller's locks and pipes open
  local fd
  for fd in /proc/"$BASHPID"/fd/*; do fd=${fd##*/}; ((fd < 3)) || eval "exec $fd>&-" 2>/dev/null || true; done
}

# ended PID: whether the process has ended and holds no resource. A zombie holds none: it only waits until its parent collects it. But after SIGKILL
# the first thread is a zombie while other threads still end, and the port is taken until the last of them has ended.
ended() {
  local stat tasks
  stat=$(cat "/proc/$1/stat" 2>/dev/null) || return 0
  [[ $stat == *') Z '* ]] || return 1
  tasks=("/proc/$1/task/"*)
  ((${#tasks[@]} == 1))
}

alive() { [[ -f $LAB_DIR/$1.pid ]] && ! ended "$(<"$LAB_DIR/$1.pid")"; }

wait_for() { # wait_for SECONDS NAME WHAT COMMAND…: until COMMAND succeeds; gives up at once when program NAME has ended
  local end=$((SECONDS + $1)) name=$2 what=$3; shift 3
  until "$@" >/dev/null 2>&1; do
    alive "$name" || die "$name ended before $what; see $LAB_DIR/$name.log: $(tail -n 1 "$LAB_DIR/$name.log" 2>/dev/null)"
    ((SECONDS < end)) || die "gave up waiting for $what; see $LAB_DIR/*.log"
    sleep 0.1
  done
}

terminate() { # terminate NAME: TERM, after 10 s KILL; only if the recorded pid is still that program
  local pid n
  [[ -f $LAB_DIR/$1.pid ]] || return 0
  pid=$(<"$LAB_DIR/$1.pid")
  if [[ $(cat "/proc/$pid/comm" 2>/dev/null) == "${1:0:15}" ]]; then # a reused pid is not ours
    kill -TERM "$pid" 2>/dev/null || true
    for ((n = 0; n < 100; n++)); do ! ended "$pid" || break; sleep 0.1; done
    ended "$pid" || kill -KILL "$pid" 2>/dev/null || true
  fi
  rm -f "$LAB_DIR/$1.pid"
}
