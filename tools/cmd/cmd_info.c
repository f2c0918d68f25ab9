/* sluice info: prints the properties of a store or a checkpoint, as text or JSON. */
#include "base/memory/memory.h"
#include "base/text/plain_text.h"
#include "report/json_parts.h"
#include "report/saved_run.h"
#include "storage/file/block_file.h"
#include "storage/manifest/json_text.h"
#include "storage/manifest/labels.h"
#include "storage/manifest/values_json.h"
#include "tools/progress/console.h"
#include "tools/progress/format.h"
#include "tools/progress/json_out.h"
#include "tools/session/commands.h"
#include "tools/session/session.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static void print_checkpoint(const struct slc_saved_run *run)
{
    const struct slc_checkpoint_reader *reader = run->reader;
    const struct slc_cp_saved *saved = &run->saved;
    const struct slc_checkpoint_info *info = slc_checkpoint_reader_info(reader);
    struct format_text bytes;
    struct format_text seconds;
    char written[32];

    printf("%s\n", slc_checkpoint_reader_path(reader));
    printf("  %-18s %" PRIu64 ", intact, %s in %u sections, of %s\n", "generation",
           info->generation, format_data(&bytes, (double)info->file_bytes), info->section_count,
           slc_saved_run_written(saved->written, written, sizeof written));
    printf("  %-18s iteration %u, mode %u%s\n", "resumes at", saved->iterations + 1,
           saved->mode_order[saved->place] + 1,
           saved->pending != SLC_MAX_ORDER ? ", whose MTTKRP is complete" : "");
    if (saved->part.position != 0) {
        printf("  %-18s after %" PRIu64 " %s of a pass for %s\n", "", saved->part.position,
               saved->part.fused ? "row ranges" : "blocks",
               saved->part.fused ? "it and the next mode" : "it");
    }
    printf("  %-18s %.8f after %u iteration%s\n", "fit", saved->fit, saved->iterations,
           plural(saved->iterations));
    printf("  %-18s %s so far, resumed %u time%s; %" PRIu64 " checkpoint%s in %.3fs\n", "time",
           format_seconds(&seconds, saved->times.total), saved->checkpoints.resumes,
           plural(saved->checkpoints.resumes), saved->checkpoints.count,
           plural(saved->checkpoints.count), saved->checkpoints.seconds);
    for (const char *line = run->identity; *line != '\0';) {
        const size_t length = strcspn(line, "\n");
        const char *equals = memchr(line, '=', length);
        const int name = equals != NULL ? (int)(equals - line) : 0;

        if (equals != NULL) {
            printf("  %-18.*s %.*s\n", name, line, (int)length - name - 1, equals + 1);
        }
        line += length + (line[length] == '\n');
    }
}

/* Prints a checkpoint as text or as one JSON object. Returns the exit code. */
static int info_checkpoint(const char *path, bool json)
{
    struct slc_saved_run run;
    struct slc_error err = SLC_ERROR_INIT;
    json_t *object = NULL;
    enum slc_status status = slc_saved_run_open(path, false, &run, &err);

    if (status != SLC_OK) {
        return console_error(&err);
    }
    if (json) {
        status = slc_saved_run_json(&run, &object, &err);
        SLC_THEN(status, json_out_print(object, &err));
    } else {
        print_checkpoint(&run);
    }
    slc_saved_run_close(&run);
    return status == SLC_OK ? 0 : console_error(&err);
}

struct arguments {
    bool json;
};

/* Smallest and largest used index of a mode. */
struct used_range {
    uint64_t low;
    uint64_t high;
};

/* Properties of a layout that the manifest does not contain: the order of nonzeros, and the
 * partitions of a sorted layout. */
struct layout_stats {
    struct slc_fiber_run run;
    uint64_t fibers; /* number of nonempty fibers of a fiber-n layout */
    uint64_t count;
    uint64_t smallest_nnz;
    uint64_t largest_nnz;
    uint64_t split_rows; /* rows in more than one partition */
};

