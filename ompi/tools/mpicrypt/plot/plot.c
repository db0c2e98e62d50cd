/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Layout of a plot: a grid of panels, each with axes, curves and a legend,
 * drawn on a canvas that knows rectangles, lines, discs and words.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "plot.h"

#define FRAME_WIDTH   400       /* of the part with the curves */
#define FRAME_HEIGHT  300
#define TITLE_HEIGHT  40
#define MARGIN_LEFT   70
#define LEGEND_LEFT   14        /* from the frame to the legend's colors */
#define LEGEND_TEXT   24        /* from there to the words */
#define LEGEND_LETTER 6.7       /* mean width of a letter of 12 pixels, rather too wide */
#define LEGEND_LINE   18
#define MARGIN_TOP    30
#define MARGIN_BOTTOM 50

#define INK  0x222222u
#define GRID 0xdddddd

typedef struct curve {
    char *name;
    double *x, *y;
    int count, room;
} curve_t;

typedef struct axis {
    mpicrypt_axis_t kind;
    double low, high;           /* of the scaled values */
} axis_t;

typedef struct panel {
    char title[128], x_label[64], y_label[64];
    axis_t x, y;
    curve_t *curves;
    int curve_count;
} panel_t;

struct mpicrypt_plot {
    char title[128];
    panel_t *panels;
    int panel_count;
};

/* Distinguishable with the usual color-vision deficiencies (Okabe and Ito),
 * then the same, darker. */
static const unsigned palette[] = {0x0072b2, 0xd55e00, 0x009e73, 0xcc79a7, 0xe69f00, 0x56b4e9, 0x000000,
                                   0x004064, 0x803900, 0x005f45, 0x7a4964, 0x8a5f00};

static void *checked(void *block)
{
    if (NULL == block) {
        exit(mpicrypt_error(MPICRYPT_FAILED, "out of memory"));
    }
    return block;
}

mpicrypt_plot_t *mpicrypt_plot_new(const char *title, int panel_count)
{
    mpicrypt_plot_t *plot = checked(calloc(1, sizeof(*plot)));

    snprintf(plot->title, sizeof(plot->title), "%s", title);
    plot->panels = checked(calloc((size_t) panel_count, sizeof(*plot->panels)));
    plot->panel_count = panel_count;
    return plot;
}

void mpicrypt_plot_free(mpicrypt_plot_t *plot)
{
    for (int p = 0; p < plot->panel_count; ++p) {
        for (int c = 0; c < plot->panels[p].curve_count; ++c) {
            free(plot->panels[p].curves[c].name);
            free(plot->panels[p].curves[c].x);
            free(plot->panels[p].curves[c].y);
        }
        free(plot->panels[p].curves);
    }
    free(plot->panels);
    free(plot);
}

void mpicrypt_plot_panel(mpicrypt_plot_t *plot, int panel, const char *title,
                         const char *x_label, const char *y_label)
{
    panel_t *mine = &plot->panels[panel];
    snprintf(mine->title, sizeof(mine->title), "%s", title);
    snprintf(mine->x_label, sizeof(mine->x_label), "%s", x_label);
    snprintf(mine->y_label, sizeof(mine->y_label), "%s", y_label);
}

void mpicrypt_plot_axes(mpicrypt_plot_t *plot, int panel, mpicrypt_axis_t x, mpicrypt_axis_t y)
{
    plot->panels[panel].x.kind = x;
    plot->panels[panel].y.kind = y;
}

void mpicrypt_plot_point(mpicrypt_plot_t *plot, int panel, const char *name, double x, double y)
{
    panel_t *mine = &plot->panels[panel];
    int c = 0;

    while (c < mine->curve_count && 0 != strcmp(mine->curves[c].name, name)) {
        ++c;
    }
    if (!isfinite(x) || !isfinite(y)) {
        return;
    }
    if (c == mine->curve_count) {
        mine->curves = checked(realloc(mine->curves, (size_t) (c + 1) * sizeof(curve_t)));
        mine->curves[c] = (curve_t){.name = checked(strdup(name))};
        ++mine->curve_count;
    }
    curve_t *curve = &mine->curves[c];
    if (curve->count == curve->room) {
        curve->room = 0 == curve->room ? 16 : 2 * curve->room;
        curve->x = checked(realloc(curve->x, (size_t) curve->room * sizeof(double)));
        curve->y = checked(realloc(curve->y, (size_t) curve->room * sizeof(double)));
    }
    curve->x[curve->count] = x;
    curve->y[curve->count++] = y;
}

/* ---- axes ---- */

static double scaled(const axis_t *axis, double value)
{
    double positive = value > 0 ? value : 1e-12;
    return MPICRYPT_AXIS_LOG == axis->kind ? log10(positive)
         : MPICRYPT_AXIS_BYTES == axis->kind ? log2(positive) : value;
}

