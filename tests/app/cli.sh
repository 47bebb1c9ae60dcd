#!/usr/bin/env bash
# The command line from outside: exit statuses, the form of its output, and files made and read again. TAP.
#   cli.sh PROGRAM
set -u
program=$1
. "$(dirname "$(readlink -f "$0")")/shell.sh"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export XDG_DATA_HOME=$folder/data HOME=$folder

only_json() {
  [ -s "$folder/out" ] && ! grep -vE '^\{"event":"(progress|metric|row|result|error)"[,}].*$' "$folder/out"
}

check "help of the program" ends 0 --help
check "help names the commands" says out '^  generate '
for command in generate train plan models inspect export bench render-scenes; do
  check "help of $command" ends 0 $command --help
  check "help of $command shows its use" says out "usage: megaslide $command"
done
check "no command: usage" ends 2
check "unknown command" ends 2 gnerate
check "the nearest command is named" says err 'did you mean "generate"'

check "no prompt" ends 2 generate -o "$folder/a.mp4"
check "an empty prompt" ends 2 generate " " -o "$folder/a.mp4"
check "two prompts" ends 2 generate a b -o "$folder/a.mp4"
check "a prompt that is not UTF-8" ends 2 generate $'\xff\xfe' -o "$folder/a.mp4"
for size in 0x0 0x64 63x64 65x64 -64x64 64x 64 x64 64x64x3 1e3x64 99999999999x64 192x128x " 192x128" +192x128 "192x 128" 192x+128 0xC0x128; do
  check "size $size" ends 2 generate ball --size=$size -o "$folder/a.mp4"
done
check "no frames" ends 2 generate ball --frames 0 -o "$folder/a.mp4"
check "negative frames" ends 2 generate ball --frames -3 -o "$folder/a.mp4"
check "half a frame" ends 2 generate ball --frames 1.5 -o "$folder/a.mp4"
check "no steps" ends 2 generate ball --steps 0 -o "$folder/a.mp4"
check "a seed that is too large" ends 2 generate ball --seed 9000000000000000001 -o "$folder/a.mp4"
check "is told as it was typed" says err '9000000000000000001 is out of range'
check "a seed beyond 64 bits" ends 2 generate ball --seed 99999999999999999999 -o "$folder/a.mp4"
check "guidance that is no number" ends 2 generate ball --guidance nan -o "$folder/a.mp4"
check "a flag without its value" ends 2 generate ball --steps
check "an unknown sampler" ends 2 generate ball --sampler magic -o "$folder/a.mp4"
check "a part of a sampler's name" ends 2 generate ball --sampler eul -o "$folder/a.mp4"
check "an unknown flag" ends 2 generate ball --setps 4 -o "$folder/a.mp4"
check "the nearest flag is named" says err 'did you mean --steps'
check "a size of memory that is none" ends 2 generate ball --host-memory much -o "$folder/a.mp4"
check "a bad flag with --json" ends 2 generate ball --setps 4 --json
check "is told as JSON" only_json
check "as an error" says out '"event":"error","exit":2'
check "a clip beyond the memory" ends 4 generate ball --size 1280x720 --frames 129 --host-memory 500M -o "$folder/a.mp4"
check "says of which, how much and what would fit" says err 'host memory, [0-9]+ MiB more than the 500 MiB allowed: .* would fit'
check "a clip beyond the device" ends 4 generate ball --size 640x384 --frames 65 --device-memory 60M -o "$folder/a.mp4"
check "says so too" says err 'device memory, [0-9]+ MiB more than the 60 MiB allowed: .* would fit'
check "a model beyond the device" ends 4 generate ball --size 64x64 --device-memory 6M -o "$folder/a.mp4"
check "a missing model" ends 3 generate ball --model nowhere -o "$folder/a.mp4"
check "a device that is not there" ends 6 generate ball --device cuda -o "$folder/a.mp4"
check "no folder for the trained model" ends 2 train "$folder"
check "no clips to train on" ends 2 train -o "$folder/m"
check "a file that is not there" ends 3 inspect "$folder/nothing.mp4"

check "scenes are written" ends 0 render-scenes -o "$folder/scenes" --clips 3 --size 96x64 --frames=9 --seed 5 --json
check "and told as JSON" only_json
check "with the result last" sh -c "tail -n 1 '$folder/out' | grep -q '\"event\":\"result\",\"output\"'"
check "clips, captions and labels" test -s "$folder/scenes/0002.mp4" -a -s "$folder/scenes/0002.txt" -a -s "$folder/scenes/labels.json"
check "the same seed again" ends 0 render-scenes -o "$folder/again" --clips 3 --size 96x64 --frames 9 --seed 5
check "gives the same bytes" cmp "$folder/scenes/0001.mp4" "$folder/again/0001.mp4"
check "a folder that cannot be made" ends 5 render-scenes -o "$folder/no/such" --clips 1
check "a folder that is a file" ends 5 render-scenes -o "$folder/scenes/0000.mp4" --clips 1

