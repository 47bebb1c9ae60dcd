/* A clip's settings as JSON: what is written into the file's comment tag, what a resumed job starts from,
 * what "make again" reads. */
#pragma once
#include <jansson.h>
#include "model/model.h"
#include "ms-generate.h"

/* All fields of a resolved job. NULL if out of memory. */
json_t *ms_settings_write(const struct ms_generate_job *job);
/* Fills the job from JSON; strings belong to `json`, which must outlive the job. MS_EINPUT names the key that
 * is missing, of another type or out of range, and `where` it was read. */
int ms_settings_read(struct ms_generate_job *job, const json_t *json, const char *where,
                     struct ms_error *error);

/* MS_EUSAGE: a size, a length, steps or a number that no clip can have. Prompt and output are not looked at.
 */
int ms_settings_check(const struct ms_generate_job *job, struct ms_error *error);
/* Fills what the caller left open from the model's defaults, all but the seed. MS_EUSAGE: no such sampler. */
int ms_settings_resolve(struct ms_generate_job *job, const struct ms_model_defaults *defaults,
                        struct ms_error *error);
