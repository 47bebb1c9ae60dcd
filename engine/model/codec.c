#include "model/codec-net.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_WIDTH 4096

static int read_numbers(const json_t *config, const char *key, int n, const int *fallback, int64_t *out,
                        struct ms_error *error) {
  const json_t *list = json_object_get(config, key);
  if (!list) {
    for (int i = 0; i < n; i++)
      out[i] = fallback[i];
    return 0;
  }
  if (!json_is_array(list) || json_array_size(list) != (size_t)n)
    return ms_error_set(error, MS_EINPUT, "\"codec.%s\" must be a list of %d numbers", key, n);
  for (int i = 0; i < n; i++) {
    const json_t *item = json_array_get(list, (size_t)i);
    if (!json_is_integer(item) || json_integer_value(item) < 1 || json_integer_value(item) > MAX_WIDTH)
      return ms_error_set(error, MS_EINPUT, "\"codec.%s\" must hold whole numbers from 1 to %d", key,
                          MAX_WIDTH);
    out[i] = json_integer_value(item);
  }
  return 0;
}

static int read_config(struct ms_codec *codec, const json_t *config, struct ms_error *error) {
  static const int strides_default[3] = {4, 8, 8}, encoder_default[2] = {48, 96},
                   decoder_default[2] = {128, 64};
  const json_t *kind = json_object_get(config, "kind"), *channels = json_object_get(config, "channels");
  int64_t strides[3];
  int result;
  if (!json_is_object(config))
    return ms_error_set(error, MS_EINPUT, "\"codec\" is missing or not an object");
  if (kind && (!json_is_string(kind) || strcmp(json_string_value(kind), "pack")))
    return ms_error_set(error, MS_EINPUT, "\"codec.kind\" must be \"pack\"");
  if (channels && (!json_is_integer(channels) || json_integer_value(channels) < 4 ||
                   json_integer_value(channels) > MAX_WIDTH))
    return ms_error_set(error, MS_EINPUT, "\"codec.channels\" must be a whole number from 4 to %d",
                        MAX_WIDTH);
  codec->channels = channels ? (int)json_integer_value(channels) : 16;
  if ((result = read_numbers(config, "strides", 3, strides_default, strides, error)) < 0 ||
      (result = read_numbers(config, "encoder", 2, encoder_default, codec->encoder, error)) < 0 ||
      (result = read_numbers(config, "decoder", 2, decoder_default, codec->decoder, error)) < 0)
    return result;
  if (strides[0] > 16 || strides[1] > 64 || strides[1] % 2 || strides[1] != strides[2])
    return ms_error_set(
        error, MS_EINPUT,
        "\"codec.strides\" must be [time, space, space] with time at most 16 and space even and at most 64");
  for (int i = 0; i < 3; i++)
    codec->strides[i] = (int)strides[i];
  codec->fold = codec->strides[1] / 2;
  codec->packed = (int64_t)codec->strides[0] * codec->fold * codec->fold * 3;
  return 0;
}

static int list_norm(struct ms_codec_norm *norm, struct ms_params *params, const char *name, int64_t c) {
  char text[96];
  snprintf(text, sizeof text, "%s.gamma", name);
  norm->c = c;
  norm->gamma = ms_params_add(params, text, 1, &c);
  if (norm->gamma < 0)
    return norm->gamma;
  params->list[norm->gamma].start = MS_START_ONE;
  return 0;
}

static int list_res(struct ms_codec_res *res, struct ms_params *params, const char *name, int64_t c) {
  char text[80];
  int bad = 0;
  snprintf(text, sizeof text, "%s.norm1", name);
  bad |= list_norm(&res->norm1, params, text, c);
  snprintf(text, sizeof text, "%s.conv1", name);
  bad |= ms_conv_list(&res->conv1, params, text, c, c, 0, 3, 3, 1, 1);
  snprintf(text, sizeof text, "%s.norm2", name);
  bad |= list_norm(&res->norm2, params, text, c);
  snprintf(text, sizeof text, "%s.conv2", name);
  bad |= ms_conv_list(&res->conv2, params, text, c, c, 0, 3, 3, 1, 1);
  return bad;
}

static int list_temporal(struct ms_codec_temporal *temporal, struct ms_params *params, const char *name,
                         int64_t c) {
  char text[80];
  int bad = 0;
  snprintf(text, sizeof text, "%s.norm", name);
  bad |= list_norm(&temporal->norm, params, text, c);
  snprintf(text, sizeof text, "%s.mix", name);
  bad |= ms_conv_list(&temporal->mix, params, text, c, c, 3, 1, 1, 1, 0);
  if (!bad)
    params->list[temporal->mix.weight].start = MS_START_ZERO;
  return bad;
}

