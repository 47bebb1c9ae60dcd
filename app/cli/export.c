/* megaslide export: a clip again in another format, with its settings. */
#include "command.h"
#include "export/export-work.h"

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

static void tell_progress(void *data, int64_t done, int64_t frames, double seconds, double seconds_left) {
  msa_output_progress(data, &(struct ms_progress){.phase = "encode",
                                                  .done = done,
                                                  .total = frames,
                                                  .seconds = seconds,
                                                  .seconds_left = seconds_left});
}

static int export(const struct args *args, const char *clip, struct msa_output *output,
                  struct ms_error *error) {
  const struct msa_export_work work = {.clip = clip,
                                       .output = args->output,
                                       .format = args->format,
                                       .quality = (int)args->quality,
                                       .fps = args->fps,
                                       .cancel = msa_cancel_flag(),
                                       .progress = tell_progress,
                                       .data = output};
  struct msa_export_result result;
  const int status = msa_export_run(&work, &result, error);
  if (status == 0) {
    msa_output_event(output, "result",
                     json_pack("{s:o, s:I, s:i, s:i, s:f}", "output", msa_json_text(args->output), "frames",
                               (json_int_t)result.frames, "width", result.width, "height", result.height,
                               "fps", result.fps));
    if (result.width != result.clip_width || result.height != result.clip_height)
      msa_output_note(output, "%dx%d became %dx%d: sizes are even", result.clip_width, result.clip_height,
                      result.width, result.height);
    msa_output_say(output, "%s: %lld frames of %dx%d at %g a second", args->output, (long long)result.frames,
                   result.width, result.height, result.fps);
  }
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
