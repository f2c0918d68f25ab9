/* Draws a roofline as SVG. Two logarithmic axes define all positions. Styles are CSS classes, so
 * that viewers with a dark background can use other colours. The shape of a marker identifies the
 * kernel, its colour the tensor and the rank, and the number in it the mode. Markers of best and
 * worst cases are hollow. A pointer over a marker shows its figures. */
#include "tools/bench/roofline/roofline.h"

#include "storage/file/files.h"
#include "storage/file/output.h"
#include "storage/manifest/path_guard.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PLOT_LEFT = 70,
    PLOT_TOP = 50,
    PLOT_WIDTH = 640,
    PLOT_HEIGHT = 480,
    LEGEND_LEFT = PLOT_LEFT + PLOT_WIDTH + 30,
    LEGEND_WIDTH = 260,
    LINE_HEIGHT = 20,
    TICK_LENGTH = 5,
    MARKER_RADIUS = 8,
    /* maximum number of series, each with a line in the legend: a tensor at a rank */
    SERIES_MAX = OPTIONS_MAX_OPERANDS * OPTION_COUNTS_MAX,
    SHAPES_MAX = 16,
    COLOURS = 8
};

/* Colours of tensors for a white and for a black background. The colours of each list also differ
 * in lightness. */
static const char *const light_colours[COLOURS] = {"#1d4ed8", "#c2410c", "#15803d", "#7e22ce",
                                                   "#be185d", "#0f766e", "#854d0e", "#475569"};
static const char *const dark_colours[COLOURS] = {"#8ab4ff", "#ff9d6b", "#6fdc8c", "#cf9bff",
                                                  "#ff8ab8", "#5fd9cb", "#e8b44d", "#b6c2d1"};

/* A logarithmic axis from `low` to `high` with a length of `pixels`. */
struct axis {
    double low, high;
    double pixels;
};

/* The measurements of one tensor at one rank, which have one colour. */
struct series {
    const char *tensor;
    json_int_t rank;
};

struct picture {
    FILE *out;
    const json_t *record;
    struct axis x, y;
    double peak, low_peak; /* the highest and the lowest peak, in GFLOP/s */
    struct series series[SERIES_MAX];
    unsigned series_count;
    bool several_ranks, bounds;
    const char *kernels[SHAPES_MAX];
    unsigned kernel_count;
};

static double place_x(const struct picture *picture, double value)
{
    const struct axis *axis = &picture->x;

    return PLOT_LEFT + axis->pixels * log(value / axis->low) / log(axis->high / axis->low);
}

static double place_y(const struct picture *picture, double value)
{
    const struct axis *axis = &picture->y;

    return PLOT_TOP + PLOT_HEIGHT -
           axis->pixels * log(value / axis->low) / log(axis->high / axis->low);
}

static double real_of(const json_t *object, const char *name)
{
    return json_number_value(json_object_get(object, name));
}

static const char *text_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));

    return text != NULL ? text : "";
}

/* Writes a text from the user, such as a file name. Escapes characters that XML reserves and
 * replaces characters that XML forbids. */
static void write_text(FILE *out, const char *text)
{
    for (; *text != '\0'; text++) {
        switch (*text) {
        case '&':
            (void)fputs("&amp;", out);
            break;
        case '<':
            (void)fputs("&lt;", out);
            break;
        case '>':
            (void)fputs("&gt;", out);
            break;
        default:
            (void)fputc((unsigned char)*text < ' ' ? '?' : *text, out);
        }
    }
}

/* Returns true if a row can be drawn: its figures must be positive, because the axes are
 * logarithmic. */
static bool has_place(const json_t *row)
{
    return real_of(row, "flop_per_byte") > 0 && real_of(row, "gflop_per_s") > 0;
}

static unsigned series_of(struct picture *picture, const json_t *row)
{
    const struct series wanted = {text_of(row, "tensor"),
                                  json_integer_value(json_object_get(row, "rank"))};
    unsigned i = 0;

    for (; i < picture->series_count; i++) {
        if (picture->series[i].rank == wanted.rank &&
            strcmp(picture->series[i].tensor, wanted.tensor) == 0) {
            return i;
        }
    }
    if (i < SERIES_MAX) {
        picture->series[picture->series_count++] = wanted;
        picture->several_ranks |= wanted.rank != picture->series[0].rank;
    }
    return i;
}

