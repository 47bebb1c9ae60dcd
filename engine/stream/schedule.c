#include "stream/schedule.h"

#include <stdlib.h>
#include <string.h>

#define PIECE ((int64_t)4 << 20)
#define MOST_SLOTS 64
/* Inputs of layers that a ring holds: the one that is read, the one that is written, one under way. */
#define INPUTS 3

struct ms_schedule_params ms_schedule_params_default(void) {
  return (struct ms_schedule_params){.piece = PIECE,
                                     .slots = 2,
                                     .ring = 4,
                                     .gradient_buffers = 2,
                                     .weight_bytes = 2,
                                     .state_bytes = 10,
                                     .gradient_bytes = 4,
                                     .forward = 1};
}

const char *ms_lane_name(enum ms_lane lane) {
  static const char *const names[MS_LANES] = {"read", "write", "optimizer", "up", "down", "compute"};
  return names[lane];
}

const char *ms_op_name(enum ms_op_kind kind) {
  static const char *const names[MS_OPS] = {"read state",    "read average",   "update",        "write state",
                                            "write weights", "read weights",   "copy weights",  "forward",
                                            "backward",      "copy input out", "write input",   "read input",
                                            "copy input in", "copy gradient",  "write gradient"};
  return names[kind];
}

/* A buffer that is used again: what must be over before it is. */
struct place {
  int layer;    /* whose it is; -2: nobody's */
  int last[3];  /* operations that used it last; -1: none */
  int position; /* of its last use among those of all places: the oldest is taken next */
};

struct making {
  struct ms_schedule *schedule;
  const struct ms_schedule_params *params;
  struct place host[MOST_SLOTS], device[MOST_SLOTS], ring[MOST_SLOTS], gradients[MOST_SLOTS], inputs[INPUTS];
  int turns, ring_next, gradient_next;
  int weights;    /* the operation after which the layer at work has its weights; -1: it has them */
  int kept_input; /* DOWN_INPUT and WRITE_INPUT of the layer at work, or -1 */
  int failed;
};

static void clear(struct place *places, int count) {
  for (int i = 0; i < count; i++)
    places[i] = (struct place){-2, {-1, -1, -1}, 0};
}

static struct ms_op *add(struct making *m, enum ms_op_kind kind, enum ms_lane lane, int layer) {
  struct ms_schedule *s = m->schedule;
  struct ms_op *op;
  if (s->count == s->room) {
    int room = s->room ? s->room * 2 : 1024;
    struct ms_op *ops = realloc(s->ops, (size_t)room * sizeof *ops);
    if (!ops) {
      m->failed = 1;
      s->count = 0; /* what follows is thrown away */
    } else {
      s->ops = ops;
      s->room = room;
    }
  }
  op = &s->ops[s->count++];
  *op = (struct ms_op){.kind = kind, .lane = lane, .layer = layer, .piece = -1, .slot = -1, .buffer = -1};
  if (m->params->sync && s->count > 1) {
    op->needs[0] = s->count - 2;
    op->need_count = 1;
  }
  return op;
}

static int index_of(const struct making *m, const struct ms_op *op) {
  return (int)(op - m->schedule->ops);
}

static void need(struct making *m, struct ms_op *op, int other) {
  int i;
  if (other < 0 || (m->params->sync && other <= index_of(m, op)))
    return;
  for (i = 0; i < op->need_count; i++)
    if (op->needs[i] == other || m->schedule->ops[op->needs[i]].lane == m->schedule->ops[other].lane)
      break; /* of two operations of a lane the later is enough */
  if (i == op->need_count)
    op->needs[op->need_count++] = other;
  else if (op->needs[i] < other)
    op->needs[i] = other;
}

static void need_place(struct making *m, struct ms_op *op, const struct place *place) {
  for (int i = 0; i < 3; i++)
    need(m, op, place->last[i]);
}

/* op is a use of the place: by kind of use 0 compute, 1 write, 2 the rest. */
static void use(struct making *m, struct place *place, int kind, const struct ms_op *op) {
  if (place)
    place->last[kind] = index_of(m, op);
}

