/* Inside the app: what the Studio does once at its start. */
#pragma once
#include "msa-export.h"

/* Looks which encoders there are; until then msa_export_presets gives none. Quick, but an engine call: on a
 * worker. */
void msa_export_probe(void);
