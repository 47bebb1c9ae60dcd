#include "stream/placement.h"

#include <stdlib.h>
#include <string.h>

#include "stream/shard-store.h"

#define LARGEST_PIECE ((int64_t)4 << 20)
#define SMALLEST_PIECE ((int64_t)64 << 10)
/* Smaller pieces make the requests of the disk so short that it slows down: layers give way first. */
#define GOOD_PIECE ((int64_t)1 << 20)
/* Pieces of a small layer, so that reading, updating and writing overlap within it. */
#define PIECES_OF_A_LAYER 4
#define RING 4
#define GRADIENTS 2

static uint64_t aligned(uint64_t bytes) {
  return (bytes + MS_PLACEMENT_ALIGN - 1) / MS_PLACEMENT_ALIGN * MS_PLACEMENT_ALIGN;
}

static uint64_t region(int64_t count, double bytes) {
  return aligned((uint64_t)((double)count * bytes));
}

static double weight_bytes(const struct ms_placement_job *job) {
  return job->weight_bytes > 0 ? job->weight_bytes : 2;
}

static double gradient_bytes(const struct ms_placement_job *job) {
  if (!job->training)
    return 0;
  return job->gradient_bytes > 0 ? job->gradient_bytes : job->device ? 2 : 4;
}

double ms_placement_state_bytes(const struct ms_placement_job *job) {
  double bytes = 2 + (job->moment_bits == 8 ? 2 + 8.0 / MSK_ADAMW_BLOCK : 8) + (job->average ? 4 : 0);
  return job->training ? bytes : 0;
}

uint64_t ms_placement_piece_bytes(const struct ms_placement_job *job, int64_t piece) {
  return ms_state_block_bytes(job->moment_bits, job->average, piece);
}

uint64_t ms_placement_home_bytes(const struct ms_placement_job *job, int64_t piece, int64_t count,
                                 int64_t trained) {
  uint64_t bytes = region(count, weight_bytes(job)), pieces = (uint64_t)((trained + piece - 1) / piece);
  if (!job->training)
    return bytes;
  return bytes + pieces * ms_placement_piece_bytes(job, piece) + region(trained, gradient_bytes(job));
}

static int64_t trained_of(const struct ms_placement_job *job, int layer) {
  return !job->training ? 0 : job->trained ? job->trained[layer] : job->counts[layer];
}

/* What the search varies. */
struct choice {
  enum ms_input_home inputs;
  int host_layers;
  int slots, ring;
  int64_t piece;
};

/* Whether layer `l` is one of `host` layers spread over `layers`. */
static int at_home_in_host(int l, int host, int layers) {
  return (int64_t)(l + 1) * host / layers > (int64_t)l * host / layers;
}

static uint64_t sum(const struct ms_placement_bytes *b) {
  return b->fixed + b->working + b->outer + b->layers + b->slots + b->ring + b->gradients + b->inputs;
}

