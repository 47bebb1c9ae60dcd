/* A model folder: what model.json must not say is refused by key and file, and weights that are no numbers by
 * tensor and place. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "harness.h"
#include "ms-models.h"
#include "scratch.h"
#include "tiny-model.h"
#include "weights/safetensors.h"

/* The configuration with one value replaced by another. */
static void check_refused(const char *from, const char *to, const char *key) {
  const size_t size = strlen(tiny_config) + 400;
  char *text = malloc(size);
  const char *at = strstr(tiny_config, from);
  struct ms_error error = {0};
  int code;
  if (!at) {
    check_ok(0, "the test names what is there: %s", from);
    free(text);
    return;
  }
  snprintf(text, size, "%.*s%s%s", (int)(at - tiny_config), tiny_config, to, at + strlen(from));
  scratch_put("model/model.json", text, strlen(text));
  code = ms_model_verify(scratch_path("model"), &error);
  check_ok(code == MS_EINPUT && strstr(error.message, key) && strstr(error.message, "model/model.json"),
           "%s is refused: %s", to, error.message);
  free(text);
}

static void check_text(const char *text, const char *says) {
  struct ms_error error = {0};
  int code;
  scratch_put("model/model.json", text, strlen(text));
  code = ms_model_verify(scratch_path("model"), &error);
  check_ok(code == MS_EINPUT && strstr(error.message, says) && strstr(error.message, "model/model.json") &&
               !strstr(error.message, "line -1"),
           "a description that %s: %s", says, error.message);
}

static void check_json(void) {
  check_text("", "is empty");
  check_text(" \n\t", "is empty");
  check_text("[1, 2]", "is not a JSON object");
  check_text("{\"dim\": 32,\n \"ffn\": }", "is not JSON: line 2");
  check_refused("\"megaslide-1\"", "1", "\"format\"");
  check_refused("\"megaslide-1\"", "\"megaslide-9\"", "\"format\"");
  check_refused("\"tiny\"", "7", "\"name\"");
  check_refused("[[32,32]]", "\"32x32\"", "\"sizes\"");
  check_refused("[[32,32]]", "[32,32]", "\"sizes\"");
  check_refused("[[32,32]]", "[[32,32], [32]]", "\"sizes\"");
  check_refused("[[32,32]]", "[[32.5,32]]", "\"sizes\"");
  check_refused("\"frames\": [9]", "\"frames\": 9", "\"frames\"");
  check_refused("\"frames\": [9]", "\"frames\": [0]", "\"frames\"");
  check_refused("\"fps\": 8", "\"fps\": \"8\"", "\"fps\"");
  check_refused("{\"sampler\": \"euler\", \"steps\": 9}", "[1]", "\"sampling\"");
  check_refused("\"steps\": 9", "\"steps\": \"9\"", "\"sampling.steps\"");
  check_refused("\"steps\": 9", "\"steps\": 9.5", "\"sampling.steps\"");
  check_refused("\"euler\"", "\"magic\"", "\"sampling.sampler\"");
  check_refused("\"euler\"", "3", "\"sampling.sampler\"");
  check_refused("\"text_len\": 8", "\"text_len\": 1", "\"text_len\"");
  check_refused("\"freq_dim\": 32", "\"freq_dim\": 31", "\"freq_dim\"");
  check_refused("\"heads\": 2, \"layers\": 2", "\"heads\": 3, \"layers\": 2", "\"heads\"");
  check_refused("\"dim\": 32, \"ffn\"", "\"dim\": 36, \"ffn\"", "\"heads\"");
  check_refused("\"in_channels\": 16", "\"in_channels\": 8", "\"in_channels\"");
  check_refused("\"out_channels\": 16", "\"out_channels\": 8", "\"out_channels\"");
  check_refused("\"text_dim\": 32", "\"text_dim\": 16", "\"text_dim\"");
  check_refused("{\"kind\": \"dense\"}", "{\"kind\": \"dsa\", \"window\": [1,3,3], \"groups\": 2}",
                "\"coarse_attention\"");
  check_refused("[0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]", "[0,0]", "\"latent_mean\"");
  check_refused("\"codec\": {", "\"codec\": 5, \"other\": {", "\"codec\"");
  check_refused("\"text\": {", "\"text\": [], \"other\": {", "\"text\"");
}

/* One value of one tensor of one file is overwritten. */
static void check_value(const char *file, const char *tensor, int64_t index, const void *value, size_t size,
                        const char *place) {
  struct ms_safetensors *in = NULL;
  struct ms_error error = {0};
  const struct ms_tensor_view *view;
  char path[600], *data = NULL, number[32];
  size_t bytes = 0, at;
  int code = ms_safetensors_open(&in, scratch_path(file), &error);
  view = code == 0 ? ms_safetensors_find(in, tensor) : NULL;
  check_ok(view && (int64_t)index < view->count, "there is %s: %s", tensor, error.message);
  snprintf(path, sizeof path, "%s", scratch_path(file));
  ms_file_read_all(path, 1 << 24, &data, &bytes, NULL);
  if (!view || !data)
    return;
  /* the header's size stands in the first eight bytes; the view tells where the tensor lies behind it */
  at = (size_t)((const char *)view->data - (const char *)ms_safetensors_at(in, 0)->data) + 8 +
       (size_t) * (const uint64_t *)(const void *)data + (size_t)index * size;
  ms_safetensors_close(&in);
  char *changed = malloc(bytes);
  memcpy(changed, data, bytes);
  memcpy(changed + at, value, size);
  scratch_put(file, changed, bytes);
  memset(&error, 0, sizeof error);
  code = ms_model_verify(scratch_path("model"), &error);
  snprintf(number, sizeof number, "index %lld", (long long)index);
  check_ok(code == MS_EINPUT && strstr(error.message, tensor) && strstr(error.message, number) &&
               strstr(error.message, place),
           "it is found: %s", error.message);
  scratch_put(file, data, bytes);
  free(changed);
  free(data);
}

static void check_values(void) {
  const uint16_t nan = 0x7fc1, infinity = 0x7f80, minus = 0xff80;
  struct ms_error error = {0};
  scratch_put("model/model.json", tiny_config, strlen(tiny_config));
  check_ok(ms_model_verify(scratch_path("model"), &error) == 0, "the model is whole: %s", error.message);
  check_value("model/dit.safetensors", "blocks.1.ffn.0.weight", 37, &nan, 2, "[1,5]");
  check_value("model/dit.safetensors", "blocks.0.self_attn.q.bias", 31, &infinity, 2, "[31]");
  check_value("model/codec.safetensors", "decoder.conv_out.weight", 9, &minus, 2, "[0,1,0,0]");
  memset(&error, 0, sizeof error);
  check_ok(ms_model_verify(scratch_path("model"), &error) == 0, "and is whole again: %s", error.message);
}

int main(int argc, char **argv) {
  struct ms_error error = {0};
  check_begin(argc, argv);
  scratch_begin();
  check_ok(tiny_model_make(&error) == 0, "a tiny model is made: %s", error.message);
  check_json();
  check_values();
  scratch_end();
  return check_end();
}
