/* What a job will need and how long it will take, known before anything is allocated.
 *
 *   struct ms_rates rates;
 *   struct ms_plan plan;
 *   if (ms_rates_load (&rates, cache_path, &machine, NULL) < 0 &&
 *       (code = ms_rates_measure (&rates, &machine, scratch_folder, NULL, &error)) == 0)
 *     ms_rates_save (&rates, cache_path, NULL);
 *   job.width = 320; job.height = 192; job.frames = 97;
 *   if (ms_plan_generate (&job, &machine, &rates, &plan, &error) == 0 && !plan.fits)
 *     ... plan.short_of, plan.short_bytes, plan.suggestions ...
 *
 * Plans are arithmetic on a model's configuration: no weights are read, so one of 105 G parameters is planned
 * like a small one. A plan takes a few milliseconds, keeps nothing, and any number of threads may make plans
 * at once. Where a model does not fit, its layers lie on the disk and pass through memory, and the plan says
 * which parts lie where, what moves in a step, and how much of that no computing hides: a step is simulated
 * with the schedule that the trainer follows.
 *
 * `model` of a job is a model's name or folder, or the path of a configuration file (one that ends in
 * ".json", such as data/configs/megaslide-105b.json). What a job leaves open comes from the model. A prompt
 * and an output are not needed; if an output is named, the free space of its folder is looked at. */
#pragma once
#include "ms-generate.h"
#include "ms-train.h"

/* How fast DiT layers of one width go, all threads together. FLOPs are counted as model FLOPs (multiply-adds
 * twice). Everything else that a layer does (norms, rotation, packing) is inside these figures. */
struct ms_layer_rates {
  int dim;              /* channels that the figures were measured at */
  double product;       /* FLOP/s of matrix products and cross-attention in a forward pass */
  double dense, slide;  /* FLOP/s of dense and window attention, of 3D-DSA with its offset head */
  double train_product; /* the same in a step of training: model FLOPs (three times the forward pass's) */
  double train_dense, train_slide; /* over the seconds of both passes */
};

struct ms_rates {
  char name[128];   /* the processor's, or the hardware profile's */
  char version[32]; /* of the program that measured */
  int threads;
  int profile; /* 1: from a hardware profile; the machine's own memory and disk are not looked at */
  /* What a machine of the profile has, in bytes; 0: no limit known. device_memory 0: computes in the host. */
  uint64_t host_memory, device_memory, disk_free;
  struct ms_layer_rates layers[2]; /* of 256 and 1536 channels; other widths lie between or beside them */
  double layer_seconds;            /* fixed cost of one layer of one pass */
  double decode, encode;           /* FLOP/s of the codec's decoder and encoder */
  double video;                    /* pixels a second that are compressed, written and verified */
  double video_seconds;            /* fixed cost of a file */
  double gradient;                 /* parameters a second whose gradients a pass of training adds up */
  double memory;                   /* bytes a second of host memory in AdamW's access pattern */
  double pack; /* parameters a second packed for the kernels in one direction; 0: nothing is packed */
  double load; /* bytes of weights a second: read and packed */
  double peak; /* FLOP/s of bf16 products that the processor or device can do at most; 0: not known */
  double link; /* bytes a second between host and device, each way; 0: there is none */
  /* Bytes a second of the disk in requests of some MiB past the page cache; both: of reading and writing at
   * once, together (0: they do not disturb each other). 0: not known. */
  double disk_read, disk_write, disk_both;
};

/* Measures this machine in about two seconds. Small files are written to `folder` (an existing one) and
 * removed. 0, MS_ENOMEM, MS_EOUTPUT, MS_ECANCELLED. */
int ms_rates_measure(struct ms_rates *rates, const struct ms_machine *machine, const char *folder,
                     const struct ms_hooks *hooks, struct ms_error *error);
