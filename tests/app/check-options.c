/* Flags of the command line: what is read, what is refused, and that nothing changes on refusal. */
#include "options.h"

#include <string.h>

#include "harness.h"

struct args {
  const char *output, *sampler;
  int64_t steps;
  double guidance;
  size_t memory;
  int size[2], json;
};

static const struct msa_option options[] = {
    {"output", 'o', MSA_OPTION_TEXT, offsetof(struct args, output), .argument = "FILE", .help = ""},
    {"sampler", 0, MSA_OPTION_CHOICE, offsetof(struct args, sampler), .choices = "euler|unipc", .help = ""},
    {"steps", 0, MSA_OPTION_WHOLE, offsetof(struct args, steps), .argument = "N", .help = "", .least = 1,
     .most = 100},
    {"guidance", 0, MSA_OPTION_NUMBER, offsetof(struct args, guidance), .argument = "G", .help = "",
     .most = 10},
    {"memory", 0, MSA_OPTION_BYTES, offsetof(struct args, memory), .argument = "SIZE", .help = ""},
    {"size", 0, MSA_OPTION_FRAME, offsetof(struct args, size), .argument = "WxH", .help = "", .least = 64,
     .most = 8192},
    {"json", 0, MSA_OPTION_FLAG, offsetof(struct args, json), .help = ""},
    {0},
};

/* Parses a line of words; up to two of them may be positional. */
static int parse(const char *line, struct args *args, const char *positionals[2], int *count,
                 struct ms_error *error) {
  static char words[256]; /* values point into it */
  char *argv[32];
  int argc = 0;
  snprintf(words, sizeof words, "%s", line);
  for (char *word = strtok(words, " "); word && argc < 32; word = strtok(NULL, " "))
    argv[argc++] = word;
  memset(args, 0, sizeof *args);
  memset(error, 0, sizeof *error);
  return msa_options_parse(options, argc, argv, args, positionals, 2, count, error);
}

static void check_good(void) {
  struct args a;
  struct ms_error error;
  const char *positionals[2];
  int count;
  int code = parse(
      "one --steps 5 --guidance=2.5 -o out.mp4 two --size 1920x1080 --json --memory=1.5G --sampler unipc", &a,
      positionals, &count, &error);
  check_ok(code == 0 && a.steps == 5 && a.guidance == 2.5 && a.json == 1, "numbers and flags");
  check_ok(code == 0 && !strcmp(a.output, "out.mp4") && !strcmp(a.sampler, "unipc"), "texts and choices");
  check_ok(a.size[0] == 1920 && a.size[1] == 1080 && a.memory == 3 * (size_t)536870912, "frames and bytes");
  check_ok(count == 2 && !strcmp(positionals[0], "one") && !strcmp(positionals[1], "two"),
           "what is no flag stays in order");
  code = parse("-oout.mp4 -- --steps -x", &a, positionals, &count, &error);
  check_ok(code == 0 && !strcmp(a.output, "out.mp4") && count == 2 && !strcmp(positionals[0], "--steps"),
           "-- ends the flags");
  check_ok(parse("--nonsense --help", &a, positionals, &count, &error) == 1, "help comes before everything");
  check_ok(parse("-- --help", &a, positionals, &count, &error) == 0 && count == 1, "but not after --");
}

static void check_bad(void) {
  static const char *const lines[] = {
      "--steps",      "--steps 0",     "--steps 101",      "--steps 5x",       "--steps 99999999999999999999",
      "--steps=",     "--guidance -1", "--guidance nan",   "--guidance 1e999", "--size 64",
      "--size 63x64", "--size 62x64",  "--size 64x64x64",  "--size 64x9000",   "--size -64x64",
      "--sampler eu", "--sampler=",    "--sampler=euler|", "--json=1",         "--memory 0",
      "--memory -5M", "--memory 3T",   "--memory 1GG",     "--memory inf",     "-x",
      "--stepz 3",    "one two three", "--output=",
  };
  const int n = sizeof lines / sizeof lines[0];
  for (int i = 0; i < n; i++) {
    struct args a;
    struct ms_error error;
    const char *positionals[2];
    int count, code = parse(lines[i], &a, positionals, &count, &error);
    check_ok(code == MS_EUSAGE && error.message[0], "\"%s\" is refused: %s", lines[i], error.message);
  }
}

static void check_bytes_of(const char *text, size_t want) {
  size_t bytes = 7;
  int code = msa_parse_bytes(text, &bytes);
  check_ok(want ? code == 0 && bytes == want : code < 0 && bytes == 7, "\"%s\" is %zu bytes", text, want);
}

int main(int argc, char **argv) {
  static const char *const words[] = {"generate", "train", "models"};
  check_begin(argc, argv);
  check_good();
  check_bad();
  check_bytes_of("4096", 4096);
  check_bytes_of("2k", 2048);
  check_bytes_of("1.5M", 1572864);
  check_bytes_of("3GB", (size_t)3 << 30);
  check_bytes_of("3GiB", (size_t)3 << 30);
  check_bytes_of("", 0);
  check_bytes_of("G", 0);
  check_bytes_of("1e30", 0);
  check_ok(msa_nearest_word("trian", words, 3) == words[1], "\"trian\" resembles \"train\"");
  check_ok(!msa_nearest_word("xyzzy", words, 3), "\"xyzzy\" resembles nothing");
  return check_end();
}
