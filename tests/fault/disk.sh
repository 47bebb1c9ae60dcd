#!/usr/bin/env bash
# A disk that is full, fails or writes only a part at a time: runs wait or end in words, and lose nothing. TAP.
#   disk.sh PROGRAM LIBRARY
set -u
program=$(readlink -f "$1")
library=$(readlink -f "$2")
. "$(dirname "$(readlink -f "$0")")/faulty.sh"

# stays_full N: waits until it is stopped, or ends; then there is room again
stays_full() {
  local status i
  rm -rf o
  start "write full $1 0" train clips -o o "${own[@]}"
  for ((i = 0; i < 600; i++)); do
    kill -0 $run 2>/dev/null || break
    ! grep -q "is full: the run waits until [0-9]* MiB are free" err || { kill $run; break; }
    sleep 0.05
  done
  wait $run
  status=$?
  cat err
  [ $status = 143 ] || [ $status = 5 ] || { echo "status $status"; return 1; }
  [ $status = 143 ] || grep -q "MiB are free on the disk of .*, a checkpoint needs [0-9]* MiB\|[Nn]o space left" err || return 1
  goes_on $status
}

prepare
check "an undisturbed run" test -e calm/dit.safetensors
writes=$(calls write)
check "which writes" test "$writes" -gt 100

check "writes of parts change nothing" survives 0 "write short 0"
for n in $(places 4 35 "$writes"); do
  check "a disk that is full for a moment, from write $n of $writes on" survives "0 5" "write full $n 400"
done
for n in $(places 2 22 "$writes"); do
  check "a disk that stays full from write $n of $writes on" stays_full "$n"
  check "a write that fails, $n of $writes" survives "0 5" "write eio $n"
done

check "a disk whose writes all fail" survives 5 "write eio 0"

# In a checkpoint there is always something to wait for.
files=/checkpoints/
rm -rf o
faulty "any nothing 1" train clips -o o "${own[@]}"
for n in $(places 2 22 "$(calls write)"); do
  check "a disk that is full for a moment while a checkpoint is saved, from write $n on" survives 0 "write full $n 400"
  check "a write of a checkpoint that fails, $n, is done again" survives 0 "write eio $n"
done
check "checkpoints that cannot be written" survives 5 "write eio 0"
files=metrics.csv
check "a disk that is full for a moment while a step's row is written" survives 0 "write full 5 400"

finish
