#!/usr/bin/env bash
# Memory that jobs say they will need against what they had resident at their peak, and budgets that are kept
# before the work begins. TAP.
#   memory.sh PROGRAM
set -u
program=$(readlink -f "$1")
. "$(dirname "$(readlink -f "$0")")/shell.sh"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export XDG_DATA_HOME=$folder/data XDG_CACHE_HOME=$folder/cache HOME=$folder
cd "$folder" || exit 99

if grep -aq __asan_init "$program" || grep -aq __tsan_init "$program"; then
  echo "1..0 # SKIP a sanitizer's own memory would be counted"
  exit 0
fi

# near ARGUMENTS...: the planned peak lies within 15 % of the measured one
near() {
  local planned measured
  "$program" "$@" --json >out 2>err </dev/null || { cat err; return 1; }
  planned=$(tail -n 1 out | grep -oE '"planned_host_bytes":[0-9]+' | grep -oE '[0-9]+$')
  measured=$(tail -n 1 out | grep -oE '"peak_host_bytes":[0-9]+' | grep -oE '[0-9]+$')
  echo "planned $planned, measured $measured"
  [ -n "$planned" ] && [ -n "$measured" ] && [ $((planned * 100)) -ge $((measured * 85)) ] &&
    [ $((planned * 100)) -le $((measured * 115)) ]
}

"$program" render-scenes -o scenes --clips 6 --size 96x64 --frames 17 --seed 5 >/dev/null 2>&1
check "a small clip" near generate ball --size 64x64 --frames 9 --steps 2 -o a.mp4
check "a clip of the default size" near generate ball --steps 2 -o b.mp4
check "a large clip" near generate ball --size 640x384 --frames 17 --steps 1 -o c.mp4
check "training on small clips" near train scenes --size 64x64 --frames 9 --batch 2 --steps 2 -o ta
check "training on larger ones" near train scenes --size 192x128 --frames 17 --batch 3 --steps 1 -o tb
check "training without an average" near train scenes --size 96x64 --frames 17 --batch 4 --ema 0 --steps 1 -o tc
check "going on with training" near train scenes --size 64x64 --frames 9 --batch 2 --steps 3 -o ta --resume
check "training with sample clips" near train scenes --size 64x64 --frames 9 --batch 1 --steps 2 --sample-every 2 --sample-prompt ball -o td

check "training beyond the memory" ends 4 train scenes --size 192x128 --frames 17 --batch 8 --host-memory 300M --steps 1 -o no
check "says of which, how much and the nearest that fits" says err 'host memory, [0-9]+ MiB more than the 300 MiB allowed: --batch [1-7] would fit'
check "and made nothing" test ! -e no
fitting=$(grep -oE -- '--batch [0-9]+ would' err | grep -oE '[0-9]+')
check "which is true" ends 0 train scenes --size 192x128 --frames 17 --batch "${fitting:-8}" --host-memory 300M --steps 1 -o yes
check "training beyond the device" ends 4 train scenes --size 192x128 --frames 17 --batch 4 --device-memory 100M --steps 1 -o no
check "says so" says err 'device memory, [0-9]+ MiB more than the 100 MiB allowed: .* would fit'
check "a model beyond all budgets" ends 4 train scenes --size 64x64 --frames 9 --batch 1 --device-memory 5M --steps 1 -o no
check "says so too" says err 'the parts of the model that are always in memory do not fit'
check "a recipe beyond the memory" ends 4 train --recipe starter -o no --host-memory 200M
check "made nothing either" test ! -e no

finish
