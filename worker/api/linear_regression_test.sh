#!/usr/bin/env bash
# Runs the C example without a job: alone and under mpirun. Usage: linear_regression_test.sh PROGRAM MPIRUN...
set -euo pipefail
program=$1
shift

expect() {
  local ranks=$1 output
  shift
  output=$("$@" 2>&1)
  grep -qx "$ranks ranks, 1 groups, rule none" <<<"$output" && grep -qx 'center: y = 2.000 x0 -3.000 x1 +1.000' <<<"$output" && return
  printf '%s\n' "$* printed:" "$output"
  exit 1
}

expect 1 "$program"
for ranks in 1 2 3; do expect "$ranks" "$@" -n "$ranks" "$program" 300; done

if output=$(HOOKE_START=/nowhere/start "$program" 2>&1); then
  echo "a start file that is not there must be an error"
  exit 1
fi
grep -q 'cannot read the start file /nowhere/start' <<<"$output"