/* Data that is printed in addition to the manifest. */
struct findings {
    struct used_range ranges[SLC_MAX_ORDER]; /* only for text */
    struct layout_stats layouts[SLC_MAX_LAYOUTS];
    struct slc_block_file files[SLC_MAX_LAYOUTS]; /* open, because stripes are listed from them */
};

static const struct option options[] = {
    {"json", OPTION_FLAG, offsetof(struct arguments, json), .help = "print one JSON object"},
    {.name = NULL}};

static double cells_of(const struct slc_manifest *manifest)
{
    double cells = 1;

    for (unsigned n = 0; n < manifest->order; n++) {
        cells *= (double)manifest->dims[n];
    }
    return cells;
}

/* Returns a lower bound of the bits per nonzero that the coordinates of a tensor of this size and
 * shape need: log2(e * cells / nnz). */
static double ideal_bits(const struct slc_manifest *manifest)
{
    return manifest->nnz > 0 ? log2(exp(1.0) * cells_of(manifest) / (double)manifest->nnz) : 0;
}

static double index_bits(const struct slc_manifest *manifest, const struct slc_store_layout *layout)
{
    return slc_ratio(8.0 * (double)layout->index_bytes, (double)manifest->nnz);
}

/* Finds the smallest and largest index of mode n in all blocks. In a mode that is renumbered by
 * frequency, every number in the range is used, so the range can be mapped back exactly. */
static enum slc_status find_range(const struct slc_store *store,
                                  unsigned n,
                                  struct used_range *range,
                                  struct slc_error *err)
{
    const struct slc_reader *reader = store->reader;
    const struct slc_layout_info *info = slc_reader_info(reader);
    const struct slc_store_permutation *listed = slc_manifest_permutation(&store->manifest, n);

    range->low = UINT64_MAX;
    range->high = 0;
    for (uint64_t b = 0; b < info->block_count; b++) {
        struct slc_block_entry entry;

        slc_reader_entry(reader, b, &entry);
        range->low = entry.min[n] < range->low ? entry.min[n] : range->low;
        range->high = entry.max[n] > range->high ? entry.max[n] : range->high;
    }
    if (listed == NULL || info->block_count == 0) {
        return SLC_OK;
    }
    /* Replace the range of indices of the store with the range of indices of the input. */
    return slc_labels_find(store->files, store->path, listed, store->manifest.dims[n], &range->low,
                           &range->high, err);
}

static enum slc_status
find_ranges(const struct slc_store *store, struct used_range *ranges, struct slc_error *err)
{
    for (unsigned n = 0; n < store->manifest.order; n++) {
        SLC_TRY(find_range(store, n, &ranges[n], err));
    }
    return SLC_OK;
}

/* Reads the index of a layout other than the first and counts the partitions. */
static enum slc_status read_layout_stats(const struct slc_store *store,
                                         const struct slc_store_layout *layout,
                                         struct layout_stats *stats,
                                         struct slc_error *err)
{
    struct slc_reader *reader = NULL;
    bool split = false;
    enum slc_status status = slc_store_open_layout(store, layout->layout, layout->layout_mode,
                                                   slc_memory_total(), &reader, err);

    *stats = (struct layout_stats){.count = 0};
    SLC_TRY(status);
    stats->run = slc_reader_info(reader)->keys.run;
    stats->fibers = slc_reader_info(reader)->fiber_count;
    stats->count = slc_reader_info(reader)->partition_count;
    stats->largest_nnz = slc_reader_info(reader)->max_partition_nnz;
    stats->smallest_nnz = stats->largest_nnz;
    for (uint64_t p = 0; p < stats->count; p++) {
        struct slc_partition partition;

        slc_reader_partition(reader, p, &partition);
        stats->smallest_nnz =
            partition.nnz < stats->smallest_nnz ? partition.nnz : stats->smallest_nnz;
        stats->split_rows += partition.continued && !split;
        split = partition.continued;
    }
    slc_reader_close(reader);
    return SLC_OK;
}

