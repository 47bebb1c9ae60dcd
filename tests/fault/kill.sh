#!/usr/bin/env bash
# Runs that are killed at any call or moment, or told to stop: they go on to the same weights, and at most the step that was
# being done is done again. TAP.
#   kill.sh PROGRAM LIBRARY
set -u
program=$(readlink -f "$1")
library=$(readlink -f "$2")
. "$(dirname "$(readlink -f "$0")")/faulty.sh"

# at_moment SECONDS SIGNAL [SECONDS SIGNAL]: is sent the signals so much later, then goes on
at_moment() {
  local status
  rm -rf o
  start "any nothing 1" train clips -o o "${own[@]}"
  while [ $# -gt 0 ]; do
    sleep "$1"
    kill -s "$2" "$run" 2>/dev/null
    shift 2
  done
  wait "$run" 2>/dev/null
  status=$?
  cat err
  [ $status = 0 ] || [ $status = 137 ] || [ $status = 143 ] || { echo "status $status"; return 1; }
  [ $status != 143 ] || stopped_well || return 1
  goes_on $status
}

# What a run that was told to stop has done is saved, all of it. It may have been through.
stopped_well() {
  local rows step
  [ -e o ] || return 0 # it had not begun
  grep -q 'stopped' err || grep -q ': 3 steps' out || { echo "no words"; return 1; }
  rows=$(tail -n +2 o/metrics.csv 2>/dev/null | grep -c ,)
  step=$(newest o)
  [ "${step:-0}" -ge "$rows" ] || { echo "$rows steps were done, the newest checkpoint is ${step:-none}"; return 1; }
}

told_to_stop() { # told_to_stop FAULT
  local status
  rm -rf o
  faulty "$1" train clips -o o "${own[@]}"
  status=$?
  cat err
  [ $status = 143 ] || { echo "status $status"; return 1; }
  stopped_well && goes_on $status
}

prepare
check "an undisturbed run" test -e calm/dit.safetensors
all=$(calls any)
for n in $(places 10 50 "$all"); do
  check "killed at call $n of $all" survives 137 "any kill $n"
done
files=/checkpoints/
rm -rf o
faulty "any nothing 1" train clips -o o "${own[@]}"
writes=$(calls write)
for n in $(places 1 40 "$writes") "$((writes - 1))" "$writes"; do
  check "killed at write $n of $writes to the checkpoints" survives 137 "write kill $n"
done
files=
for n in $(places 1 12 "$all"); do
  check "told to stop at call $n of $all" told_to_stop "any term $n"
done
for n in $(places 2 12 "$all"); do
  check "told twice at call $n" told_to_stop "any terms $n 30"
done
for seconds in 0.$((RANDOM % 10)) ${long:+0.2 0.3 0.4 0.6 0.8 1.0 1.2}; do
  check "killed after $seconds s" at_moment "$seconds" KILL
  check "told to stop after $seconds s" at_moment "$seconds" TERM
  check "told and then killed" at_moment "$seconds" TERM 0.1 KILL
done

# Another method, accumulation and an average; killed while it goes on, too
prepare --accumulate 2 --ema 0.9 --moments 8bit
goes_on_killed() {
  rm -rf o
  faulty "any kill $1" train clips -o o "${own[@]}"
  faulty "any kill $1" train clips -o o --resume "${own[@]}"
  goes_on 137
}
for n in $(places 1 12 "$(calls any)"); do
  check "killed twice at call $n" goes_on_killed "$n"
done
finish
