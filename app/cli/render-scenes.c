/* megaslide render-scenes: writes captioned clips of the built-in world, e.g. to fine-tune on or to judge
 * with. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "command.h"
#include "ms-media.h"
#include "ms-system.h"
#include "msa-scenes.h"

struct args {
  const char *output;
  int64_t clips, frames, seed;
  int size[2];
  double fps, extras;
  int json;
};

static const struct msa_option options[] = {
    {"output", 'o', MSA_OPTION_TEXT, offsetof(struct args, output), .argument = "DIR",
     .help = "folder for the clips; made if it is not there"},
    {"clips", 0, MSA_OPTION_WHOLE, offsetof(struct args, clips), .argument = "N", .help = "how many (100)",
     .least = 1, .most = 1e6},
    {"size", 0, MSA_OPTION_FRAME, offsetof(struct args, size), .argument = "WxH",
     .help = "of a frame, both even (96x64)", .least = 64, .most = 8192},
    {"frames", 0, MSA_OPTION_WHOLE, offsetof(struct args, frames), .argument = "N", .help = "in a clip (17)",
     .least = 1, .most = 100000},
    {"fps", 0, MSA_OPTION_NUMBER, offsetof(struct args, fps), .argument = "F", .help = "frames a second (8)",
     .least = 1, .most = 240},
    {"seed", 0, MSA_OPTION_WHOLE, offsetof(struct args, seed), .argument = "S",
     .help = "another seed, other clips (1)", .least = 0, .most = 9e18},
    {"extras", 0, MSA_OPTION_NUMBER, offsetof(struct args, extras), .argument = "X",
     .help = "share of clips with patterns, rarer shapes, two objects or bounces (0.2)", .least = 0,
     .most = 1},
    {"json", 0, MSA_OPTION_FLAG, offsetof(struct args, json), .help = "tell progress and result as JSON"},
    {0},
};

struct render {
  const struct args *args;
  struct msa_scenes_params params;
  struct msa_output *output;
  json_t *labels; /* a list */
  uint8_t *rgb;   /* one frame */
  int digits;
};

static json_t *thing_labels(const struct msa_thing *thing) {
  return json_pack("{s:s, s:s}", "color", msa_color_name(thing->color), "shape",
                   msa_shape_name(thing->shape));
}

static json_t *scene_labels(const struct msa_scene *scene, const char *file, const char *caption) {
  json_t *labels =
      json_pack("{s:s, s:s, s:o, s:s, s:s, s:s}", "file", file, "caption", caption, "object",
                thing_labels(&scene->things[0]), "motion", msa_motion_name(scene->motion), "background",
                msa_color_name(scene->ground), "pattern", msa_pattern_name(scene->pattern));
  if (scene->pattern != MSA_PLAIN)
    json_object_set_new(labels, "background2", json_string(msa_color_name(scene->ground2)));
  if (scene->count > 1) {
    json_object_set_new(labels, "second", thing_labels(&scene->things[1]));
    json_object_set_new(labels, "relation", json_string(msa_relation_name(scene->relation)));
  }
  return labels;
}

/* What the clip's comment tag says, as for generated clips. */
static char *scene_settings(const struct render *render, int64_t clip, const char *caption) {
  json_t *settings = json_pack("{s:s, s:s, s:I, s:I}", "made_by", "megaslide render-scenes", "prompt",
                               caption, "seed", (json_int_t)render->args->seed, "clip", (json_int_t)clip);
  char *text = settings ? json_dumps(settings, JSON_COMPACT) : NULL;
  json_decref(settings);
  return text;
}

static int write_text(const char *path, const char *text, struct ms_error *error) {
  FILE *file = fopen(path, "we");
  if (!file)
    return ms_error_set(error, MS_EOUTPUT, "\"%s\" cannot be written: %s", path, strerror(errno));
  int good = fputs(text, file) >= 0 && fputc('\n', file) >= 0;
  good &= fclose(file) == 0;
  return good ? 0 : ms_error_set(error, MS_EOUTPUT, "\"%s\" cannot be written: %s", path, strerror(errno));
}

static int render_clip(struct render *render, int64_t clip, struct ms_error *error) {
  const struct args *args = render->args;
  struct ms_encoder_params params = ms_encoder_params_default();
  struct ms_encoder *encoder = NULL;
  struct msa_scene scene;
  char name[32], path[4096], caption[256];
  msa_scene_draw(&render->params, clip, &scene);
  msa_scene_caption(&scene, render->params.seed ^ ((uint64_t)clip << 20), caption, sizeof caption);
  snprintf(name, sizeof name, "%0*lld", render->digits, (long long)clip);

  params.width = args->size[0];
  params.height = args->size[1];
  params.fps = args->fps;
  char *settings = scene_settings(render, clip, caption);
  params.comment = settings;
  snprintf(path, sizeof path, "%s/%s.mp4", args->output, name);
  int status = ms_encoder_open(&encoder, path, &params, error);
  for (int f = 0; f < (int)args->frames && status == 0; f++) {
    msa_scene_render_frame(&scene, args->size[0], args->size[1], (int)args->frames, f, render->rgb);
    status = ms_encoder_write(encoder, render->rgb, error);
  }
  if (status == 0)
    status = ms_encoder_finish(encoder, error);
  ms_encoder_close(&encoder);
  free(settings);
  if (status == 0) {
    snprintf(path, sizeof path, "%s/%s.txt", args->output, name);
    status = write_text(path, caption, error);
  }
  if (status == 0) {
    snprintf(path, sizeof path, "%s.mp4", name);
    json_array_append_new(render->labels, scene_labels(&scene, path, caption));
  }
  return status;
}