static struct place *find(struct place *places, int count, int layer) {
  for (int i = 0; i < count; i++)
    if (places[i].layer == layer)
      return &places[i];
  return NULL;
}

/* The place that was taken the longest ago. */
static struct place *oldest(struct making *m, struct place *places, int count) {
  struct place *best = places;
  for (int i = 1; i < count; i++)
    if (places[i].position < best->position)
      best = &places[i];
  best->position = ++m->turns;
  return best;
}

static enum ms_home home_of(const struct making *m, int layer) {
  return m->params->homes ? m->params->homes[layer] : MS_HOME_HOST;
}

static int64_t trained_of(const struct ms_schedule_params *p, int layer) {
  if (layer < 0)
    return p->outer_trained;
  return p->trained ? p->trained[layer] : p->counts[layer];
}

/* Parts of the layer are updated by other ranks. */
static int is_gathered(const struct ms_schedule_params *p, int layer) {
  return p->gathered && p->gathered[layer] > 0;
}

static int64_t count_of(const struct ms_schedule_params *p, int layer) {
  return layer < 0 ? p->outer : p->counts[layer];
}

static void move(struct making *m, struct ms_op *op, double bytes) {
  op->bytes = bytes;
  m->schedule->bytes[op->lane] += bytes;
}

/* One piece of a layer's update, or of its average on the way into a slot. */
static void add_piece(struct making *m, int layer, int piece, int64_t begin, int64_t count,
                      struct place *slot) {
  const struct ms_schedule_params *p = m->params;
  int disk = layer >= 0 && home_of(m, layer) == MS_HOME_DISK, at = slot ? (int)(slot - m->host) : -1;
  struct place *ring = NULL;
  int before = -1;
  struct ms_op *op;
  if (disk) {
    ring = &m->ring[m->ring_next];
    m->ring_next = (m->ring_next + 1) % p->ring;
    op = add(m, p->average ? MS_OP_READ_AVERAGE : MS_OP_READ_STATE, MS_LANE_READ, layer);
    op->piece = piece;
    op->begin = begin;
    op->count = count;
    op->slot = at;
    op->buffer = (int)(ring - m->ring);
    need_place(m, op, ring);
    if (piece == 0)
      need_place(m, op, slot);
    move(m, op,
         (double)count *
             (p->average ? p->average_bytes : p->weight_bytes + p->state_bytes + p->gradient_bytes));
    before = index_of(m, op);
  }
  op = add(m, MS_OP_UPDATE, MS_LANE_HOST, layer);
  op->piece = piece;
  op->begin = begin;
  op->count = count;
  op->slot = at;
  op->buffer = ring ? (int)(ring - m->ring) : -1;
  need(m, op, before);
  if (!disk && slot && piece == 0)
    need_place(m, op, slot);
  if (!p->average)
    m->schedule->updated += (double)count;
  m->weights = before = index_of(m, op);
  if (ring)
    ring->last[2] = before;
  if (disk && !p->average) {
    op = add(m, MS_OP_WRITE_STATE, MS_LANE_WRITE, layer);
    op->piece = piece;
    op->begin = begin;
    op->count = count;
    op->slot = at;
    op->buffer = (int)(ring - m->ring);
    need(m, op, before);
    move(m, op, (double)count * (p->weight_bytes + p->state_bytes));
    use(m, ring, 1, op);
    m->weights = before;
  }
}

static void add_pieces(struct making *m, int layer, struct place *slot) {
  const struct ms_schedule_params *p = m->params;
  int64_t total = count_of(p, layer);
  int pieces = 0;
  for (int64_t at = total - trained_of(p, layer); at < total; at += p->piece)
    add_piece(m, layer, pieces++, at, total - at < p->piece ? total - at : p->piece, slot);
}

/* Weights of a layer in memory that can be computed from: the home itself, or a slot, read if it is not
 * there. Returns the host slot or NULL. */
