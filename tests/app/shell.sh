# What the tests of the command line share; sourced by them after `folder` and `program` are set. Output is TAP; `finish` ends it.
number=0
failures=0

# check WORDS COMMAND...: good if the command is
check() {
  local words=$1
  shift
  number=$((number + 1))
  if "$@" >"$folder/check" 2>&1; then
    echo "ok $number - $words"
  else
    failures=$((failures + 1))
    echo "not ok $number - $words"
    sed 's/^/# /' "$folder/check"
  fi
}

# ends STATUS ARGUMENTS...: the program ends so, and says why if it fails
ends() {
  local want=$1 status
  shift
  "$program" "$@" >"$folder/out" 2>"$folder/err" </dev/null
  status=$?
  [ "$status" = "$want" ] || { echo "status $status, not $want"; cat "$folder/err"; return 1; }
  [ "$want" = 0 ] || [ -s "$folder/err" ] || { echo "not a word of explanation"; return 1; }
}

# says out|err PATTERN: the program's last words, on that stream
says() {
  grep -Eq -- "$2" "$folder/$1" || { echo "no \"$2\" in:"; cat "$folder/$1"; return 1; }
}

finish() {
  echo "1..$number"
  [ "$failures" = 0 ]
}
