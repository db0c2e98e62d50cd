/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The SVG canvas: shapes are written as they come.
 */
#include <errno.h>
#include <string.h>

#include "plot.h"

static void rectangle(void *state, double x, double y, double width, double height, unsigned color)
{
    fprintf(state, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"#%06x\"/>\n",
            x, y, width, height, color);
}

static void line(void *state, const double *x, const double *y, int count, double width, unsigned color)
{
    fprintf(state, "<polyline fill=\"none\" stroke=\"#%06x\" stroke-width=\"%.1f\" points=\"", color, width);
    for (int i = 0; i < count; ++i) {
        fprintf(state, "%s%.1f,%.1f", 0 == i ? "" : " ", x[i], y[i]);
    }
    fputs("\"/>\n", state);
}

static void disc(void *state, double x, double y, double radius, unsigned color)
{
    fprintf(state, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\" fill=\"#%06x\"/>\n", x, y, radius, color);
}

static void text(void *state, double x, double y, double size, mpicrypt_anchor_t anchor, bool turned,
                 unsigned color, const char *words)
{
    static const char *const anchors[] = {"start", "middle", "end"};

    fprintf(state, "<text x=\"%.1f\" y=\"%.1f\" font-size=\"%.0f\" text-anchor=\"%s\" fill=\"#%06x\"",
            x, y, size, anchors[anchor], color);
    if (turned) {
        fprintf(state, " transform=\"rotate(-90 %.1f %.1f)\"", x, y);
    }
    fputc('>', state);
    mpicrypt_xml_text(state, words);
    fputs("</text>\n", state);
}

static int end(void *state)
{
    fputs("</svg>\n", state);
    int error = ferror((FILE *) state) ? EIO : 0;
    return 0 != fclose(state) ? errno : error;
}

int mpicrypt_canvas_svg(mpicrypt_canvas_t *canvas, const char *path, int width, int height)
{
    FILE *out = fopen(path, "w");

    if (NULL == out) {
        return mpicrypt_error(MPICRYPT_FAILED, "cannot write %s: %s", path, strerror(errno));
    }
    fprintf(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" "
            "font-family=\"sans-serif\">\n", width, height, width, height);
    *canvas = (mpicrypt_canvas_t){out, rectangle, line, disc, text, end};
    return MPICRYPT_OK;
}