/* Opens the file of a layout, to list its stripes. */
static enum slc_status find_file(const struct slc_store *store,
                                 const struct slc_store_layout *layout,
                                 struct slc_block_file *file,
                                 struct slc_error *err)
{
    char *path = slc_path_join(store->path, layout->file);
    enum slc_status status =
        path == NULL ? slc_fail(err, SLC_ERR_MEMORY, "out of memory for a path")
                     : slc_block_file_open(store->files, path, "opening a block file", file, err);

    slc_free(path);
    for (unsigned k = 0; status == SLC_OK && k < file->part_count; k++) {
        slc_text_make_plain(file->parts[k].path);
    }
    return status;
}

/* Collects everything that the manifest does not contain. */
static enum slc_status collect_findings(const struct slc_store *store,
                                        bool json,
                                        struct findings *findings,
                                        struct slc_error *err)
{
    const struct slc_manifest *manifest = &store->manifest;
    enum slc_status status = json ? SLC_OK : find_ranges(store, findings->ranges, err);

    for (unsigned i = 0; i < manifest->layout_count && status == SLC_OK; i++) {
        if (manifest->layouts[i].layout == SLC_LAYOUT_BLCO) {
            findings->layouts[i].run = slc_reader_info(store->reader)->keys.run;
        } else {
            status = read_layout_stats(store, &manifest->layouts[i], &findings->layouts[i], err);
        }
        SLC_THEN(status, find_file(store, &manifest->layouts[i], &findings->files[i], err));
    }
    return status;
}

static json_t *layout_to_json(const struct slc_manifest *manifest,
                              const struct slc_store_layout *layout,
                              const struct layout_stats *stats,
                              const struct slc_block_file *file)
{
    json_t *object = json_pack(
        "{s:s, s:s, s:I, s:s, s:I, s:I, s:f, s:I, s:I, s:o}", "file", layout->file, "layout",
        slc_layout_name(layout->layout), "mode",
        (json_int_t)(layout->layout == SLC_LAYOUT_BLCO ? 0 : layout->layout_mode + 1), "codec",
        slc_codec_name(layout->codec), "file_bytes", (json_int_t)layout->file_bytes, "block_count",
        (json_int_t)layout->block_count, "index_bits_per_nonzero", index_bits(manifest, layout),
        "fiber_mode", (json_int_t)(stats->run.bits > 0 ? stats->run.mode + 1 : 0), "fiber_bits",
        (json_int_t)stats->run.bits, "header_hash", slc_json_hex(layout->header_hash));

    if (object != NULL && file->shape.count > 0) {
        const char *paths[SLC_MAX_STRIPES];

        for (unsigned k = 0; k < file->part_count; k++) {
            paths[k] = file->parts[k].path;
        }
        slc_json_set_paths(object, "stripes", file->part_count, paths);
        slc_json_set(object, "own_stripes", json_boolean(!file->borrowed));
    }
    if (object != NULL && layout->layout == SLC_LAYOUT_FIBER) {
        slc_json_set_count(object, "fibers", stats->fibers);
    }
    if (object != NULL && layout->layout == SLC_LAYOUT_SORTED) {
        slc_json_set(object, "partitions",
                     json_pack("{s:I, s:I, s:I, s:I}", "count", (json_int_t)stats->count,
                               "smallest_nnz", (json_int_t)stats->smallest_nnz, "largest_nnz",
                               (json_int_t)stats->largest_nnz, "split_rows",
                               (json_int_t)stats->split_rows));
    }
    return object;
}

static json_t *relabelled_to_json(const struct slc_manifest *manifest)
{
    json_t *modes = json_array();

    for (unsigned i = 0; i < manifest->permutation_count; i++) {
        (void)json_array_append_new(modes,
                                    json_integer((json_int_t)manifest->permutations[i].mode + 1));
    }
    return modes;
}

/* Lists for each mode its title and the number of named indices. */
static json_t *names_to_json(const struct slc_manifest *manifest)
{
    json_t *modes = json_array();

    for (unsigned n = 0; n < manifest->order; n++) {
        const struct slc_store_names *names = slc_manifest_names(manifest, n);

        (void)json_array_append_new(modes,
                                    json_pack("{s:s, s:I}", "title", manifest->titles[n], "names",
                                              (json_int_t)(names != NULL ? names->count : 0)));
    }
    return modes;
}

