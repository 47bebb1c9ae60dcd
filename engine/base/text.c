#include "base/text.h"

#include <stdio.h>

const char *ms_text_printable(const char *name, char *text, size_t size) {
  size_t used = 0;
  for (; *name && used + 5 < size; name++) {
    unsigned char c = (unsigned char)*name;
    if (c == '\n')
      used += (size_t)snprintf(text + used, size - used, "\\n");
    else if (c < 32 || c == 127)
      used += (size_t)snprintf(text + used, size - used, "\\x%02x", c);
    else
      text[used++] = (char)c;
  }
  text[used] = 0;
  return text;
}