static struct place *fetch(struct making *m, int layer, int forward) {
  const struct ms_schedule_params *p = m->params;
  int disk = home_of(m, layer) == MS_HOME_DISK;
  int updating = forward && (p->update || p->average) && trained_of(p, layer) > 0;
  int averaging = forward && p->average && (updating || is_gathered(p, layer));
  struct place *slot = NULL;
  struct ms_op *op;
  m->weights = -1;
  if (disk || averaging) {
    slot = find(m->host, p->slots, layer);
    if (slot) {
      slot->position = ++m->turns;
      return slot;
    }
    slot = oldest(m, m->host, p->slots);
    /* what is not updated of a layer is read as it is, before the pieces; all of it if nothing is */
    if (disk && (!updating || trained_of(p, layer) < p->counts[layer])) {
      op = add(m, MS_OP_READ_WEIGHTS, MS_LANE_READ, layer);
      op->slot = (int)(slot - m->host);
      op->count = p->counts[layer] - (updating ? trained_of(p, layer) : 0);
      need_place(m, op, slot);
      move(m, op, (double)op->count * p->weight_bytes);
      m->weights = index_of(m, op);
      if (updating) /* the pieces wait for the slot through it */
        slot->last[2] = m->weights;
    }
  }
  if (updating)
    add_pieces(m, layer, slot);
  if (slot) {
    slot->layer = layer;
    slot->last[0] = slot->last[2] = -1;
    slot->last[1] = -1;
    if (m->weights >= 0)
      slot->last[2] = m->weights;
    if (m->schedule->count && m->schedule->ops[m->schedule->count - 1].kind == MS_OP_WRITE_STATE)
      slot->last[1] = m->schedule->count - 1;
  }
  return slot;
}

/* The same on the device: returns its slot there. */
static struct place *lift(struct making *m, int layer, struct place *host) {
  const struct ms_schedule_params *p = m->params;
  struct place *slot = find(m->device, p->slots, layer);
  struct ms_op *op;
  if (slot) {
    slot->position = ++m->turns;
    m->weights = -1;
    return slot;
  }
  slot = oldest(m, m->device, p->slots);
  op = add(m, MS_OP_UP_WEIGHTS, MS_LANE_UP, layer);
  op->slot = (int)(slot - m->device);
  need(m, op, m->weights);
  need_place(m, op, slot);
  move(m, op, (double)p->counts[layer] * p->weight_bytes);
  *slot = (struct place){layer, {-1, -1, index_of(m, op)}, slot->position};
  use(m, host, 2, op);
  m->weights = index_of(m, op);
  return slot;
}

static struct place *input_of(struct making *m, int layer) {
  return m->params->inputs == MS_INPUT_DEVICE || !m->params->backward ? NULL : &m->inputs[layer % INPUTS];
}

/* The backward pass begins with the inputs that are still there. */
static int is_kept(const struct making *m, int layer) {
  return layer <= m->params->layers - INPUTS;
}

/* Layer `layer`'s input has been made by `maker`: it is put away. */
static void put_input(struct making *m, int layer, int maker) {
  const struct ms_schedule_params *p = m->params;
  struct place *input = input_of(m, layer);
  struct ms_op *op;
  int before = maker;
  if (!input)
    return;
  *input = (struct place){layer, {maker, -1, -1}, 0};
  if (!is_kept(m, layer))
    return;
  if (p->device) {
    op = add(m, MS_OP_DOWN_INPUT, MS_LANE_DOWN, layer);
    op->buffer = layer % INPUTS;
    need(m, op, before);
    move(m, op, p->input_bytes);
    use(m, input, 2, op);
    before = index_of(m, op);
  }
  if (p->inputs == MS_INPUT_DISK) {
    op = add(m, MS_OP_WRITE_INPUT, MS_LANE_WRITE, layer);
    op->buffer = layer % INPUTS;
    need(m, op, before);
    move(m, op, p->input_bytes);
    use(m, input, 1, op);
  }
}

