#include "machine.h"

#include <string.h>

#include "core/folders.h"

void msa_folders_find(struct msa_folders *folders) {
  msa_data_folder(folders->data, sizeof folders->data);
  msa_user_models_folder(folders->user_models, sizeof folders->user_models);
}

int msa_machine_from_args(const struct msa_machine_args *args, const struct msa_folders *folders,
                          struct ms_machine *machine, struct ms_error *error) {
  if (args->device && !strcmp(args->device, "cuda"))
    return ms_error_set(error, MS_EDEVICE,
                        "this program was built without the CUDA backend; use --device cpu");
  if (args->host_memory && args->device_memory > args->host_memory)
    return ms_error_set(
        error, MS_EUSAGE,
        "--device-memory is larger than --host-memory, of which it is a part with --device cpu");
  *machine = (struct ms_machine){
      .threads = (int)args->threads,
      .reference = args->reference,
      .host_memory = args->host_memory,
      .device_memory = args->device_memory,
      .data_folder = folders->data,
      .user_folder = folders->user_models,
  };
  return 0;
}
