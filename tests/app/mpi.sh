#!/usr/bin/env bash
# One model trained by several processes under MPI: the losses are those of one with as many batches a step, a run
# that is killed goes on with the same bits, on disk as in memory, and on another number of processes within
# rounding; a signal to one of them stops all. TAP.
#   mpi.sh PROGRAM MODULE
set -u
program=$(readlink -f "$1")
if ! command -v mpirun >/dev/null || [ ! -e "${2:-}" ]; then
  echo "1..0 # SKIP there is no mpirun, or the program was built without MPI"
  exit 0
fi
if grep -aq __asan_init "$program" || grep -aq __tsan_init "$program"; then
  echo "1..0 # SKIP the MPI library does not know this sanitizer"
  exit 0
fi
. "$(dirname "$(readlink -f "$0")")/shell.sh"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export XDG_DATA_HOME=$folder/data HOME=$folder
# As many processes as are asked for on any machine, by any user.
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_hwloc_base_binding_policy=none OMPI_MCA_mpi_yield_when_idle=1
cd "$folder" || exit 99

# together STATUS RANKS ARGUMENTS...: so many processes end so
together() {
  local want=$1 ranks=$2 status
  shift 2
  mpirun -n "$ranks" "$program" "$@" >out 2>err </dev/null
  status=$?
  [ "$status" = "$want" ] || { echo "status $status, not $want"; cat err; return 1; }
}
# losses A B [SQUARE]: losses, norms and losses on held-out clips are the same within rounding: those of the first
# step, and of the others too unless SQUARE of the relative difference says that what rounding does to sums of
# gradients in another order may move weights to the next bf16 number
losses() {
  [ "$(wc -l <"$1/metrics.csv")" = 7 ] || { echo "not six steps"; return 1; }
  paste -d, "$1/metrics.csv" "$2/metrics.csv" | awk -F, -v most="${3:-1e-10}" '
    function far(a, b) { return (a == "") != (b == "") || (a - b) ^ 2 > (NR == 2 ? 1e-10 : most) * b ^ 2 }
    NR > 1 && ($1 != $8 || far($2, $9) || far($7, $14) || far($4, $11)) { print; bad = 1 }
    NR > 1 && $7 != "" { looks++ }
    END { exit bad || looks != 3 }'
}
same() { # same A B: the same weights and state
  cmp "$1/dit.safetensors" "$2/dit.safetensors" &&
    cmp "$1/checkpoints/step-000006/state.safetensors" "$2/checkpoints/step-000006/state.safetensors"
}

kept() { # kept MIB: the first process, with the slack that is promised
  local peak
  peak=$(grep -o '"peak_host_bytes":[0-9]*' out | grep -o '[0-9]*$')
  [ "$peak" -le $(($1 * 1080033)) ] || { echo "peak $peak of $1 MiB"; return 1; }
}

check "clips" ends 0 render-scenes -o clips --clips 7 --size 64x64 --frames 5 --seed 5
own=(--size 64x64 --frames 5 --batch 1 --lr 1e-3 --warmup 2 --ema 0.9 --seed 7 --validation 0.4 --validate-every 2
  --save-every 2 --keep 9 --threads 1)
check "one process with two batches a step" ends 0 train clips -o one "${own[@]}" --accumulate 2 --steps 6
check "two processes with one each" together 0 2 train clips -o two "${own[@]}" --steps 6
check "have the same losses" losses two one
check "and the same settings" cmp one/run.json two/run.json
check "the first speaks for all" sh -c "[ \$(grep -c 'two: 6 steps' out) = 1 ] && [ \$(grep -c '0001.mp4 is encoded' err) = 1 ]"
check "one process with six batches" ends 0 train clips -o six "${own[@]}" --accumulate 6 --steps 6
check "three processes with two each" together 0 3 train clips -o three "${own[@]}" --accumulate 6 --steps 6
check "have the same losses" losses three six 1e-5

