#!/usr/bin/env bash
# Every text of the window can be translated, and is: check-translations.sh SOURCE BUILD, in TAP.
set -u
source=$1 build=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export LC_ALL=C.UTF-8
number=0 failures=0
for tool in xgettext msgmerge msgfmt msgattrib gettext; do
  command -v $tool >/dev/null || { echo "1..0 # SKIP there is no $tool"; exit 0; }
done
cd "$source" || exit 1

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

# The macros of GLib's gi18n headers and what they stand for.
calls='(^|[^[:alnum:]_])(_|N_|C_|NC_|Q_|d?n?gettext|g_dn?p?gettext2?)[[:space:]]*\('

every_source_is_listed() {
  { grep -rlE "$calls" --include='*.[ch]' ui app
    grep -rl 'translatable="yes"' --include='*.ui' ui
    ls data/desktop/*; } | sort -u >"$folder/sources"
  sort -u po/POTFILES | diff "$folder/sources" - | sed -n 's/^</not in po\/POTFILES:/p; s/^>/in po\/POTFILES without a text:/p' >"$folder/differ"
  cat "$folder/differ"
  [ -s "$folder/sources" ] && [ ! -s "$folder/differ" ]
}

# What xgettext says of a text that it cannot read as a whole, as one with G_GINT64_FORMAT in it, counts too.
texts_are_read() {
  xgettext --from-code=UTF-8 --add-comments -k_ -kN_ -kC_:1c,2 -kNC_:1c,2 --flag=N_:1:pass-c-format \
    --flag=g_strdup_printf:1:c-format --flag=g_string_printf:2:c-format --flag=g_string_append_printf:2:c-format \
    --flag=g_set_error:4:c-format -o "$folder/texts.pot" -f po/POTFILES 2>"$folder/said"
  local status=$?
  cat "$folder/said"
  [ $status = 0 ] && [ ! -s "$folder/said" ] && [ "$(grep -c '^msgid' "$folder/texts.pot")" -gt 100 ]
}

languages_are_there() {
  local language
  for language in es ja hi; do
    grep -qx $language po/LINGUAS || { echo "no $language"; return 1; }
  done
}

# has_all LANGUAGE: nothing is missing once the texts of today are merged in
has_all() {
  msgmerge -q --no-fuzzy-matching -o "$folder/merged.po" "po/$1.po" "$folder/texts.pot" || return 1
  msgattrib --no-obsolete --untranslated --no-location "$folder/merged.po" | grep '^msgid' | grep -v '^msgid ""$' >"$folder/left"
  msgattrib --no-obsolete --only-fuzzy --no-location "$folder/merged.po" | grep '^msgid' | grep -v '^msgid ""$' >>"$folder/left"
  cat "$folder/left"
  [ ! -s "$folder/left" ] && msgattrib --no-obsolete --translated "$folder/merged.po" | grep -q '^msgid "[A-Z]'
}

# formats, plural forms and access keys
is_valid() {
  msgfmt --check --check-accelerators=_ -o "$folder/valid.mo" "po/$1.po"
}

# A text that is joined to the next with a space, or ends a line, does so in every language.
ends_alike() {
  msgfmt -o "$folder/ends.mo" "po/$1.po" && msgattrib --no-obsolete --no-wrap "po/$1.po" | awk '
    /^msgid "/ { id = $0 }
    /^msgstr(\[[0-9]\])? "/ && id != "msgid \"\"" && (id ~ / "$/) != ($0 ~ / "$/) { print id; bad = 1 }
    END { exit bad }'
}

is_built() {
  local words
  words=$(TEXTDOMAINDIR=$build/po LANGUAGE=$1 gettext -d megaslide Models)
  [ "$words" != Models ] || { echo "$build/po has nothing for $1"; return 1; }
}

# Properties that a person reads: with letters in them they are to be translated.
ui_is_marked() {
  grep -rnE '<property name="(label|title|subtitle|description|text|tooltip-text|placeholder-text|body|heading)"' --include='*.ui' ui |
    grep -v 'translatable="yes"' | grep -E '>[^<]*[[:alpha:]][^<]*<' | grep -v '>MegaSlide Studio<' >"$folder/unmarked"
  grep -rnE '<(attribute name="label"|item|property name="label")[^>]*>[^<]*[[:alpha:]]{3}[^<]*<' --include='*.ui' ui |
    grep -v 'translatable="yes"' >>"$folder/unmarked"
  cat "$folder/unmarked"
  [ ! -s "$folder/unmarked" ]
}

code_is_marked() {
  grep -rnE '_set_(text|label|title|subtitle|description|tooltip_text|placeholder_text)\([^_"]*(_[^("][^"_]*)*"[[:alpha:]]{2}' --include='*.c' ui |
    grep -vE '(_|C_|N_|gettext)\("' >"$folder/unmarked"
  cat "$folder/unmarked"
  [ ! -s "$folder/unmarked" ]
}

check "every source with texts is listed" every_source_is_listed
check "every text is read as a whole" texts_are_read
check "every text of the templates is marked" ui_is_marked
check "no text of the code goes around gettext" code_is_marked
check "the languages are there" languages_are_there
for language in $(grep -v '^#' po/LINGUAS); do
  check "$language is complete" has_all "$language"
  check "$language has valid formats, plurals and access keys" is_valid "$language"
  check "$language ends its texts as the original does" ends_alike "$language"
  check "$language lies where the window looks for it" is_built "$language"
done
echo "1..$number"
[ $failures = 0 ]