/* Reads rates that were saved. With a machine they must have been measured by this version of the program on
 * this processor with as many threads, else MS_EINPUT and they should be measured anew. machine NULL: the
 * file is a hardware profile (data/hardware/). MS_EINPUT: no such file, or a key is missing or out of range.
 */
int ms_rates_load(struct ms_rates *rates, const char *path, const struct ms_machine *machine,
                  struct ms_error *error);
/* Written whole or not at all; the folder must exist. MS_EOUTPUT. */
int ms_rates_save(const struct ms_rates *rates, const char *path, struct ms_error *error);

enum ms_plan_change { MS_PLAN_SIZE, MS_PLAN_FRAMES, MS_PLAN_BATCH, MS_PLAN_MOMENTS };

/* Settings near the asked ones that fit: one thing changed, everything else as asked. */
struct ms_plan_suggestion {
  enum ms_plan_change change;
  int width, height, frames, batch; /* all of them, changed or not; batch 0: of a clip that is generated */
  int moment_bits;                  /* train: 32 or 8 */
  uint64_t host_bytes, device_bytes;
  double seconds; /* as of the plan */
};

#define MS_PLAN_SUGGESTIONS 4

/* What one tier (host, device, disk) holds at once, in bytes. */
struct ms_plan_tier {
  uint64_t fixed;      /* program, codec, text encoder, clips, latents, frames */
  uint64_t working;    /* activations, and weights as the kernels read them */
  uint64_t outer;      /* what belongs to no layer: weights, state, gradient */
  uint64_t layers;     /* weights, state and gradients of the layers that are at home there */
  uint64_t buffers;    /* of weights, state and gradients of layers that pass through */
  uint64_t inputs;     /* of layers, which wait for the backward pass */
  uint64_t checkpoint; /* disk: one, and the model that is written */
};

/* What works beside what: each does one thing at a time. */
enum ms_plan_lane {
  MS_PLAN_READ,      /* disk to host */
  MS_PLAN_WRITE,     /* host to disk */
  MS_PLAN_OPTIMIZER, /* AdamW, in the host */
  MS_PLAN_UP,        /* host to device */
  MS_PLAN_DOWN,      /* device to host */
  MS_PLAN_COMPUTE,   /* layers */
  MS_PLAN_LANES
};

struct ms_plan {
  /* what the job comes to, its open settings filled in from the model */
  int width, height, frames, steps, batch;
  int moment_bits; /* train: 32 or 8 */
  double fps;
  int64_t parameters;      /* of the DiT */
  int64_t tokens;          /* of one clip's lattice at full size, padding included */
  int64_t tokens_per_step; /* train: of all clips of a step; generate: `tokens` */
  double flops;            /* executed, recomputation included: of the clip, or of one step of training */
  double model_flops;      /* the same without recomputation */
  uint64_t host_bytes;     /* peak of the process, programs and libraries included */
  uint64_t device_bytes;   /* peak on the device; where the host computes the part of host_bytes that the
                              computing itself takes */
  uint64_t disk_bytes;     /* written at most at one time: clip and states; working state and a checkpoint */
  uint64_t moved_bytes;    /* between disk, host and device: of the clip, or of one step */
  uint64_t host_budget, device_budget, disk_free; /* what they are held against; 0: no limit known */
  double seconds;     /* of the clip, loading and file included; train: of one step */
  double job_seconds; /* train: of all steps, loading and checkpoints included; generate: `seconds` */
  double exposed_transfer_seconds; /* of `seconds`: the computing waits for the disk, the link or, on a
                                      device, the optimizer */
  double load_seconds, decode_seconds, encode_seconds; /* of the clip: model, codec's decoder, video file */
  int stage_count; /* generate: its stages, with the seconds of each (enlarging into it included) */
  struct ms_generate_stage stages[MS_GENERATE_MAX_STAGES];
  double stage_seconds[MS_GENERATE_MAX_STAGES];
  /* where everything lies */
  int layers, host_layers; /* and how many are at home in memory */
  int streamed;            /* layers pass through buffers: some lie on the disk, or a device computes */
  const char *inputs;      /* train: "device", "host" or "disk": where inputs of layers wait */
  int slab_frames; /* a layer is computed over so many latent frames at a time, its neighbours beside them,
                      and its inputs and outputs stay in the host; 0: over all of them */
  struct ms_plan_tier host, device, disk;
  uint64_t state_bytes;      /* weights, low words, moments and average of all that is trained, wherever */
  uint64_t checkpoint_bytes; /* of one of the checkpoints that stay */
  /* of a step, or of a clip's sampling: how long each lane works, and what it moves */
  double lane_seconds[MS_PLAN_LANES], lane_bytes[MS_PLAN_LANES];
  double mfu, hfu; /* model_flops and flops over seconds (generate: of sampling) and peak; 0: not known */
  int fits;
  const char *short_of; /* "host", "device" or "disk"; NULL: it fits */
  uint64_t short_bytes; /* by how much */
  int suggestion_count; /* 0: it fits, or nothing near does */
  struct ms_plan_suggestion suggestions[MS_PLAN_SUGGESTIONS];
};
const char *ms_plan_lane_name(enum ms_plan_lane lane); /* "read", "write", "optimizer", "up", ... */

