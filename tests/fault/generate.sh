#!/usr/bin/env bash
# A clip of a model that passes through memory layer by layer, disturbed: it goes on to the same bytes. TAP.
#   generate.sh PROGRAM LIBRARY
set -u
program=$(readlink -f "$1")
library=$(readlink -f "$2")
. "$(dirname "$(readlink -f "$0")")/faulty.sh"

make_model
clip=("a red ball" --model "$model" --size 64x64 --frames 5 --seed 4 --steps 12)
budget=$("$program" generate "${clip[@]}" -o none.mp4 --host-memory 1M 2>&1 </dev/null | grep -o 'needs [0-9]* MiB' | grep -o '[0-9]*')
budget=(--host-memory "$((budget + 1))M")

# survives "STATUS..." FAULT: ends so, in words where it can; then the same bytes come of going on, or of another start where
# nothing was kept
survives() {
  local status left
  rm -rf o.mp4*
  faulty "$2" generate "${clip[@]}" "${budget[@]}" -o o.mp4
  status=$?
  cat err
  [[ " $1 " == *" $status "* ]] || { echo "status $status"; return 1; }
  [ $status = 137 ] || [ $status = 0 ] || [ -e o.mp4 ] || [ -s err ] || { echo "no words"; return 1; }
  [ ! -e o.mp4 ] || cmp calm.mp4 o.mp4 || return 1
  if [ ! -e o.mp4 ] && [ -e o.mp4.unfinished/job.json ]; then
    ends 0 generate --resume o.mp4.unfinished "${budget[@]}" || return 1
  elif [ ! -e o.mp4 ] || [ -e o.mp4.unfinished ]; then
    rm -f o.mp4
    ends 0 generate "${clip[@]}" "${budget[@]}" -o o.mp4 || return 1
  fi
  cmp calm.mp4 o.mp4 || return 1
  left=$(ls -d o.mp4?* 2>/dev/null)
  [ -z "$left" ] || { echo "left behind: $left"; return 1; }
}

check "a streamed clip" faulty "any nothing 1" generate "${clip[@]}" "${budget[@]}" -o calm.mp4
all=$(calls any) reads=$(calls read) writes=$(calls write)
check "which reads its layers again and again" test "$reads" -gt 100
# How often a clip's state is saved depends on the time, so a call may never come.
for n in $(places 3 50 "$all"); do
  check "killed at call $n of $all" survives "0 137" "any kill $n"
done
for n in $(places 2 20 "$writes"); do
  check "killed at write $n of $writes" survives "0 137" "write kill $n"
  check "a disk that is full from write $n on" survives "0 5" "write full $n 300"
  check "a write that fails, $n" survives "0 5" "write eio $n"
done
for n in $(places 1 12 "$all"); do
  check "told to stop at call $n of $all" survives "0 143" "any term $n"
done
check "reads and writes of parts change nothing" survives 0 "any short 0"
files=dit.safetensors
rm -rf o.mp4*
faulty "any nothing 1" generate "${clip[@]}" "${budget[@]}" -o o.mp4
reads=$(calls read)
for n in $(places 1 20 "$reads"); do
  check "a read of the model that fails, $n of $reads" survives 3 "read eio $n"
done
# What is read the first time cannot be known to be wrong.
n=$((reads - 1))
check "a layer that is not what it was before, read $n" survives 3 "read flip $n"
finish
