/* What the files that read a model's description share. */
#pragma once
#include "model/model.h"

/* Fills model->defaults from model->root. MS_EINPUT names model->path and the key. */
int ms_model_read_defaults(struct ms_model *model, struct ms_error *error);