/* Lists the appended inputs, oldest first. */
static json_t *appended_to_json(const struct slc_store_origin *origin)
{
    json_t *list = json_array();

    for (unsigned i = 0; i < origin->appended_count; i++) {
        (void)json_array_append_new(list,
                                    json_pack("{s:s, s:I}", "source", origin->appended[i].source,
                                              "entries", (json_int_t)origin->appended[i].entries));
    }
    return list;
}

/* Returns the statistics of the values; null if the store has none. */
static json_t *values_to_json(const struct slc_value_stats *values)
{
    json_t *object = values->distinct > 0 ? slc_values_to_json(values) : json_null();

    if (values->distinct > SLC_DISTINCT_MAX) {
        slc_json_set(object, "distinct", json_null());
    }
    return object;
}

static json_t *origin_to_json(const struct slc_store_origin *origin)
{
    return json_pack(
        "{s:s, s:s, s:I, s:I, s:I, s:I, s:s, s:s, s:s, s:o, s:b}", "source", origin->source,
        "dialect", origin->dialect, "index_base", (json_int_t)origin->index_base, "entries_read",
        (json_int_t)origin->entries_read, "duplicates", (json_int_t)origin->duplicates,
        "explicit_zeros", (json_int_t)origin->explicit_zeros, "duplicate_policy",
        origin->duplicate_policy, "writer", origin->writer, "transforms", origin->transforms,
        "appended", appended_to_json(origin), "keep_zeros", (int)origin->keeps_zeros);
}

static int print_json(const struct slc_store *store, const struct findings *findings)
{
    const struct slc_manifest *manifest = &store->manifest;
    const struct slc_layout_info *info = slc_reader_info(store->reader);
    json_t *layouts = json_array();
    struct slc_error err = SLC_ERROR_INIT;

    for (unsigned i = 0; i < manifest->layout_count; i++) {
        (void)json_array_append_new(layouts,
                                    layout_to_json(manifest, &manifest->layouts[i],
                                                   &findings->layouts[i], &findings->files[i]));
    }
    json_t *object = json_pack(
        "{s:s, s:I, s:o, s:I, s:f, s:s, s:f, s:f, s:o, s:I, s:f, s:f, s:I, s:I, s:I, s:o, "
        "s:o, s:o, s:o}",
        "schema", "sluice-info-1", "order", (json_int_t)manifest->order, "dims",
        slc_json_dims(manifest->order, manifest->dims), "nnz", (json_int_t)manifest->nnz, "density",
        (double)manifest->nnz / cells_of(manifest), "value_type",
        manifest->value_type == SLC_F32 ? "f32" : "f64", "sum_of_squares", manifest->sum_of_squares,
        "norm", sqrt(manifest->sum_of_squares), "content_sum", slc_json_hex(manifest->content_sum),
        "store_bytes", (json_int_t)slc_manifest_file_bytes(manifest), "bytes_per_nonzero",
        session_bytes_per_nonzero(manifest), "ideal_index_bits", ideal_bits(manifest), "key_bits",
        (json_int_t)info->keys.bits, "tile_count", (json_int_t)info->tile_count, "max_block_bytes",
        (json_int_t)info->max_block_bytes, "layouts", layouts, "relabelled_modes",
        relabelled_to_json(manifest), "modes", names_to_json(manifest), "origin",
        origin_to_json(&manifest->origin));
    slc_json_set(object, "values", values_to_json(&manifest->values));
    slc_json_set_path(object, "path", store->path);
    return json_out_print(object, &err) == SLC_OK ? 0 : console_error(&err);
}

