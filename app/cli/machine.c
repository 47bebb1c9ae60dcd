#include "machine.h"

#include <string.h>

#include "ms-models.h"

int msa_machine_from_args(const struct msa_machine_args *args, const char *data_folder,
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
      .data_folder = data_folder,
  };
  return 0;
}

int msa_find_model(const char *name, const char *data_folder, char *folder, size_t size,
                   struct ms_error *error) {
  char user_folder[4096];
  msa_user_models_folder(user_folder, sizeof user_folder);
  return ms_model_find(name, data_folder, user_folder, folder, size, error);
}
