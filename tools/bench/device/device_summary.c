/* Computes the summary of `bench device` from the rows of its record. */
#include "tools/bench/device/device_summary.h"

#include "base/memory/limits.h"
#include "tools/bench/measure/run.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

enum { SUM_BYTES = 8 };

/* A group: the rows of one kernel on one tensor, at most one row per mode. */
struct group {
    const json_t *row[SLC_MAX_ORDER];
    unsigned count;
    unsigned order; /* order of the tensor; 0 if the rows have no member "dims" */
};

/* The keys whose values are equal in all rows of a group. */
static const char *const group_keys[] = {"tensor", "precision", "rank",
                                         "kernel", "split",     "devices"};
enum { GROUP_KEYS = sizeof group_keys / sizeof group_keys[0] };

const struct bench_column device_summary_columns[] = {
    {"tensor", "tensor", 0, 0},
    {"precision", "type", 0, 0},
    {"rank", "rank", 0, 0},
    {"kernel", "kernel", 0, 0},
    {"split", "split", 0, 0},
    {"devices", "devices", 0, 0},
    {"all_modes_ms", "all modes ms", 1, 3},
    {"ratio", "ratio", 1, 2},
    {"lowest_mode_ratio", "lowest ratio", 1, 2},
    {"slowest_over_fastest", "slowest/fastest", 1, 2},
    {"gflop_per_s", "GFLOP/s", 1, 1},
    {"model_gb_per_s", "model GB/s", 1, 1},
    {"ceiling_share", "% of ceiling", 100, 0},
    {"overall_gnnz_per_s", "overall Gnnz/s", 1, 3},
    {"overall_share", "% of in-memory", 100, 0},
    {"overlap_share", "% overlap", 100, 0},
    {"build_ms", "build ms", 1, 1},
    {"build_iterations", "build/MTTKRPs", 1, 1},
    {"form_bytes_per_nnz", "B/nnz", 1, 2},
    {"scaling", "scaling", 1, 2},
    {"device_spread", "% spread", 100, 1},
    {NULL, NULL, 0, 0}};

const struct bench_column device_mean_columns[] = {{"precision", "type", 0, 0},
                                                   {"rank", "rank", 0, 0},
                                                   {"kernel", "kernel", 0, 0},
                                                   {"split", "split", 0, 0},
                                                   {"devices", "devices", 0, 0},
                                                   {"tensors", "tensors", 0, 0},
                                                   {"ratio", "mean ratio", 1, 2},
                                                   {"lowest_mode_ratio", "lowest ratio", 1, 2},
                                                   {"ceiling_share", "% of ceiling", 100, 0},
                                                   {NULL, NULL, 0, 0}};

double device_model_bytes(unsigned order, uint32_t rank, double value_bytes, double form_bytes)
{
    return (order - 1.0) * rank * value_bytes + SUM_BYTES * (double)rank + form_bytes;
}

double device_model_flop(unsigned order, uint32_t rank)
{
    return (double)order * rank;
}

/* Returns the number in a member of the object, NAN if the member is missing or null. */
static double number_of(const json_t *object, const char *name)
{
    const json_t *member = json_object_get(object, name);

    return json_is_number(member) ? json_number_value(member) : NAN;
}

static bool is_text(const json_t *object, const char *name, const char *text)
{
    const char *there = json_string_value(json_object_get(object, name));

    return there != NULL && strcmp(there, text) == 0;
}

/* Returns the measured row size whose ratio to `row_bytes` is closest to 1. */
static double nearest_row_bytes(const json_t *ceilings, double row_bytes)
{
    double nearest = NAN;
    size_t i;
    const json_t *row;

    json_array_foreach(ceilings, i, row)
    {
        const double bytes = number_of(row, "row_bytes");

        if (is_text(row, "ceiling", "rows") && bytes > 0 &&
            !(fabs(log(bytes / row_bytes)) >= fabs(log(nearest / row_bytes)))) {
            nearest = bytes;
        }
    }
    return nearest;
}

double device_rows_ceiling(const json_t *ceilings, double row_bytes, double working_bytes)
{
    const double nearest = nearest_row_bytes(ceilings, row_bytes);
    double below = 0, above = INFINITY, below_rate = NAN, above_rate = NAN;
    size_t i;
    const json_t *row;

    json_array_foreach(ceilings, i, row)
    {
        const double bytes = number_of(row, "working_bytes"), rate = number_of(row, "gb_per_s");

        if (!is_text(row, "ceiling", "rows") || number_of(row, "row_bytes") != nearest) {
            continue;
        }
        if (bytes <= working_bytes && bytes > below) {
            below = bytes;
            below_rate = rate;
        } else if (bytes > working_bytes && bytes < above) {
            above = bytes;
            above_rate = rate;
        }
    }
    if (isnan(below_rate) || isnan(above_rate)) {
        return isnan(below_rate) ? above_rate : below_rate;
    }
    return below_rate + (above_rate - below_rate) * log(working_bytes / below) / log(above / below);
}

