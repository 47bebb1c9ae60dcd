#include "options.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST_NEAR 32 /* longer words are not compared */

/* Levenshtein distance of two short words. */
static int word_distance(const char *a, const char *b) {
  int row[MOST_NEAR + 1];
  const int n = (int)strlen(b);
  for (int j = 0; j <= n; j++)
    row[j] = j;
  for (int i = 1; a[i - 1]; i++) {
    int corner = row[0];
    row[0] = i;
    for (int j = 1; j <= n; j++) {
      int above = row[j], best = corner + (a[i - 1] != b[j - 1]);
      best = best < above + 1 ? best : above + 1;
      row[j] = best < row[j - 1] + 1 ? best : row[j - 1] + 1;
      corner = above;
    }
  }
  return row[n];
}

const char *msa_nearest_word(const char *word, const char *const *words, size_t count) {
  const char *nearest = NULL;
  int least = (int)strlen(word) / 2 + 1;
  least = least < 4 ? least : 4;
  for (size_t i = 0; i < count; i++) {
    if (strlen(words[i]) > MOST_NEAR)
      continue;
    int distance = word_distance(word, words[i]);
    if (distance < least) {
      least = distance;
      nearest = words[i];
    }
  }
  return nearest;
}

int msa_parse_bytes(const char *text, size_t *bytes) {
  char *end;
  double unit = 1;
  errno = 0;
  double value = strtod(text, &end);
  if (end == text || errno || !isfinite(value))
    return MS_EUSAGE;
  switch (*end) {
  case 'k':
  case 'K':
    unit = 1024;
    break;
  case 'm':
  case 'M':
    unit = 1024.0 * 1024;
    break;
  case 'g':
  case 'G':
    unit = 1024.0 * 1024 * 1024;
    break;
  case 'B':
  case 0:
    break;
  default:
    return MS_EUSAGE;
  }
  if (*end && *end != 'B')
    end++;
  if (!strcmp(end, "B") || !strcmp(end, "iB"))
    end += strlen(end);
  value *= unit;
  if (*end || value < 1 || value > 0x1p60)
    return MS_EUSAGE;
  *bytes = (size_t)value;
  return 0;
}

static int read_whole(const struct msa_option *option, const char *text, int64_t *value,
                      struct ms_error *error) {
  char *end;
  errno = 0;
  long long whole = strtoll(text, &end, 10);
  if (end == text || *end || (errno && errno != ERANGE))
    return ms_error_set(error, MS_EUSAGE, "--%s wants a whole number, not \"%s\"", option->name, text);
  /* as whole numbers: the greatest ones are beyond what a double tells apart */
  if (errno || whole < (long long)option->least || whole > (long long)option->most)
    return ms_error_set(error, MS_EUSAGE, "--%s %s is out of range: at least %.0f, at most %.0f",
                        option->name, text, option->least, option->most);
  *value = whole;
  return 0;
}

static int read_number(const struct msa_option *option, const char *text, double *value,
                       struct ms_error *error) {
  char *end;
  errno = 0;
  double number = strtod(text, &end);
  if (end == text || *end || errno == ERANGE || !isfinite(number))
    return ms_error_set(error, MS_EUSAGE, "--%s wants a number, not \"%s\"", option->name, text);
  if (number < option->least || number > option->most)
    return ms_error_set(error, MS_EUSAGE, "--%s %s is out of range: at least %g, at most %g", option->name,
                        text, option->least, option->most);
  *value = number;
  return 0;
}

/* Digits alone: strtol would also take spaces and signs. */
static int read_side(const char **at, long *side) {
  char *end;
  if (**at < '0' || **at > '9')
    return 0;
  errno = 0;
  *side = strtol(*at, &end, 10);
  *at = end;
  return !errno;
}

static int read_frame(const struct msa_option *option, const char *text, int frame[2],
                      struct ms_error *error) {
  long side[2];
  const char *at = text;
  int good = read_side(&at, &side[0]) && (*at == 'x' || *at == 'X');
  if (good) {
    at++;
    good = read_side(&at, &side[1]) && !*at;
  }
  if (!good)
    return ms_error_set(error, MS_EUSAGE, "--%s wants WIDTHxHEIGHT, e.g. 192x128, not \"%s\"", option->name,
                        text);
  for (int i = 0; i < 2; i++) {
    if (side[i] < option->least || side[i] > option->most)
      return ms_error_set(error, MS_EUSAGE, "--%s %s: each side must be at least %.0f and at most %.0f",
                          option->name, text, option->least, option->most);
    if (side[i] % 2)
      return ms_error_set(error, MS_EUSAGE,
                          "--%s %s: both sides must be even, since video stores colour for pairs of pixels",
                          option->name, text);
    frame[i] = (int)side[i];
  }
  return 0;
}

static int read_choice(const struct msa_option *option, const char *text, const char **value,
                       struct ms_error *error) {
  const size_t n = strlen(text);
  for (const char *at = option->choices; at; at = strchr(at, '|') ? strchr(at, '|') + 1 : NULL)
    if (n && !strncmp(at, text, n) && (at[n] == '|' || !at[n])) {
      *value = text;
      return 0;
    }
  return ms_error_set(error, MS_EUSAGE, "--%s \"%s\" is not one of %s", option->name, text, option->choices);
}