static int write_labels(struct render *render, struct ms_error *error) {
  char path[4096];
  char *text = json_dumps(render->labels, JSON_INDENT(1));
  if (!text)
    return ms_error_set(error, MS_ENOMEM, "out of memory for the labels");
  snprintf(path, sizeof path, "%s/labels.json", render->args->output);
  int status = write_text(path, text, error);
  free(text);
  return status;
}

static int render_all(struct render *render, struct ms_error *error) {
  const struct args *args = render->args;
  const double start = ms_seconds();
  int status = 0;
  for (int64_t clip = 0; clip < args->clips && status == 0; clip++) {
    if (atomic_load(msa_cancel_flag())) {
      status =
          ms_error_set(error, MS_ECANCELLED, "stopped after %lld clips; those are complete", (long long)clip);
      break;
    }
    status = render_clip(render, clip, error);
    if (status < 0)
      break;
    const double seconds = ms_seconds() - start;
    msa_output_progress(render->output,
                        &(struct ms_progress){.phase = "render",
                                              .done = clip + 1,
                                              .total = args->clips,
                                              .seconds = seconds,
                                              .seconds_left = seconds / (double)(clip + 1) *
                                                              (double)(args->clips - clip - 1)});
  }
  if (status == 0 || status == MS_ECANCELLED) {
    int written = write_labels(render, error);
    status = status ? status : written;
  }
  if (status == 0) {
    json_t *result =
        json_pack("{s:o, s:I, s:I, s:i, s:i, s:f, s:f}", "output", msa_json_text(args->output), "clips",
                  (json_int_t)args->clips, "frames", (json_int_t)args->frames, "width", args->size[0],
                  "height", args->size[1], "fps", args->fps, "seconds", ms_seconds() - start);
    msa_output_event(render->output, "result", result);
    msa_output_say(render->output, "%lld clips with captions and labels.json in %s", (long long)args->clips,
                   args->output);
  }
  return status;
}

static int run(const struct msa_command *command, int argc, char **argv) {
  struct args args = {.clips = 100, .frames = 17, .seed = 1, .size = {96, 64}, .fps = 8, .extras = .2};
  struct msa_output output;
  struct ms_error error = {0};
  int count, status;
  if (msa_command_begin(command, argc, argv, &args, &args.json, NULL, 0, &count, &output, &status))
    return status;
  struct render render = {
      .args = &args, .params = msa_scenes_params_default(), .output = &output, .labels = json_array()};
  render.params.seed = (uint64_t)args.seed;
  render.params.count = args.clips;
  render.params.extras = args.extras;
  render.digits = snprintf(NULL, 0, "%lld", (long long)args.clips - 1);
  render.digits = render.digits < 4 ? 4 : render.digits;
  render.rgb = malloc((size_t)args.size[0] * args.size[1] * 3);
  if (!args.output)
    status = ms_error_set(&error, MS_EUSAGE, "no folder for the clips: give one with -o DIR");
  else if (!render.rgb || !render.labels)
    status = ms_error_set(&error, MS_ENOMEM, "a frame of %dx%d does not fit in memory", args.size[0],
                          args.size[1]);
  else if (mkdir(args.output, 0777) && errno != EEXIST)
    status = ms_error_set(&error, MS_EOUTPUT, "the folder \"%s\" cannot be made: %s", args.output,
                          strerror(errno));
  else
    status = render_all(&render, &error);
  json_decref(render.labels);
  free(render.rgb);
  return msa_output_finish(&output, status < 0 ? msa_output_failure(&output, &error) : 0);
}

const struct msa_command msa_command_render_scenes = {
    .name = "render-scenes",
    .usage = "-o DIR [FLAGS]",
    .summary = "Write captioned training clips of the built-in world of moving shapes",
    .text = "Clip NNNN.mp4 lies beside its caption NNNN.txt, ready for \"megaslide train DIR\"; labels.json "
            "says what each\n"
            "clip shows. The same seed gives the same files.\n",
    .examples = "  megaslide render-scenes -o scenes --clips 20 --size 128x96 --frames 17 --seed 5\n",
    .options = options,
    .run = run,
};