/* Returns true if two rows agree in all group keys. Ignores the key `but` unless it is NULL. */
static bool agree(const json_t *a, const json_t *b, const char *but)
{
    for (unsigned k = 0; k < GROUP_KEYS; k++) {
        const json_t *in_a = json_object_get(a, group_keys[k]);
        const json_t *in_b = json_object_get(b, group_keys[k]);

        if ((but == NULL || strcmp(group_keys[k], but) != 0) && in_a != in_b &&
            (in_a == NULL || in_b == NULL || !json_equal(in_a, in_b))) {
            return false;
        }
    }
    return true;
}

/* Returns true if a row is an MTTKRP with a time. Rows of TTV and TTM have no member "dims". */
static bool counts(const json_t *row)
{
    return json_is_array(json_object_get(row, "dims")) && number_of(row, "median_ms") > 0;
}

/* Returns the rows of the group of row `like`. If a mode has several rows, only the first of these
 * rows belongs to the group. */
static struct group find_group(const json_t *rows, const json_t *like)
{
    struct group group = {.order = (unsigned)json_array_size(json_object_get(like, "dims"))};
    size_t i;
    const json_t *row;

    json_array_foreach(rows, i, row)
    {
        bool there = false;

        for (unsigned k = 0; k < group.count; k++) {
            there = there ||
                    json_equal(json_object_get(group.row[k], "mode"), json_object_get(row, "mode"));
        }
        if (counts(row) && !there && group.count < SLC_MAX_ORDER && agree(row, like, NULL)) {
            group.row[group.count++] = row;
        }
    }
    return group;
}

/* Returns true if `row` is the first row of its group. */
static bool begins_group(const json_t *rows, const json_t *row)
{
    size_t i;
    const json_t *before;

    json_array_foreach(rows, i, before)
    {
        if (before == row) {
            return true;
        }
        if (counts(before) && agree(before, row, NULL)) {
            return false;
        }
    }
    return true;
}

/* Sum, smallest and largest value of a member over the rows of a group. If a row lacks the member,
 * the sum is NAN; the smallest and the largest value ignore the row. */
struct range {
    double sum, least, most;
};

static struct range range_of(const struct group *group, const char *name)
{
    struct range range = {0, NAN, NAN};

    for (unsigned i = 0; i < group->count; i++) {
        const double number = number_of(group->row[i], name);

        range.sum += number;
        range.least = fmin(range.least, number);
        range.most = fmax(range.most, number);
    }
    return range;
}

static double sum_of(const struct group *group, const char *name)
{
    return range_of(group, name).sum;
}

/* Returns the sum of the times of all modes, NAN unless all modes were measured. */
static double all_modes_ms(const struct group *group)
{
    return group->count == group->order ? sum_of(group, "median_ms") : NAN;
}

/* Returns the group of `kernel` with the tensor, rank and precision of `like`, on one device. */
static struct group find_alone(const json_t *rows, const json_t *like, const char *kernel)
{
    const json_t *found = NULL;
    size_t i;
    const json_t *row;

    json_array_foreach(rows, i, row)
    {
        const bool same =
            json_equal(json_object_get(row, "tensor"), json_object_get(like, "tensor")) &&
            json_equal(json_object_get(row, "precision"), json_object_get(like, "precision")) &&
            json_equal(json_object_get(row, "rank"), json_object_get(like, "rank"));

        if (found == NULL && same && counts(row) && is_text(row, "kernel", kernel) &&
            json_object_get(row, "devices") == NULL) {
            found = row;
        }
    }
    return found != NULL ? find_group(rows, found) : (struct group){.count = 0};
}

static void set_ratios(json_t *object, const struct group *group, const struct group *sluice)
{
    double lowest = NAN;

    for (unsigned i = 0; i < group->count; i++) {
        for (unsigned k = 0; k < sluice->count; k++) {
            if (json_equal(json_object_get(group->row[i], "mode"),
                           json_object_get(sluice->row[k], "mode"))) {
                lowest = fmin(lowest, number_of(group->row[i], "median_ms") /
                                          number_of(sluice->row[k], "median_ms"));
            }
        }
    }
    bench_set_real(object, "ratio", all_modes_ms(group) / all_modes_ms(sluice));
    bench_set_real(object, "lowest_mode_ratio", lowest);
}

