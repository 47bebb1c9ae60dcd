/* Where the program's data and a person's files lie. Plain C, for both programs; blocks on the disk a little.
 */
#pragma once
#include <stddef.h>

/* The folder with models, configurations and recipes: $MEGASLIDE_DATA, or beside the program, or where the
 * source was built. Returns `folder`. */
const char *msa_data_folder(char *folder, size_t size);
/* Where this person's own models are: $XDG_DATA_HOME/megaslide/models. Need not exist. Returns `folder`. */
const char *msa_user_models_folder(char *folder, size_t size);
/* What can be made anew: $XDG_CACHE_HOME/megaslide, made if it is not there. Returns `folder`, or NULL where
 * it cannot be made. */
const char *msa_cache_folder(char *folder, size_t size);
