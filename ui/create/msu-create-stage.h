/* The stage: the picture is the hero. Empty it offers three prompts of the chosen model; while a job runs it
 * shows the clip as it forms, with the time left and Stop; then the player; or what failed, why, and what to
 * do.
 *
 * Signals: "example" (string: a prompt was chosen), "use-seed" (int64), "vary" (MsaClip). */
#pragma once
#include "msa-studio.h"
#include <gtk/gtk.h>

#define MSU_TYPE_CREATE_STAGE (msu_create_stage_get_type())
G_DECLARE_FINAL_TYPE(MsuCreateStage, msu_create_stage, MSU, CREATE_STAGE, GtkWidget)

GtkWidget *msu_create_stage_new(MsaQueue *queue);
/* Whose examples are offered; NULL: none. */
void msu_create_stage_set_model(MsuCreateStage *stage, MsaModel *model);
/* Follows the job until another job or clip is shown; NULL empties the stage. */
void msu_create_stage_show_job(MsuCreateStage *stage, MsaJob *job);
void msu_create_stage_show_clip(MsuCreateStage *stage, MsaClip *clip);
/* Borrowed; NULL while it shows no job. */
MsaJob *msu_create_stage_get_job(MsuCreateStage *stage);
