#!/usr/bin/env bash
# The files that a desktop reads are valid, name each other rightly, and the window's command line works without a display.
#   desktop.sh SOURCE MEGASLIDE WINDOW     WINDOW: the program, or "none" where it is not built
set -u
source=$1 megaslide=$2 window=$3
data=$source/data
id=org.megaslide.Studio
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
unset DISPLAY WAYLAND_DISPLAY
number=0 failures=0

# check WORDS COMMAND...: good if the command is; status 77 skips, saying why
check() {
  local words=$1 status
  shift
  number=$((number + 1))
  "$@" >"$folder/check" 2>&1
  status=$?
  case $status in
    0) echo "ok $number - $words" ;;
    77) echo "ok $number - $words # SKIP $(head -n 1 "$folder/check")" ;;
    *)
      failures=$((failures + 1))
      echo "not ok $number - $words"
      sed 's/^/# /' "$folder/check"
      ;;
  esac
}

with() { # with TOOL ARGUMENTS...
  command -v "$1" >/dev/null || { echo "there is no $1"; return 77; }
  "$@"
}

silent_desktop_entry() { # hints count as faults
  local said
  said=$(with desktop-file-validate "$data/desktop/$id.desktop") || { local status=$?; echo "$said"; return $status; }
  [ -z "$said" ] || { echo "$said"; return 1; }
}

every_key_is_read() {
  local key missing=0
  for key in $(sed -n 's/.*<key name="\([a-z-]*\)".*/\1/p' "$data/desktop/$id.gschema.xml"); do
    grep -rqF "\"$key\"" "$source/ui" || { echo "nothing reads $key"; missing=1; }
  done
  return $missing
}

needs_window() {
  [ "$window" != none ] || { echo "the window is not built"; return 77; }
}

window_helps() {
  needs_window || return
  "$window" --help >"$folder/out" 2>&1 && grep -q -- --version "$folder/out" || { cat "$folder/out"; return 1; }
}

window_version() {
  needs_window || return
  "$window" --version | grep -Eqx 'megaslide-studio [0-9.]+'
}

no_display_is_told() {
  needs_window || return
  if "$window" >"$folder/out" 2>&1; then
    echo "it ended as if all were well"
    return 1
  fi
  grep -qi display "$folder/out" || { cat "$folder/out"; return 1; }
}

command_starts_window() {
  needs_window || return
  "$megaslide" studio --version | grep -Eqx 'megaslide-studio [0-9.]+'
}

check "the desktop entry is valid, without a hint" silent_desktop_entry
check "the metainfo is valid" with appstreamcli validate --no-net --pedantic "$data/desktop/$id.metainfo.xml"
check "the settings compile" with glib-compile-schemas --strict --dry-run "$data/desktop"
check "every setting is read somewhere" every_key_is_read
check "the entry starts the window and shows the icon" \
  sh -c "grep -q '^Exec=megaslide-studio ' '$data/desktop/$id.desktop' && grep -qx 'Icon=$id' '$data/desktop/$id.desktop'"
check "the metainfo names the entry" grep -qF "$id.desktop" "$data/desktop/$id.metainfo.xml"
for icon in "$id" "$id-symbolic"; do
  check "icon $icon is an SVG that draws" with rsvg-convert -w 64 -o "$folder/icon.png" "$data/icons/$icon.svg"
done
check "the window's help needs no display" window_helps
check "the window's version" window_version
check "a missing display is told" no_display_is_told
check "megaslide studio starts the window" command_starts_window
check "megaslide studio has help" "$megaslide" studio --help
echo "1..$number"
[ $failures = 0 ]
