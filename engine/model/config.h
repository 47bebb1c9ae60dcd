/* The DiT's part of model.json (and of data/configs/): names and sizes to a struct ms_dit_config and back.
 *
 * Keys: dim, ffn, heads, layers, in_channels, text_dim are required; out_channels (as in_channels), patch
 * [1,2,2], text_len 512, freq_dim 256, eps 1e-6, positions "integer" | "short-side", coordinate_features,
 * pooled_text (false) and attention (dense) default to plain Wan. attention is one object for all layers, a
 * list with one object a layer, or {"layers": list}; an object holds "kind": "dense" | "window" | "dsa" and,
 * where the kind has them, "window" [t,y,x], "mode": "point" | "shift", "bounds" [t,y,x] and "groups".
 * coarse_attention has the same form and is the same as attention if absent. Other keys are not looked at. */
#pragma once
#include <jansson.h>
#include "model/dit.h"

/* Returns 0, or MS_EINPUT with the key and what it may hold: missing, of another type, out of range. */
int ms_dit_config_read(struct ms_dit_config *config, const json_t *root, struct ms_error *error);
/* A new object with all keys above, or NULL if memory is out. Reading it back gives the same configuration.
 */
json_t *ms_dit_config_write(const struct ms_dit_config *config);
/* One attention object, `key` names it in messages; and the default of a kind for a number of heads. */
int ms_attention_config_read(struct ms_attention_config *attention, int heads, const json_t *object,
                             const char *key, struct ms_error *error);
struct ms_attention_config ms_attention_config_default(enum ms_attention_kind kind, int heads);
/* "dense", "window 3x4x4", "dsa point 3x5x5" into text. */
void ms_attention_config_describe(const struct ms_attention_config *attention, char *text, size_t size);
/* Changes a model's description so that every layer of every stage attends in this way: "dense", "window", or
 * "dsa", which needs offset heads that the description has already. MS_EUSAGE otherwise; name: of the model,
 * for the message. */
int ms_attention_override(json_t *root, const char *kind, const char *name, struct ms_error *error);