/* 0 whether it fits or not, or MS_EUSAGE (a value that cannot be), MS_EINPUT (model), MS_ENOMEM. rates must
 * be known; machine->host_memory 0: 70 % of what is available now, or of what the profile has. Threads: any.
 * Does not block beyond reading the model's description. */
int ms_plan_generate(const struct ms_generate_job *job, const struct ms_machine *machine,
                     const struct ms_rates *rates, struct ms_plan *plan, struct ms_error *error);
/* The same for a training job. clips: how many clips the data set has, 0: not known, then a few dozen are
 * assumed. */
int ms_plan_train(const struct ms_train_job *job, int64_t clips, const struct ms_machine *machine,
                  const struct ms_rates *rates, struct ms_plan *plan, struct ms_error *error);

/* One figure of the arithmetic that bounds a step of a model on a machine, whoever trains it: tokens,
 * products, bytes of weights, state and inputs, and how long a machine takes to move them. N below are the
 * parameters of the layers, T the tokens of one clip. */
struct ms_plan_bound {
  const char *name; /* English */
  const char *unit; /* "tokens", "FLOP", "bytes", "s", "times", "FLOP a token and layer" */
  double value;
};

/* One simulated step. */
struct ms_plan_trial {
  int sync;               /* every operation waits for the one before it */
  double parameter_bytes; /* of weight, master and moments together: 12 (split master), 14 (weight beside a
                             float32 master), 6 (split master, 8-bit moments) */
  double link;            /* bytes a second; 0: no device */
  int pcie;               /* 4 or 5, that link; 0: no device */
  int disk;               /* all layers lie on the disk; 0: in the host */
  const char *inputs;     /* "device", "host", "disk" */
  uint64_t host_bytes;    /* state, gradients and inputs that lie in the host */
  int fits;               /* within all of the host's memory */
  int64_t tokens;
  double seconds, exposed_transfer_seconds, lane_seconds[MS_PLAN_LANES];
  double mfu, hfu; /* 0: the machine's peak is not known */
};

struct ms_plan_study {
  void *data;
  void (*bound)(void *data, const struct ms_plan_bound *bound);
  void (*trial)(void *data, const struct ms_plan_trial *trial);
};

/* The bounds of a training job, and its step over synchronous and asynchronous lanes, layouts of the state,
 * links, homes of the layers, and clips from a thousand tokens up to the job's own (batch 1). Memory limits
 * do not apply to the layers; inputs go to the disk where the host has no room. Errors as of ms_plan_train.
 */
int ms_plan_train_study(const struct ms_train_job *job, const struct ms_machine *machine,
                        const struct ms_rates *rates, const struct ms_plan_study *study,
                        struct ms_error *error);