/* The numbers of buffers and bytes of all tiers under a choice. */
static void fill(struct ms_placement *p, const struct ms_placement_job *job, const struct choice *c) {
  int disk = c->host_layers < job->layers, trains = job->training;
  int64_t largest = 0, most_trained = 0;
  uint64_t input = aligned(job->input_bytes);
  double weight = weight_bytes(job), gradient = gradient_bytes(job), state = ms_placement_state_bytes(job);
  memset(&p->host, 0, sizeof p->host);
  memset(&p->device, 0, sizeof p->device);
  memset(&p->disk, 0, sizeof p->disk);
  p->host_layers = c->host_layers;
  p->disk_traffic = 0;
  for (int l = 0; l < job->layers; l++) {
    int64_t count = job->counts[l], trained = trained_of(job, l);
    uint64_t home = ms_placement_home_bytes(job, c->piece, count, trained);
    largest = count > largest ? count : largest;
    most_trained = trained > most_trained ? trained : most_trained;
    if (at_home_in_host(l, c->host_layers, job->layers)) {
      p->host.layers += home;
    } else { /* forward: all, updated and written back; backward: weights, and the gradient */
      p->disk.layers += trains ? home : 0;
      p->disk_traffic +=
          (double)count * weight * (trains ? 2 : 1) + (double)trained * (weight + 2 * state + 2 * gradient);
    }
  }
  p->slot_bytes = region(largest, weight) + 2 * MS_PLACEMENT_ALIGN; /* reads begin and end between pages */
  p->ring_bytes = ms_placement_piece_bytes(job, c->piece) + region(c->piece, gradient);
  p->gradient_bytes = region(most_trained, gradient);
  p->host_slots = disk || (trains && job->average) ? c->slots : 0;
  p->device_slots = job->device ? c->slots : 0;
  p->ring = disk && most_trained > 0 ? c->ring : 0;
  p->host_gradients = trains && disk ? GRADIENTS : 0;
  p->device_gradients = job->device && trains ? GRADIENTS : 0;
  p->host_inputs = p->device_inputs = 0;
  if (trains && c->inputs == MS_INPUT_DEVICE)
    p->device_inputs = job->layers + 1;
  else if (trains) {
    p->device_inputs = job->device ? MS_PLACEMENT_INPUTS : 0;
    p->host_inputs = c->inputs == MS_INPUT_HOST ? job->layers + 1 : MS_PLACEMENT_INPUTS;
  }
  p->host.fixed = job->host_fixed;
  *(job->device ? &p->device.working : &p->host.working) = job->working;
  p->host.outer = ms_placement_home_bytes(job, c->piece, job->outer, trains ? job->outer_trained : 0);
  if (trains)
    p->host.outer += region(job->outer_trained, gradient) + (job->average ? region(job->outer, weight) : 0);
  if (job->device)
    p->device.outer = region(job->outer, weight) + (trains ? region(job->outer_trained, gradient) : 0);
  p->host.slots = (uint64_t)p->host_slots * p->slot_bytes;
  p->device.slots = (uint64_t)p->device_slots * p->slot_bytes;
  p->host.ring = (uint64_t)p->ring * p->ring_bytes;
  p->host.gradients = (uint64_t)p->host_gradients * p->gradient_bytes;
  p->device.gradients = (uint64_t)p->device_gradients * p->gradient_bytes;
  p->host.inputs = (uint64_t)p->host_inputs * input;
  p->device.inputs = (uint64_t)p->device_inputs * (job->slab_bytes ? aligned(job->slab_bytes) : input);
  if (trains && c->inputs == MS_INPUT_DISK) {
    int written = job->layers - MS_PLACEMENT_INPUTS + 1; /* the last ones stay in their buffers */
    p->disk.inputs = (uint64_t)job->layers * input;
    p->disk_traffic += written > 0 ? 2.0 * written * (double)input : 0;
  }
  p->host_bytes = sum(&p->host);
  p->disk_bytes = sum(&p->disk);
  p->device_bytes = sum(&p->device);
  if (!job->device)
    p->device_bytes = p->host.working + p->host.slots + (c->inputs == MS_INPUT_DISK ? p->host.inputs : 0);
  p->params.inputs = c->inputs;
  p->params.slots = c->slots;
  p->params.ring = c->ring;
  p->params.piece = c->piece;
}

static uint64_t over(uint64_t bytes, uint64_t budget) {
  return budget && bytes > budget ? bytes - budget : 0;
}

/* By how much the tier that lacks most falls short. */
static uint64_t shortage(const struct ms_placement *p, const struct ms_placement_job *job) {
  uint64_t host = over(p->host_bytes, job->host_budget), device = over(p->device_bytes, job->device_budget);
  return host > device ? host : device;
}

static int fits(struct ms_placement *p, const struct ms_placement_job *job, const struct choice *c) {
  fill(p, job, c);
  return !over(p->host_bytes, job->host_budget) && !over(p->device_bytes, job->device_budget);
}

/* Pieces of about `wanted` parameters, not longer than makes sense for the largest layer, which they cut into
 * equal parts: what the last one lacks is memory that nothing uses. */
static int64_t piece_for(const struct ms_placement_job *job, int64_t wanted) {
  int64_t most = 1, pieces;
  for (int l = 0; l < job->layers; l++)
    most = trained_of(job, l) > most ? trained_of(job, l) : most;
  pieces = (most + wanted - 1) / wanted;
  if (pieces < PIECES_OF_A_LAYER)
    pieces = most / SMALLEST_PIECE < 1                   ? 1
             : most / SMALLEST_PIECE < PIECES_OF_A_LAYER ? most / SMALLEST_PIECE
                                                         : PIECES_OF_A_LAYER;
  most = (most + pieces - 1) / pieces;
  most = most < SMALLEST_PIECE ? SMALLEST_PIECE : most;
  return (most + MS_PLACEMENT_ALIGN - 1) / MS_PLACEMENT_ALIGN * MS_PLACEMENT_ALIGN;
}

