/* Parameters as values and as JSON, also as somebody else's program may have written it. */
#include <math.h>
#include <string.h>

#include "harness.h"
#include "msa-error.h"
#include "msa-params.h"
#include "room.h"

static void check_round_trip(void) {
  g_autoptr(MsaGenerateParams) params = msa_generate_params_new();
  params->prompt = g_strdup("a \"red\" ball\n\xe2\x98\x83, 100 %");
  params->negative = g_strdup("");
  params->model = g_strdup("/a/b c");
  params->width = 16384;
  params->height = 64;
  params->frames = 97;
  params->steps = 24;
  params->fps = 23.976;
  params->guidance = 1.0 / 3;
  params->shift = 4;
  params->seed = 4294967295;
  params->sampler = g_strdup("unipc");
  params->attention = g_strdup("dsa");
  params->device = g_strdup("cpu");
  params->host_memory = (guint64)3 << 40;
  params->threads = 7;
  g_autofree char *json = msa_generate_params_to_json(params);
  g_autoptr(GError) error = NULL;
  g_autoptr(MsaGenerateParams) read = msa_generate_params_from_json(json, &error);
  check_ok(read && msa_generate_params_equal(params, read), "every setting of a clip comes back (%s)",
           error ? error->message : "no error");
  g_autoptr(MsaGenerateParams) copy = msa_generate_params_copy(params);
  check_ok(msa_generate_params_equal(copy, params) && copy->prompt != params->prompt,
           "a copy is equal and owns its texts");
  copy->seed--;
  check_ok(!msa_generate_params_equal(copy, params), "another seed is another clip");
  g_autoptr(MsaGenerateParams) empty = msa_generate_params_new();
  empty->prompt = g_strdup("x");
  g_autofree char *empty_json = msa_generate_params_to_json(empty);
  g_autoptr(MsaGenerateParams) empty_read = msa_generate_params_from_json(empty_json, NULL);
  check_ok(msa_generate_params_equal(empty, empty_read), "what was left to the model stays left to it");
}

static void check_train_round_trip(void) {
  g_autoptr(MsaTrainParams) params = msa_train_params_new();
  params->name = g_strdup("mine");
  params->dataset = g_strdup("/clips");
  params->sample_prompt = g_strdup("a ball");
  params->lr = 1e-4;
  params->steps = 12345678901;
  params->batch = 3;
  g_autofree char *json = msa_train_params_to_json(params);
  g_autoptr(MsaTrainParams) read = msa_train_params_from_json(json, NULL);
  g_autofree char *again = read ? msa_train_params_to_json(read) : NULL;
  check_ok(again && !strcmp(json, again) && read->steps == params->steps && read->lr == params->lr,
           "every setting of a run comes back");
}

/* What the command writes into a clip's comment. */
static void check_comment(void) {
  g_autoptr(MsaGenerateParams) params = msa_generate_params_from_json(
      "{\"program\": \"megaslide\", \"prompt\": \"p\", \"negative\": \"\", \"model\": \"starter\", \"seed\": "
      "9, "
      "\"steps\": 12, \"guidance\": 2.5, \"shift\": 4, \"sampler\": \"euler\", \"attention\": null, "
      "\"width\": 192, \"height\": 128, \"frames\": 17, \"fps\": 12.0}",
      NULL);
  check_ok(params && params->seed == 9 && params->width == 192 && !params->attention && params->shift == 4 &&
               params->guidance == 2.5,
           "the settings of the command are read, other keys are passed over");
}

static void check_hostile(void) {
  static const struct {
    const char *json, *named; /* in the sentence */
  } cases[] = {
      {NULL, "JSON"},
      {"", "JSON"},
      {"null", "JSON"},
      {"[]", "JSON"},
      {"\"prompt\"", "JSON"},
      {"{\"prompt\": \"a\"", "JSON"},
      {"{\"prompt\": \"a\"} x", "JSON"},
      {"{\"prompt\": \"a\", \"prompt\": \"b\"}", "JSON"},
      {"{\"prompt\": \"\\u0000\"}", "JSON"},
      {"{\"prompt\": \"\xff\"}", "JSON"},
      {"{}", "prompt"},
      {"{\"prompt\": 5}", "prompt"},
      {"{\"prompt\": null}", "prompt"},
      {"{\"prompt\": \"a\", \"width\": \"64\"}", "width"},
      {"{\"prompt\": \"a\", \"width\": -2}", "width"},
      {"{\"prompt\": \"a\", \"width\": 99999999999}", "width"},
      {"{\"prompt\": \"a\", \"height\": 64.5}", "height"},
      {"{\"prompt\": \"a\", \"frames\": true}", "frames"},
      {"{\"prompt\": \"a\", \"steps\": [1]}", "steps"},
      {"{\"prompt\": \"a\", \"fps\": -1}", "fps"},
      {"{\"prompt\": \"a\", \"guidance\": 1e300}", "guidance"},
      {"{\"prompt\": \"a\", \"seed\": 9223372036854775807}", "seed"},
      {"{\"prompt\": \"a\", \"host_memory\": -1}", "host_memory"},
      {"{\"prompt\": \"a\", \"sampler\": \"euler|unipc\"}", "sampler"},
      {"{\"prompt\": \"a\", \"sampler\": \"ddim\"}", "sampler"},
      {"{\"prompt\": \"a\", \"device\": \"toaster\"}", "device"},
      {"{\"prompt\": \"a\", \"model\": {}}", "model"},
  };
  for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
    g_autoptr(GError) error = NULL;
    g_autoptr(MsaGenerateParams) params = msa_generate_params_from_json(cases[i].json, &error);
    check_ok(!params && g_error_matches(error, MSA_ERROR, MSA_ERROR_INPUT) &&
                 strstr(error->message, cases[i].named),
             "refused, naming %s: %zu", cases[i].named, i);
  }
  GString *deep = g_string_new("{\"prompt\": \"a\", \"x\": ");
  for (int i = 0; i < 100000; i++)
    g_string_append_c(deep, '[');
  g_autoptr(MsaGenerateParams) params = msa_generate_params_from_json(deep->str, NULL);
  check_ok(!params, "a very deep text is refused");
  g_string_free(deep, TRUE);
  g_autoptr(GError) error = NULL;
  g_autoptr(MsaTrainParams) train = msa_train_params_from_json("{\"dataset\": \"d\", \"steps\": 0}", &error);
  check_ok(!train && strstr(error->message, "steps"), "a run of no steps is refused");
}

int main(int argc, char **argv) {
  room_begin(argc, argv);
  check_round_trip();
  check_train_round_trip();
  check_comment();
  check_hostile();
  return room_end();
}
