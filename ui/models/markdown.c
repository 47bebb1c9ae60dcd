#include "models/markdown.h"

#include <string.h>

#define SUMMARY_PARAGRAPHS 2

enum kind { BLANK, HEADING, ITEM, TABLE, FENCE, RULE, PLAIN };

static enum kind kind_of(const char *line) {
  const char *start = line + strspn(line, " \t");
  const gsize length = strlen(start);
  if (!*start)
    return BLANK;
  if (g_str_has_prefix(start, "```"))
    return FENCE;
  if (*line == '#' && line[strspn(line, "#")] == ' ')
    return HEADING;
  if (*start == '|')
    return TABLE;
  if (length >= 3 && strspn(start, "-*_ ") == length)
    return RULE;
  if ((*start == '-' || *start == '*' || *start == '+') && start[1] == ' ')
    return ITEM;
  return PLAIN;
}

/* Puts a pair of tags around what stands between two marks. */
static gboolean wrap(GString *out, const char **from, const char *mark, const char *open, const char *close) {
  const gsize length = strlen(mark);
  const char *end;
  if (!g_str_has_prefix(*from, mark) || !(end = strstr(*from + length, mark)) || end == *from + length)
    return FALSE;
  g_autofree char *inside = g_strndup(*from + length, (gsize)(end - *from) - length);
  g_autofree char *escaped = g_markup_escape_text(inside, -1);
  g_string_append_printf(out, "%s%s%s", open, escaped, close);
  *from = end + length;
  return TRUE;
}

/* [words](address): the words; an address that can be opened becomes a link. */
static gboolean add_link(GString *out, const char **from) {
  const char *middle, *end;
  if (**from != '[' || !(middle = strstr(*from, "](")) || !(end = strchr(middle, ')')))
    return FALSE;
  g_autofree char *words = g_strndup(*from + 1, (gsize)(middle - *from) - 1);
  g_autofree char *address = g_strndup(middle + 2, (gsize)(end - middle) - 2);
  g_autofree char *markup = g_str_has_prefix(address, "https://")
                                ? g_markup_printf_escaped("<a href=\"%s\">%s</a>", address, words)
                                : g_markup_escape_text(words, -1);
  g_string_append(out, markup);
  *from = end + 1;
  return TRUE;
}

static char *inline_markup(const char *text) {
  GString *out = g_string_new(NULL);
  while (*text) {
    if (wrap(out, &text, "`", "<tt>", "</tt>") || wrap(out, &text, "**", "<b>", "</b>") ||
        add_link(out, &text))
      continue;
    const char *next = g_utf8_next_char(text);
    g_autofree char *escaped = g_markup_escape_text(text, next - text);
    g_string_append(out, escaped);
    text = next;
  }
  return g_string_free(out, FALSE);
}

static GtkWidget *text_label(const char *text) {
  GtkWidget *label = gtk_label_new(NULL);
  g_autofree char *markup = inline_markup(text);
  gtk_label_set_markup(GTK_LABEL(label), markup);
  gtk_label_set_wrap(GTK_LABEL(label), TRUE);
  gtk_label_set_wrap_mode(GTK_LABEL(label), PANGO_WRAP_WORD_CHAR);
  gtk_label_set_natural_wrap_mode(GTK_LABEL(label), GTK_NATURAL_WRAP_NONE);
  gtk_label_set_selectable(GTK_LABEL(label), TRUE);
  gtk_label_set_xalign(GTK_LABEL(label), 0);
  return label;
}

static void add_heading(GtkBox *box, const char *line) {
  const gsize level = strspn(line, "#");
  GtkWidget *label = text_label(line + level + strspn(line + level, " "));
  gtk_widget_add_css_class(label, level == 1 ? "title-3" : "heading");
  gtk_widget_set_margin_top(label, level == 1 ? 0 : 6);
  gtk_box_append(box, label);
}

static void add_item(GtkBox *box, const char *text) {
  GtkWidget *row = gtk_box_new(GTK_ORIENTATION_HORIZONTAL, 6), *dot = gtk_label_new("•"),
            *label = text_label(text);
  gtk_widget_set_valign(dot, GTK_ALIGN_START);
  gtk_widget_set_hexpand(label, TRUE);
  gtk_box_append(GTK_BOX(row), dot);
  gtk_box_append(GTK_BOX(row), label);
  gtk_box_append(box, row);
}

/* Cells of a row without their marks, NULL-terminated. */
static char **cells_of(const char *line) {
  g_autofree char *inner = g_strdup(line + strspn(line, " \t") + 1);
  g_strchomp(inner);
  if (g_str_has_suffix(inner, "|"))
    inner[strlen(inner) - 1] = 0;
  char **cells = g_strsplit(inner, "|", -1);
  for (char **cell = cells; *cell; cell++) {
    g_autofree char *markup = inline_markup(g_strstrip(*cell));
    char *plain = NULL;
    if (pango_parse_markup(markup, -1, 0, NULL, &plain, NULL, NULL)) {
      g_free(*cell);
      *cell = plain;
    }
  }
  return cells;
}

static gboolean is_separator(char **cells) {
  for (char **cell = cells; *cell; cell++)
    if (strspn(*cell, ":- ") != strlen(*cell))
      return FALSE;
  return TRUE;
}

