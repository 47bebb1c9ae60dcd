#!/usr/bin/env bash
# A disk that is full: noticed before the work where that is possible, waited for in the middle, and a clip's
# output that cannot be written is told. On a small file system of its own, in a name space of its own. TAP.
#   full.sh PROGRAM
set -u
if [ "${2:-}" != inside ]; then
  if ! unshare -rm mount -t tmpfs -o size=1M none /mnt 2>/dev/null; then
    echo "1..0 # SKIP no file systems can be mounted here"
    exit 0
  fi
  exec unshare -rm bash "$0" "$1" inside
fi
program=$(readlink -f "$1")
. "$(dirname "$(readlink -f "$0")")/shell.sh"
folder=$(mktemp -d)
trap 'cd /; umount "$folder/disk" 2>/dev/null; rm -rf "$folder"' EXIT
export XDG_DATA_HOME=$folder/data XDG_CACHE_HOME=$folder/cache HOME=$folder
cd "$folder" || exit 99

disk() { # disk SIZE: an empty one at ./disk
  umount disk 2>/dev/null
  mkdir -p disk
  mount -t tmpfs -o size="$1" none disk
}

job=(train scenes --size 64x64 --frames 9 --batch 1 --seed 4 --steps 3 --save-every 1 --keep 1 --validation 0 --threads 2)
"$program" render-scenes -o scenes --clips 3 --size 96x64 --frames 17 --seed 5 >/dev/null 2>&1

disk 60M
check "training where a checkpoint has no room" ends 5 "${job[@]}" -o disk/mine
check "is refused with both figures" says err 'training needs [0-9]+ MiB on the disk of "disk/mine", [0-9]+ MiB are free'
check "and made nothing" test ! -e disk/mine

check "a straight run" ends 0 "${job[@]}" -o straight
disk 330M
dd if=/dev/zero of=disk/filler bs=1M count=120 2>/dev/null
"$program" "${job[@]}" -o disk/mine >waiting.out 2>waiting.err </dev/null &
run=$!
for _ in $(seq 600); do
  grep -q 'is full' waiting.err && break
  kill -0 "$run" 2>/dev/null || break
  sleep 0.1
done
check "a disk that fills up is told" says waiting.err 'is full: the run waits until [0-9]+ MiB are free'
check "and waited for" kill -0 "$run"
rm disk/filler
check "with room again the run ends" wait "$run"
check "with the same weights" cmp straight/dit.safetensors disk/mine/dit.safetensors
check "and all its metrics" cmp <(cut -d, -f1-4 straight/metrics.csv) <(cut -d, -f1-4 disk/mine/metrics.csv)

disk 330M
dd if=/dev/zero of=disk/filler bs=1M count=120 2>/dev/null
"$program" "${job[@]}" -o disk/mine >waiting.out 2>waiting.err </dev/null &
run=$!
for _ in $(seq 600); do
  grep -q 'is full' waiting.err && break
  sleep 0.1
done
kill -TERM "$run"
wait "$run"
check "a run that waits can be stopped" test $? = 143
rm disk/filler
check "and goes on from what it saved" ends 0 "${job[@]}" -o disk/mine --resume
check "to the same weights" cmp straight/dit.safetensors disk/mine/dit.safetensors

disk 1M
dd if=/dev/zero of=disk/filler bs=1M count=2 2>/dev/null
check "a clip for a full disk" ends 5 generate ball --size 64x64 --frames 9 --steps 2 -o disk/a.mp4
check "is told" says err 'a.mp4'
check "and leaves nothing" sh -c '[ "$(ls disk)" = filler ]'

finish
