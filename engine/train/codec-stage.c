/* Trains the codec on crops of rendered or decoded clips and measures its latents. */
#include "train/codec-stage.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "base/system.h"
#include "train/recipe-file.h"
#include "train/stage.h"

#define MAX_POOLS 16
#define STREAM_CROP ((uint64_t)7 << 40)
#define CAPTION_MAX 1024
/* Clips of each pool that the latents are measured on. */
#define MEASURED_CLIPS 24

/* Clips of one size, kept as pixels. */
struct pool {
  int width, height, frames;
  int64_t clips, first;
  uint8_t *rgb;   /* [clips, frames, height, width, 3] */
  float *centres; /* [clips, frames, 2]: where the subject is, in pixels; NULL: not known */
};

struct stage {
  struct ms_model *model;
  const struct ms_clip_source *source;
  const struct ms_hooks *hooks;
  struct pool pools[MAX_POOLS];
  int pool_count;
  int crop_width, crop_height, crop_frames, batch;
  float *pixels; /* [batch, crop_frames, crop_height, crop_width, 3] */
  uint64_t seed;
};

static int integer_at(const json_t *list, size_t i) {
  return (int)json_number_value(json_array_get(list, i));
}

static void find_centres(const uint8_t *mask, const struct pool *pool, float *centres) {
  for (int f = 0; f < pool->frames; f++) {
    double sx = 0, sy = 0, n = 0;
    for (int y = 0; y < pool->height; y++)
      for (int x = 0; x < pool->width; x++)
        if (mask[((size_t)f * pool->height + y) * pool->width + x] >= 128) {
          sx += x;
          sy += y;
          n++;
        }
    centres[f * 2] = n ? (float)(sx / n) : pool->width * 0.5f;
    centres[f * 2 + 1] = n ? (float)(sy / n) : pool->height * 0.5f;
  }
}

static int fill_pool(struct stage *stage, struct pool *pool, struct ms_error *error) {
  struct ms_clip_request request = {pool->width, pool->height, pool->frames, stage->model->defaults.fps};
  size_t frame = (size_t)pool->width * pool->height, clip_bytes = frame * pool->frames * 3;
  uint8_t *mask = stage->source->read_mask ? malloc(frame * pool->frames) : NULL;
  char caption[CAPTION_MAX];
  double start = ms_seconds();
  int code = 0;
  pool->rgb = malloc(clip_bytes * (size_t)pool->clips);
  pool->centres =
      stage->source->read_mask ? malloc((size_t)pool->clips * pool->frames * 2 * sizeof(float)) : NULL;
  if (!pool->rgb || (stage->source->read_mask && (!mask || !pool->centres)))
    code = ms_error_set(error, MS_ENOMEM, "out of memory for %lld clips of %dx%d", (long long)pool->clips,
                        pool->width, pool->height);
  for (int64_t i = 0; i < pool->clips && code == 0; i++) {
    int64_t number = (pool->first + i) % stage->source->count;
    code =
        stage->source->read(stage->source->data, number, (uint32_t)((pool->first + i) / stage->source->count),
                            &request, pool->rgb + (size_t)i * clip_bytes, caption, sizeof caption, error);
    if (code == 0 && mask) {
      code = stage->source->read_mask(stage->source->data, number, &request, mask, error);
      if (code == 0)
        find_centres(mask, pool, pool->centres + (size_t)i * pool->frames * 2);
    }
    if (code == 0 && stage->hooks && stage->hooks->cancel && atomic_load(stage->hooks->cancel))
      code = ms_error_set(error, MS_ECANCELLED, "stopped while reading clips");
    if (stage->hooks && stage->hooks->progress && i % 64 == 63) {
      double spent = ms_seconds() - start;
      struct ms_progress progress = {"render", i + 1, pool->clips, spent,
                                     spent / (double)(i + 1) * (double)(pool->clips - i - 1)};
      stage->hooks->progress(stage->hooks->data, &progress);
    }
  }
  free(mask);
  return code;
}