/* The best choice with the inputs where c->inputs says. 0: none fits, and c is the smallest. */
static int search(struct ms_placement *p, const struct ms_placement_job *job, struct choice *c) {
  struct choice whole;
  uint64_t least;
  c->slots = 2;
  c->ring = RING;
  c->piece = piece_for(job, GOOD_PIECE);
  for (c->host_layers = job->layers; c->host_layers >= 0; c->host_layers--)
    if (fits(p, job, c))
      return 1;
  c->host_layers = 0;
  while (c->piece > SMALLEST_PIECE) {
    c->piece =
        c->piece / 2 < SMALLEST_PIECE ? SMALLEST_PIECE : c->piece / 2 / SMALLEST_PIECE * SMALLEST_PIECE;
    if (fits(p, job, c))
      return 1;
  }
  while (c->ring > 2) {
    c->ring--;
    if (fits(p, job, c))
      return 1;
  }
  /* layers that are all in the host need no slots, which may be what is short */
  least = shortage(p, job);
  whole = *c;
  whole.host_layers = job->layers;
  fill(p, job, &whole);
  if (shortage(p, job) < least)
    *c = whole;
  fill(p, job, c);
  return 0;
}

/* Larger buffers from what the layers leave. */
static void grow(struct ms_placement *p, const struct ms_placement_job *job, struct choice *c) {
  struct choice more = *c;
  for (int64_t piece = LARGEST_PIECE; piece > c->piece; piece /= 2) {
    more.piece = piece_for(job, piece);
    if (more.piece > c->piece && fits(p, job, &more)) {
      *c = more;
      break;
    }
  }
  more = *c;
  more.slots = 3;
  if (fits(p, job, &more))
    *c = more;
}

static int copy(struct ms_placement *p, const struct ms_placement_job *job) {
  size_t layers = (size_t)job->layers;
  int64_t *counts = malloc(layers * sizeof *counts), *trained = malloc(layers * sizeof *trained);
  enum ms_home *homes = malloc(layers * sizeof *homes);
  p->params.counts = counts;
  p->params.trained = trained;
  p->params.homes = homes;
  if (!counts || !trained || !homes)
    return MS_ENOMEM;
  for (int l = 0; l < job->layers; l++) {
    counts[l] = job->counts[l];
    trained[l] = trained_of(job, l);
    homes[l] = at_home_in_host(l, p->host_layers, job->layers) ? MS_HOME_HOST : MS_HOME_DISK;
  }
  return 0;
}

int ms_placement_make(struct ms_placement *p, const struct ms_placement_job *job, struct ms_error *error) {
  static const enum ms_input_home homes[] = {MS_INPUT_DEVICE, MS_INPUT_HOST, MS_INPUT_DISK};
  struct choice best = {0};
  double least = 0;
  uint64_t host, device;
  memset(p, 0, sizeof *p);
  if (job->layers < 1 || (job->training && job->moment_bits != 32 && job->moment_bits != 8))
    return ms_error_set(error, MS_EUSAGE, "%d layers with moments of %d bits cannot be placed", job->layers,
                        job->moment_bits);
  p->params = ms_schedule_params_default();
  for (size_t i = job->device && !job->slab_bytes ? 0 : 1; i < sizeof homes / sizeof *homes; i++) {
    struct choice c = {.inputs = homes[i]};
    int found = search(p, job, &c);
    if (found && (!p->fits || p->disk_traffic < least)) {
      best = c;
      least = p->disk_traffic;
      p->fits = 1;
    } else if (!found && !p->fits && (!p->short_bytes || shortage(p, job) < p->short_bytes)) {
      best = c; /* the one that lacks least, as long as none fits */
      p->short_bytes = shortage(p, job);
    }
    if (!job->training)
      break; /* no inputs wait */
  }
  if (p->fits)
    grow(p, job, &best);
  fill(p, job, &best);
  if (p->fits) {
    p->short_bytes = 0;
  } else {
    host = over(p->host_bytes, job->host_budget);
    device = over(p->device_bytes, job->device_budget);
    p->short_of = host >= device ? "host" : "device";
    p->short_bytes = host >= device ? host : device;
  }
  p->params.layers = job->layers;
  p->params.outer = job->outer;
  p->params.outer_trained = job->training ? job->outer_trained : 0;
  p->params.device = job->device;
  p->params.gradient_buffers = GRADIENTS;
  p->params.input_bytes = job->training ? (double)job->input_bytes : 0;
  p->params.weight_bytes = weight_bytes(job);
  p->params.state_bytes = ms_placement_state_bytes(job);
  p->params.gradient_bytes = gradient_bytes(job);
  p->params.average_bytes = job->training && job->average ? 4 : 0;
  p->params.update = p->params.backward = job->training ? 1 : 0;
  p->params.forward = 1;
  if (copy(p, job) < 0) {
    ms_placement_release(p);
    return ms_error_set(error, MS_ENOMEM, "out of memory while placing a model");
  }
  return 0;
}

void ms_placement_release(struct ms_placement *p) {
  free((void *)p->params.counts);
  free((void *)p->params.trained);
  free((void *)p->params.homes);
  memset(p, 0, sizeof *p);
}