check "again" together 0 2 train clips -o again "${own[@]}" --steps 6
check "has the same bits" same two again
budget=$("$program" train clips "${own[@]}" --accumulate 2 --steps 6 -o none --host-memory 1M 2>&1 </dev/null | grep -o 'needs [0-9]* MiB' | grep -o '[0-9]*')
check "with layers on the disk" together 0 2 train clips -o disk "${own[@]}" --steps 6 --host-memory $((budget + 60))M --json
check "from where they came" grep -q '"read_bytes":[1-9]' out
check "each has its budget" kept $((budget + 60))
check "it has the same bits" same two disk
check "and nothing is left of the working state" test ! -e disk/state
for more in "--moments 8bit" "--method offsets" "--method lora --rank 8" "--ema 0"; do
  # shellcheck disable=SC2086
  check "in memory with $more" together 0 2 train clips -o kind-memory "${own[@]}" $more --steps 6
  # shellcheck disable=SC2086
  check "on the disk" together 0 2 train clips -o kind-disk "${own[@]}" $more --steps 6 --host-memory $((budget + 45))M
  # shellcheck disable=SC2086
  check "alone" ends 0 train clips -o kind-alone "${own[@]}" $more --accumulate 2 --steps 6
  check "the same bits" same kind-memory kind-disk
  check "the same losses" losses kind-memory kind-alone
  rm -rf kind-*
done

kill_at() { # kill_at STEP ARGUMENTS...: all processes, once the checkpoint of the step is there
  local step=$1 run
  shift
  mpirun -n 2 "$program" "$@" >out 2>err </dev/null &
  run=$!
  for _ in $(seq 1200); do
    [ -e "killed/checkpoints/step-00000$step/state.json" ] && break
    kill -0 "$run" 2>/dev/null || break
    sleep 0.05
  done
  # shellcheck disable=SC2046
  kill -s KILL $(ps -o pid= --ppid "$run") "$run"
  wait "$run" 2>/dev/null
  [ -e "killed/checkpoints/step-00000$step/state.json" ] && ! [ -e killed/checkpoints/step-000006 ]
}
check "killed after a checkpoint" kill_at 2 train clips -o killed "${own[@]}" --steps 6
cp -r killed alone
check "two processes go on" together 0 2 train clips -o killed --resume --threads 1
check "to the same bits" same two killed
check "one process goes on" ends 0 train clips -o alone --resume --threads 1
check "to the same losses" losses alone one
check "one process stops at step 4" ends 0 train clips -o joined "${own[@]}" --accumulate 2 --steps 4
check "two go on" together 0 2 train clips -o joined --resume --steps 6 --threads 1
check "three cannot, since they do not divide its batches" together 2 3 train clips -o joined --resume --steps 8
check "which is said" says err 'accumulate 2, .* cannot be shared by 3 ranks'

stop_one() { # a signal to the second process, in the middle
  local run
  mpirun -n 2 "$program" train clips -o stopped "${own[@]}" --steps 60 --save-every 50 --json >out 2>err </dev/null &
  run=$!
  for _ in $(seq 1200); do
    grep -q '"event":"metric","step":3,' out && break
    sleep 0.05
  done
  kill -s "$1" "$(ps -o pid= --ppid "$run" | tail -n 1)"
  wait "$run"
  case $? in
    130 | 143) ;;
    *) cat err; return 1 ;;
  esac
}
check "a signal to one of them stops all" stop_one TERM
check "with a checkpoint, which is said" says err 'stopped at step [0-9]+ of 60: --resume'
step=$(grep -oE 'stopped at step [0-9]+' err | grep -oE '[0-9]+' | head -n 1)
check "of the step" test -e "stopped/checkpoints/step-$(printf %06d "${step:-0}")/state.json"
check "one that a recipe asks for" together 2 2 train --recipe starter -o none
check "is refused" says err 'built by one process'
check "and so are batches that they cannot share" together 2 2 train clips -o none "${own[@]}" --accumulate 3 --steps 2
check "which makes nothing" test ! -e none
uneven() {
  mpirun -n 1 "$program" train clips -o none "${own[@]}" --steps 2 : -n 1 "$program" train clips -o none "${own[@]}" --steps 2 --host-memory 1M >out 2>err </dev/null
  [ $? = 4 ] && [ ! -e none ]
}
check "what one of them cannot do ends all" uneven
check "and is said, once" sh -c "[ \$(grep -c 'more than the 1[.0]* MiB allowed' err) = 1 ]"
check "a sample on the way" together 0 2 train clips -o sampled "${own[@]}" --steps 6 --sample-every 4 --sample-prompt "a red ball"
check "is made" sh -c "ls sampled/samples/step-000004-*.mp4"
check "and changes nothing" same two sampled
check "without MPI they are told so" sh -c "PMI_SIZE=2 '$program' train clips -o none 2>err; [ \$? = 2 ] && grep -q 'MPI knows of one alone' err"
finish