static unsigned shape_of(struct picture *picture, const json_t *row)
{
    const char *kernel = text_of(row, "kernel");
    unsigned i = 0;

    while (i < picture->kernel_count && strcmp(picture->kernels[i], kernel) != 0) {
        i++;
    }
    if (i == picture->kernel_count && i < SHAPES_MAX) {
        picture->kernels[picture->kernel_count++] = kernel;
    }
    return i;
}

static void widen(struct axis *axis, double value)
{
    if (value > 0) {
        axis->low = fmin(axis->low, value);
        axis->high = fmax(axis->high, value);
    }
}

/* Chooses the ends of the axes, so that all markers, the ridge of every roof and a margin are
 * visible. */
static void choose_axes(struct picture *picture)
{
    static const char *const arrays[] = {"rows", "bounds"};
    size_t i;
    const json_t *row;

    picture->x = (struct axis){INFINITY, 0, PLOT_WIDTH};
    picture->y = (struct axis){INFINITY, 0, PLOT_HEIGHT};
    json_array_foreach(json_object_get(picture->record, "peaks"), i, row)
    {
        picture->peak = fmax(picture->peak, real_of(row, "gflop_per_s"));
        picture->low_peak =
            i == 0 ? picture->peak : fmin(picture->low_peak, real_of(row, "gflop_per_s"));
        widen(&picture->y, real_of(row, "gflop_per_s"));
    }
    json_array_foreach(json_object_get(picture->record, "levels"), i, row)
    {
        widen(&picture->x, picture->peak / real_of(row, "gb_per_s"));
    }
    for (unsigned a = 0; a < 2; a++) {
        json_array_foreach(json_object_get(picture->record, arrays[a]), i, row)
        {
            if (has_place(row)) {
                widen(&picture->x, real_of(row, "flop_per_byte"));
                widen(&picture->y, real_of(row, "gflop_per_s"));
                (void)series_of(picture, row);
                (void)shape_of(picture, row);
                picture->bounds |= a == 1;
            }
        }
    }
    picture->x.low /= 1.6;
    picture->x.high *= 3.5; /* space for the names of peaks */
    picture->y.low /= 1.6;
    picture->y.high *= 1.6;
}

static void write_colours(FILE *out, const char *const *colours, const char *inside)
{
    (void)fprintf(out, "text.n{fill:%s}", inside);
    for (unsigned i = 0; i < COLOURS; i++) {
        (void)fprintf(out, ".f%u{fill:%s;stroke:%s}.h%u{fill:none;stroke:%s}.h%u+text{fill:%s}", i,
                      colours[i], inside, i, colours[i], i, colours[i]);
    }
    (void)fputc('\n', out);
}

static void write_head(struct picture *picture)
{
    const unsigned lines = picture->series_count + picture->kernel_count + 8;
    const int legend = PLOT_TOP + (int)lines * LINE_HEIGHT;
    const int least = PLOT_TOP + PLOT_HEIGHT + 60;
    const json_t *device = json_object_get(picture->record, "device");
    FILE *out = picture->out;

    (void)fprintf(out,
                  "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                  "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
                  "viewBox=\"0 0 %d %d\" role=\"img\">\n"
                  "<title>Roofline of this machine, and performance of kernels</title>\n<style>\n",
                  LEGEND_LEFT + LEGEND_WIDTH, legend > least ? legend : least,
                  LEGEND_LEFT + LEGEND_WIDTH, legend > least ? legend : least);
    (void)fputs("text{font:13px sans-serif;fill:#111}text.n{font:10px sans-serif}"
                ".bg{fill:#fff}.grid{stroke:#e2e2e2}.axis{stroke:#111;fill:none}"
                ".name{paint-order:stroke;stroke:#fff;stroke-width:4px}"
                ".roof{stroke:#444;stroke-width:2;fill:none}.worst{stroke-dasharray:3 2}\n",
                out);
    write_colours(out, light_colours, "#fff");
    (void)fputs(
        "@media (prefers-color-scheme:dark){text{fill:#eee}.bg{fill:#16181c}.name{stroke:#16181c}"
        ".grid{stroke:#33373d}.axis{stroke:#eee}.roof{stroke:#bbb}\n",
        out);
    write_colours(out, dark_colours, "#16181c");
    (void)fprintf(out,
                  "}\n</style>\n<rect class=\"bg\" width=\"100%%\" height=\"100%%\"/>\n"
                  "<text x=\"%d\" y=\"28\">Cache-aware roofline: ",
                  PLOT_LEFT);
    if (device != NULL) {
        write_text(out, text_of(device, "name"));
    } else {
        (void)fprintf(out, "%d threads, %s", (int)real_of(picture->record, "threads"),
                      text_of(picture->record, "instruction_set"));
    }
    (void)fprintf(out, ", %s</text>\n", text_of(picture->record, "precision"));
}

