/* Where the Studio's files lie; inside the app only. Paths are worked out without looking at the disk, so
 * this may be done on the main thread; the folders are made when the store is opened. */
#pragma once
#include <glib.h>

struct msa_studio_folders {
  char *program; /* the program's data: models, configurations, recipes */
  char *home;    /* $XDG_DATA_HOME/megaslide; the others but the cache lie in it */
  char *clips, *models, *runs;
  char *jobs;  /* states of unfinished clips, one folder each, named by the job's number */
  char *store; /* the file studio.db */
  char *cache; /* $XDG_CACHE_HOME/megaslide */
};
struct msa_studio_folders *msa_studio_folders_new(void);
void msa_studio_folders_free(struct msa_studio_folders *folders);