check "a clip is inspected" ends 0 inspect "$folder/scenes/0001.mp4" --json
check "its size and frames" says out '"width":96,"height":64,"frames":9,"fps":8.0'
check "its settings" says out '"prompt":"'
check "its colours" says out '"color_space":"bt709","color_range":"tv"'
check "exported" ends 0 export "$folder/scenes/0001.mp4" -o "$folder/b.mkv" --format ffv1
check "the copy" ends 0 inspect "$folder/b.mkv" --json
check "has the same frames" says out '"frames":9'
check "and the settings" says out '"prompt":"'
check "exported as a GIF" ends 0 export "$folder/scenes/0001.mp4" -o "$folder/b.gif"
check "which is inspected" ends 0 inspect "$folder/b.gif" --json
check "with the rate and the settings" says out '"prompt":".*"fps":8.0'
check "exported as frames" ends 0 export "$folder/scenes/0001.mp4" -o "$folder/b.png"
check "the folder is inspected" ends 0 inspect "$folder/b.png" --json
check "as a clip with its settings" says out '"prompt":".*"fps":8.0,.*"frames":9,'
check "a folder of neither" ends 3 inspect "$folder"
check "exported into a folder that is not there" ends 5 export "$folder/scenes/0001.mp4" -o "$folder/no/b.mp4"
check "exported onto itself" ends 2 export "$folder/b.mkv" -o "$folder/../${folder##*/}/b.mkv" --format ffv1
check "no other file is left" sh -c "! ls '$folder' '$folder/scenes' | grep -F .part"
check "a text is no clip" ends 3 inspect "$folder/scenes/0001.txt"

mkdir "$folder/kept"
echo '{}' > "$folder/kept/model.json"
check "training into a folder that is in use" ends 3 train "$folder/scenes" -o "$folder/kept"
check "training with a flag that is refused" ends 2 train "$folder/scenes" -o "$folder/kept" --method half
check "training from a model that is not there" ends 3 train "$folder/scenes" -o "$folder/kept" --model nowhere
printf '\377\376' > "$folder/again/0001.txt"
check "training with a caption that is not UTF-8" ends 3 train "$folder/again" -o "$folder/none"
check "leaves the folder as it was" test -s "$folder/kept/model.json"

zen="--hardware zen5-2core"
check "plan what" ends 2 plan
check "plan something else" ends 2 plan nothing
check "help of plan train" ends 0 plan train --help
check "a clip is planned" ends 0 plan generate $zen --json
check "in one line of JSON" sh -c "[ \$(wc -l < '$folder/out') = 1 ]"
check "and nothing else" only_json
check "with the keys that scripts read" says out '"parameters":[0-9]+,"tokens":864,"flops":[0-9.e+]+,"host_bytes":[0-9]+,"device_bytes":[0-9]+,"disk_bytes":[0-9]+,"moved_bytes":[0-9]+,"seconds":[0-9.e+-]+,"exposed_transfer_seconds":0.0,"fits":true'
flops=$(grep -o '"flops":[0-9.e+]*' "$folder/out")
check "the clip itself" ends 0 generate "a red ball" -o "$folder/planned.mp4" --json
check "is the same work" says out "$flops[,}]"
check "planned in words" ends 0 plan generate $zen
check "says what it needs" says out 'host memory'
check "a clip that does not fit" ends 4 plan generate $zen --size 1920x1080 --frames 256 --host-memory 1G --json
check "says so as its result" says out '"event":"result".*"fits":false.*"short_of":"host","short_bytes":[0-9]+,"suggestions":\[\{"change":"(size|frames)"'
flags=$(grep -o '"width":[0-9]*,"height":[0-9]*,"frames":[0-9]*,"host_bytes"' "$folder/out" | head -n 1 | sed 's/"width":\([0-9]*\),"height":\([0-9]*\),"frames":\([0-9]*\).*/--size \1x\2 --frames \3/')
check "what it suggests fits: $flags" ends 0 plan generate $zen --host-memory 1G $flags
check "not in words" ends 4 plan generate $zen --size 1920x1080 --frames 256 --host-memory 1G
check "names the nearest that fits" says out '--(size|frames) .* would fit'
check "105 B without its weights" ends 4 plan train --config megaslide-105b --hardware h200-pcie5 --size 1920x1080 --frames 256 --json
check "has so many tokens and parameters" says out '"parameters":106567153864,"tokens":2088960,'
check "one clip a step fits with parts on the disk" ends 0 plan train --config megaslide-105b --hardware h200-pcie5 --size 1920x1080 --frames 256 --batch 1 --json
check "which the plan tells" says out '"fits":true.*"inputs":"disk".*"lane_seconds":\{"read":[0-9.]+.*"mfu":0\.'
check "in words too" ends 0 plan train --config wan2.1-1.3b $zen --size 480x272 --frames 17 --batch 1 --host-memory 6G --ema 0
check "with a table of what lies where" says out '^    layers +[0-9.]+ GiB +[0-9.]+ GiB$'
check "a study of a step" ends 0 plan train --config wan2.1-14b --hardware rtx4090-pcie4 --batch 1 --study --json
check "is rows and a result" only_json
check "of bounds and of steps" says out '"kind":"bound"'
check "both" says out '"kind":"step","lanes":"sync".*"exposed_transfer_seconds":[0-9.]+,"mfu"'
check "a configuration that is not there" ends 3 plan train --config nothing $zen
check "a prompt and a seed change no plan" ends 0 plan generate "a ball" --seed 3 $zen
check "clips are counted" ends 0 plan train "$folder/scenes" --lr 1e-4 $zen --json
check "a folder without clips" ends 3 plan train "$folder/data" $zen
check "adapters are planned" ends 0 plan train --method lora --rank 32 $zen
check "a method that cannot be trained" ends 2 plan train --method half $zen
check "a machine that is not there" ends 3 plan train --hardware nothing
check "a model and a configuration" ends 2 plan train --config megaslide-105b --model starter $zen
check "a size that cannot be" ends 2 plan generate --size 63x64 $zen

"$program" render-scenes -o "$folder/many" --clips 100000 >/dev/null 2>&1 &
pid=$!
sleep 1
kill -INT $pid
wait $pid
check "an interrupt ends with 130" test $? = 130
check "what was done is described" test -s "$folder/many/labels.json"

echo "1..$number"
[ $failures = 0 ]