static void print_modes(const struct slc_store *store, const struct used_range *ranges)
{
    const struct slc_manifest *manifest = &store->manifest;
    const struct slc_layout_info *info = slc_reader_info(store->reader);
    struct format_text length;
    char title[SLC_TITLE_BYTES];

    for (unsigned n = 0; n < manifest->order; n++) {
        (void)snprintf(title, sizeof title, "%s", manifest->titles[n]);
        slc_text_make_plain(title);
        printf("  %-12s %s%ssize %s, %u bit%s", n == 0 ? "modes" : "", title,
               *title != '\0' ? ", " : "", format_count(&length, manifest->dims[n]),
               info->keys.mode_bits[n], plural(info->keys.mode_bits[n]));
        if (manifest->nnz > 0) {
            printf(", used from %" PRIu64 " to %" PRIu64, ranges[n].low + 1, ranges[n].high + 1);
        }
        if (slc_manifest_permutation(manifest, n) != NULL) {
            printf(", renumbered by frequency");
        }
        if (slc_manifest_names(manifest, n) != NULL) {
            printf(", %s with names",
                   format_count(&length, slc_manifest_names(manifest, n)->count));
        }
        printf("\n");
    }
}

/* Prints the file, the size of the coordinates, the order and the partitions of a layout. */
static void
print_layout(const struct slc_manifest *manifest, unsigned i, const struct layout_stats *stats)
{
    const struct slc_store_layout *layout = &manifest->layouts[i];
    struct format_text a;
    struct format_text b;

    printf("  %-12s %s, codec %s, %s in %" PRIu64 " block%s\n", i == 0 ? "layouts" : "",
           layout->file, slc_codec_name(layout->codec), format_data(&a, (double)layout->file_bytes),
           layout->block_count, plural(layout->block_count));
    printf("  %-12s coordinates %.2f bits per nonzero (log2(e * cells / nonzeros): %.2f)\n", "",
           index_bits(manifest, layout), ideal_bits(manifest));
    if (layout->layout == SLC_LAYOUT_FIBER) {
        printf("  %-12s whole fibers of mode %u: %s nonempty\n", "", layout->layout_mode + 1,
               format_count(&a, stats->fibers));
    } else if (stats->run.bits > 0) {
        printf("  %-12s fibers of mode %u kept together, in runs of up to 2^%u indices\n", "",
               stats->run.mode + 1, stats->run.bits);
    }
    if (layout->layout == SLC_LAYOUT_SORTED) {
        printf("  %-12s sorted by mode %u: %" PRIu64 " partition%s of %s to %s nonzeros", "",
               layout->layout_mode + 1, stats->count, plural(stats->count),
               format_count(&a, stats->smallest_nnz), format_count(&b, stats->largest_nnz));
        printf(", %" PRIu64 " row%s split\n", stats->split_rows, plural(stats->split_rows));
    }
}

/* Prints texts that come from files, without control characters. */
static void print_origin(const struct slc_store_origin *found)
{
    struct slc_store_origin origin = *found;
    struct format_text a;
    struct format_text b;

    slc_text_make_plain(origin.source);
    slc_text_make_plain(origin.dialect);
    slc_text_make_plain(origin.duplicate_policy);
    slc_text_make_plain(origin.writer);
    printf("  %-12s %s (%s, indices from %u), by %s\n", "origin", origin.source, origin.dialect,
           origin.index_base, origin.writer);
    printf("  %-12s %s entries, %s duplicates", "", format_count(&a, origin.entries_read),
           format_count(&b, origin.duplicates));
    printf(" (%s), %s explicit zeros\n", origin.duplicate_policy,
           format_count(&a, origin.explicit_zeros));
    if (origin.transforms[0] != '\0') {
        slc_text_make_plain(origin.transforms);
        printf("  %-12s %s\n", "transformed", origin.transforms);
    }
    if (origin.appended_count > 0) {
        struct slc_store_appended *last = &origin.appended[origin.appended_count - 1];

        slc_text_make_plain(last->source);
        printf("  %-12s %u input%s, last: %s with %s entries\n", "appended", origin.appended_count,
               plural(origin.appended_count), last->source, format_count(&a, last->entries));
    }
}