static int list_parameters(struct ms_codec *codec) {
  struct ms_params *params = &codec->params;
  int64_t c0 = codec->encoder[0], c1 = codec->encoder[1], d0 = codec->decoder[0], d1 = codec->decoder[1];
  int bad = 0;
  bad |= ms_conv_list(&codec->enc.in, params, "encoder.conv_in", c0, codec->packed, 0, 3, 3, 1, 1);
  bad |= list_res(&codec->enc.res1, params, "encoder.res1", c0);
  bad |= ms_conv_list(&codec->enc.down, params, "encoder.down", c1, c0, 0, 3, 3, 2, 1);
  bad |= list_res(&codec->enc.res2, params, "encoder.res2", c1);
  bad |= list_temporal(&codec->enc.temporal, params, "encoder.temporal", c1);
  bad |= list_norm(&codec->enc.norm, params, "encoder.norm_out", c1);
  bad |= ms_conv_list(&codec->enc.out, params, "encoder.conv_out", codec->channels, c1, 0, 3, 3, 1, 1);
  bad |= ms_conv_list(&codec->dec.in, params, "decoder.conv_in", d0, codec->channels, 0, 3, 3, 1, 1);
  bad |= list_temporal(&codec->dec.temporal, params, "decoder.temporal", d0);
  bad |= list_res(&codec->dec.res1, params, "decoder.res1", d0);
  bad |= ms_conv_list(&codec->dec.up, params, "decoder.up", 4 * d1, d0, 0, 1, 1, 1, 1);
  bad |= list_res(&codec->dec.res2, params, "decoder.res2", d1);
  bad |= list_res(&codec->dec.res3, params, "decoder.res3", d1);
  bad |= list_norm(&codec->dec.norm, params, "decoder.norm_out", d1);
  bad |= ms_conv_list(&codec->dec.out, params, "decoder.conv_out", codec->packed, d1, 0, 3, 3, 1, 1);
  if (!bad)
    params->list[codec->dec.out.weight].start_scale = 0.1f;
  return bad;
}

int ms_codec_open(struct ms_codec **out, struct ms_compute *compute, const json_t *config,
                  struct ms_error *error) {
  struct ms_codec *codec = calloc(1, sizeof *codec);
  int result = 0;
  *out = NULL;
  if (!codec)
    return ms_error_set(error, MS_ENOMEM, "out of memory while opening the codec");
  codec->compute = compute;
  ms_params_init(&codec->params);
  if ((result = read_config(codec, config, error)) < 0)
    goto fail;
  codec->mean = calloc((size_t)codec->channels, sizeof *codec->mean);
  codec->std = calloc((size_t)codec->channels, sizeof *codec->std);
  if (!codec->mean || !codec->std || list_parameters(codec)) {
    result = ms_error_set(error, MS_ENOMEM, "out of memory while opening the codec");
    goto fail;
  }
  ms_codec_set_scale(codec, NULL, NULL);
  *out = codec;
  return 0;
fail:
  ms_codec_close(&codec);
  return result;
}

#define CONVS 18
#define NORMS 14

static void all_layers(struct ms_codec *codec, struct ms_conv *convs[CONVS],
                       struct ms_codec_norm *norms[NORMS]) {
  struct ms_codec_res *res[] = {&codec->enc.res1, &codec->enc.res2, &codec->dec.res1, &codec->dec.res2,
                                &codec->dec.res3};
  int n = 0, m = 0;
  for (int i = 0; i < 5; i++) {
    convs[n++] = &res[i]->conv1;
    convs[n++] = &res[i]->conv2;
    norms[m++] = &res[i]->norm1;
    norms[m++] = &res[i]->norm2;
  }
  norms[m++] = &codec->enc.temporal.norm;
  norms[m++] = &codec->enc.norm;
  norms[m++] = &codec->dec.temporal.norm;
  norms[m++] = &codec->dec.norm;
  convs[n++] = &codec->enc.temporal.mix;
  convs[n++] = &codec->dec.temporal.mix;
  convs[n++] = &codec->dec.up;
  convs[n++] = &codec->enc.in;
  convs[n++] = &codec->enc.down;
  convs[n++] = &codec->enc.out;
  convs[n++] = &codec->dec.in;
  convs[n++] = &codec->dec.out;
}

void ms_codec_close(struct ms_codec **pointer) {
  struct ms_codec *codec = *pointer;
  struct ms_conv *convs[CONVS];
  struct ms_codec_norm *norms[NORMS];
  if (!codec)
    return;
  all_layers(codec, convs, norms);
  for (int i = 0; i < CONVS; i++)
    ms_conv_release(convs[i]);
  for (int i = 0; i < NORMS; i++)
    free(norms[i]->factors);
  ms_codec_pass_close(&codec->pass);
  ms_codec_stream_close(&codec->whole[0]);
  ms_codec_stream_close(&codec->whole[1]);
  ms_params_release(&codec->params);
  free(codec->mean);
  free(codec->std);
  free(codec);
  *pointer = NULL;
}

