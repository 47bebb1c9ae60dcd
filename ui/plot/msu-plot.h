/* A graph: curves over a shared x axis, drawn at 60 frames a second for a million points.
 *
 * Small multiples share an MsuPlotAxis: zoom (wheel), pan (drag), reset (double click) and the crosshair are
 * one for all of them. Curves are decimated by minimum and maximum per pixel column over a pyramid that grows
 * with the series, so that spikes stay. Lines 1.5 px, grid at a tenth of the text colour, tabular figures,
 * Okabe-Ito colours in both themes. */
#pragma once
#include "msa-run.h"
#include <gtk/gtk.h>

/* What small multiples share. Properties: "from", "to" (double: the part that is seen), "cross" (double, NaN:
 * no pointer), "follow" (gboolean: the end stays in sight as points come). Signal "changed": once for any of
 * the first three. */
#define MSU_TYPE_PLOT_AXIS (msu_plot_axis_get_type())
G_DECLARE_FINAL_TYPE(MsuPlotAxis, msu_plot_axis, MSU, PLOT_AXIS, GObject)
MsuPlotAxis *msu_plot_axis_new(void);
void msu_plot_axis_reset(MsuPlotAxis *axis);
double msu_plot_axis_get_from(MsuPlotAxis *axis);
double msu_plot_axis_get_to(MsuPlotAxis *axis);
double msu_plot_axis_get_cross(MsuPlotAxis *axis);

enum msu_curve_kind { MSU_CURVE_LINE, MSU_CURVE_RAW /* a third of the strength */, MSU_CURVE_DOTS };

#define MSU_TYPE_PLOT (msu_plot_get_type())
G_DECLARE_FINAL_TYPE(MsuPlot, msu_plot, MSU, PLOT, GtkWidget)
/* title and unit are shown; unit may be NULL. Unit "B" is written with powers of 1024, "%" takes fractions.
 */
GtkWidget *msu_plot_new(const char *title, const char *unit, MsuPlotAxis *axis);
void msu_plot_set_title(MsuPlot *plot, const char *title);
/* label: in the legend and the hover box, NULL: in neither. color: index of the palette. The series is
 * referenced. */
void msu_plot_add_curve(MsuPlot *plot, MsaSeries *series, const char *label, enum msu_curve_kind kind,
                        guint color);
void msu_plot_clear(MsuPlot *plot);
/* A horizontal line with a label, e.g. the budget; NaN removes it. */
void msu_plot_set_limit(MsuPlot *plot, double value, const char *label);
void msu_plot_set_log(MsuPlot *plot, gboolean log);
/* Draws it, laid out for width x height, with `scale` pixels a unit, in the present theme, without crosshair:
 * what is saved as PNG. The texture's pixels are in memory, so any thread may download them. */
GdkTexture *msu_plot_render(MsuPlot *plot, int width, int height, double scale);
/* The palette: Okabe-Ito colours in an order that stays clear on the ground of the present theme. */
void msu_plot_get_color(GtkWidget *widget, guint index, GdkRGBA *color);
/* From the plot's edges to where the curves are, so that others can lie on the same axis. */
#define MSU_PLOT_LEFT 58
#define MSU_PLOT_RIGHT 14
