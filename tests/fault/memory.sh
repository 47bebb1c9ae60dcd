#!/usr/bin/env bash
# No memory for one of the large allocations: the program ends in words and leaves nothing behind. TAP.
#   memory.sh PROGRAM LIBRARY
set -u
program=$(readlink -f "$1")
library=$(readlink -f "$2")
. "$(dirname "$(readlink -f "$0")")/faulty.sh"

# refused FAULT NAME ARGUMENTS...: ends so; or does without, where that memory only makes the work faster
refused() {
  local fault=$1 name=$2 status
  shift 2
  rm -rf "$name" "$name.unfinished"
  faulty "$fault" "$@" -o "$name"
  status=$?
  cat err
  [ $status = 4 ] || [ $status = 0 ] || { echo "status $status"; return 1; }
  [ $status = 0 ] || grep -q '^megaslide [a-z]*: .*\(memory\|allocate\)' err || { echo "no words"; return 1; }
  [ $status = 0 ] || [ ! -e "$name" ] || went_far "$name" || { echo "left behind:"; ls -R "$name"; return 1; }
}
# A run that had done a step keeps what it did.
went_far() {
  [ -n "$(newest "$1")" ] || [ "$(tail -n +2 "$1/metrics.csv" | grep -c ,)" -gt 0 ]
}

prepare
check "an undisturbed run" test -e calm/dit.safetensors
allocations=$(calls alloc)
for n in $(places 5 100 "$allocations"); do
  check "a streamed run without memory at allocation $n of $allocations" refused "alloc null $n" o train clips "${own[@]}"
done
resident=("${own[@]}")
unset 'resident[-1]' 'resident[-1]'
rm -rf o
faulty "any nothing 1" train clips -o o "${resident[@]}"
allocations=$(calls alloc)
for n in $(places 2 12 "$allocations"); do
  check "a run in memory without some at allocation $n of $allocations" refused "alloc null $n" o train clips "${resident[@]}"
done
clip=("a red ball" --model "$model" --size 64x64 --frames 5 --seed 4 --steps 4)
faulty "any nothing 1" generate "${clip[@]}" -o calm.mp4
allocations=$(calls alloc)
for n in $(places 5 100 "$allocations"); do
  check "a clip without memory at allocation $n of $allocations" refused "alloc null $n" o.mp4 generate "${clip[@]}"
done
budget=$("$program" generate "${clip[@]}" -o none.mp4 --host-memory 1M 2>&1 </dev/null | grep -o 'needs [0-9]* MiB' | grep -o '[0-9]*')
clip+=(--host-memory "$((budget + 1))M")
check "a streamed clip" faulty "any nothing 1" generate "${clip[@]}" -o part.mp4
check "is the same clip" cmp calm.mp4 part.mp4
allocations=$(calls alloc)
for n in $(places 3 60 "$allocations"); do
  check "a streamed clip without memory at allocation $n of $allocations" refused "alloc null $n" o.mp4 generate "${clip[@]}"
done
finish