/* Prints the statistics of the values, if the store has them. */
static void print_values(const struct slc_value_stats *values, bool keeps_zeros)
{
    struct format_text a;

    if (values->distinct > 0) {
        printf("  %-12s from %.10g to %.10g, %s, %s%u distinct\n", "", values->low, values->high,
               values->integers ? "all integers" : "not all integers",
               values->distinct > SLC_DISTINCT_MAX ? "more than " : "",
               values->distinct > SLC_DISTINCT_MAX ? SLC_DISTINCT_MAX : values->distinct);
    }
    if (keeps_zeros) {
        printf("  %-12s zeros are kept: %s of the nonzeros are listed cells with the value 0\n", "",
               format_count(&a, values->zeros));
    }
}

static void print_text(const struct slc_store *store, const struct findings *findings)
{
    const struct slc_manifest *manifest = &store->manifest;
    const struct slc_layout_info *info = slc_reader_info(store->reader);
    struct format_text a;
    struct format_text b;
    char dims[FORMAT_DIMS_BYTES];

    printf("%s\n", store->path);
    printf("  %-12s %s\n", "dims", format_dims(dims, manifest->order, manifest->dims));
    print_modes(store, findings->ranges);
    printf("  %-12s %s (density %.3g)\n", "nonzeros", format_count(&a, manifest->nnz),
           (double)manifest->nnz / cells_of(manifest));
    printf("  %-12s %s, norm %.10g\n", "values", manifest->value_type == SLC_F32 ? "f32" : "f64",
           sqrt(manifest->sum_of_squares));
    print_values(&manifest->values, manifest->origin.keeps_zeros);
    printf("  %-12s %u bits, content sum %016" PRIx64 "\n", "keys", info->keys.bits,
           manifest->content_sum);
    for (unsigned i = 0; i < manifest->layout_count; i++) {
        print_layout(manifest, i, &findings->layouts[i]);
        for (unsigned k = 0; k < findings->files[i].shape.count; k++) {
            printf("  %-12s stripe %u of %u%s: %s\n", "", k + 1, findings->files[i].shape.count,
                   findings->files[i].borrowed ? " (owned by another store folder)" : "",
                   findings->files[i].parts[k].path);
        }
    }
    printf("  %-12s largest %s, %s nonzeros; %" PRIu64 " tile%s in total\n", "blocks",
           format_memory(&a, info->max_block_bytes), format_count(&b, info->max_block_nnz),
           info->tile_count, plural(info->tile_count));
    printf("  %-12s %.2f bytes per nonzero, %s in total\n", "size",
           session_bytes_per_nonzero(manifest),
           format_data(&a, (double)slc_manifest_file_bytes(manifest)));
    print_origin(&manifest->origin);
}

static int run(const struct command *command, int argc, char **argv)
{
    struct arguments args = {.json = false};
    struct slc_session session = {.stream = NULL};
    struct slc_error err = SLC_ERROR_INIT;
    struct findings findings = {.layouts = {{.count = 0}}};
    struct operands operands;
    bool checkpoint;
    int code;

    if (!command_begin(command, argc, argv, &args, &operands, &code)) {
        return code;
    }
    console_start(CONSOLE_NORMAL);
    if (slc_saved_run_find(operands.text[0], &checkpoint, &err) != SLC_OK) {
        return console_error(&err);
    }
    if (checkpoint) {
        return info_checkpoint(operands.text[0], args.json);
    }
    if (session_open(&session, operands.text[0], slc_memory_total(), &err) != SLC_OK ||
        collect_findings(&session.store, args.json, &findings, &err) != SLC_OK) {
        code = console_error(&err);
    } else if (args.json) {
        code = print_json(&session.store, &findings);
    } else {
        print_text(&session.store, &findings);
        code = 0;
    }
    for (unsigned i = 0; i < SLC_MAX_LAYOUTS; i++) {
        slc_block_file_close(&findings.files[i]);
    }
    session_close(&session);
    return code;
}

const struct command command_info = {
    .name = "info",
    .summary = "print the properties of a store or a checkpoint",
    .example = "sluice info flights-4d.slc",
    .operands = "X.slc|CHECKPOINT",
    .operands_min = 1,
    .operands_max = 1,
    .options = options,
    .run = run,
};
