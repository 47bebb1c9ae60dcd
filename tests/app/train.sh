#!/usr/bin/env bash
# Training that goes on: with the settings of its own, which may not be changed, and with words about clips that
# came or went and a loss that grew. TAP.
#   train.sh PROGRAM
set -u
program=$(readlink -f "$1")
. "$(dirname "$(readlink -f "$0")")/shell.sh"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export XDG_DATA_HOME=$folder/data HOME=$folder
cd "$folder" || exit 99

check "clips" ends 0 render-scenes -o clips --clips 4 --size 64x64 --frames 5 --seed 5
own=(--size 64x64 --frames 5 --batch 1 --accumulate 2 --lr 1e-4 --warmup 3 --ema 0.9 --seed 7 --validation 0.25)
check "a run of two steps" ends 0 train clips -o run "${own[@]}" --save-every 1 --validate-every 2 --steps 2
check "and the same" cp -r run other
check "goes on to four, told nothing else" ends 0 train clips -o run --resume --steps 4
check "another, told everything" ends 0 train clips -o other --resume "${own[@]}" --save-every 1 --validate-every 2 --steps 4
check "they have the same weights" cmp run/dit.safetensors other/dit.safetensors
check "and the same settings" cmp run/run.json other/run.json
check "the run's" grep -q '"warmup": 3' run/run.json
refuses() { # refuses FLAG VALUE PATTERN
  ends 2 train clips -o run --resume --steps 5 "--$1" "$2" && says err "--$1 $3.*--$1 $2"
}
check "another method is refused" refuses method offsets full
check "another size" refuses size 96x64 64x64
check "other frames" refuses frames 9 5
check "another batch" refuses batch 2 1
check "another accumulate" refuses accumulate 1 2
check "another rate" refuses lr 0.001 0.0001
check "another warm-up" refuses warmup 4 3
check "another average" refuses ema 0 0.9
check "another seed" refuses seed 8 7
check "the run is as it was" cmp run/dit.safetensors other/dit.safetensors
check "too few steps are refused" ends 2 train clips -o run --resume --steps 3

sed -i '/"warmup"/d; /"clips": \[/,/\]/d; /"model"/s/,$//' run/run.json
check "a run that kept less goes on" ends 0 train clips -o run --resume --steps 4
sed -i 's/"batch": 1/"batch": "one"/' run/run.json
check "one that kept nonsense does not" ends 3 train clips -o run --resume
check "and says what" says err '"batch"'
lora="--size 64x64 --frames 5 --batch 1 --steps 3 --seed 7 --method lora --rank 4"
check "adapters are trained" ends 0 train clips -o adapted $lora
check "which are a file" test -s adapted/lora.safetensors
check "beside the model that has them" ends 0 generate "a ball" --model adapted --size 64x64 --frames 5 --steps 2 -o adapted.mp4
check "their rank is kept" grep -q '"rank": 4' adapted/run.json
check "also one that is not said" ends 0 train clips -o adapted --resume --steps 4
check "another is refused" ends 2 train clips -o adapted --resume --steps 5 --rank 8
check "a rank of all weights, too" ends 2 train clips -o none --rank 8
check "and explained" says err 'a rank is that of --method lora'

mkdir bare
check "the folder of the clips is no output" ends 2 train bare -o ./bare
check "which is said" says err 'is the folder of the clips: name another'
check "also to a run that goes on" ends 2 train other -o other --resume --steps 5
check "and nothing is written there" sh -c '[ -d bare ] && [ -z "$(ls -A bare)" ]'

check "a rate that is too high ends all the same" ends 0 train clips -o wild --size 64x64 --frames 5 --batch 1 --validation 0.25 --warmup 0 --steps 6 --lr 5 --ema 0
check "with a warning" says err 'loss has grown from [0-9.]+ to [0-9.e+]+: try a smaller --lr'
check "in the result too" says out 'wild: 6 steps.*the loss has grown from'
check "one that is not, without" sh -c "'$program' train clips -o tame --size 64x64 --frames 5 --batch 1 --steps 1 2>&1 | grep -q grown; [ \$? = 1 ]"

rm clips/0001.* clips/0002.*
cp clips/0003.mp4 clips/fresh.mp4
cp clips/0003.txt clips/fresh.txt
check "clips that came and went" ends 0 train clips -o other --resume --steps 5
check "are counted" says err 'gone: 2 of 4, new: 1'
check "once" sh -c "'$program' train clips -o other --resume --steps 6 2>&1 | grep -q 'gone: '; [ \$? = 1 ]"
finish
