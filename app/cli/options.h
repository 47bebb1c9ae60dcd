/* Flags of a command as a table: read, checked and explained from the same lines.
 *
 *   static const struct msa_option options[] = {
 *     {"output", 'o', MSA_OPTION_TEXT, offsetof (struct args, output), .argument = "FILE", .help = "where the
 * clip goes"},
 *     {"steps", 0, MSA_OPTION_WHOLE, offsetof (struct args, steps), .argument = "N", .least = 1, .most =
 * 1000, .help = "..."}, {0}}; code = msa_options_parse (options, argc, argv, &args, positionals, room,
 * &count, &error);
 *
 * Understood: --flag value, --flag=value, -o value, -ovalue, and -- before values that begin with a dash. */
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include "ms-error.h"

enum msa_option_kind {
  MSA_OPTION_FLAG,   /* int: 1 if given */
  MSA_OPTION_TEXT,   /* const char *: not empty; points into argv */
  MSA_OPTION_WHOLE,  /* int64_t within least..most */
  MSA_OPTION_NUMBER, /* double within least..most */
  MSA_OPTION_BYTES,  /* size_t: a number with K, M or G (powers of 1024), above 0 */
  MSA_OPTION_FRAME,  /* int[2]: WIDTHxHEIGHT, even, least..most each */
  MSA_OPTION_CHOICE, /* const char *: one of `choices` */
};

struct msa_option {
  const char *name; /* without dashes; NULL ends the table */
  char letter;      /* or 0 */
  enum msa_option_kind kind;
  size_t offset; /* of the value in the command's arguments */
  const char *argument, *help;
  double least, most;
  const char *choices; /* "euler|unipc|dpmpp" */
};

/* Values of flags that are not given stay as they are. Positional arguments are written to positionals[room].
 * Returns 0, 1 if --help is among the flags (nothing else counts then), or MS_EUSAGE: unknown flag (with the
 * nearest known one), missing or bad value, too many arguments. */
int msa_options_parse(const struct msa_option *options, int argc, char **argv, void *args,
                      const char **positionals, int room, int *count, struct ms_error *error);
/* One line a flag, for --help. */
void msa_options_print(const struct msa_option *options, FILE *to);
/* "1.5G", "800M", "4096" to bytes; 0 or MS_EUSAGE. */
int msa_parse_bytes(const char *text, size_t *bytes);
/* Of `words` (NULL last) the one that `word` most resembles, or NULL if none is near. `step` pointers lie
 * between words. */
const char *msa_nearest_word(const char *word, const char *const *words, size_t count);
