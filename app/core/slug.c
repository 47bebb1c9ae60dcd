#include "core/slug.h"

#include <glib.h>

char *msa_slug(const char *sentence, unsigned most, const char *otherwise) {
  GString *slug = g_string_new(NULL);
  g_autofree char *valid = g_utf8_make_valid(sentence ? sentence : "", -1);
  for (const char *p = valid; *p && slug->len < most; p = g_utf8_next_char(p)) {
    if (g_unichar_isalnum(g_utf8_get_char(p)))
      g_string_append_unichar(slug, g_unichar_tolower(g_utf8_get_char(p)));
    else if (slug->len && slug->str[slug->len - 1] != '-')
      g_string_append_c(slug, '-');
  }
  while (slug->len && slug->str[slug->len - 1] == '-')
    g_string_truncate(slug, slug->len - 1);
  if (!slug->len)
    g_string_assign(slug, otherwise);
  return g_string_free(slug, FALSE);
}