/* Draws a tick at `value` of the horizontal axis (if `lower`) or of the vertical axis, with grid
 * line and number. */
static void draw_tick(const struct picture *picture, bool lower, double value)
{
    FILE *out = picture->out;

    if (lower) {
        const double x = place_x(picture, value);

        (void)fprintf(out,
                      "<path class=\"grid\" d=\"M%.1f %dV%d\"/>"
                      "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%g</text>\n",
                      x, PLOT_TOP, PLOT_TOP + PLOT_HEIGHT + TICK_LENGTH, x,
                      PLOT_TOP + PLOT_HEIGHT + 20, value);
    } else {
        const double y = place_y(picture, value);

        (void)fprintf(out,
                      "<path class=\"grid\" d=\"M%d %.1fH%d\"/>"
                      "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%g</text>\n",
                      PLOT_LEFT - TICK_LENGTH, y, PLOT_LEFT + PLOT_WIDTH,
                      PLOT_LEFT - TICK_LENGTH - 3, y + 4, value);
    }
}

/* Draws the ticks of an axis: 1, 2 and 5 times powers of ten. */
static void draw_ticks(const struct picture *picture, bool lower)
{
    static const double steps[] = {1, 2, 5};
    const struct axis *axis = lower ? &picture->x : &picture->y;

    for (double power = floor(log10(axis->low)); power <= log10(axis->high); power++) {
        for (unsigned s = 0; s < 3; s++) {
            const double value = steps[s] * pow(10, power);

            if (value >= axis->low && value <= axis->high) {
                draw_tick(picture, lower, value);
            }
        }
    }
}

static void draw_axes(const struct picture *picture)
{
    draw_ticks(picture, true);
    draw_ticks(picture, false);
    (void)fprintf(picture->out,
                  "<rect class=\"axis\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/>\n"
                  "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">operations per byte loaded or "
                  "stored</text>\n"
                  "<text transform=\"translate(18 %d) rotate(-90)\" text-anchor=\"middle\">"
                  "GFLOP/s</text>\n",
                  PLOT_LEFT, PLOT_TOP, PLOT_WIDTH, PLOT_HEIGHT, PLOT_LEFT + PLOT_WIDTH / 2,
                  PLOT_TOP + PLOT_HEIGHT + 44, PLOT_TOP + PLOT_HEIGHT / 2);
}

/* Draws the roof of a level, up to the highest peak. */
static void draw_level(const struct picture *picture, const json_t *level)
{
    const double rate = real_of(level, "gb_per_s");
    const double from = fmax(picture->x.low, picture->y.low / rate);

    (void)fprintf(picture->out, "<path class=\"roof\" d=\"M%.1f %.1fL%.1f %.1f\"/>\n",
                  place_x(picture, from), place_y(picture, from * rate),
                  place_x(picture, picture->peak / rate), place_y(picture, picture->peak));
}

/* Writes the name of each level along its roof, ending below the lowest peak. The name is above the
 * roof, or below the roof if the next higher roof is too close. */
