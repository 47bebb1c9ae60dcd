/* The program: one window over one studio. A second start brings the first one's window up. */
#pragma once
#include <adwaita.h>

#define MSU_TYPE_APPLICATION (msu_application_get_type())
G_DECLARE_FINAL_TYPE(MsuApplication, msu_application, MSU, APPLICATION, AdwApplication)

MsuApplication *msu_application_new(void);
