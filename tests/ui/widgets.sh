#!/usr/bin/env bash
# Makes clips with the command line and gives them to the tests of the player, the library and the moving
# picture: widgets.sh MEGASLIDE WITH-DISPLAY PROGRAM, where the program's name says which.
set -e
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$1" render-scenes -o "$folder/short" --clips 1 --size 96x64 --frames 33 --seed 5 >/dev/null
export GSK_RENDERER=cairo XDG_DATA_HOME="$folder/data" XDG_CACHE_HOME="$folder/cache"
case $3 in
*check-player)
  "$1" render-scenes -o "$folder/large" --clips 1 --size 1280x720 --frames 48 --seed 5 >/dev/null
  "$2" "$3" "$folder/short/0000.mp4" 33 "$folder/large/0000.mp4" 48 "$folder" ;;
*check-library)
  mkdir "$folder/many"
  "$2" "$3" "$folder/short/0000.mp4" 1000 "$folder/many" ;;
*) "$2" "$3" "$folder/short/0000.mp4" ;;
esac