static void write_level_names(const struct picture *picture)
{
    /* Pixels per unit of the natural logarithm, vertically and horizontally; they give the angle of
     * a roof. */
    const double rise = picture->y.pixels / log(picture->y.high / picture->y.low);
    const double run = picture->x.pixels / log(picture->x.high / picture->x.low);
    double above = INFINITY;
    size_t i;
    const json_t *level;

    json_array_foreach(json_object_get(picture->record, "levels"), i, level)
    {
        const double rate = real_of(level, "gb_per_s");
        const double distance = rise * log(above / rate) * run / hypot(rise, run);

        (void)fprintf(picture->out,
                      "<text class=\"name\" transform=\"translate(%.1f %.1f) rotate(%.1f)\" "
                      "x=\"-14\" y=\"%d\" text-anchor=\"end\">%s %.*f GB/s</text>\n",
                      place_x(picture, picture->low_peak / rate),
                      place_y(picture, picture->low_peak), -atan2(rise, run) * 180 / acos(-1),
                      distance > LINE_HEIGHT ? -6 : 16, text_of(level, "level"), rate < 10 ? 1 : 0,
                      rate);
        above = rate;
    }
}

/* Draws a peak, starting at the roof of the fastest level. */
static void draw_peak(const struct picture *picture, const json_t *peak)
{
    const double rate = real_of(peak, "gflop_per_s");
    const json_t *fastest = json_array_get(json_object_get(picture->record, "levels"), 0);
    const double y = place_y(picture, rate);

    (void)fprintf(picture->out,
                  "<path class=\"roof\" d=\"M%.1f %.1fH%d\"/>\n"
                  "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">peak %s %.0f GFLOP/s</text>\n",
                  place_x(picture, rate / real_of(fastest, "gb_per_s")), y, PLOT_LEFT + PLOT_WIDTH,
                  PLOT_LEFT + PLOT_WIDTH - 6, y - 6, text_of(peak, "precision"), rate);
}

static void draw_roofs(const struct picture *picture)
{
    size_t i;
    const json_t *row;

    json_array_foreach(json_object_get(picture->record, "levels"), i, row)
    {
        draw_level(picture, row);
    }
    json_array_foreach(json_object_get(picture->record, "peaks"), i, row)
    {
        draw_peak(picture, row);
    }
}

/* Draws a shape around a point: a circle, or a polygon that rests on a side or on a corner. */
static void draw_shape(FILE *out, unsigned shape, const char *class, double x, double y)
{
    static const struct {
        unsigned corners;
        /* angle of the first corner from the top, in units of the angle between two corners */
        double turn;
        double radius;
    } forms[] = {{4, 0.5, 1.3}, {3, 0, 1.5},  {4, 0, 1.35},
                 {3, 0.5, 1.5}, {5, 0, 1.25}, {6, 0, 1.2}};
    const unsigned form = (shape + 5) % 6;

    if (shape == 0) {
        (void)fprintf(out, "<circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"%d\"/>", class, x, y,
                      MARKER_RADIUS);
        return;
    }
    (void)fprintf(out, "<polygon class=\"%s\" points=\"", class);
    for (unsigned i = 0; i < forms[form].corners; i++) {
        const double angle =
            2 * acos(-1) * (i + forms[form].turn) / forms[form].corners - acos(-1) / 2;
        const double radius = forms[form].radius * MARKER_RADIUS;

        (void)fprintf(out, "%s%.1f,%.1f", i > 0 ? " " : "", x + radius * cos(angle),
                      y + radius * sin(angle));
    }
    (void)fputs("\"/>", out);
}

/* Draws a shape and the number of a mode within it. */
static void draw_symbol(FILE *out,
                        unsigned shape,
                        unsigned colour,
                        const char *which,
                        double x,
                        double y,
                        const char *inside)
{
    const bool hollow = strcmp(which, "given") != 0;
    char class[32];

    (void)snprintf(class, sizeof class, "%c%u%s%s", hollow ? 'h' : 'f', colour % COLOURS,
                   hollow ? " " : "", hollow ? which : "");
    draw_shape(out, shape, class, x, y);
    (void)fprintf(out, "<text class=\"n\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%s</text>",
                  x, y + 3.5, inside);
}

