#!/usr/bin/env bash
# What is read is not what was written, or cannot be read: never a wrong result. TAP.
#   read.sh PROGRAM LIBRARY
set -u
program=$(readlink -f "$1")
library=$(readlink -f "$2")
. "$(dirname "$(readlink -f "$0")")/faulty.sh"

prepare
check "an undisturbed run" test -e calm/dit.safetensors
reads=$(calls read)
check "reads of parts change nothing" survives 0 "read short 0"
for n in $(places 2 22 "$reads"); do
  check "a read that fails, $n of $reads" survives "0 3 5" "read eio $n"
done
wrong_bytes() { # wrong_bytes WHAT QUICK LONG
  local n reads
  files=/state/
  rm -rf o
  faulty "any nothing 1" train clips -o o "${own[@]}"
  reads=$(calls read)
  for n in $(places "$2" "$3" "$reads"); do
    check "a wrong byte in the $1, read $n of $reads" survives 3 "read flip $n"
  done
  files=
}
wrong_bytes "working state" 3 60

# flip FILE: a byte in its middle
flip() {
  local at=$(($(stat -c %s "$1") / 2)) byte
  byte=$(od -An -tu1 -j "$at" -N 1 "$1")
  printf "\\$(printf %o $((byte ^ 16)))" | dd of="$1" bs=1 seek="$at" conv=notrunc 2>/dev/null
}
two_steps() { # a run that was killed after its second checkpoint
  rm -rf two
  files=/checkpoints/step-000002
  faulty "write kill 2" train clips -o two "${own[@]}"
  files=
  [ "$(newest two)" = 2 ]
}
takes_the_one_before() { # takes_the_one_before: the newest cannot be used
  ends 0 train clips -o o --resume "${own[@]}" && says err 'the checkpoint of step 2 cannot be used .*: going on from step 1' && as_calm o
}
check "a run with two checkpoints" two_steps
for file in state.safetensors state.json; do
  rm -rf o
  cp -r two o
  flip "o/checkpoints/step-000002/$file"
  check "a wrong byte in $file of a checkpoint" takes_the_one_before
  rm -rf o
  cp -r two o
  truncate -s -1 "o/checkpoints/step-000002/$file"
  check "a $file that is too short" takes_the_one_before
done
check "the damaged one is kept under another name" test -e o/checkpoints/damaged-000002

# fails_to_load HOW: while a checkpoint is loaded; then the one before is taken, or the run ends in words and goes on later
fails_to_load() {
  local status
  rm -rf o
  cp -r two o
  files=/checkpoints/step-000002
  faulty "read $1" train clips -o o --resume "${own[@]}"
  status=$?
  files=
  cat err
  [ $status = 0 ] || [ $status = 3 ] || { echo "status $status"; return 1; }
  [ $status = 0 ] || ends 0 train clips -o o --resume "${own[@]}" || return 1
  as_calm o
}
files=/checkpoints/step-000002
rm -rf o
cp -r two o
faulty "any nothing 1" train clips -o o --resume "${own[@]}"
reads=$(calls read)
files=
check "a checkpoint is read" test "$reads" -gt 10
for n in $(places 2 22 "$reads"); do
  check "a read of a checkpoint that fails, $n of $reads" fails_to_load "eio $n"
  check "a read of a checkpoint with a wrong byte, $n" fails_to_load "flip $n"
done

# The model that a run starts from
files=dit.safetensors
rm -rf o
faulty "any nothing 1" train clips -o o "${own[@]}"
reads=$(calls read)
for n in $(places 1 20 "$reads"); do
  check "a read of the model that fails, $n of $reads" survives 3 "read eio $n"
done
files=
prepare --batch 2 --accumulate 6 --validation 0 --steps 2
rm -rf o
# the same in the least budget, which what the trace itself takes is part of
traced=("${own[@]:0:${#own[@]}-2}" --trace calm.json)
least=$("$program" train clips -o none "${traced[@]}" --host-memory 1M 2>&1 </dev/null | grep -o 'needs [0-9]* MiB' | grep -o '[0-9]*')
for budget in "$least" "$((least + 1))"; do
  rm -rf o
  "$program" train clips -o o "${traced[@]}" --host-memory "${budget}M" >/dev/null 2>&1 </dev/null && break
done
check "activations lie on the disk" grep -q '"name":"read input' calm.json
wrong_bytes "working state or an activation" 2 40

dd if=/dev/zero of="$model/dit.safetensors" bs=1 seek=200 count=1 conv=notrunc 2>/dev/null
check "a model whose head is damaged" ends 3 train clips -o bad "${own[@]}"
truncate -s -4 "$model/dit.safetensors"
check "a model that is cut off" ends 3 train clips -o bad "${own[@]}"
check "leaves nothing" test ! -e bad
finish
