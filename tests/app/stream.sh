#!/usr/bin/env bash
# A model whose layers do not all fit in memory: budgets change no bit of what is trained or made, are kept, and a
# run that is killed goes on. TAP.
#   stream.sh PROGRAM
set -u
program=$(readlink -f "$1")
. "$(dirname "$(readlink -f "$0")")/shell.sh"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export XDG_DATA_HOME=$folder/data HOME=$folder
cd "$folder" || exit 99

check "clips" ends 0 render-scenes -o clips --clips 4 --size 64x64 --frames 5 --seed 5
own=(--size 64x64 --frames 5 --batch 1 --lr 1e-4 --warmup 3 --seed 7 --validation 0.25 --validate-every 2 --steps 4)

# least WORDS...: the smallest budget of such a run, in bytes, from the words that refuse a smaller one
least() {
  "$program" "$@" -o none.mp4 --host-memory 1M 2>&1 </dev/null | grep -o 'needs [0-9]* MiB' | grep -o '[0-9]*' | sed 's/$/ * 1048576/' | xargs -r expr
}
# kept BUDGET: the last result's peak, with the slack that is promised
kept() {
  local peak
  grep -aq __asan_init "$program" && return 0 # memory of its own
  peak=$(grep -o '"peak_host_bytes":[0-9]*' out | grep -o '[0-9]*$')
  [ "$peak" -le $(($1 / 100 * 103)) ] || { echo "peak $peak of $1 bytes"; return 1; }
}
# how a run of some settings comes out in memory and in the least that it can do with
same_bits() { # same_bits NAME FLAGS...
  local name=$1 budget
  shift
  check "$name: in memory" ends 0 train clips -o "$name" "${own[@]}" "$@"
  budget=$(least train clips "${own[@]}" "$@")
  budget=$((budget + 6000000))
  check "$name: in $((budget >> 20)) MiB" ends 0 train clips -o "$name-small" "${own[@]}" "$@" --host-memory $budget --json
  check "$name: which it keeps" kept $budget
  check "$name: layers came from the disk" grep -q '"read_bytes":[1-9]' out
  check "$name: the same weights" cmp "$name/dit.safetensors" "$name-small/dit.safetensors"
  check "$name: the same losses" cmp <(cut -d, -f1-4,7 "$name/metrics.csv") <(cut -d, -f1-4,7 "$name-small/metrics.csv")
  check "$name: the same state" cmp "$name"/checkpoints/step-000004/state.safetensors "$name-small"/checkpoints/step-000004/state.safetensors
  check "$name: nothing is left of the working state" sh -c "! [ -e $name-small/state ]"
}
same_bits plain --ema 0
same_bits averaged --ema 0.9 --accumulate 2
same_bits small --ema 0.9 --moments 8bit
same_bits offsets --ema 0.9 --method offsets
same_bits adapters --ema 0.9 --accumulate 2 --method lora --rank 8

budget=$(least train clips "${own[@]}" --ema 0.9 --accumulate 2)
check "between both, with three threads" ends 0 train clips -o middle "${own[@]}" --ema 0.9 --accumulate 2 --threads 3 --host-memory $((budget + 30000000)) --trace trace.json
check "the same weights" cmp averaged/dit.safetensors middle/dit.safetensors
check "a trace of its lanes" grep -q '"cat":"optimizer"' trace.json
check "a trace that cannot be written is told before the work" ends 5 train clips -o untraced "${own[@]}" --trace nowhere/trace.json
check "by name" grep -q nowhere err
check "and leaves nothing" sh -c "! [ -e untraced ]"

for seconds in 0.5 1.2; do
  rm -rf killed
  "$program" train clips -o killed "${own[@]}" --ema 0.9 --accumulate 2 --save-every 1 --host-memory $((budget + 6000000)) >out 2>err </dev/null &
  sleep $seconds
  kill -s KILL $! && wait $! 2>/dev/null
  check "killed after $seconds s it goes on" ends 0 train clips -o killed --resume "${own[@]}" --ema 0.9 --accumulate 2 --save-every 1 --host-memory $((budget + 20000000))
  check "and ends with the same weights" cmp averaged/dit.safetensors killed/dit.safetensors
done

check "a clip in memory" ends 0 generate "a red ball" --size 64x64 --frames 5 --seed 4 -o whole.mp4
budget=$(least generate 'a red ball' --size 64x64 --frames 5)
budget=$((budget + 4000000))
check "in $((budget >> 20)) MiB" ends 0 generate "a red ball" --size 64x64 --frames 5 --seed 4 -o part.mp4 --host-memory $budget --json
check "which it keeps" kept $budget
check "the same clip" cmp whole.mp4 part.mp4
check "less is refused with the amount" ends 4 generate "a red ball" --size 64x64 --frames 5 -o none.mp4 --host-memory 20M
finish
