# shellcheck shell=bash
# Guests of an end-to-end test: sourced after tests/e2e/lib.sh.

# Runs a script in a guest until it ends: guest NAME DISK SCRIPT [KEY=VALUE]... (see run.sh)
guest() { bash "$root/tests/guest/run.sh" "$@"; }

declare -A guest_pids=()

# The same in the background; its log is NAME.log.
guest_start() { # NAME DISK SCRIPT [KEY=VALUE]...
  # Whoever waits for a line may look before the guest's process has made it.
  : >"$1.log"
  bash "$root/tests/guest/run.sh" "$@" >>"$1.log" 2>&1 &
  guest_pids[$1]=$!
  defer "kill $! 2>/dev/null; wait $! 2>/dev/null"
}

guest_log_fails() { # NAME MESSAGE
  tail -n 40 "$1.log"
  fail "$2"
}

# Fails the test at once when the guest has ended, so that what is waited for cannot come.
guest_runs() { # NAME
  kill -0 "${guest_pids[$1]}" 2>/dev/null || guest_log_fails "$1" "guest $1 has ended already" >&3
}

# Waits until a guest has printed a line, as long as wait_until. It is noticed at once: a load of which it speaks may be over
# within a second.
guest_await() { # NAME SECONDS PATTERN
  grep -qm 1 -- "$3" < <(exec timeout $((6 * $2)) tail -n +1 -f --pid="${guest_pids[$1]}" "$1.log" 2>/dev/null) && return
  guest_runs "$1"
  guest_log_fails "$1" "guest $1 did not say in time: $3" >&3
}

# Waits until the guest ends, and fails unless it passed.
guest_finish() { # NAME MESSAGE
  wait "${guest_pids[$1]}" || guest_log_fails "$1" "$2"
}