static double value_bytes(const json_t *row)
{
    return is_text(row, "precision", "f32") ? 4 : 8;
}

/* Returns the rate in GB/s of reads of rows at random places, if each nonzero reads one row of each
 * factor. The working set of a mode has all rows of its factor, but at most one per nonzero. */
static double rows_ceiling(const struct group *group, const json_t *ceilings)
{
    const json_t *row = group->row[0];
    const double row_bytes = number_of(row, "rank") * value_bytes(row);
    double per_rate = 0;
    size_t n;
    const json_t *dim;

    json_array_foreach(json_object_get(row, "dims"), n, dim)
    {
        const double length = fmin(json_number_value(dim), number_of(row, "nnz"));

        per_rate += 1 / device_rows_ceiling(ceilings, row_bytes, length * row_bytes);
    }
    return group->order / per_rate;
}

static void set_rates(json_t *object, const struct group *group, const json_t *ceilings)
{
    const json_t *row = group->row[0];
    const uint32_t rank = (uint32_t)number_of(row, "rank");
    /* The unit is 1e9 nonzeros per second, which is nonzeros per millisecond times 1e-6. */
    const double rate = number_of(row, "nnz") * group->count / sum_of(group, "median_ms") * 1e-6;
    const double form = range_of(group, "form_bytes_per_nnz").most;
    const double model = rate * device_model_bytes(group->order, rank, value_bytes(row), form);
    const double ceiling = rows_ceiling(group, ceilings);

    bench_set_real(object, "gnnz_per_s", rate);
    bench_set_real(object, "gflop_per_s", rate * device_model_flop(group->order, rank));
    bench_set_real(object, "model_gb_per_s", model);
    bench_set_real(object, "ceiling_gb_per_s", ceiling);
    bench_set_real(object, "ceiling_share", model / ceiling);
}

/* Returns the time in which copies and kernels overlap, relative to the shorter of their times. */
static double overlap_share(const struct group *group)
{
    const double copy = sum_of(group, "copy_ms"), kernel = sum_of(group, "kernel_ms");
    const double shorter = fmin(copy, kernel);

    const double overlap = copy + kernel - sum_of(group, "busy_ms");

    /* Rounding may make the overlap negative. */
    return isnan(overlap) || shorter <= 0 ? NAN : fmax(overlap, 0) / shorter;
}

/* Sets the rate including copies, and its ratio to the rate of the kernels alone. Does nothing if
 * no block was copied. */
static void set_streaming(json_t *object, const struct group *group)
{
    const double whole = sum_of(group, "whole_ms");

    if (!(range_of(group, "copied_bytes").most > 0)) {
        return;
    }
    bench_set_real(object, "overall_gnnz_per_s",
                   number_of(group->row[0], "nnz") * group->count / whole * 1e-6);
    bench_set_real(object, "overall_share", sum_of(group, "median_ms") / whole);
    bench_set_real(object, "overlap_share", overlap_share(group));
}

/* Returns the time to build the forms of all modes. Adds the time of a shared form once. */
static double build_ms(const struct group *group)
{
    double sum = NAN;

    for (unsigned i = 0; i < group->count; i++) {
        const double build = number_of(group->row[i], "build_ms");
        const json_t *form = json_object_get(group->row[i], "form");
        bool counted = isnan(build);

        for (unsigned k = 0; k < i && form != NULL; k++) {
            counted = counted || json_equal(form, json_object_get(group->row[k], "form"));
        }
        if (!counted) {
            sum = isnan(sum) ? build : sum + build;
        }
    }
    return sum;
}

static void set_form(json_t *object, const struct group *group)
{
    const double build = build_ms(group);

    bench_set_real(object, "build_ms", build);
    bench_set_real(object, "build_iterations", build / all_modes_ms(group));
    bench_set_real(object, "form_bytes_per_nnz", range_of(group, "form_bytes_per_nnz").most);
}

/* Returns the imbalance as the paper of AMPED defines it: the largest minus the smallest time of a
 * device over all modes, relative to the sum of these times. */