/* 1, 2 or 5 times a power of ten, so that there are four to nine ticks. */
static double tick_step(const axis_t *axis)
{
    double span = axis->high - axis->low;
    if (MPICRYPT_AXIS_LINEAR != axis->kind) {
        return fmax(1, ceil(span / 8));
    }
    double power = pow(10, floor(log10(span / 5)));
    return span / power <= 9 ? power : span / (2 * power) <= 9 ? 2 * power : 5 * power;
}

static void axis_fit(axis_t *axis, double low, double high)
{
    axis->low = MPICRYPT_AXIS_LINEAR == axis->kind ? fmin(low, 0) : floor(low + 1e-9);
    axis->high = MPICRYPT_AXIS_LINEAR == axis->kind ? high : ceil(high - 1e-9);
    if (axis->high - axis->low < 1e-9) {
        axis->high = axis->low + 1;
    }
    if (MPICRYPT_AXIS_LINEAR == axis->kind) {
        double step = tick_step(axis);
        axis->high = step * ceil(axis->high / step - 1e-9);
    }
}

static void panel_fit(panel_t *panel)
{
    double x_low = INFINITY, x_high = -INFINITY, y_low = INFINITY, y_high = -INFINITY;

    for (int c = 0; c < panel->curve_count; ++c) {
        for (int i = 0; i < panel->curves[c].count; ++i) {
            double x = scaled(&panel->x, panel->curves[c].x[i]);
            double y = scaled(&panel->y, panel->curves[c].y[i]);
            x_low = fmin(x_low, x);
            x_high = fmax(x_high, x);
            y_low = fmin(y_low, y);
            y_high = fmax(y_high, y);
        }
    }
    if (0 == panel->curve_count) {
        x_low = y_low = 0;
        x_high = y_high = 1;
    }
    axis_fit(&panel->x, x_low, x_high);
    axis_fit(&panel->y, y_low, y_high);
}

static const char *tick_text(const axis_t *axis, double tick, char *room, size_t bytes)
{
    if (MPICRYPT_AXIS_BYTES == axis->kind && tick >= 0 && tick < 60) {
        return mpicrypt_size_text((size_t) 1 << (int) tick, room);
    }
    snprintf(room, bytes, "%.6g", MPICRYPT_AXIS_LINEAR == axis->kind ? tick
             : MPICRYPT_AXIS_LOG == axis->kind ? pow(10, tick) : exp2(tick));
    return room;
}

/* ---- drawing ---- */

typedef struct frame {          /* where a panel's curves may be */
    double left, top, width, height;
} frame_t;

static double place_x(const frame_t *frame, const axis_t *axis, double value)
{
    return frame->left + frame->width * (value - axis->low) / (axis->high - axis->low);
}

static double place_y(const frame_t *frame, const axis_t *axis, double value)
{
    return frame->top + frame->height * (axis->high - value) / (axis->high - axis->low);
}

static void segment(const mpicrypt_canvas_t *canvas, double x0, double y0, double x1, double y1, unsigned color)
{
    const double x[] = {x0, x1}, y[] = {y0, y1};
    canvas->line(canvas->state, x, y, 2, 1, color);
}

static void draw_axes(const mpicrypt_canvas_t *canvas, const panel_t *panel, const frame_t *frame)
{
    double right = frame->left + frame->width, bottom = frame->top + frame->height;
    char room[32];

    for (double tick = panel->x.low; tick <= panel->x.high + 1e-9; tick += tick_step(&panel->x)) {
        double x = place_x(frame, &panel->x, tick);
        segment(canvas, x, frame->top, x, bottom, GRID);
        canvas->text(canvas->state, x, bottom + 16, 11, MPICRYPT_MIDDLE, false, INK,
                     tick_text(&panel->x, tick, room, sizeof(room)));
    }
    for (double tick = panel->y.low; tick <= panel->y.high + 1e-9; tick += tick_step(&panel->y)) {
        double y = place_y(frame, &panel->y, tick);
        segment(canvas, frame->left, y, right, y, GRID);
        canvas->text(canvas->state, frame->left - 6, y + 4, 11, MPICRYPT_RIGHT, false, INK,
                     tick_text(&panel->y, tick, room, sizeof(room)));
    }
    segment(canvas, frame->left, bottom, right, bottom, INK);
    segment(canvas, frame->left, frame->top, frame->left, bottom, INK);
    canvas->text(canvas->state, frame->left + frame->width / 2, bottom + 36, 12, MPICRYPT_MIDDLE, false,
                 INK, panel->x_label);
    canvas->text(canvas->state, frame->left - 50, frame->top + frame->height / 2, 12, MPICRYPT_MIDDLE,
                 true, INK, panel->y_label);
    canvas->text(canvas->state, frame->left + frame->width / 2, frame->top - 10, 13, MPICRYPT_MIDDLE,
                 false, INK, panel->title);
}

