/* megaslide export: a clip again in another format, with its settings. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "command.h"
#include "ms-media.h"
#include "ms-system.h"

struct args {
  const char *output, *format;
  int64_t quality;
  double fps;
  int json;
};

static const struct msa_option options[] = {
    {"output", 'o', MSA_OPTION_TEXT, offsetof(struct args, output), .argument = "FILE",
     .help = "the new file"},
    {"format", 0, MSA_OPTION_CHOICE, offsetof(struct args, format),
     .choices = "h264|h265|av1|vp9|prores|ffv1|gif|png", .help = "(by the name of FILE)"},
    {"quality", 0, MSA_OPTION_WHOLE, offsetof(struct args, quality), .argument = "N", .help = "0 to 100 (85)",
     .least = 0, .most = 100},
    {"fps", 0, MSA_OPTION_NUMBER, offsetof(struct args, fps), .argument = "F",
     .help = "frames a second (the clip's); all frames stay, so the clip gets faster or slower", .least = .1,
     .most = 1000},
    {"json", 0, MSA_OPTION_FLAG, offsetof(struct args, json), .help = "tell progress and result as JSON"},
    {0},
};

static int choose_format(const struct args *args, struct ms_encoder_params *params, struct ms_error *error) {
  static const char *const names[] = {"h264", "h265", "av1", "vp9", "prores", "ffv1", "gif", "png"};
  if (!args->format)
    return ms_format_from_path(args->output, &params->format, error);
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
    if (!strcmp(names[i], args->format))
      params->format = (enum ms_format)i;
  return 0;
}

static int copy_frames(struct ms_video *video, struct ms_encoder *encoder, int64_t frames,
                       struct msa_output *output, struct ms_error *error) {
  const struct ms_video_info *info = ms_video_info(video);
  uint8_t *rgb = malloc((size_t)info->width * info->height * 3);
  const double start = ms_seconds();
  double time;
  int status = rgb ? 0
                   : ms_error_set(error, MS_ENOMEM, "a frame of %dx%d does not fit in memory", info->width,
                                  info->height);
  for (int64_t done = 0; status >= 0;) {
    if (atomic_load(msa_cancel_flag())) {
      status = ms_error_set(error, MS_ECANCELLED, "stopped; nothing was written");
      break;
    }
    status = ms_video_read(video, 0, 0, NULL, rgb, &time, error);
    if (status <= 0)
      break;
    status = ms_encoder_write(encoder, rgb, error);
    done++;
    const double seconds = ms_seconds() - start;
    msa_output_progress(
        output, &(struct ms_progress){.phase = "encode",
                                      .done = done,
                                      .total = frames,
                                      .seconds = seconds,
                                      .seconds_left = seconds / (double)done * (double)(frames - done)});
  }
  free(rgb);
  return status;
}

/* The new file would take the place of the clip, whose pixels are then lost. */
static int is_same_file(const char *a, const char *b) {
  struct stat x, y;
  return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

static int export(const struct args *args, const char *clip, struct msa_output *output,
                  struct ms_error *error) {
  struct ms_encoder_params params = ms_encoder_params_default();
  struct ms_video *video = NULL;
  struct ms_encoder *encoder = NULL;
  int status = choose_format(args, &params, error);
  if (status == 0)
    status = ms_video_open(&video, clip, error);
  if (status == 0)
    status = ms_video_count(video, error);
  if (status == 0) {
    const struct ms_video_info *info = ms_video_info(video);
    params.width = info->width;
    params.height = info->height;
    params.fps = args->fps > 0 ? args->fps : info->fps;
    params.quality = (int)args->quality;
    params.comment = ms_video_comment(video);
    status = ms_encoder_open(&encoder, args->output, &params, error);
  }
  if (status == 0)
    status = copy_frames(video, encoder, ms_video_info(video)->frames, output, error);
  if (status == 0)
    status = ms_encoder_finish(encoder, error);
  ms_encoder_close(&encoder);
  if (status == 0) {
    const struct ms_video_info *info = ms_video_info(video);
    msa_output_event(output, "result",
                     json_pack("{s:o, s:I, s:i, s:i, s:f}", "output", msa_json_text(args->output), "frames",
                               (json_int_t)info->frames, "width", params.width, "height", params.height,
                               "fps", params.fps));
    msa_output_say(output, "%s: %lld frames of %dx%d at %g a second", args->output, (long long)info->frames,
                   params.width, params.height, params.fps);
  }
  ms_video_close(&video);
  return status;
}

static int run(const struct msa_command *command, int argc, char **argv) {
  struct args args = {.quality = ms_encoder_params_default().quality};
  struct msa_output output;
  struct ms_error error = {0};
  const char *clip = NULL;
  int count, status;
  if (msa_command_begin(command, argc, argv, &args, &args.json, &clip, 1, &count, &output, &status))
    return status;
  if (!count)
    status = ms_error_set(&error, MS_EUSAGE, "which clip?");
  else if (!args.output)
    status = ms_error_set(&error, MS_EUSAGE, "no new file: give one with -o FILE");
  else if (is_same_file(clip, args.output))
    status = ms_error_set(&error, MS_EUSAGE, "\"%.300s\" is the clip itself: name another file", args.output);
  else
    status = export(&args, clip, &output, &error);
  return msa_output_finish(&output, status < 0 ? msa_output_failure(&output, &error) : 0);
}

const struct msa_command msa_command_export = {
    .name = "export",
    .usage = "CLIP -o FILE [FLAGS]",
    .summary = "Write a clip again in another format, with its settings",
    .examples =
        "  megaslide export ball.mp4 -o ball.gif\n  megaslide export ball.mp4 --format prores -o ball.mov\n",
    .options = options,
    .run = run,
};