static double device_spread(const struct group *group)
{
    const size_t devices = json_array_size(json_object_get(group->row[0], "device_ms"));
    double most = NAN, least = NAN, total = 0;

    for (size_t d = 0; d < devices; d++) {
        double time = 0;

        for (unsigned i = 0; i < group->count; i++) {
            time +=
                json_number_value(json_array_get(json_object_get(group->row[i], "device_ms"), d));
        }
        most = fmax(most, time);
        least = fmin(least, time);
        total += time;
    }
    return (most - least) / total;
}

/* Sets the scaling and the spread of several devices. `alone` is the group of the same kernel on
 * one device. Their time includes the exchange of rows if it was measured. */
static void set_devices(json_t *object, const struct group *group, const struct group *alone)
{
    const double exchange = sum_of(group, "exchange_ms");

    bench_set_real(object, "scaling",
                   all_modes_ms(alone) / (all_modes_ms(group) + (isnan(exchange) ? 0 : exchange)));
    bench_set_real(object, "device_spread", device_spread(group));
}

/* Appends an object to `list` with the group keys of row `like` and their values, except `but`. */
static json_t *add_group(json_t *list, const json_t *like, const char *but)
{
    json_t *object = bench_add_row(list);

    for (unsigned k = 0; k < GROUP_KEYS; k++) {
        json_t *value = json_object_get(like, group_keys[k]);

        if (value != NULL && (but == NULL || strcmp(group_keys[k], but) != 0)) {
            (void)json_object_set(object, group_keys[k], value);
        }
    }
    return object;
}

static void summarize_group(json_t *summary,
                            const struct group *group,
                            const json_t *rows,
                            const json_t *ceilings)
{
    const json_t *first = group->row[0];
    const struct group sluice = find_alone(rows, first, "sluice");
    json_t *object = add_group(summary, first, NULL);

    slc_json_set_count(object, "modes", group->count);
    bench_set_real(object, "all_modes_ms", all_modes_ms(group));
    set_ratios(object, group, &sluice);
    bench_set_real(object, "slowest_over_fastest",
                   group->count == group->order
                       ? range_of(group, "median_ms").most / range_of(group, "median_ms").least
                       : NAN);
    set_rates(object, group, ceilings);
    set_streaming(object, group);
    set_form(object, group);
    if (json_object_get(first, "devices") != NULL) {
        const struct group alone =
            find_alone(rows, first, json_string_value(json_object_get(first, "kernel")));

        set_devices(object, group, &alone);
    }
}

/* Adds the geometric means over the summary rows that agree with `like` except in the tensor, and
 * the lowest ratio of these rows. The means ignore missing numbers. */
static void add_means(json_t *means, const json_t *summary, const json_t *like)
{
    json_t *object = add_group(means, like, "tensor");
    double logarithms[2] = {0, 0}, lowest = NAN;
    unsigned counts[2] = {0, 0};
    static const char *const names[2] = {"ratio", "ceiling_share"};
    size_t i;
    const json_t *row;

    json_array_foreach(summary, i, row)
    {
        for (unsigned k = 0; k < 2 && agree(row, like, "tensor"); k++) {
            const double number = number_of(row, names[k]);

            logarithms[k] += number > 0 ? log(number) : 0;
            counts[k] += number > 0;
            lowest = fmin(lowest, number_of(row, "lowest_mode_ratio"));
        }
    }
    slc_json_set_count(object, "tensors", counts[0]);
    bench_set_real(object, names[0], counts[0] > 0 ? exp(logarithms[0] / counts[0]) : NAN);
    bench_set_real(object, "lowest_mode_ratio", lowest);
    bench_set_real(object, names[1], counts[1] > 0 ? exp(logarithms[1] / counts[1]) : NAN);
}

void device_summary_add(json_t *record)
{
    const json_t *rows = json_object_get(record, "rows");
    const json_t *ceilings = json_object_get(record, "ceilings");
    json_t *summary = json_array(), *means = json_array();
    size_t i, k;
    json_t *row, *mean;

    json_array_foreach(rows, i, row)
    {
        if (counts(row) && begins_group(rows, row)) {
            const struct group group = find_group(rows, row);

            summarize_group(summary, &group, rows, ceilings);
        }
    }
    json_array_foreach(summary, i, row)
    {
        bool there = false;

        json_array_foreach(means, k, mean)
        {
            there = there || agree(mean, row, "tensor");
        }
        if (!there) {
            add_means(means, summary, row);
        }
    }
    if (json_array_size(summary) > 0) {
        slc_json_set(record, "summary", json_incref(summary));
        slc_json_set(record, "summary_means", json_incref(means));
    }
    json_decref(summary);
    json_decref(means);
}
