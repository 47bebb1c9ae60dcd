#!/usr/bin/env bash
# Latents of training clips kept from run to run: taken where nothing changed, made anew, with the reason, where
# something did, and never trusted where they are damaged. TAP.
#   latents.sh PROGRAM
set -u
program=$(readlink -f "$1")
. "$(dirname "$(readlink -f "$0")")/shell.sh"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export XDG_DATA_HOME=$folder/data XDG_CACHE_HOME=$folder/cache HOME=$folder
cd "$folder" || exit 99

silent() {
  ! grep -E 'is encoded' err
}

train() { # train OUT STEPS FLAGS...: a run, its words in err
  local out=$1 steps=$2
  shift 2
  "$program" train clips -o "$out" --steps "$steps" --size 64x64 --frames 9 --batch 2 --seed 3 --validation 0 \
    --threads 2 "$@" >out 2>err </dev/null || { cat err; return 1; }
}
same() {
  cmp "$1/dit.safetensors" "$2/dit.safetensors"
}

"$program" render-scenes -o clips --clips 3 --size 96x64 --frames 17 --seed 5 >/dev/null 2>&1
check "a straight run" train straight 4
check "encodes its clips" says err '0000.mp4 is encoded at 64x64: not kept yet'
check "and keeps them" test -d straight/latents
cp -r straight begun
check "it goes on" train begun 6 --resume
check "without encoding" silent
cp -r straight anew
rm -rf anew/latents
check "one that kept nothing goes on too" train anew 6 --resume
check "encoding again" says err '0001.mp4 is encoded'
check "to the same bits" same begun anew

cp -r straight torn
for file in torn/latents/*; do
  printf 'X' | dd of="$file" bs=1 seek=700 conv=notrunc 2>/dev/null
done
check "damaged latents" train torn 6 --resume
check "are known" says err 'is encoded at 64x64: what was kept is damaged'
check "and made anew" same begun torn
cp -r straight cut
for file in cut/latents/*; do
  : >"$file"
done
check "empty ones" train cut 6 --resume
check "are made anew" same begun cut

cp -r straight other
cp clips/0002.mp4 clips/0001.mp4
check "a clip that changed" train other 6 --resume
check "is encoded" says err '0001.mp4 is encoded at 64x64: the file changed'
check "but the others are not" sh -c '! grep -E "000[02].mp4 is encoded" err'

finish
