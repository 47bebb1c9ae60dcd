/* The word tokenizer: splitting, spellings, unknown words, the limit of slots, bad configurations. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "model/tokenizer.h"

static const char *const config = "{\"length\": 6, \"vocabulary\": [\"<pad>\", \"<bos>\", \"a\", \"red\", "
                                  "\"ball\", \"3d\", \"\xc3\xa9t\xc3\xa9\"],"
                                  " \"same\": {\"an\": \"a\", \"sphere\": \"ball\"}}";

static const struct {
  const char *prompt;
  int count, tokens[6];
  const char *skipped;
} cases[] = {
    {"a red ball", 4, {1, 2, 3, 4, 0, 0}, ""},
    {"", 1, {1, 0, 0, 0, 0, 0}, ""},
    {"An RED, (sphere)!", 4, {1, 2, 3, 4, 0, 0}, ""},
    {"  a   blue\tball\n", 3, {1, 2, 4, 0, 0, 0}, "blue"},
    {"a 3D ball", 4, {1, 2, 5, 4, 0, 0}, ""},
    {"redball <bos> <pad>", 1, {1, 0, 0, 0, 0, 0}, "redball, bos, pad"},
    {"a a a a a a red", 6, {1, 2, 2, 2, 2, 2}, ""},
    {"\xc3\xa9t\xc3\xa9 \xc3\xa9", 2, {1, 6, 0, 0, 0, 0}, "\xc3\xa9"},
    {"red-ball's", 3, {1, 3, 4, 0, 0, 0}, "s"},
};

static void check_refused(const char *text, const char *part) {
  struct ms_error error = {0};
  struct ms_tokenizer tokenizer;
  json_t *root = json_loads(text, 0, NULL);
  int code = ms_tokenizer_open(&tokenizer, root, &error);
  check_ok(code == MS_EINPUT && strstr(error.message, part), "refused: %s", error.message);
  json_decref(root);
}

int main(int argc, char **argv) {
  struct ms_error error = {0};
  struct ms_tokenizer tokenizer;
  json_t *root = json_loads(config, 0, NULL);
  char skipped[64], small[8], long_word[400];
  int tokens[6];
  check_begin(argc, argv);
  if (ms_tokenizer_open(&tokenizer, root, &error) < 0) {
    fprintf(stderr, "%s\n", error.message);
    return 99;
  }
  json_decref(root);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    int count = ms_tokenizer_run(&tokenizer, cases[i].prompt, tokens, skipped, sizeof skipped);
    check_ok(count == cases[i].count && !memcmp(tokens, cases[i].tokens, sizeof tokens) &&
                 !strcmp(skipped, cases[i].skipped),
             "\"%s\": %d tokens, skipped \"%s\"", i == 3 ? "(with spaces)" : cases[i].prompt, count, skipped);
  }
  ms_tokenizer_run(&tokenizer, "one two three", tokens, small, sizeof small);
  check_ok(!strcmp(small, "one"), "a list that does not fit ends with a whole word: \"%s\"", small);
  ms_tokenizer_run(&tokenizer, "zebra a ZEBRA zebra zoo zebra", tokens, skipped, sizeof skipped);
  check_ok(!strcmp(skipped, "zebra, ZEBRA, zoo"), "an unknown word is told once: \"%s\"", skipped);
  ms_tokenizer_run(&tokenizer, "a a a a a a a a", tokens, skipped, sizeof skipped);
  check_ok(!skipped[0] && ms_tokenizer_left_out(&tokenizer, "a a a a a a a a") == 3 &&
               ms_tokenizer_left_out(&tokenizer, "a a zebra a a a") == 0,
           "known words without a slot are left out, not unknown");
  memset(long_word, 'x', sizeof long_word - 1);
  long_word[sizeof long_word - 1] = 0;
  check_ok(ms_tokenizer_run(&tokenizer, long_word, tokens, NULL, 0) == 1, "a long word is unknown");
  ms_tokenizer_release(&tokenizer);
  check_refused("{}", "text.vocabulary");
  check_refused("{\"vocabulary\": [\"<pad>\", \"a\"]}", "<bos>");
  check_refused("{\"vocabulary\": [\"<pad>\", \"<bos>\", \"a\", \"a\"]}", "twice");
  check_refused("{\"vocabulary\": [\"<pad>\", \"<bos>\", 3]}", "words only");
  check_refused("{\"vocabulary\": [\"<pad>\", \"<bos>\"], \"same\": {\"an\": \"a\"}}", "\"an\"");
  check_refused("{\"vocabulary\": [\"<pad>\", \"<bos>\"], \"length\": 0}", "text.length");
  return check_end();
}
