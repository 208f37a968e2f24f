# shellcheck shell=bash
# Runs the steps of a check side by side and prints a table of seconds, and of the processor's seconds beside budgets.
# Sourced.
#
#   add_step NAME BUDGET AFTER COMMAND...          AFTER: names of earlier steps, separated by commas, or `-`
#   add_urgent_step NAME BUDGET AFTER COMMAND...   the same, before others where cores are short: what others wait for
#   run_steps LANES                                returns 1 when a step failed
#
# List scheduling: whenever a lane is free, the first step in the order of `add_step` whose predecessors
# have passed starts. Steps that wait (end-to-end tests) and steps that compute (compilers, the
# simulation) then share the cores. A step prints to a log of its own, which appears whole when the
# step ends, so that two steps never mix their lines. A step whose predecessor failed does not run and
# counts as failed. A budget is in seconds of the processor, which depend little on what else runs: exceeding it is
# shown, and fails nothing, since machines differ.

step_names=() step_budgets=() step_afters=() step_commands=()
step_states=() step_seconds=() step_begins=() step_pids=() step_nices=()
step_logs="" step_scratch=""
# Seconds that all of it may take on two cores; whoever sources this sets it.
step_target=-
# GiB that /dev/shm must have for the steps' temporary files to lie there.
step_scratch_gib=12
# Seconds between two lines that say what runs.
step_report_s=60

add_step() { # NAME BUDGET AFTER COMMAND...
  step_names+=("$1")
  step_budgets+=("$2")
  step_afters+=("$3")
  step_commands+=("$(printf '%q ' "${@:4}")")
  step_states+=(waiting)
  step_seconds+=(0)
  step_begins+=(0)
  step_pids+=(0)
  step_nices+=(10)
}

add_urgent_step() { # NAME BUDGET AFTER COMMAND...
  add_step "$@"
  step_nices[-1]=0
}

# Prints the index of a step.
step_index() { # NAME
  local i
  for i in "${!step_names[@]}"; do
    [ "${step_names[i]}" != "$1" ] || { echo "$i"; return; }
  done
  fail "no step is called '$1'"
}

# Whether a step's predecessors have `passed`, one of them has `failed`, or the step has to wait: `waiting`.
step_readiness() { # INDEX
  local after state answer=passed afters=()
  [ "${step_afters[$1]}" = - ] || IFS=, read -ra afters <<<"${step_afters[$1]}"
  for after in ${afters[@]+"${afters[@]}"}; do
    state="${step_states[$(step_index "$after")]}"
    case "$state" in
      passed) ;;
      failed) echo failed; return ;;
      *) answer=waiting ;;
    esac
  done
  echo "$answer"
}

start_step() { # INDEX
  local name="${step_names[$1]}"
  echo "-- $name: started at $SECONDS s"
  # A process group of its own, which can be ended whole; of the same session, as priorities count within one.
  set -m
  nice -n "${step_nices[$1]}" bash -c "cd '$root'; ${step_commands[$1]}; status=\$?; times >'$step_logs/$1.times'; exit \$status" \
    >"$step_logs/$1" 2>&1 </dev/null &
  step_pids[$1]=$!
  set +m
  step_begins[$1]=$SECONDS
  step_states[$1]=running
}

end_step() { # INDEX STATUS
  local i=$1 status=$2 name="${step_names[$1]}" took
  took=$((SECONDS - step_begins[i]))
  step_seconds[i]=$took
  step "$name"
  cat "$step_logs/$i"
  if [ "$status" = 0 ]; then
    step_states[i]=passed
    echo "-- $name: passed, $took s"
  else
    step_states[i]=failed
    echo "-- $name: FAILED with exit code $status after $took s"
  fi
}