/* Brings a layer's input back; returns the operation after which it is there, or -1. */
static int take_input(struct making *m, int layer) {
  const struct ms_schedule_params *p = m->params;
  struct place *input = input_of(m, layer);
  struct ms_op *op;
  int before = -1;
  if (!input || input->layer == layer)
    return -1;
  if (p->inputs == MS_INPUT_DISK) {
    op = add(m, MS_OP_READ_INPUT, MS_LANE_READ, layer);
    op->buffer = layer % INPUTS;
    need_place(m, op, input);
    move(m, op, p->input_bytes);
    before = index_of(m, op);
  }
  if (p->device) {
    op = add(m, MS_OP_UP_INPUT, MS_LANE_UP, layer);
    op->buffer = layer % INPUTS;
    need_place(m, op, input);
    need(m, op, before);
    move(m, op, p->input_bytes);
    before = index_of(m, op);
  }
  *input = (struct place){layer, {-1, -1, before}, 0};
  return before;
}

static struct ms_op *compute(struct making *m, enum ms_op_kind kind, int layer, const double *seconds,
                             double outer) {
  struct ms_op *op = add(m, kind, MS_LANE_COMPUTE, layer);
  op->seconds = layer < 0 || layer == m->params->layers ? outer : seconds ? seconds[layer] : 0;
  return op;
}

/* What other ranks updated of a layer on the disk has come when it is computed. */
static void put_weights(struct making *m, int layer, struct place *slot, int before) {
  const struct ms_schedule_params *p = m->params;
  struct ms_op *op;
  if (!p->update || !is_gathered(p, layer) || home_of(m, layer) != MS_HOME_DISK)
    return;
  op = add(m, MS_OP_WRITE_WEIGHTS, MS_LANE_WRITE, layer);
  op->slot = (int)(slot - m->host);
  op->count = p->gathered[layer] - trained_of(p, layer);
  need(m, op, before);
  move(m, op, (double)op->count * p->weight_bytes);
  use(m, slot, 1, op);
}

static void forward(struct making *m) {
  const struct ms_schedule_params *p = m->params;
  struct place *host;
  struct ms_op *op;
  m->weights = -1;
  if ((p->average || p->update) && p->outer_trained > 0)
    add_pieces(m, -1, NULL);
  if (p->forward) {
    op = compute(m, MS_OP_FORWARD, -1, NULL, p->outer_forward_seconds / 2);
    need(m, op, m->weights);
    put_input(m, 0, index_of(m, op));
  }
  host = fetch(m, 0, 1);
  for (int l = 0; l < p->layers; l++) {
    struct place *device = NULL, *next, *later;
    int made;
    if (!p->forward) {
      if (l + 1 < p->layers)
        fetch(m, l + 1, 1);
      continue;
    }
    if (p->device)
      device = lift(m, l, host);
    op = compute(m, MS_OP_FORWARD, l, p->forward_seconds, 0);
    op->slot = p->device ? (int)(device - m->device) : host ? (int)(host - m->host) : -1;
    need(m, op, m->weights);
    next = input_of(m, l + 1);
    if (next)
      need_place(m, op, next);
    use(m, p->device ? device : host, 0, op);
    use(m, input_of(m, l), 0, op);
    made = index_of(m, op);
    /* listed before this layer's output is put away: else the next layer's state would be written behind it,
     * after this layer is computed instead of beside it */
    later = l + 1 < p->layers ? fetch(m, l + 1, 1) : NULL;
    put_weights(m, l, host, made);
    put_input(m, l + 1, made);
    host = later;
  }
  if (p->forward)
    compute(m, MS_OP_FORWARD, p->layers, NULL, p->outer_forward_seconds / 2);
}