struct ms_params *ms_codec_params(struct ms_codec *codec) {
  return &codec->params;
}

/* The colour channels of a fresh encoder are nearly the mean colour alone. */
void ms_codec_randomize(struct ms_codec *codec, uint64_t seed) {
  const struct ms_param *param = &codec->params.list[codec->enc.out.weight];
  void *data = ms_params_at(&codec->params, codec->enc.out.weight);
  ms_params_randomize(&codec->params, seed);
  for (int64_t i = 0; i < 3 * (param->count / param->dims[0]); i++)
    if (codec->params.type == MSK_F32)
      ((float *)data)[i] *= 0.1f;
    else
      ((uint16_t *)data)[i] = msk_f32_to_bf16(msk_bf16_to_f32(((uint16_t *)data)[i]) * 0.1f);
}

void ms_codec_set_scale(struct ms_codec *codec, const float *mean, const float *std) {
  for (int i = 0; i < codec->channels; i++) {
    codec->mean[i] = mean ? mean[i] : 0;
    codec->std[i] = std ? std[i] : 1;
  }
}

void ms_codec_preview(const struct ms_codec *codec, const float *latent, float rgb[3]) {
  for (int c = 0; c < 3; c++)
    rgb[c] = (latent[c] * codec->std[c] + codec->mean[c]) / MS_CODEC_COLOUR;
}

int ms_codec_prepare(struct ms_codec *codec, enum msk_precision precision, int training,
                     struct ms_error *error) {
  struct ms_conv *convs[CONVS];
  struct ms_codec_norm *norms[NORMS];
  int changed = codec->prepared && (codec->precision != precision || codec->prepared != (training ? 2 : 1));
  all_layers(codec, convs, norms);
  if (changed) {
    codec->prepared = 0;
    ms_codec_pass_close(&codec->pass);
    ms_codec_stream_close(&codec->whole[0]);
    ms_codec_stream_close(&codec->whole[1]);
    for (int i = 0; i < CONVS; i++)
      ms_conv_release(convs[i]);
  }
  codec->precision = precision;
  codec->type = precision == MSK_PRECISION_BF16 ? MSK_BF16 : MSK_F32;
  for (int i = 0; i < NORMS; i++) {
    size_t bytes = ((size_t)norms[i]->c * sizeof(float) + 63) / 64 * 64;
    if (!norms[i]->factors && !(norms[i]->factors = aligned_alloc(64, bytes)))
      return ms_error_set(error, MS_ENOMEM, "out of memory while preparing the codec");
    ms_params_read_f32(&codec->params, norms[i]->gamma, norms[i]->factors);
  }
  for (int i = 0; i < CONVS; i++) {
    int result = ms_conv_pack(convs[i], codec->compute, precision, &codec->params, training, error);
    if (result < 0)
      return result;
  }
  codec->prepared = training ? 2 : 1;
  return 0;
}

int ms_codec_channels(const struct ms_codec *codec) {
  return codec->channels;
}

void ms_codec_strides(const struct ms_codec *codec, int strides[3]) {
  memcpy(strides, codec->strides, sizeof codec->strides);
}

static double conv_flops(const struct ms_conv *conv, double pixels) {
  return 2 * pixels * (double)(conv->in * conv->out) * conv->kt * conv->kh * conv->kw;
}

static double res_flops(const struct ms_codec_res *res, double pixels) {
  return conv_flops(&res->conv1, pixels) + conv_flops(&res->conv2, pixels);
}

double ms_codec_flops(const struct ms_codec *codec, int decoder, int latent_height, int latent_width) {
  double cells = (double)latent_height * latent_width, fine = 4 * cells;
  if (decoder)
    return conv_flops(&codec->dec.in, cells) + conv_flops(&codec->dec.temporal.mix, cells) +
           res_flops(&codec->dec.res1, cells) + conv_flops(&codec->dec.up, cells) +
           res_flops(&codec->dec.res2, fine) + res_flops(&codec->dec.res3, fine) +
           conv_flops(&codec->dec.out, fine);
  return conv_flops(&codec->enc.in, fine) + res_flops(&codec->enc.res1, fine) +
         conv_flops(&codec->enc.down, cells) + res_flops(&codec->enc.res2, cells) +
         conv_flops(&codec->enc.temporal.mix, cells) + conv_flops(&codec->enc.out, cells);
}
