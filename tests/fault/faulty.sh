# What the tests with faults share; sourced after `program` and `library` are set. A streamed run of three steps with a
# checkpoint after each, layers and activations on the disk, is disturbed at one of its calls, goes on with --resume, and
# must end as the run that nobody disturbed.
. "$(dirname "$(readlink -f "$0")")/../app/shell.sh"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export XDG_DATA_HOME=$folder/data XDG_CACHE_HOME=$folder/cache HOME=$folder
cd "$folder" || exit 99

if grep -aq __asan_init "$program" || grep -aq __tsan_init "$program"; then
  echo "1..0 # SKIP a sanitizer has an allocator of its own"
  exit 0
fi
long=
[ "${MEGASLIDE_FAULTS:-}" = long ] && long=1

# faulty FAULT ARGUMENTS...: the program with that fault in the files below $under that have $files in their path
under=$folder
files=
start() { # the same in the background, its number in $run
  local fault=$1
  shift
  env LD_PRELOAD="$library" MEGASLIDE_FAULT="$fault" MEGASLIDE_FAULT_UNDER="$under" MEGASLIDE_FAULT_FILES="$files" \
    MEGASLIDE_FAULT_COUNTS="$folder/counts" "$program" "$@" >out 2>err </dev/null &
  run=$!
}
faulty() {
  start "$@"
  wait $run 2>/dev/null
}

# calls write|read|any|alloc: of the last run that came to its end
calls() {
  grep -o "$1 [0-9]*" counts | cut -d' ' -f2
}

# places COUNT MANY MOST: pseudo-random numbers from 1 to MOST, one from each of COUNT ranges (MANY in the long form)
RANDOM=5
places() {
  local i count=${long:+$2}
  count=${count:-$1}
  for ((i = 0; i < count; i++)); do
    echo $(($3 * i / count + 1 + (RANDOM * 32768 + RANDOM) % ($3 / count > 0 ? $3 / count : 1)))
  done
}

# A model whose checkpoints are small.
model=$folder/model
make_model() {
  sed -E 's/"dim": 256/"dim": 128/; s/"ffn": 1024/"ffn": 512/' "${MEGASLIDE_DATA:?}/models/starter/model.json" >small.json
  "$program" models init small.json -o "$model" >/dev/null 2>&1
}

# prepare FLAGS...: clips, the settings of the runs in $own, and the run that is not disturbed, "calm"
prepare() {
  [ -d clips ] || "$program" render-scenes -o clips --clips 4 --size 64x64 --frames 5 --seed 5 >/dev/null 2>&1
  [ -d "$model" ] || make_model
  own=(--size 64x64 --frames 5 --batch 1 --lr 1e-4 --warmup 3 --seed 7 --validation 0.25 --validate-every 2 --steps 3
    --save-every 1 --ema 0 --model "$model" "$@")
  local least
  least=$("$program" train clips "${own[@]}" -o none --host-memory 1M 2>&1 </dev/null | grep -o 'needs [0-9]* MiB' | grep -o '[0-9]*')
  local budget
  for budget in "$least" "$((least + 1))"; do # what is told is rounded
    rm -rf calm
    faulty "any nothing 1" train clips -o calm "${own[@]}" --host-memory "${budget}M" && break
  done
  own+=(--host-memory "${budget}M")
}

newest() {
  find "$1/checkpoints" -maxdepth 1 -name 'step-*' 2>/dev/null | sed 's/.*step-0*//' | sort -n | tail -n 1
}

# What has its final name is whole, and not more than the step that was being done is lost.
nothing_half() {
  local file name rows step
  for file in $(find "$1" -name '*.safetensors' ! -path '*/unfinished/*' ! -path '*/latents/*'); do
    name=${file#"$1"/}
    [ "$(stat -c %s "$file")" = "$(stat -c %s "calm/${name/step-00000[123]/step-00000$(newest calm)}")" ] || { echo "$name is not whole"; return 1; }
  done
  rows=$(tail -n +2 "$1/metrics.csv" 2>/dev/null | grep -c ,)
  step=$(newest "$1")
  [ $((${step:-0} + 1)) -ge "$rows" ] || { echo "$rows steps were done, the newest checkpoint is ${step:-none}"; return 1; }
}

as_calm() {
  local left
  cmp calm/dit.safetensors "$1/dit.safetensors" || return 1
  left=step-00000$(newest calm)
  cmp "calm/checkpoints/$left/state.safetensors" "$1/checkpoints/$left/state.safetensors" || return 1
  cmp <(cut -d, -f1-4 calm/metrics.csv) <(cut -d, -f1-4 "$1/metrics.csv") || return 1
  # a look at the clips that are held out may have been broken off
  paste -d, <(cut -d, -f7 calm/metrics.csv) <(cut -d, -f7 "$1/metrics.csv") |
    awk -F, '$2 != "" && $1 != $2 {print $2 ", not " $1; bad = 1} END {exit bad}' || return 1
  left=$(cd "$1" && find . \( -name '*.part' -o -name unfinished -o -name lock -o -path './state*' \))
  [ -z "$left" ] || { echo "left behind: $left"; return 1; }
}

# survives "STATUS..." FAULT: the run ends in one of these ways, in words where it can, and goes on to the calm run's weights
survives() {
  local status
  rm -rf o
  faulty "$2" train clips -o o "${own[@]}"
  status=$?
  cat err
  [[ " $1 " == *" $status "* ]] || { echo "status $status"; return 1; }
  [ $status = 137 ] || [ $status = 0 ] || grep -q '^megaslide train: [^:]*[a-z]' err || { echo "no words"; return 1; }
  goes_on $status
}

goes_on() { # goes_on STATUS
  nothing_half o || return 1
  if [ "$1" != 0 ]; then
    ends 0 train clips -o o --resume "${own[@]}" || return 1
    ! grep -q 'cannot be used' err || { cat err; return 1; }
  fi
  as_calm o
}
