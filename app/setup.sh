# Shared by app/run and tests/run: what a fresh Debian or Ubuntu (Debian 12 or newer) lacks is named and installed, then the tree is
# configured and built. Everything that is said here goes to standard error.
#
# Uses: $top (the source tree), $me (name for messages). Sets: $build (the build folder; MEGASLIDE_BUILD names another).
# wants_window adds what the window needs; the commands do without it, so that a server is not given a desktop.

build=${MEGASLIDE_BUILD:-$top/build}

packages=(
  gcc libc6-dev meson ninja-build pkg-config
  libjansson-dev libavformat-dev libavcodec-dev libavutil-dev libswscale-dev
)

window_packages=(
  libgtk-4-dev libadwaita-1-dev libgstreamer1.0-dev libgstreamer-plugins-base1.0-dev libsqlite3-dev libglib2.0-dev-bin
  gstreamer1.0-plugins-base gstreamer1.0-plugins-good gstreamer1.0-libav
  gettext desktop-file-utils adwaita-icon-theme librsvg2-common hicolor-icon-theme dbus
  fonts-cantarell fonts-noto-core fonts-droid-fallback
)
# What drives the window in the tests and checks the files of the desktop.
window_test_packages=(
  xvfb xauth dbus-x11 at-spi2-core libatspi2.0-dev libxtst-dev libx11-dev appstream librsvg2-bin gsettings-desktop-schemas
)
window=no

wants_window() {
  window=yes
  packages+=("${window_packages[@]}" "$@")
}

say() { printf '%s: %s\n' "$me" "$*" >&2; }

# Names on standard output what is not installed. A package that has been renamed counts if something provides it.
missing_packages() {
  local package installed
  installed=$(dpkg-query -W -f '${db:Status-Status} ${Package} ${Provides}\n' 2>/dev/null | sed -n 's/^installed //p' |
    sed 's/([^)]*)//g' | tr ' ,' '\n\n' | sort -u)
  for package in "$@"; do
    grep -qxF -- "$package" <<<"$installed" || printf '%s\n' "$package"
  done
}

as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  else
    sudo "$@"
  fi
}

install_packages() {
  local get=(env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 -q)
  if [ "$(id -u)" != 0 ] && ! command -v sudo >/dev/null; then
    say "you are not root and there is no sudo; as root, run: apt-get install $*"
    return 1
  fi
  say "installing with apt-get: $*"
  # Lists of packages may be missing, as in a fresh container, or too old; then they are fetched first, or it is tried once more.
  if ! ls /var/lib/apt/lists/*_Packages* >/dev/null 2>&1 || ! as_root "${get[@]}" install -y --no-install-recommends "$@" >&2 </dev/null; then
    say "fetching the lists of packages"
    as_root "${get[@]}" update >&2 </dev/null && as_root "${get[@]}" install -y --no-install-recommends "$@" >&2 </dev/null
  fi
}

ensure_packages() {
  local missing
  if ! command -v dpkg-query >/dev/null; then
    command -v meson >/dev/null && command -v ninja >/dev/null && return 0
    say "this is neither Debian nor Ubuntu; install these (or what they are called here) yourself: ${packages[*]}"
    return 1
  fi
  mapfile -t missing < <(missing_packages "${packages[@]}")
  [ ${#missing[@]} = 0 ] && return 0
  say "these packages are needed and not installed: ${missing[*]}"
  install_packages "${missing[@]}" || { say "the packages could not be installed"; return 1; }
}

# ensure_built TARGET...: configures if need be and builds; quiet when there is nothing to do.
ensure_built() {
  local lock
  # The lists of packages are only looked at until a build of them stands, or when that build breaks.
  if [ ! -f "$build/build.ninja" ] || lacks_window; then
    ensure_packages || return 1
  fi
  mkdir -p "$build" || return 1
  exec {lock}>"$build/.lock"
  if ! flock -n "$lock"; then
    say "waiting for another build"
    flock "$lock"
  fi
  build_locked "$@" || { say "once more, after a look at the packages"; ensure_packages && build_locked "$@"; }
  local status=$?
  exec {lock}>&-
  return $status
}

# A build that was configured when only the commands were wanted.
lacks_window() {
  [ $window = yes ] && [ -f "$build/build.ninja" ] && ! grep -q megaslide-studio "$build/build.ninja"
}

build_locked() {
  if lacks_window; then
    say "configuring $build again, with the window"
    # What was not found is remembered; clearing the memory is what makes it be looked for again.
    meson configure --clearcache "$build" >&2 </dev/null && meson setup --reconfigure "$build" "$top" >&2 </dev/null || return 1
    lacks_window && { say "the window cannot be built here; see meson-logs/meson-log.txt in $build"; return 1; }
  fi
  if [ ! -f "$build/build.ninja" ]; then
    say "configuring $build"
    meson setup "${setup_options[@]}" "$build" "$top" >&2 </dev/null || return 1
  fi
  ninja -C "$build" -n "$@" 2>/dev/null | grep -q 'no work to do' && return 0
  say "building (minutes the first time)"
  ninja -C "$build" "$@" >&2 </dev/null
}

setup_options=(--buildtype=release)
