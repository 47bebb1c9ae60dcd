/* Where the Studio keeps a person's files; inside the app only. Paths are worked out without looking at the
 * disk, so this may be done on the main thread; the folders are made when the store is opened. (The program's
 * own data: msa_data_folder of core/folders.h, off the main thread.) */
#pragma once
#include <glib.h>

struct msa_studio_folders {
  char *home; /* $XDG_DATA_HOME/megaslide; the others but the cache lie in it */
  char *clips, *models, *runs;
  char *jobs;  /* states of unfinished clips, one folder each, named by the job's number */
  char *store; /* the file studio.db */
  char *cache; /* $XDG_CACHE_HOME/megaslide */
};
struct msa_studio_folders *msa_studio_folders_new(void);
void msa_studio_folders_free(struct msa_studio_folders *folders);
