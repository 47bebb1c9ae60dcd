/* Scenes as a source of training clips. */
#include "msa-scenes.h"

#include <stdlib.h>

struct scenes {
  struct msa_scenes_params params;
};

struct msa_scenes_params msa_scenes_params_default(void) {
  return (struct msa_scenes_params){.seed = 1, .count = 1000000, .extras = .2, .unsaid = .06};
}

static int check_request(const struct ms_clip_request *request, struct ms_error *error) {
  if (request->width < 1 || request->height < 1 || request->frames < 1)
    return ms_error_set(
        error, MS_EUSAGE,
        "a scene of %dx%d pixels and %d frames cannot be drawn; every number must be at least 1",
        request->width, request->height, request->frames);
  return 0;
}

static uint64_t wording(const struct scenes *scenes, int64_t clip, uint32_t variant) {
  return scenes->params.seed ^ ((uint64_t)clip << 20) ^ variant;
}

static int scenes_read_caption(void *data, int64_t clip, uint32_t variant, char *caption, size_t caption_size,
                               struct ms_error *error) {
  const struct scenes *scenes = data;
  struct msa_scene scene;
  msa_scene_draw(&scenes->params, clip, &scene);
  msa_scene_caption(&scene, wording(scenes, clip, variant), caption, caption_size);
  return 0;
}

static int scenes_read(void *data, int64_t clip, uint32_t variant, const struct ms_clip_request *request,
                       uint8_t *rgb, char *caption, size_t caption_size, struct ms_error *error) {
  const struct scenes *scenes = data;
  struct msa_scene scene;
  int status = check_request(request, error);
  if (status < 0)
    return status;
  msa_scene_draw(&scenes->params, clip, &scene);
  if (rgb)
    msa_scene_render(&scene, request->width, request->height, request->frames, rgb);
  if (caption)
    msa_scene_caption(&scene, wording(scenes, clip, variant), caption, caption_size);
  return 0;
}

static int scenes_read_mask(void *data, int64_t clip, const struct ms_clip_request *request, uint8_t *mask,
                            struct ms_error *error) {
  const struct scenes *scenes = data;
  struct msa_scene scene;
  int status = check_request(request, error);
  if (status < 0)
    return status;
  msa_scene_draw(&scenes->params, clip, &scene);
  msa_scene_mask(&scene, request->width, request->height, request->frames, mask);
  return 0;
}

static int scenes_read_labels(void *data, int64_t clip, int classes[8], int class_counts[8]) {
  static const int counts[8] = {
      MSA_COLORS + 1, MSA_COLORS + 1, MSA_SHAPES + 1, MSA_MOTIONS, 1 + (MSA_PATTERNS - 1) * MSA_COLORS,
      MSA_RELATIONS,  MSA_COLORS + 1, MSA_SHAPES + 1};
  const struct scenes *scenes = data;
  struct msa_scene s;
  msa_scene_draw(&scenes->params, clip, &s);
  classes[0] = s.color_unsaid ? MSA_COLORS : (int)s.things[0].color;
  classes[1] = s.ground_unsaid ? MSA_COLORS : (int)s.ground;
  classes[2] = s.shape_unsaid ? MSA_SHAPES : (int)s.things[0].shape;
  classes[3] = s.motion;
  classes[4] = s.pattern == MSA_PLAIN ? 0 : 1 + ((int)s.pattern - 1) * MSA_COLORS + (int)s.ground2;
  classes[5] = s.relation;
  classes[6] = s.count > 1 ? (int)s.things[1].color : MSA_COLORS;
  classes[7] = s.count > 1 ? (int)s.things[1].shape : MSA_SHAPES;
  if (class_counts)
    for (int i = 0; i < 8; i++)
      class_counts[i] = counts[i];
  return 8;
}

static void scenes_close(void *data) {
  free(data);
}

int msa_scenes_open(struct ms_clip_source *source, const struct msa_scenes_params *params,
                    struct ms_error *error) {
  if (!(params->extras >= 0 && params->extras <= 1) || !(params->unsaid >= 0 && params->unsaid <= 1))
    return ms_error_set(error, MS_EUSAGE, "shares of scenes must lie between 0 and 1");
  if (params->count < 1)
    return ms_error_set(error, MS_EUSAGE, "a source of scenes needs at least one clip");
  struct scenes *scenes = malloc(sizeof *scenes);
  if (!scenes)
    return ms_error_set(error, MS_ENOMEM, "out of memory for a source of scenes");
  scenes->params = *params;
  *source = (struct ms_clip_source){
      .data = scenes,
      .name = "scenes",
      .count = params->count,
      .read = scenes_read,
      .read_caption = scenes_read_caption,
      .read_mask = scenes_read_mask,
      .read_labels = scenes_read_labels,
      .close = scenes_close,
  };
  return 0;
}
