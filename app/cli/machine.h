/* The flags that say which part of the machine a job may use, the same for every command that computes. */
#pragma once
#include "command.h"

struct msa_machine_args {
  const char *device; /* "cpu", "cuda"; default "cpu" */
  int64_t threads;
  size_t host_memory, device_memory;
  int reference;
};

#define MSA_MACHINE_OPTIONS(args, field)                                                                     \
  {"device",                                                                                                 \
   0,                                                                                                        \
   MSA_OPTION_CHOICE,                                                                                        \
   offsetof(args, field.device),                                                                             \
   .choices = "cpu|cuda",                                                                                    \
   .help = "where to compute (cpu)"},                                                                        \
      {"threads",        0,                                                                                  \
       MSA_OPTION_WHOLE, offsetof(args, field.threads),                                                      \
       .argument = "N",  .help = "processors to use (all); the result does not depend on it",                \
       .least = 1,       .most = 4096},                                                                      \
      {"host-memory",      0,                                                                                \
       MSA_OPTION_BYTES,   offsetof(args, field.host_memory),                                                \
       .argument = "SIZE", .help = "most memory in use at any time, e.g. 2G (70 % of what is free)"},        \
      {"device-memory",    0,                                                                                \
       MSA_OPTION_BYTES,   offsetof(args, field.device_memory),                                              \
       .argument = "SIZE", .help = "most memory on the device; with cpu a part of --host-memory"},           \
  {                                                                                                          \
    "reference", 0, MSA_OPTION_FLAG, offsetof(args, field.reference),                                        \
        .help = "use the slow reference kernels, to look for faults"                                         \
  }

/* The folders that a job is given. */
struct msa_folders {
  char data[4096], user_models[4096];
};
void msa_folders_find(struct msa_folders *folders);

/* Fills in what the engine is given; folders must live as long. MS_EDEVICE if there is no such device,
 * MS_EUSAGE if the memory sizes contradict each other. */
int msa_machine_from_args(const struct msa_machine_args *args, const struct msa_folders *folders,
                          struct ms_machine *machine, struct ms_error *error);
