#!/usr/bin/env bash
# Runs a program on a display and a session bus of its own: tests/ui/with-display.sh PROGRAM ARGUMENTS...
# Exit status 77, with the reason, where there is none to be had.
for tool in Xvfb dbus-run-session; do
  command -v $tool >/dev/null || { echo "1..0 # SKIP there is no $tool"; exit 77; }
done
if [ -z "${MEGASLIDE_TEST_BUS:-}" ]; then
  # Sockets of the accessibility bus lie in the runtime folder: without one of its own, tests that run side by side meet there.
  runtime=$(mktemp -d) || exit 1
  # Daemons that are started on the way have something to say, too; standard output is the program's alone.
  exec 4>&1
  MEGASLIDE_TEST_BUS=1 XDG_RUNTIME_DIR=$runtime dbus-run-session -- "$0" "$@" >&2
  status=$?
  rm -rf "$runtime"
  exit $status
fi
coproc server { exec Xvfb -displayfd 3 -screen 0 "${MEGASLIDE_TEST_SCREEN:-1280x800x24}" -nolisten tcp 3>&1 2>/dev/null; }
if ! read -r -t 30 number <&"${server[0]}"; then
  echo "1..0 # SKIP the display server does not start"
  exit 77
fi
export DISPLAY=:$number
unset WAYLAND_DISPLAY
"$@" >&4
status=$?
kill "$server_PID" 2>/dev/null
exit $status
