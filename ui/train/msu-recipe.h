/* The settings of a new training run as a form. Signal "changed". */
#pragma once
#include "msa-studio.h"
#include <adwaita.h>

#define MSU_TYPE_RECIPE (msu_recipe_get_type())
G_DECLARE_FINAL_TYPE(MsuRecipe, msu_recipe, MSU, RECIPE, GtkWidget)

GtkWidget *msu_recipe_new(MsaStudio *studio);
/* What is asked for, without the folder of clips. New. */
MsaTrainParams *msu_recipe_get_params(MsuRecipe *recipe);
/* Fills the form, e.g. with a suggestion of the planner. */
void msu_recipe_set_params(MsuRecipe *recipe, const MsaTrainParams *params);
/* A name for the run, unless the person has typed one. */
void msu_recipe_suggest_name(MsuRecipe *recipe, const char *name);
/* Length of the shortest clip, which limits the frames. */
void msu_recipe_set_shortest(MsuRecipe *recipe, double seconds);
/* What a run takes if its memory is left to the program; 0: not known. */
void msu_recipe_set_automatic_memory(MsuRecipe *recipe, guint64 bytes);
/* What is missing or wrong, as a sentence; NULL if nothing is. Free it. */
char *msu_recipe_get_problem(MsuRecipe *recipe);
