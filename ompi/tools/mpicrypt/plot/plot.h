/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Plots of measurements and predictions: panels of curves, written as SVG (by
 * ourselves, always there) or as PNG (by cairo, loaded only when asked for, so
 * that the tool needs no graphics library to be installed).
 *
 *     new -> panel, axes, point ... -> write -> free
 *
 * A curve comes into being with its first point.  Out of memory ends the
 * program, as in tables.
 */
#ifndef MPICRYPT_PLOT_PLOT_H
#define MPICRYPT_PLOT_PLOT_H

#include "ompi/tools/mpicrypt/mpicrypt.h"

typedef struct mpicrypt_plot mpicrypt_plot_t;

typedef enum {
    MPICRYPT_AXIS_LINEAR,       /* from zero */
    MPICRYPT_AXIS_LOG,          /* powers of ten */
    MPICRYPT_AXIS_BYTES         /* powers of two, labeled 64K */
} mpicrypt_axis_t;

mpicrypt_plot_t *mpicrypt_plot_new(const char *title, int panel_count);
void mpicrypt_plot_free(mpicrypt_plot_t *plot);

void mpicrypt_plot_panel(mpicrypt_plot_t *plot, int panel, const char *title,
                         const char *x_label, const char *y_label);
void mpicrypt_plot_axes(mpicrypt_plot_t *plot, int panel, mpicrypt_axis_t x, mpicrypt_axis_t y);

/* Points of a curve are joined in the order in which they come. */
void mpicrypt_plot_point(mpicrypt_plot_t *plot, int panel, const char *curve, double x, double y);

/* Can `path` be drawn?  Asked before a long measurement: MPICRYPT_USAGE when
 * it ends in neither .svg nor .png, MPICRYPT_MISSING without cairo. */
int mpicrypt_plot_check(const char *path);
int mpicrypt_plot_write(const mpicrypt_plot_t *plot, const char *path);

/* ---- between plot/plot.c and its two canvases ---- */

typedef enum { MPICRYPT_LEFT, MPICRYPT_MIDDLE, MPICRYPT_RIGHT } mpicrypt_anchor_t;

/* Colors are 0xRRGGBB; coordinates are pixels from the upper left corner. */
typedef struct mpicrypt_canvas {
    void *state;
    void (*rectangle)(void *state, double x, double y, double width, double height, unsigned color);
    void (*line)(void *state, const double *x, const double *y, int count, double width, unsigned color);
    void (*disc)(void *state, double x, double y, double radius, unsigned color);
    /* `turned`: reads upwards. */
    void (*text)(void *state, double x, double y, double size, mpicrypt_anchor_t anchor, bool turned,
                 unsigned color, const char *text);
    int (*end)(void *state);    /* writes the file; 0 or an errno value */
} mpicrypt_canvas_t;

/* MPICRYPT_OK, or another code after a message. */
int mpicrypt_canvas_svg(mpicrypt_canvas_t *canvas, const char *path, int width, int height);
int mpicrypt_canvas_png(mpicrypt_canvas_t *canvas, const char *path, int width, int height);
int mpicrypt_canvas_png_check(void);

#endif
