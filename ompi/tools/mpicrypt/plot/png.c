/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The PNG canvas: cairo, loaded when a PNG is asked for.  The tool must start
 * on nodes without graphics libraries, so it is not linked to cairo; the few
 * functions used have kept their interface since cairo 1.0 (2005) and are
 * declared here.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "plot.h"

#define CAIRO_LIBRARY      "libcairo.so.2"
#define CAIRO_FORMAT_RGB24 1

typedef struct _cairo cairo_t;
typedef struct _cairo_surface cairo_surface_t;

/* cairo_text_extents_t */
typedef struct extents {
    double x_bearing, y_bearing, width, height, x_advance, y_advance;
} extents_t;

static struct {
    void *library;
    cairo_surface_t *(*image_surface_create)(int, int, int);
    cairo_t *(*create)(cairo_surface_t *);
    int (*surface_write_to_png)(cairo_surface_t *, const char *);
    void (*surface_destroy)(cairo_surface_t *);
    void (*destroy)(cairo_t *);
    void (*set_source_rgb)(cairo_t *, double, double, double);
    void (*set_line_width)(cairo_t *, double);
    void (*set_font_size)(cairo_t *, double);
    void (*select_font_face)(cairo_t *, const char *, int, int);
    void (*text_extents)(cairo_t *, const char *, extents_t *);
    void (*show_text)(cairo_t *, const char *);
    void (*rectangle)(cairo_t *, double, double, double, double);
    void (*arc)(cairo_t *, double, double, double, double, double);
    void (*move_to)(cairo_t *, double, double);
    void (*line_to)(cairo_t *, double, double);
    void (*fill)(cairo_t *);
    void (*stroke)(cairo_t *);
    void (*save)(cairo_t *);
    void (*restore)(cairo_t *);
    void (*translate)(cairo_t *, double, double);
    void (*rotate)(cairo_t *, double);
} cairo;

typedef struct png {
    cairo_surface_t *surface;
    cairo_t *pen;
    char *path;
} png_t;

static bool load(const char *name, void *function)
{
    void *symbol = dlsym(cairo.library, name);
    memcpy(function, &symbol, sizeof(symbol));
    return NULL != symbol;
}

static bool load_all(void)
{
    return load("cairo_image_surface_create", &cairo.image_surface_create)
        && load("cairo_create", &cairo.create)
        && load("cairo_surface_write_to_png", &cairo.surface_write_to_png)
        && load("cairo_surface_destroy", &cairo.surface_destroy)
        && load("cairo_destroy", &cairo.destroy)
        && load("cairo_set_source_rgb", &cairo.set_source_rgb)
        && load("cairo_set_line_width", &cairo.set_line_width)
        && load("cairo_set_font_size", &cairo.set_font_size)
        && load("cairo_select_font_face", &cairo.select_font_face)
        && load("cairo_text_extents", &cairo.text_extents)
        && load("cairo_show_text", &cairo.show_text)
        && load("cairo_rectangle", &cairo.rectangle)
        && load("cairo_arc", &cairo.arc)
        && load("cairo_move_to", &cairo.move_to)
        && load("cairo_line_to", &cairo.line_to)
        && load("cairo_fill", &cairo.fill)
        && load("cairo_stroke", &cairo.stroke)
        && load("cairo_save", &cairo.save)
        && load("cairo_restore", &cairo.restore)
        && load("cairo_translate", &cairo.translate)
        && load("cairo_rotate", &cairo.rotate);
}

int mpicrypt_canvas_png_check(void)
{
    if (NULL == cairo.library) {
        cairo.library = dlopen(CAIRO_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    }
    if (NULL == cairo.library || !load_all()) {
        return mpicrypt_error(MPICRYPT_MISSING,
                              "a PNG plot needs the cairo library (%s; Debian package libcairo2), and "
                              "it cannot be loaded; a plot that ends in .svg needs nothing",
                              CAIRO_LIBRARY);
    }
    return MPICRYPT_OK;
}

/* ---- drawing ---- */

static void color_set(const png_t *png, unsigned color)
{
    cairo.set_source_rgb(png->pen, (double) (color >> 16 & 0xff) / 255,
                         (double) (color >> 8 & 0xff) / 255, (double) (color & 0xff) / 255);
}

static void rectangle(void *state, double x, double y, double width, double height, unsigned color)
{
    png_t *png = state;
    color_set(png, color);
    cairo.rectangle(png->pen, x, y, width, height);
    cairo.fill(png->pen);
}

static void line(void *state, const double *x, const double *y, int count, double width, unsigned color)
{
    png_t *png = state;
    color_set(png, color);
    cairo.set_line_width(png->pen, width);
    for (int i = 0; i < count; ++i) {
        (0 == i ? cairo.move_to : cairo.line_to)(png->pen, x[i], y[i]);
    }
    cairo.stroke(png->pen);
}

static void disc(void *state, double x, double y, double radius, unsigned color)
{
    png_t *png = state;
    color_set(png, color);
    cairo.arc(png->pen, x, y, radius, 0, 6.283185307179586);
    cairo.fill(png->pen);
}

static void text(void *state, double x, double y, double size, mpicrypt_anchor_t anchor, bool turned,
                 unsigned color, const char *words)
{
    png_t *png = state;
    extents_t extents;

    color_set(png, color);
    cairo.set_font_size(png->pen, size);
    cairo.text_extents(png->pen, words, &extents);
    cairo.save(png->pen);
    cairo.translate(png->pen, x, y);
    if (turned) {
        cairo.rotate(png->pen, -1.5707963267948966);
    }
    cairo.move_to(png->pen, MPICRYPT_LEFT == anchor ? 0
                  : MPICRYPT_MIDDLE == anchor ? -extents.x_advance / 2 : -extents.x_advance, 0);
    cairo.show_text(png->pen, words);
    cairo.restore(png->pen);
}

static int end(void *state)
{
    png_t *png = state;
    int status = cairo.surface_write_to_png(png->surface, png->path);
    int error = 0 == status ? 0 : 0 != errno ? errno : EIO;

    cairo.destroy(png->pen);
    cairo.surface_destroy(png->surface);
    free(png->path);
    free(png);
    return error;
}

int mpicrypt_canvas_png(mpicrypt_canvas_t *canvas, const char *path, int width, int height)
{
    int rc = mpicrypt_canvas_png_check();
    if (MPICRYPT_OK != rc) {
        return rc;
    }
    png_t *png = calloc(1, sizeof(*png));
    if (NULL == png || NULL == (png->path = strdup(path))) {
        free(png);
        return mpicrypt_error(MPICRYPT_FAILED, "out of memory");
    }
    png->surface = cairo.image_surface_create(CAIRO_FORMAT_RGB24, width, height);
    png->pen = cairo.create(png->surface);
    cairo.select_font_face(png->pen, "sans-serif", 0, 0);
    *canvas = (mpicrypt_canvas_t){png, rectangle, line, disc, text, end};
    return MPICRYPT_OK;
}
