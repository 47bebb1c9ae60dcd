/* megaslide bench: how fast the program's own work runs here, beside what the machine can do. */
#include <string.h>

#include "machine.h"
#include "ms-bench.h"
#include "ms-system.h"

struct args {
  struct msa_machine_args machine;
  int64_t parameters;
  const char *folder;
  int json;
};

static const struct msa_option options[] = {
    MSA_MACHINE_OPTIONS(struct args, machine),
    {"parameters", 0, MSA_OPTION_WHOLE, offsetof(struct args, parameters), .argument = "N",
     .help = "parameters of the optimizer's vectors (33554432), 18 bytes each", .least = 1 << 16,
     .most = (int64_t)1 << 36},
    {"folder", 0, MSA_OPTION_TEXT, offsetof(struct args, folder), .argument = "DIR",
     .help = "where \"stream\" puts layers on disk, some GiB (.)"},
    {"json", 0, MSA_OPTION_FLAG, offsetof(struct args, json),
     .help = "one row a measurement, then the result"},
    {0},
};

struct table {
  struct msa_output *output;
  int rows;
};

static void put_row(void *data, const struct ms_bench_row *row) {
  struct table *table = data;
  char peak[96] = "";
  json_t *object = json_pack("{s:s, s:s, s:s, s:s}", "name", row->name, "shape", row->shape, "peak",
                             row->peak ? row->peak : "", "kernel", row->kernel ? row->kernel : "");
  json_object_set_new(object, "seconds", msa_json_number(row->seconds));
  json_object_set_new(object, "gflops", msa_json_number(row->gflops));
  json_object_set_new(object, "gbps", msa_json_number(row->gbps));
  json_object_set_new(object, "of_peak", msa_json_number(row->of_peak));
  if (row->parameters > 0)
    json_object_set_new(object, "parameters_per_second", msa_json_number(row->parameters));
  if (row->mfu > 0) {
    json_object_set_new(object, "mfu", msa_json_number(row->mfu));
    json_object_set_new(object, "hfu", msa_json_number(row->hfu));
  }
  if (row->mfu > 0 || row->moved_bytes > 0) {
    json_object_set_new(object, "moved_bytes", msa_json_number(row->moved_bytes));
    json_object_set_new(object, "exposed_seconds", msa_json_number(row->exposed_seconds));
  }
  msa_output_event(table->output, "row", object);
  if (row->mfu > 0)
    snprintf(peak, sizeof peak, "MFU %.1f %%, HFU %.1f %%, waits %.2f s", 100 * row->mfu, 100 * row->hfu,
             row->exposed_seconds);
  else if (row->of_peak > 0)
    snprintf(peak, sizeof peak, "%3.0f %% of %s", 100 * row->of_peak, row->peak);
  if (row->parameters > 0)
    snprintf(peak + strlen(peak), sizeof peak - strlen(peak), "%s%.2f G parameters/s", *peak ? ", " : "",
             1e-9 * row->parameters);
  if (!table->rows++)
    msa_output_say(table->output, "%-26s %-56s %-7s %10s %9s %8s", "name", "shape", "kernel", "ms", "GFLOP/s",
                   "GB/s");
  msa_output_say(table->output, "%-26s %-56s %-7s %10.3f %9.1f %8.1f  %s", row->name, row->shape,
                 row->kernel ? row->kernel : "", 1e3 * row->seconds, row->gflops, row->gbps, peak);
  fflush(stdout); /* measuring takes minutes: rows are told as they come */
}

static int run(const struct msa_command *command, int argc, char **argv) {
  struct args args = {0};
  struct msa_output output;
  struct ms_error error = {0};
  struct ms_machine machine;
  const char *what = NULL;
  struct msa_folders folders;
  int count, status;
  if (msa_command_begin(command, argc, argv, &args, &args.json, &what, 1, &count, &output, &status))
    return status;
  const struct ms_hooks hooks = msa_output_hooks(&output, msa_cancel_flag());
  struct table table = {.output = &output};
  const double start = ms_seconds();
  msa_folders_find(&folders);
  status = msa_machine_from_args(&args.machine, &folders, &machine, &error);
  if (status == 0)
    status = ms_bench(what, args.parameters, args.folder, &machine, &hooks, put_row, &table, &error);
  if (status == 0)
    msa_output_event(&output, "result",
                     json_pack("{s:i, s:f}", "rows", table.rows, "seconds", ms_seconds() - start));
  return msa_output_finish(&output, status < 0 ? msa_output_failure(&output, &error) : 0);
}

const struct msa_command msa_command_bench = {
    .name = "bench",
    .usage = "[kernels|layer|optimizer|stream] [FLAGS]",
    .summary = "Measure this machine's rates beside its peaks",
    .text =
        "Peaks are measured in the same run: bf16 and f32 products against the multiply-add peak of that "
        "kind, sweeps over\n"
        "memory against the best rate of the same access pattern. A quiet machine gives honest figures.\n",
    .examples = "  megaslide bench kernels\n  megaslide bench layer --threads 1 --json\n  megaslide bench "
                "stream --folder /var/tmp\n",
    .options = options,
    .run = run,
};
