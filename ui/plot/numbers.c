#include "plot/ticks.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

char *msu_number_whole(char text[MSU_NUMBER_ROOM], gint64 value) {
  /* the locale knows groups (Hindi has groups of two); the plain one has none, where a comma reads better */
  if (localeconv()->thousands_sep[0]) {
    snprintf(text, MSU_NUMBER_ROOM, "%'" G_GINT64_MODIFIER "d", value);
    return text;
  }
  char digits[24];
  int n = snprintf(digits, sizeof digits, "%" G_GUINT64_FORMAT,
                   value < 0 ? (guint64)0 - (guint64)value : (guint64)value);
  char *out = text;
  if (value < 0)
    *out++ = '-';
  for (int i = 0; i < n; i++) {
    if (i && (n - i) % 3 == 0)
      *out++ = ',';
    *out++ = digits[i];
  }
  *out = 0;
  return text;
}

static double byte_unit(double magnitude, double most, const char **name) {
  static const char *const names[] = {"B", "KB", "MB", "GB", "TB", "PB"};
  double unit = 1;
  int i = 0;
  while (magnitude >= most * unit && i < 5) {
    unit *= 1024;
    i++;
  }
  *name = names[i];
  return unit;
}

/* Large values are written in thousands, millions ...; the suffix is "" below 10,000. */
static double suffix_unit(double magnitude, const char **suffix) {
  static const char *const names[] = {"", "k", "M", "G", "T", "P"};
  double unit = 1;
  int i = 0;
  if (magnitude >= 9999.5)
    while (magnitude >= 999.5 * unit && i < 5) {
      unit *= 1000;
      i++;
    }
  *suffix = names[i];
  return unit;
}

/* 1.0e-05 as 1e-5. */
static void drop_zeros(char *text) {
  char *e = strchr(text, 'e');
  if (!e || !e[1])
    return;
  char *from = e + 2, *to = e + 1;
  if (e[1] == '-')
    to++;
  while (*from == '0' && from[1])
    from++;
  memmove(to, from, strlen(from) + 1);
  char *end = e;
  while (end - text > 2 && end[-1] == '0')
    end--;
  if (end != e && !g_ascii_isdigit(end[-1]))
    end--;
  memmove(end, e, strlen(e) + 1);
}

static int decimals_of(double step) {
  if (!(step > 0))
    return 0;
  int digits = 0;
  while (digits < 12 &&
         fabs(step * pow(10, digits) - round(step * pow(10, digits))) > 1e-6 * step * pow(10, digits))
    digits++;
  return digits;
}

char *msu_number_tick(char text[MSU_NUMBER_ROOM], double value, double step, double top, const char *unit) {
  const char *name = "", *space = "";
  /* a logarithmic scale spans too much for one power */
  double magnitude_of_unit = step > 0 ? fmax(fabs(top), fabs(value)) : fabs(value);
  double scale = 1;
  if (unit && !strcmp(unit, "B")) {
    scale = byte_unit(magnitude_of_unit, 1024, &name);
    space = " ";
  } else if (unit && !strcmp(unit, "%")) {
    scale = 0.01;
    name = "%";
    space = " ";
  } else {
    scale = suffix_unit(magnitude_of_unit, &name);
  }
  if (value == 0) {
    snprintf(text, MSU_NUMBER_ROOM, "0");
    return text;
  }
  double shown = value / scale, magnitude = fabs(shown);
  if (magnitude < 1e-3 || magnitude >= 1e7) {
    /* digits of the mantissa that tell neighbours apart */
    int digits = step > 0 ? (int)CLAMP(floor(log10(fabs(value))) - floor(log10(step)), 0, 8) : 0;
    snprintf(text, MSU_NUMBER_ROOM, "%.*e", digits, shown);
    drop_zeros(text);
    g_strlcat(text, space, MSU_NUMBER_ROOM);
    g_strlcat(text, name, MSU_NUMBER_ROOM);
    return text;
  }
  int decimals = step > 0 ? decimals_of(step / scale) : 0;
  if (!(step > 0))
    while (decimals < 6 && magnitude * pow(10, decimals) < 0.999)
      decimals++;
  if (!strcmp(name, "B") || (!name[0] && !decimals)) {
    char whole[MSU_NUMBER_ROOM];
    snprintf(text, MSU_NUMBER_ROOM, "%s%s%s", msu_number_whole(whole, (gint64)llround(shown)), space, name);
  } else {
    snprintf(text, MSU_NUMBER_ROOM, "%.*f%s%s", MIN(decimals, 6), shown, space, name);
  }
  return text;
}

char *msu_number_value(char text[MSU_NUMBER_ROOM], double value, const char *unit) {
  const char *name = "";
  double scale = 1;
  if (!isfinite(value)) {
    snprintf(text, MSU_NUMBER_ROOM, "-");
    return text;
  }
  gboolean bytes = unit && !strcmp(unit, "B"), percent = unit && !strcmp(unit, "%");
  if (bytes)
    scale = byte_unit(fabs(value), 1000, &name);
  else if (percent)
    scale = 0.01;
  else
    scale = suffix_unit(fabs(value), &name);
  double shown = value / scale, magnitude = fabs(shown);
  if (bytes && !strcmp(name, "B")) {
    snprintf(text, MSU_NUMBER_ROOM, "%.0f B", shown);
    return text;
  }
  if (magnitude != 0 && (magnitude < 1e-3 || magnitude >= 1e7)) {
    snprintf(text, MSU_NUMBER_ROOM, "%.3e", shown);
    drop_zeros(text);
  } else {
    int digits = magnitude == 0 ? 0 : (int)CLAMP(3 - floor(log10(magnitude)), 0, 6);
    if (bytes || percent)
      digits = MIN(digits, magnitude < 10 ? 2 : 1);
    if (digits == 0)
      msu_number_whole(text, (gint64)llround(shown));
    else
      snprintf(text, MSU_NUMBER_ROOM, "%.*f", digits, shown);
  }
  if (!bytes)
    g_strlcat(text, name, MSU_NUMBER_ROOM);
  if (unit) {
    g_strlcat(text, " ", MSU_NUMBER_ROOM);
    g_strlcat(text, bytes ? name : unit, MSU_NUMBER_ROOM);
  }
  return text;
}
