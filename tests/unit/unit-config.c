/* The DiT's configuration in JSON: defaults, lists of attentions, writing and reading back, and what is
 * refused by name. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "model/config.h"

#define PLAIN "\"dim\": 64, \"ffn\": 128, \"heads\": 8, \"layers\": 3, \"in_channels\": 16, \"text_dim\": 32"

static int read_text(const char *text, struct ms_dit_config *config, struct ms_error *error) {
  json_t *root = json_loads(text, 0, NULL);
  int code;
  memset(error, 0, sizeof *error);
  code = ms_dit_config_read(config, root, error);
  json_decref(root);
  return code;
}

static void check_refused(const char *text, const char *key) {
  struct ms_dit_config *config = calloc(1, sizeof *config);
  struct ms_error error;
  int code = read_text(text, config, &error);
  check_ok(code == MS_EINPUT && strstr(error.message, key), "%s is refused: %s", key, error.message);
  free(config);
}

static void check_plain(void) {
  struct ms_dit_config *c = calloc(1, sizeof *c);
  struct ms_error error;
  check_ok(read_text("{" PLAIN "}", c, &error) == 0, "a plain configuration is read");
  check_ok(c->out_channels == 16 && c->patch[0] == 1 && c->patch[1] == 2 && c->patch[2] == 2 &&
               c->text_len == 512 && c->freq_dim == 256 && c->eps == 1e-6f &&
               c->positions == MS_POSITIONS_INTEGER && !c->pooled_text && !c->coordinate_features,
           "what is absent is as in Wan");
  check_ok(c->attention[2].kind == MS_ATTENTION_DENSE && c->coarse_attention[2].kind == MS_ATTENTION_DENSE,
           "attention is dense");
  free(c);
}

static void check_attention(void) {
  struct ms_dit_config *c = calloc(1, sizeof *c);
  struct ms_error error;
  check_ok(read_text("{" PLAIN
                     ", \"attention\": {\"kind\": \"dsa\", \"mode\": \"shift\", \"window\": [3,5,5]},"
                     " \"coarse_attention\": {\"kind\": \"dense\"}}",
                     c, &error) == 0,
           "one object for all layers is read");
  check_ok(c->attention[1].kind == MS_ATTENTION_DSA && c->attention[1].mode == MSK_SLIDE_SHIFT &&
               c->attention[1].window[2] == 5 && c->attention[1].bounds[1] == 4 &&
               c->attention[1].groups == 4 && c->coarse_attention[1].kind == MS_ATTENTION_DENSE,
           "with its defaults, and the coarse one beside it");
  check_ok(
      read_text("{" PLAIN
                ", \"attention\": {\"layers\": [{\"kind\": \"dense\"}, {\"kind\": \"window\", \"window\":"
                " [2,4,4]}, {\"kind\": \"dsa\", \"groups\": 2, \"bounds\": [0.5, 2, 3]}]}}",
                c, &error) == 0,
      "a list of objects is read");
  check_ok(c->attention[0].kind == MS_ATTENTION_DENSE && c->attention[1].window[1] == 4 &&
               c->attention[2].groups == 2 && c->attention[2].bounds[0] == 0.5f &&
               c->coarse_attention[1].kind == MS_ATTENTION_WINDOW,
           "in order, and coarse attention is the same where it is absent");
  free(c);
}

static void check_round_trip(void) {
  struct ms_dit_config *a = calloc(1, sizeof *a), *b = calloc(1, sizeof *b);
  struct ms_error error;
  json_t *root;
  read_text(
      "{" PLAIN
      ", \"positions\": \"short-side\", \"coordinate_features\": true, \"pooled_text\": true, \"eps\": 1e-5,"
      " \"out_channels\": 8, \"attention\": [{\"kind\": \"dense\"}, {\"kind\": \"dsa\"}, {\"kind\": "
      "\"window\"}],"
      " \"coarse_attention\": {\"kind\": \"dense\"}}",
      a, &error);
  root = ms_dit_config_write(a);
  check_ok(root && ms_dit_config_read(b, root, &error) == 0 && !memcmp(a, b, sizeof *a),
           "what is written reads back the same");
  json_decref(root);
  free(a);
  free(b);
}

int main(int argc, char **argv) {
  check_begin(argc, argv);
  check_plain();
  check_attention();
  check_round_trip();
  check_refused("[]", "object");
  check_refused("{\"dim\": 64}", "\"ffn\"");
  check_refused("{" PLAIN ", \"dim\": \"64\"}", "\"dim\"");
  check_refused("{" PLAIN ", \"layers\": 100000}", "\"layers\"");
  check_refused("{" PLAIN ", \"text_len\": 9000000000000000000}", "\"text_len\"");
  check_refused("{" PLAIN ", \"patch\": [1,2]}", "\"patch\"");
  check_refused("{" PLAIN ", \"eps\": true}", "\"eps\"");
  check_refused("{" PLAIN ", \"positions\": \"polar\"}", "\"positions\"");
  check_refused("{" PLAIN ", \"pooled_text\": 1}", "\"pooled_text\"");
  check_refused("{" PLAIN ", \"attention\": {\"kind\": \"sparse\"}}", "\"attention.kind\"");
  check_refused("{" PLAIN ", \"attention\": \"dense\"}", "\"attention\"");
  check_refused("{" PLAIN ", \"attention\": [{\"kind\": \"dense\"}]}", "\"attention\"");
  check_refused("{" PLAIN ", \"attention\": {\"kind\": \"dsa\", \"groups\": 3}}", "\"attention.groups\"");
  check_refused("{" PLAIN ", \"attention\": {\"kind\": \"dsa\", \"window\": [100,100,100]}}",
                "\"attention.window\"");
  check_refused("{" PLAIN ", \"attention\": {\"kind\": \"dsa\", \"bounds\": [0,1,1]}}",
                "\"attention.bounds\"");
  check_refused("{" PLAIN
                ", \"attention\": [{\"kind\": \"dense\"}, {\"kind\": \"dsa\", \"mode\": \"bend\"}, {}]}",
                "\"attention[1].mode\"");
  return check_end();
}