/* Columns are lined up in a fixed-width font; numbers to the right would need more of a table than cards
 * have.
 */
static void add_table(GtkBox *box, GPtrArray *lines) {
  g_autoptr(GPtrArray) rows = g_ptr_array_new_with_free_func((GDestroyNotify)g_strfreev);
  g_autoptr(GArray) widths = g_array_new(FALSE, TRUE, sizeof(glong));
  g_autoptr(GString) text = g_string_new(NULL);
  for (guint i = 0; i < lines->len; i++) {
    char **cells = cells_of(lines->pdata[i]);
    if (is_separator(cells)) {
      g_strfreev(cells);
      continue;
    }
    g_ptr_array_add(rows, cells);
    for (guint c = 0; cells[c]; c++) {
      if (c >= widths->len)
        g_array_set_size(widths, c + 1);
      glong *width = &g_array_index(widths, glong, c);
      *width = MAX(*width, g_utf8_strlen(cells[c], -1));
    }
  }
  for (guint i = 0; i < rows->len; i++) {
    char **cells = rows->pdata[i];
    if (i)
      g_string_append_c(text, '\n');
    for (guint c = 0; cells[c]; c++) {
      g_string_append(text, cells[c]);
      for (glong n = g_utf8_strlen(cells[c], -1); cells[c + 1] && n < g_array_index(widths, glong, c) + 2;
           n++)
        g_string_append_c(text, ' ');
    }
  }
  GtkWidget *label = gtk_label_new(text->str), *scroller = gtk_scrolled_window_new();
  gtk_label_set_selectable(GTK_LABEL(label), TRUE);
  gtk_label_set_xalign(GTK_LABEL(label), 0);
  gtk_widget_add_css_class(label, "monospace");
  gtk_widget_add_css_class(scroller, "model-card-table");
  gtk_scrolled_window_set_policy(GTK_SCROLLED_WINDOW(scroller), GTK_POLICY_AUTOMATIC, GTK_POLICY_NEVER);
  gtk_scrolled_window_set_child(GTK_SCROLLED_WINDOW(scroller), label);
  gtk_box_append(box, scroller);
}

static void add_code(GtkBox *box, const char *text) {
  GtkWidget *label = gtk_label_new(text);
  gtk_label_set_selectable(GTK_LABEL(label), TRUE);
  gtk_label_set_wrap(GTK_LABEL(label), TRUE);
  gtk_label_set_wrap_mode(GTK_LABEL(label), PANGO_WRAP_CHAR);
  gtk_label_set_xalign(GTK_LABEL(label), 0);
  gtk_widget_add_css_class(label, "monospace");
  gtk_box_append(box, label);
}

/* Lines that belong together, from *line on, joined by spaces; *line becomes the one after them. */
static char *join(char **lines, guint *line) {
  GString *text = g_string_new(g_strstrip(lines[*line]));
  while (lines[++*line] && kind_of(lines[*line]) == PLAIN)
    g_string_append_printf(text, " %s", g_strstrip(lines[*line]));
  return g_string_free(text, FALSE);
}

static char *take_code(char **lines, guint *line) {
  GString *text = g_string_new(NULL);
  for (++*line; lines[*line] && kind_of(lines[*line]) != FENCE; ++*line)
    g_string_append_printf(text, "%s%s", text->len ? "\n" : "", lines[*line]);
  if (lines[*line])
    ++*line;
  return g_string_free(text, FALSE);
}

GtkWidget *msu_markdown_new(const char *text) {
  GtkWidget *box = gtk_box_new(GTK_ORIENTATION_VERTICAL, 8);
  g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
  for (guint i = 0; lines[i];) {
    const enum kind kind = kind_of(lines[i]);
    if (kind == HEADING) {
      add_heading(GTK_BOX(box), lines[i++]);
    } else if (kind == TABLE) {
      g_autoptr(GPtrArray) table = g_ptr_array_new();
      while (lines[i] && kind_of(lines[i]) == TABLE)
        g_ptr_array_add(table, lines[i++]);
      add_table(GTK_BOX(box), table);
    } else if (kind == FENCE) {
      g_autofree char *code = take_code(lines, &i);
      add_code(GTK_BOX(box), code);
    } else if (kind == ITEM) {
      g_autofree char *item = join(lines, &i);
      add_item(GTK_BOX(box), item + 2);
    } else if (kind == PLAIN) {
      g_autofree char *paragraph = join(lines, &i);
      gtk_box_append(GTK_BOX(box), text_label(paragraph));
    } else {
      i++;
    }
  }
  return box;
}

char *msu_markdown_summary(const char *text) {
  g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
  GString *summary = g_string_new(NULL);
  guint i = 0;
  for (int paragraphs = 0; lines[i] && paragraphs < SUMMARY_PARAGRAPHS;) {
    const enum kind kind = kind_of(lines[i]);
    if (kind == PLAIN) {
      g_autofree char *paragraph = join(lines, &i), *markup = inline_markup(paragraph);
      g_string_append_printf(summary, "%s%s", paragraphs++ ? "\n" : "", markup);
    } else if (kind == BLANK || (kind == HEADING && !paragraphs)) {
      i++;
    } else {
      break;
    }
  }
  return g_string_free(summary, FALSE);
}