static void put_gradient(struct making *m, int layer, struct place *buffer, int before) {
  const struct ms_schedule_params *p = m->params;
  int64_t trained = trained_of(p, layer);
  struct ms_op *op;
  if (p->device && trained > 0) {
    op = add(m, MS_OP_DOWN_GRADIENT, MS_LANE_DOWN, layer);
    op->buffer = buffer ? (int)(buffer - m->gradients) : -1;
    need(m, op, before);
    move(m, op, (double)trained * p->gradient_bytes);
    use(m, buffer, 2, op);
    before = index_of(m, op);
  }
  if (layer >= 0 && home_of(m, layer) == MS_HOME_DISK && trained > 0) {
    op = add(m, MS_OP_WRITE_GRADIENT, MS_LANE_WRITE, layer);
    op->buffer = buffer ? (int)(buffer - m->gradients) : -1;
    need(m, op, before);
    move(m, op, (double)trained * p->gradient_bytes);
    use(m, buffer, 1, op);
  }
}

static void backward(struct making *m) {
  const struct ms_schedule_params *p = m->params;
  struct ms_op *op = compute(m, MS_OP_BACKWARD, p->layers, NULL, p->outer_backward_seconds / 2);
  use(m, input_of(m, p->layers), 0, op);
  for (int l = p->layers - 1; l >= 0; l--) {
    struct place *host = fetch(m, l, 0), *device = NULL, *gradient = NULL;
    int weights, input;
    if (p->device)
      device = lift(m, l, host);
    weights = m->weights;
    input = take_input(m, l);
    op = compute(m, MS_OP_BACKWARD, l, p->backward_seconds, 0);
    op->slot = p->device ? (int)(device - m->device) : host ? (int)(host - m->host) : -1;
    need(m, op, weights);
    need(m, op, input);
    if (p->device || home_of(m, l) == MS_HOME_DISK) {
      gradient = &m->gradients[m->gradient_next];
      m->gradient_next = (m->gradient_next + 1) % p->gradient_buffers;
      op->buffer = (int)(gradient - m->gradients);
      need_place(m, op, gradient);
      *gradient = (struct place){l, {-1, -1, -1}, 0};
    }
    use(m, p->device ? device : host, 0, op);
    use(m, input_of(m, l), 0, op);
    use(m, gradient, 0, op);
    put_gradient(m, l, gradient, index_of(m, op));
  }
  op = compute(m, MS_OP_BACKWARD, -1, NULL, p->outer_backward_seconds / 2);
  put_gradient(m, -1, NULL, index_of(m, op));
}

int ms_schedule_make(struct ms_schedule *schedule, const struct ms_schedule_params *params,
                     struct ms_error *error) {
  struct making *m;
  memset(schedule, 0, sizeof *schedule);
  if (params->layers < 1 || params->slots < 2 || params->slots > MOST_SLOTS || params->ring < 2 ||
      params->ring > MOST_SLOTS || params->gradient_buffers < 2 || params->gradient_buffers > MOST_SLOTS ||
      params->piece < 1)
    return ms_error_set(error, MS_EUSAGE,
                        "a schedule of %d layers with %d slots, %d pieces and %d gradients under way",
                        params->layers, params->slots, params->ring, params->gradient_buffers);
  m = calloc(1, sizeof *m);
  if (!m)
    return ms_error_set(error, MS_ENOMEM, "out of memory for a schedule");
  m->schedule = schedule;
  m->params = params;
  clear(m->host, MOST_SLOTS);
  clear(m->device, MOST_SLOTS);
  clear(m->ring, MOST_SLOTS);
  clear(m->gradients, MOST_SLOTS);
  clear(m->inputs, INPUTS);
  schedule->ops = malloc(1024 * sizeof *schedule->ops);
  schedule->room = schedule->ops ? 1024 : 0;
  m->failed = !schedule->ops;
  if (!m->failed)
    forward(m);
  if (!m->failed && params->backward)
    backward(m);
  if (m->failed)
    ms_schedule_release(schedule);
  free(m);
  return schedule->ops ? 0 : ms_error_set(error, MS_ENOMEM, "out of memory for a schedule");
}

void ms_schedule_release(struct ms_schedule *schedule) {
  free(schedule->ops);
  memset(schedule, 0, sizeof *schedule);
}
