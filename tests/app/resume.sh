#!/usr/bin/env bash
# Clips that were interrupted: a killed run goes on to the same bytes, says what it makes, refuses settings that
# are not its own and states that are damaged, and never shares its folder with another run. TAP.
#   resume.sh PROGRAM
set -u
program=$(readlink -f "$1")
. "$(dirname "$(readlink -f "$0")")/shell.sh"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export XDG_DATA_HOME=$folder/data HOME=$folder
cd "$folder" || exit 99

# A number of the state's header: the file begins with JSON in one line.
state_number() {
  head -c 600 "$1" | tr -d '\0' | grep -aoE "\"$2\":\"[0-9]+\"" | grep -oE '[0-9]+'
}

prompt="a red ball rolls to the right"
settings=(--size 128x96 --frames 33 --steps 160 --seed 5 --sampler unipc --threads 2)

wait_for() { # wait_for FILE: until it is there, a minute at most
  for _ in $(seq 3000); do
    [ -e "$1" ] && return 0
    sleep 0.02
  done
  return 1
}

start() { # start NAME ARGUMENTS...: in the background, its number in $job
  local name=$1
  shift
  "$program" generate "$@" -o "$name" --json >"$folder/$name.log" 2>&1 </dev/null &
  job=$!
}

kill_midway() {
  start "$1" "$prompt" "${settings[@]}"
  wait_for "$1.unfinished/latest-1.safetensors" || return 1
  sleep 0.1
  kill -9 "$job"
  wait "$job" 2>/dev/null
  [ ! -e "$1" ] && [ -e "$1.unfinished/job.json" ]
}

lost_little() { # the state is near the last step that was told; a busy machine's writes take long, and are then rarer
  local told saved
  told=$(grep -o '"phase":"sample","done":[0-9]*' "$1.log" | tail -n 1 | grep -oE '[0-9]+$')
  saved=$(for file in "$1.unfinished"/*.safetensors; do state_number "$file" step; done | sort -n | tail -n 1)
  echo "told $told, saved $saved"
  [ -n "$told" ] && [ -n "$saved" ] && [ $((2 * saved)) -ge "$told" ]
}

check "a straight run" ends 0 generate "$prompt" "${settings[@]}" -o straight.mp4
check "leaves nothing but its clip" test ! -e straight.mp4.unfinished
check "a run is killed in the middle" kill_midway killed.mp4
check "having lost little" lost_little killed.mp4
cp -r killed.mp4.unfinished spare
check "another prompt is refused" ends 2 generate "a blue star" --resume killed.mp4.unfinished
check "and named" says err 'the prompt .*red ball'
check "other steps are refused" ends 2 generate --resume killed.mp4.unfinished --steps 7
check "and named" says err '--steps .*160'
check "another seed is refused" ends 2 generate --resume killed.mp4.unfinished --seed 6
check "and named" says err '--seed .*5'
check "another size is refused" ends 2 generate --resume killed.mp4.unfinished --size 64x64
check "and named" says err '--size .*128x96'
check "it goes on without being told what" ends 0 generate --resume killed.mp4.unfinished --json
check "to the same bytes" cmp straight.mp4 killed.mp4
check "says its own prompt" says out '"event":"result".*"prompt":"a red ball rolls to the right"'
check "and settings" says out '"event":"result".*"steps":160'
check "and output" says out '"output":"[^"]*killed.mp4"'
check "and leaves nothing else" test ! -e killed.mp4.unfinished

cp -r spare again
check "the same prompt and settings may be given" ends 0 generate "$prompt" "${settings[@]}" --resume again -o again.mp4
check "for the same bytes" cmp straight.mp4 again.mp4

cp -r spare other.mp4.unfinished
check "another clip does not take the place of one that is not finished" ends 5 generate "a blue star" "${settings[@]}" -o other.mp4
check "and says what to do" says err 'not finished.*--resume'
check "nothing of it is lost" ends 0 generate --resume other.mp4.unfinished -o other.mp4
check "down to the bytes" cmp straight.mp4 other.mp4

# What a power failure may leave of the state that did not wait for the disk
cp -r spare torn
: >torn/latest-0.safetensors
check "a state that is empty gives way" ends 0 generate --resume torn -o torn.mp4
check "for the same bytes" cmp straight.mp4 torn.mp4
cp -r spare flipped
for file in flipped/*.safetensors; do
  printf 'X' | dd of="$file" bs=1 seek=2000 conv=notrunc 2>/dev/null
done
check "states with a wrong byte are refused" ends 3 generate --resume flipped -o flipped.mp4
check "and named" says err 'safetensors.* is damaged'

damage() { # damage NAME PATTERN: a copy of the job with another job.json
  rm -rf bad
  cp -r spare bad
  sed -i -E "$2" bad/job.json
  ends 3 generate --resume bad -o bad.mp4 && says err "\"$1\""
}
check "steps that are no number" damage steps 's/"steps": 160/"steps": "many"/'
check "no steps" damage steps 's/"steps": 160/"steps": 0/'
check "steps beyond all" damage steps 's/"steps": 160/"steps": 4294967297/'
check "half a frame" damage frames 's/"frames": 33/"frames": 33.5/'
check "an odd width" damage width 's/"width": 128/"width": 127/'
check "a seed below zero" damage seed 's/"seed": 5/"seed": -5/'
check "an unknown sampler" damage sampler 's/unipc/magic/'
check "no prompt" damage prompt 's/"prompt": "[^"]*"/"prompt": 7/'
check "guidance that is a text" damage guidance 's/"guidance": [0-9.]+/"guidance": "2"/'
rm -rf bad
cp -r spare bad
echo '[' >bad/job.json
check "a job that is none" ends 3 generate --resume bad -o bad.mp4
rm -rf bad
cp -r spare bad
sed -i 's/"seed": 5/"seed": 6/' bad/job.json
check "settings that are not those of the latents" ends 3 generate --resume bad -o bad.mp4
check "a folder that is none" ends 3 generate --resume nowhere

start shared.mp4 "$prompt" "${settings[@]}"
wait_for shared.mp4.unfinished/job.json
check "a second run of the same output is refused" ends 5 generate "$prompt" "${settings[@]}" -o shared.mp4
check "at once, since another run writes it" says err 'another run writes'
check "it cannot be resumed meanwhile" ends 5 generate --resume shared.mp4.unfinished
wait "$job"
check "the first goes on undisturbed" cmp straight.mp4 shared.mp4

start lost.mp4 "$prompt" "${settings[@]}"
wait_for lost.mp4.unfinished/latest-1.safetensors
mv lost.mp4.unfinished gone
check "a run whose folder goes away ends" wait "$job"
check "with its clip" cmp straight.mp4 lost.mp4

finish