static int read_settings(struct stage *stage, const json_t *settings, struct ms_error *error) {
  const json_t *crop = json_object_get(settings, "crop"), *pools = json_object_get(settings, "pools");
  int strides[3];
  int64_t next = 0;
  ms_codec_strides(stage->model->codec, strides);
  stage->crop_width = integer_at(crop, 0);
  stage->crop_height = integer_at(crop, 1);
  stage->crop_frames = integer_at(crop, 2);
  stage->batch = (int)ms_recipe_number(settings, "batch", 16);
  stage->seed = (uint64_t)ms_recipe_number(settings, "seed", 1);
  if (stage->crop_width < strides[2] || stage->crop_height < strides[1] || stage->crop_frames < 1 ||
      stage->crop_width % strides[2] || stage->crop_height % strides[1] ||
      (stage->crop_frames - 1) % strides[0] || stage->batch < 1 || stage->batch > 1024 ||
      json_array_size(pools) < 1 || json_array_size(pools) > MAX_POOLS)
    return ms_error_set(
        error, MS_EINPUT,
        "the recipe's \"codec\" needs \"crop\" [w,h,frames] in steps of the codec, \"batch\" and \"pools\"");
  for (size_t i = 0; i < json_array_size(pools); i++) {
    const json_t *from = json_array_get(pools, i);
    struct pool *pool = &stage->pools[stage->pool_count++];
    pool->width = integer_at(json_object_get(from, "size"), 0);
    pool->height = integer_at(json_object_get(from, "size"), 1);
    pool->frames = (int)ms_recipe_number(from, "frames", 0);
    pool->clips = (int64_t)ms_recipe_number(from, "clips", 0);
    pool->first = next;
    next += pool->clips;
    if (pool->width < stage->crop_width || pool->height < stage->crop_height ||
        pool->frames < stage->crop_frames || pool->clips < 1 || pool->clips > 10000000 ||
        pool->width > 8192 || pool->height > 8192 || pool->frames > 100000)
      return ms_error_set(error, MS_EINPUT,
                          "pool %zu of the recipe's \"codec\" is smaller than the crop or out of range",
                          i + 1);
  }
  return 0;
}

static int within(double value, int high) {
  return value < 0 ? 0 : value > high ? high : (int)value;
}

/* Crop number `sample` of a step: near the subject in the middle frame of the crop, with a jitter of half the
 * crop. */
static void take_crop(const struct stage *stage, int64_t step, int sample) {
  struct ms_random random = {.seed = stage->seed,
                             .stream = STREAM_CROP + (uint64_t)step * 1024 + (uint64_t)sample};
  const struct pool *pool = &stage->pools[ms_random_below(&random, stage->pool_count)];
  int64_t clip = ms_random_below(&random, pool->clips);
  int f0 = (int)ms_random_below(&random, pool->frames - stage->crop_frames + 1);
  double jx = ms_random_range(&random, -0.5, 0.5) * stage->crop_width,
         jy = ms_random_range(&random, -0.5, 0.5) * stage->crop_height;
  double cx = ms_random_range(&random, 0, pool->width), cy = ms_random_range(&random, 0, pool->height);
  int flip = ms_random_below(&random, 8) == 0; /* now and then anywhere: grounds must be right as well */
  float *out =
      stage->pixels + (size_t)sample * stage->crop_frames * stage->crop_height * stage->crop_width * 3;
  if (pool->centres && !flip) {
    const float *centre = pool->centres + ((size_t)clip * pool->frames + f0 + stage->crop_frames / 2) * 2;
    cx = centre[0] + jx;
    cy = centre[1] + jy;
  }
  {
    int x0 = within(cx - stage->crop_width * 0.5, pool->width - stage->crop_width);
    int y0 = within(cy - stage->crop_height * 0.5, pool->height - stage->crop_height);
    for (int f = 0; f < stage->crop_frames; f++)
      for (int y = 0; y < stage->crop_height; y++) {
        const uint8_t *in =
            pool->rgb +
            ((((size_t)clip * pool->frames + f0 + f) * pool->height + y0 + y) * pool->width + x0) * 3;
        for (int i = 0; i < stage->crop_width * 3; i++)
          *out++ = (float)in[i] / 127.5f - 1;
      }
  }
}

