/* Inside the app: how a model's description gets into its object, and its verdict. Main thread only, but for
 * the description. */
#pragma once
#include "core/rooms.h"

/* What is read off a model's folder, on a worker. */
struct msa_model_facts {
  char *name, *folder, *family, *license, *card;
  char **examples, **sizes; /* NULL-terminated */
  gint64 parameters;
  guint64 bytes;
  int width, height, frames, steps;
  double fps, guidance;
  gboolean own, trained;
};
void msa_model_facts_free(struct msa_model_facts *facts);
gboolean msa_model_facts_equal(const struct msa_model_facts *a, const struct msa_model_facts *b);
/* Of struct msa_model_facts: those of the program, the person's own, those that training runs made. Blocks;
 * off the main thread. */
GPtrArray *msa_model_facts_list(const char *own_folder, const char *runs_folder);

/* Takes the facts. */
MsaModel *msa_model_new(struct msa_model_facts *facts);
const struct msa_model_facts *msa_model_get_facts(MsaModel *model);
void msa_model_set_verdict(MsaModel *model, const char *verdict, gboolean fits);