static void draw_curve(const mpicrypt_canvas_t *canvas, const panel_t *panel, const frame_t *frame, int c)
{
    const curve_t *curve = &panel->curves[c];
    unsigned color = palette[(size_t) c % (sizeof(palette) / sizeof(palette[0]))];
    double legend_x = frame->left + frame->width + LEGEND_LEFT, legend_y = frame->top + 8 + LEGEND_LINE * c;
    double *x = checked(malloc((size_t) curve->count * sizeof(double)));
    double *y = checked(malloc((size_t) curve->count * sizeof(double)));

    for (int i = 0; i < curve->count; ++i) {
        x[i] = place_x(frame, &panel->x, scaled(&panel->x, curve->x[i]));
        y[i] = place_y(frame, &panel->y, scaled(&panel->y, curve->y[i]));
        canvas->disc(canvas->state, x[i], y[i], 2.5, color);
    }
    canvas->line(canvas->state, x, y, curve->count, 1.8, color);
    canvas->rectangle(canvas->state, legend_x, legend_y - 2, 18, 4, color);
    canvas->text(canvas->state, legend_x + LEGEND_TEXT, legend_y + 4, 12, MPICRYPT_LEFT, false, INK, curve->name);
    free(x);
    free(y);
}

/* All panels are of one size, with room for the longest legend. */
typedef struct layout {
    int columns, rows, width, height;
} layout_t;

static layout_t layout_of(const mpicrypt_plot_t *plot)
{
    size_t letters = 0;
    int curves = 0;

    for (int p = 0; p < plot->panel_count; ++p) {
        const panel_t *panel = &plot->panels[p];
        curves = panel->curve_count > curves ? panel->curve_count : curves;
        for (int c = 0; c < panel->curve_count; ++c) {
            size_t bytes = strlen(panel->curves[c].name);
            letters = bytes > letters ? bytes : letters;
        }
    }
    int legend_height = LEGEND_LINE * curves;
    layout_t layout = {
        .columns = plot->panel_count > 1 ? 2 : 1,
        .width = MARGIN_LEFT + FRAME_WIDTH + LEGEND_LEFT + LEGEND_TEXT + 16 + (int) (LEGEND_LETTER * (double) letters),
        .height = MARGIN_TOP + MARGIN_BOTTOM + (legend_height > FRAME_HEIGHT ? legend_height : FRAME_HEIGHT)
    };
    layout.rows = (plot->panel_count + layout.columns - 1) / layout.columns;
    return layout;
}

static void draw(const mpicrypt_plot_t *plot, const mpicrypt_canvas_t *canvas, const layout_t *layout)
{
    int width = layout->columns * layout->width, height = layout->rows * layout->height + TITLE_HEIGHT;

    canvas->rectangle(canvas->state, 0, 0, width, height, 0xffffff);
    canvas->text(canvas->state, width / 2.0, 26, 17, MPICRYPT_MIDDLE, false, INK, plot->title);
    for (int p = 0; p < plot->panel_count; ++p) {
        panel_t *panel = &plot->panels[p];
        const frame_t frame = {
            p % layout->columns * layout->width + MARGIN_LEFT,
            p / layout->columns * layout->height + TITLE_HEIGHT + MARGIN_TOP,
            FRAME_WIDTH, FRAME_HEIGHT
        };
        panel_fit(panel);
        draw_axes(canvas, panel, &frame);
        for (int c = 0; c < panel->curve_count; ++c) {
            draw_curve(canvas, panel, &frame, c);
        }
    }
}

/* ---- files ---- */

static bool ends_in(const char *path, const char *ending)
{
    size_t bytes = strlen(path), ending_bytes = strlen(ending);
    return bytes > ending_bytes && 0 == strcasecmp(path + bytes - ending_bytes, ending);
}

int mpicrypt_plot_check(const char *path)
{
    if (ends_in(path, ".svg")) {
        return MPICRYPT_OK;
    }
    return ends_in(path, ".png") ? mpicrypt_canvas_png_check()
         : mpicrypt_error(MPICRYPT_USAGE, "--plot: %s ends in neither .svg nor .png", path);
}

int mpicrypt_plot_write(const mpicrypt_plot_t *plot, const char *path)
{
    const layout_t layout = layout_of(plot);
    int width = layout.columns * layout.width, height = layout.rows * layout.height + TITLE_HEIGHT;
    mpicrypt_canvas_t canvas = { 0 };

    int rc = ends_in(path, ".png") ? mpicrypt_canvas_png(&canvas, path, width, height)
                                   : mpicrypt_canvas_svg(&canvas, path, width, height);
    if (MPICRYPT_OK != rc) {
        return rc;
    }
    draw(plot, &canvas, &layout);
    int error = canvas.end(canvas.state);
    return 0 == error ? MPICRYPT_OK
         : mpicrypt_error(MPICRYPT_FAILED, "cannot write %s: %s", path, strerror(error));
}