/* Mean and spread of the latents: colours (channels 0-2) keep their mean and are divided by their common
 * spread; the others lose their mean away from subjects, and one factor brings their root mean square on
 * subjects to 0.7. One factor: whitening each channel drowns the edges' large channels in small ones' noise.
 */
static int measure(struct stage *stage, struct ms_error *error) {
  struct ms_model *model = stage->model;
  int channels = ms_codec_channels(model->codec), strides[3], code = 0;
  double sum[256] = {0}, cells = 0, colour_sum = 0, colour_squares = 0, colours = 0, squares = 0,
         subject_cells = 0;
  ms_codec_strides(model->codec, strides);
  for (int pass = 0; pass < 2 && code == 0; pass++)
    for (int p = 0; p < stage->pool_count && code == 0; p++) {
      const struct pool *pool = &stage->pools[p];
      struct ms_clip_request request = {pool->width, pool->height, pool->frames, model->defaults.fps};
      int T = 1 + (pool->frames - 1) / strides[0], H = pool->height / strides[1],
          W = pool->width / strides[2];
      int frames = (T - 1) * strides[0] + 1;
      size_t volume = (size_t)T * H * W, pixels = (size_t)pool->frames * pool->height * pool->width;
      float *latents = malloc(volume * channels * sizeof *latents),
            *values = malloc(pixels * 3 * sizeof *values);
      uint8_t *mask = malloc(pixels);
      if (!latents || !values || !mask)
        code = ms_error_set(error, MS_ENOMEM, "out of memory while measuring latents");
      for (int64_t i = 0; i < pool->clips && i < MEASURED_CLIPS && code == 0; i++) {
        const uint8_t *rgb = pool->rgb + (size_t)i * pixels * 3;
        memset(mask, 0, pixels);
        for (size_t j = 0; j < pixels * 3; j++)
          values[j] = (float)rgb[j] / 127.5f - 1;
        if (stage->source->read_mask)
          code = stage->source->read_mask(stage->source->data, (pool->first + i) % stage->source->count,
                                          &request, mask, error);
        if (code == 0)
          code = ms_codec_encode(model->codec, values, frames, pool->height, pool->width, latents, error);
        for (size_t cell = 0; cell < volume && code == 0; cell++) {
          int t = (int)(cell / ((size_t)H * W)), y = (int)(cell / W % H), x = (int)(cell % W);
          int f = t ? (t - 1) * strides[0] + 1 + strides[0] / 2 : 0;
          int subject = mask[((size_t)f * pool->height + y * strides[1] + strides[1] / 2) * pool->width +
                             x * strides[2] + strides[2] / 2] >= 128;
          if (pass == 0)
            for (int c = 0; c < 3; c++) {
              double v = latents[c * volume + cell];
              colour_sum += v;
              colour_squares += v * v;
              colours++;
            }
          if (pass == 0 && !subject) {
            for (int c = 3; c < channels; c++)
              sum[c] += latents[c * volume + cell];
            cells++;
          }
          if (pass == 1 && (subject || !stage->source->read_mask)) {
            for (int c = 3; c < channels; c++) {
              double v = latents[c * volume + cell] - sum[c] / (cells ? cells : 1);
              squares += v * v;
            }
            subject_cells += channels - 3;
          }
        }
      }
      free(latents);
      free(values);
      free(mask);
    }
  if (code == 0) {
    json_t *means = json_array(), *stds = json_array();
    double colour_mean = colour_sum / colours,
           colour_std = sqrt(colour_squares / colours - colour_mean * colour_mean);
    double factor = sqrt(squares / (subject_cells ? subject_cells : 1)) / 0.7;
    for (int c = 0; c < channels; c++) {
      json_array_append_new(means, json_real(c < 3 ? 0 : sum[c] / (cells ? cells : 1)));
      json_array_append_new(stds, json_real(c < 3 ? fmax(colour_std, 1e-3) : fmax(factor, 1e-3)));
    }
    json_object_set_new(model->root, "latent_mean", means);
    json_object_set_new(model->root, "latent_std", stds);
  }
  return code;
}