static int read_value(const struct msa_option *option, const char *text, void *args, struct ms_error *error) {
  void *value = (char *)args + option->offset;
  switch (option->kind) {
  case MSA_OPTION_FLAG:
    *(int *)value = 1;
    return 0;
  case MSA_OPTION_TEXT:
    if (!*text)
      return ms_error_set(error, MS_EUSAGE, "--%s is empty", option->name);
    *(const char **)value = text;
    return 0;
  case MSA_OPTION_WHOLE:
    return read_whole(option, text, value, error);
  case MSA_OPTION_NUMBER:
    return read_number(option, text, value, error);
  case MSA_OPTION_BYTES:
    if (msa_parse_bytes(text, value) < 0)
      return ms_error_set(error, MS_EUSAGE, "--%s wants a size such as 800M or 4G, not \"%s\"", option->name,
                          text);
    return 0;
  case MSA_OPTION_FRAME:
    return read_frame(option, text, value, error);
  case MSA_OPTION_CHOICE:
    return read_choice(option, text, value, error);
  }
  return MS_EFAULT;
}

static const struct msa_option *find_option(const struct msa_option *options, const char *name, size_t n) {
  for (; options->name; options++)
    if (strlen(options->name) == n && !strncmp(options->name, name, n))
      return options;
  return NULL;
}

static int unknown_option(const struct msa_option *options, const char *flag, size_t n,
                          struct ms_error *error) {
  const char *names[64];
  char word[MOST_NEAR + 1] = "";
  size_t count = 0;
  for (; options->name && count < 64; options++)
    names[count++] = options->name;
  memcpy(word, flag, n < MOST_NEAR ? n : MOST_NEAR);
  const char *nearest = msa_nearest_word(word, names, count);
  if (nearest)
    return ms_error_set(error, MS_EUSAGE, "there is no flag --%s; did you mean --%s?", word, nearest);
  return ms_error_set(error, MS_EUSAGE, "there is no flag --%s", word);
}

/* A flag at argv[*at]; moves *at to the last argument that it used. */
static int read_flag(const struct msa_option *options, int argc, char **argv, int *at, void *args,
                     struct ms_error *error) {
  const char *flag = argv[*at], *value = NULL;
  const struct msa_option *option = NULL;
  if (flag[1] == '-') {
    const size_t n = strcspn(flag + 2, "=");
    option = find_option(options, flag + 2, n);
    if (!option)
      return unknown_option(options, flag + 2, n, error);
    if (flag[2 + n])
      value = flag + 3 + n;
  } else {
    for (const struct msa_option *o = options; o->name && !option; o++)
      if (o->letter == flag[1])
        option = o;
    if (!option)
      return ms_error_set(error, MS_EUSAGE, "there is no flag -%c", flag[1]);
    if (flag[2])
      value = flag + 2;
  }
  if (option->kind == MSA_OPTION_FLAG) {
    if (value)
      return ms_error_set(error, MS_EUSAGE, "--%s takes no value", option->name);
  } else if (!value) {
    if (*at + 1 >= argc)
      return ms_error_set(error, MS_EUSAGE, "--%s wants a value: %s", option->name, option->argument);
    value = argv[++*at];
  }
  return read_value(option, value, args, error);
}

int msa_options_parse(const struct msa_option *options, int argc, char **argv, void *args,
                      const char **positionals, int room, int *count, struct ms_error *error) {
  int only_values = 0;
  *count = 0;
  for (int i = 0; i < argc && strcmp(argv[i], "--"); i++)
    if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h"))
      return 1;
  for (int i = 0; i < argc; i++) {
    if (!only_values && !strcmp(argv[i], "--")) {
      only_values = 1;
    } else if (!only_values && argv[i][0] == '-' && argv[i][1]) {
      int status = read_flag(options, argc, argv, &i, args, error);
      if (status < 0)
        return status;
    } else if (*count == room) {
      return ms_error_set(error, MS_EUSAGE, "\"%s\" is one argument too many%s", argv[i],
                          room == 1 ? "; is a text with spaces missing its quotes?" : "");
    } else {
      positionals[(*count)++] = argv[i];
    }
  }
  return 0;
}

void msa_options_print(const struct msa_option *options, FILE *to) {
  const int column = 30;
  for (; options->name; options++) {
    int n = options->letter ? fprintf(to, "  -%c, --%s", options->letter, options->name)
                            : fprintf(to, "      --%s", options->name);
    if (options->kind == MSA_OPTION_CHOICE)
      n += fprintf(to, " %s", options->choices);
    else if (options->kind != MSA_OPTION_FLAG)
      n += fprintf(to, " %s", options->argument);
    if (n > column - 2)
      n = fprintf(to, "\n") - 1;
    fprintf(to, "%*s%s\n", column - n, "", options->help);
  }
}
