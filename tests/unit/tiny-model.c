#include "tiny-model.h"

#include <string.h>

#include "ms-models.h"
#include "scratch.h"

const char tiny_config[] =
    "{\"format\": \"megaslide-1\", \"name\": \"tiny\", \"dim\": 32, \"ffn\": 64, \"heads\": 2, \"layers\": 2,"
    " \"in_channels\": 16, \"out_channels\": 16, \"patch\": [1,2,2], \"text_dim\": 32, \"text_len\": 8,"
    " \"freq_dim\": 32, \"eps\": 1e-6, \"positions\": \"short-side\", \"coordinate_features\": true,"
    " \"pooled_text\": true,"
    " \"attention\": {\"kind\": \"dsa\", \"mode\": \"point\", \"window\": [3,3,3], \"bounds\": [1,2,2],"
    " \"groups\": 2},"
    " \"coarse_attention\": {\"kind\": \"dense\"},"
    " \"codec\": {\"kind\": \"pack\", \"strides\": [4,8,8], \"channels\": 16, \"encoder\": [16,16],"
    " \"decoder\": [16,16]},"
    " \"text\": {\"kind\": \"words\", \"dim\": 32, \"layers\": 1, \"heads\": 2, \"ffn\": 32, \"length\": 8,"
    " \"vocabulary\": [\"<pad>\", \"<bos>\", \"up\", \"down\"]},"
    " \"latent_mean\": [0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0],"
    " \"sampling\": {\"sampler\": \"euler\", \"steps\": 9},"
    " \"fps\": 8, \"sizes\": [[32,32]], \"frames\": [9]}";

int tiny_model_make(struct ms_error *error) {
  const struct ms_machine machine = {.data_folder = "."};
  scratch_put("tiny.json", tiny_config, strlen(tiny_config));
  return ms_model_create(scratch_path("tiny.json"), scratch_path("model"), 3, &machine, NULL, error);
}
