#include "core/probe.h"

#include <errno.h>
#include <glib/gi18n-lib.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "core/folders.h"
#include "core/main-thread.h"
#include "ms-media.h"
#include "ms-models.h"
#include "ms-system.h"

/* A clip with its latents, and a little more, so that the desktop does not choke on a full disk. */
#define BYTES_WANTED (512.0 * 1024 * 1024)

static void look_at_folder(GPtrArray *sentences, const char *folder) {
  struct statvfs disk;
  if (access(folder, W_OK) < 0) {
    g_ptr_array_add(
        sentences,
        g_strdup_printf(_("The folder \"%s\" cannot be written (%s): clips made now cannot be kept."), folder,
                        g_strerror(errno)));
  } else if (statvfs(folder, &disk) == 0 && (double)disk.f_bavail * (double)disk.f_frsize < BYTES_WANTED) {
    char free_text[32];
    ms_format_bytes((double)disk.f_bavail * (double)disk.f_frsize, free_text, sizeof free_text);
    g_ptr_array_add(
        sentences,
        g_strdup_printf(_("Only %s are free where \"%s\" lies: make room before you create clips or train."),
                        free_text, folder));
  }
}

static void look_for_encoder(GPtrArray *sentences) {
  if (!ms_format_available(MS_FORMAT_H264))
    g_ptr_array_add(sentences, g_strdup(_("This system's FFmpeg has no H.264 encoder: install one that has "
                                          "(libx264), or no clip can be written.")));
}

static void look_for_starter(GPtrArray *sentences, const struct msa_studio_folders *folders) {
  char data[4096], folder[4096];
  struct ms_error error = {0};
  msa_data_folder(data, sizeof data);
  if (ms_model_find("starter", data, folders->models, folder, sizeof folder, &error) < 0)
    g_ptr_array_add(
        sentences,
        g_strdup_printf(_("The starter model is missing: %s. Install the program again."), error.message));
}

char **msa_probe(const struct msa_studio_folders *folders) {
  GPtrArray *sentences = g_ptr_array_new();
  MSA_ASSERT_OFF_MAIN();
  look_at_folder(sentences, folders->clips);
  look_for_encoder(sentences);
  look_for_starter(sentences, folders);
  g_ptr_array_add(sentences, NULL);
  return (char **)g_ptr_array_free(sentences, FALSE);
}