static void draw_marker(struct picture *picture, const json_t *row)
{
    FILE *out = picture->out;
    char mode[16];

    (void)snprintf(mode, sizeof mode, "%d", (int)real_of(row, "mode"));
    (void)fputs("<g class=\"marker\"><title>", out);
    write_text(out, text_of(row, "tensor"));
    (void)fprintf(out,
                  ", %s: %s, mode %s, rank %d: %.3g GFLOP/s at %.3g operations per byte</title>",
                  text_of(row, "case"), text_of(row, "kernel"), mode, (int)real_of(row, "rank"),
                  real_of(row, "gflop_per_s"), real_of(row, "flop_per_byte"));
    draw_symbol(out, shape_of(picture, row), series_of(picture, row), text_of(row, "case"),
                place_x(picture, real_of(row, "flop_per_byte")),
                place_y(picture, real_of(row, "gflop_per_s")), mode);
    (void)fputs("</g>\n", out);
}

/* Draws the markers: first those of best and worst cases, then those of the tensors above them. */
static void draw_markers(struct picture *picture)
{
    static const char *const arrays[] = {"bounds", "rows"};
    size_t i;
    const json_t *row;

    for (unsigned a = 0; a < 2; a++) {
        json_array_foreach(json_object_get(picture->record, arrays[a]), i, row)
        {
            if (has_place(row)) {
                draw_marker(picture, row);
            }
        }
    }
}

/* Writes a line of the legend: a symbol and its meaning, or a heading without a symbol. */
static void write_legend_line(FILE *out,
                              unsigned *line,
                              bool symbol,
                              unsigned shape,
                              unsigned colour,
                              const char *which,
                              const char *text,
                              json_int_t rank)
{
    const double y = PLOT_TOP + 10 + (double)*line * LINE_HEIGHT;

    if (symbol) {
        draw_symbol(out, shape, colour, which, LEGEND_LEFT + MARKER_RADIUS, y, "");
    }
    (void)fprintf(out, "<text x=\"%d\" y=\"%.1f\">", LEGEND_LEFT + (symbol ? 26 : 0), y + 4);
    write_text(out, text);
    if (rank > 0) {
        (void)fprintf(out, ", rank %d", (int)rank);
    }
    (void)fputs("</text>\n", out);
    ++*line;
}

static void draw_legend(const struct picture *picture)
{
    FILE *out = picture->out;
    unsigned line = 0;

    write_legend_line(out, &line, false, 0, 0, "", "Tensors (number in a marker: mode)", 0);
    for (unsigned i = 0; i < picture->series_count; i++) {
        write_legend_line(out, &line, true, 0, i, "given", picture->series[i].tensor,
                          picture->several_ranks ? picture->series[i].rank : 0);
    }
    line++;
    write_legend_line(out, &line, false, 0, 0, "", "Kernels", 0);
    for (unsigned i = 0; i < picture->kernel_count; i++) {
        write_legend_line(out, &line, true, i, COLOURS - 1, "given", picture->kernels[i], 0);
    }
    if (picture->bounds) {
        line++;
        write_legend_line(out, &line, false, 0, 0, "", "Bounds of each tensor, in its colour", 0);
        write_legend_line(out, &line, true, 0, COLOURS - 1, "best", "best case: fewest rows", 0);
        write_legend_line(out, &line, true, 0, COLOURS - 1, "worst", "worst case: no row twice", 0);
    }
}

enum slc_status roofline_svg_try(const char *path, struct slc_error *err)
{
    struct slc_output output;

    SLC_TRY(slc_check_outside_stores(NULL, path, err));
    SLC_TRY(slc_output_open(&output, NULL, path, err));
    slc_output_abandon(&output);
    return SLC_OK;
}

enum slc_status roofline_svg_write(const json_t *record, const char *path, struct slc_error *err)
{
    struct picture picture = {.record = record};
    char *text = NULL;
    size_t bytes = 0;

    picture.out = open_memstream(&text, &bytes);
    SLC_TRY(slc_check_memory(picture.out != NULL, err, "for the picture %s", path));
    choose_axes(&picture);
    write_head(&picture);
    draw_axes(&picture);
    draw_roofs(&picture);
    draw_markers(&picture);
    write_level_names(&picture);
    draw_legend(&picture);
    (void)fputs("</svg>\n", picture.out);
    enum slc_status status =
        fclose(picture.out) == 0
            ? slc_file_replace(slc_files_system(), path, text, bytes, err)
            : slc_fail(err, SLC_ERR_MEMORY, "no memory for the picture %s", path);
    free(text);
    return status;
}