static int train(struct stage *stage, const json_t *settings, const char *output, struct ms_error *error) {
  struct ms_codec *codec = stage->model->codec;
  struct ms_params *params = ms_codec_params(codec);
  const json_t *noise = json_object_get(settings, "noise");
  struct ms_codec_train pass = {.clips = stage->batch,
                                .frames = stage->crop_frames,
                                .height = stage->crop_height,
                                .width = stage->crop_width,
                                .pixels = stage->pixels,
                                .noise_c = (float)json_number_value(json_array_get(noise, 0)),
                                .noise_e = (float)json_number_value(json_array_get(noise, 1)),
                                .seed = stage->seed};
  struct ms_stage_loop loop;
  int code =
      ms_stage_open(&loop, "codec", settings, stage->model->compute, params, output, stage->hooks, error);
  if (code == 0)
    code = ms_codec_prepare(codec, MSK_PRECISION_BF16, 1, error);
  while (code == 0 && loop.at.step < loop.job.steps) {
    double loss = 0, mse = 0;
    for (int i = 0; i < stage->batch; i++)
      take_crop(stage, loop.at.step, i);
    memset(loop.grad, 0, (size_t)params->total * sizeof *loop.grad);
    pass.step = (uint64_t)loop.at.step;
    code = ms_codec_train_pass(codec, &pass, loop.grad, &loss, &mse, error);
    if (code == 0)
      code = ms_stage_update(&loop, loss, "psnr", 10 * log10(4 / fmax(mse, 1e-12)), error);
    if (code == 0)
      code = ms_codec_prepare(codec, MSK_PRECISION_BF16, 1, error);
  }
  if (code == 0) { /* the averaged weights are what is used from here on */
    ms_optimizer_read_average(&loop.optimizer, params->data);
    code = ms_codec_prepare(codec, MSK_PRECISION_BF16, 0, error);
  }
  if (code == 0)
    code = measure(stage, error);
  if (code == 0)
    code = ms_model_write_json(stage->model->root, output, error);
  if (code == 0)
    code = ms_stage_finish(&loop, output, ms_model_part_file(MS_MODEL_CODEC), error);
  ms_stage_release(&loop);
  return code;
}

int ms_codec_stage(struct ms_model *model, const json_t *settings, const struct ms_clip_source *source,
                   const char *output, const struct ms_hooks *hooks, struct ms_error *error) {
  struct stage *stage = calloc(1, sizeof *stage);
  int code;
  if (!stage)
    return ms_error_set(error, MS_ENOMEM, "out of memory");
  stage->model = model;
  stage->source = source;
  stage->hooks = hooks;
  code = read_settings(stage, settings, error);
  for (int i = 0; i < stage->pool_count && code == 0; i++)
    code = fill_pool(stage, &stage->pools[i], error);
  if (code == 0) {
    stage->pixels = malloc((size_t)stage->batch * stage->crop_frames * stage->crop_height *
                           stage->crop_width * 3 * sizeof *stage->pixels);
    if (!stage->pixels)
      code = ms_error_set(error, MS_ENOMEM, "out of memory for a batch of crops");
  }
  if (code == 0)
    code = ms_params_allocate(ms_codec_params(model->codec), MSK_F32, error);
  if (code == 0) {
    ms_codec_randomize(model->codec, stage->seed);
    ms_codec_set_scale(model->codec, NULL, NULL);
    code = train(stage, settings, output, error);
  }
  for (int i = 0; i < stage->pool_count; i++) {
    free(stage->pools[i].rgb);
    free(stage->pools[i].centres);
  }
  free(stage->pixels);
  free(stage);
  return code;
}