end_running_steps() {
  local i running=()
  for i in "${!step_states[@]}"; do
    [ "${step_states[i]}" = running ] || continue
    kill -TERM -- "-${step_pids[i]}" 2>/dev/null || true
    running+=("${step_pids[i]}")
  done
  [ ${#running[@]} = 0 ] || wait "${running[@]}" 2>/dev/null || true
  [ -z "$step_logs" ] || rm -rf "$step_logs"
  [ -z "$step_scratch" ] || rm -rf --one-file-system "$step_scratch"
}

# Adds up the closing lines of the steps' programs: cargo's, and `NAME: N passed, N failed` of ours.
count_results() {
  sed -nE -e 's/^test result: [A-Za-z]+\. ([0-9]+) passed; ([0-9]+) failed.*/\1 \2/p' \
    -e 's/^[a-z -]+: ([0-9]+) passed, ([0-9]+) failed$/\1 \2/p' "$step_logs"/* |
    awk '{p += $1; f += $2} END {print p + 0, f + 0}'
}

# The seconds of the processor that a step and its children took: bash writes minutes and seconds, of itself in
# the first line and of its children in the second.
step_processor() { # INDEX
  [ -f "$step_logs/$1.times" ] || { echo 0; return; }
  awk 'BEGIN {s = 0} {for (i = 1; i <= NF; i++) {split($i, part, /[ms]/); s += 60 * part[1] + part[2]}}
    END {printf "%.0f\n", s}' "$step_logs/$1.times"
}

print_step_table() {
  local i mark processor total=0 processor_total=0 budget_total=0
  printf '%-32s %8s %10s %8s  %s\n' step seconds processor budget result
  for i in "${!step_names[@]}"; do
    mark="${step_states[i]}"
    [ "$mark" != failed ] || [ "${step_pids[i]}" != 0 ] || mark="not run: a step before it failed"
    processor="$(step_processor "$i")"
    [ "$processor" -le "${step_budgets[i]}" ] || mark+=", over budget"
    printf '%-32s %8s %10s %8s  %s\n' "${step_names[i]}" "${step_seconds[i]}" "$processor" "${step_budgets[i]}" "$mark"
    budget_total=$((budget_total + step_budgets[i]))
    total=$((total + step_seconds[i]))
    processor_total=$((processor_total + processor))
  done
  printf '%-32s %8s %10s %8s  %s\n' "side by side" "$SECONDS" "$processor_total" "$budget_total" \
    "target $step_target s; $total s one after the other"
}

# Pools of tests write and flush far more than a shared disk takes, so their files lie in memory where there is enough.
use_scratch() {
  local free
  free="$(df --output=avail -B 1G /dev/shm 2>/dev/null | tail -n 1)" || return 0
  [ "${free:-0}" -ge "$step_scratch_gib" ] 2>/dev/null || return 0
  # Short, since sockets lie there, too; others enter it, since some daemons run as nobody.
  step_scratch="$(mktemp -d /dev/shm/cvt.XXXX)"
  chmod 755 "$step_scratch"
  export TMPDIR="$step_scratch"
}

# The lines of a failed step that say what is wrong: who reads only the end of a long log finds them there.
print_failure() { # INDEX
  echo "failed: ${step_names[$1]}"
  [ -f "$step_logs/$1" ] || return 0
  grep -aE '^error|^test .*FAILED|panicked at|NOT FOUND|^FAIL|: FAILED' "$step_logs/$1" |
    head -n 20 | cut -c 1-300 | sed 's/^/    /' || true
}

run_steps() { # LANES
  local lanes=$1 running=0 i readiness started status pid reporter passed failed names bad=0
  step_logs="$(mktemp -d)"
  trap end_running_steps EXIT
  trap 'exit 130' INT TERM
  use_scratch
  sleep "$step_report_s" &
  reporter=$!
  while :; do
    started=yes
    while [ "$started" = yes ]; do
      started=no
      for i in "${!step_names[@]}"; do
        [ "${step_states[i]}" = waiting ] || continue
        readiness="$(step_readiness "$i")"
        if [ "$readiness" = failed ]; then
          step_states[i]=failed
          started=yes
        elif [ "$readiness" = passed ] && [ "$running" -lt "$lanes" ]; then
          start_step "$i"
          running=$((running + 1))
          started=yes
        fi
      done
    done
    [ "$running" -gt 0 ] || break
    status=0
    wait -n -p pid || status=$?
    if [ "$pid" = "$reporter" ]; then
      names=""
      for i in "${!step_names[@]}"; do
        [ "${step_states[i]}" != running ] ||
          names+="${names:+, }${step_names[i]} ($((SECONDS - step_begins[i])) s)"
      done
      echo "-- $SECONDS s: running: $names"
      sleep "$step_report_s" &
      reporter=$!
      continue
    fi
    for i in "${!step_pids[@]}"; do
      if [ "${step_states[i]}" = running ] && [ "${step_pids[i]}" = "$pid" ]; then
        end_step "$i" "$status"
        running=$((running - 1))
      fi
    done
  done
  kill "$reporter" 2>/dev/null || true
  wait "$reporter" 2>/dev/null || true
  step "summary after $SECONDS s"
  print_step_table
  read -r passed failed < <(count_results)
  for i in "${!step_states[@]}"; do
    [ "${step_states[i]}" = passed ] || { bad=$((bad + 1)); print_failure "$i"; }
  done
  # A step that broke before its tests could be counted is a failure that has to show in the line.
  [ "$failed" -ge "$bad" ] || failed=$bad
  echo "$passed passed, $failed failed"
  [ "$bad" = 0 ] && [ "$failed" = 0 ] || return 1
}
