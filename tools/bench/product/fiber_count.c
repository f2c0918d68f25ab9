/* Compares each nonzero with the one before it. */
#include "tools/bench/product/fiber_count.h"

#include "base/memory/checked.h"
#include "storage/scan/store_scan.h"
#include "tools/bench/measure/run.h"

#include <inttypes.h>

struct scan {
    unsigned order, mode;
    uint64_t length;              /* nonzeros of the current fiber so far */
    uint64_t last[SLC_MAX_ORDER]; /* coordinates of the last nonzero */
    struct fiber_count *count;
};

unsigned fiber_count_mode(unsigned order, unsigned mode)
{
    return mode == order - 1 ? order - 2 : order - 1;
}

static void end_fiber(const struct scan *scan)
{
    struct fiber_count *count = scan->count;

    if (scan->length > 0) {
        count->shortest =
            count->fibers == 0 ? scan->length : slc_min_u64(count->shortest, scan->length);
        count->longest = slc_max_u64(count->longest, scan->length);
        count->fibers++;
    }
}

/* Adds nonzeros in the order of fibers. */
static enum slc_status
count_rows(void *context, unsigned worker, struct slc_scan_rows *rows, struct slc_error *err)
{
    struct scan *scan = context;

    (void)worker, (void)err;
    for (uint32_t i = 0; i < rows->count; i++) {
        bool same = scan->length > 0;

        for (unsigned n = 0; n < scan->order && same; n++) {
            same = n == scan->mode || rows->coords[n][i] == scan->last[n];
        }
        if (!same) {
            end_fiber(scan);
            scan->length = 0;
        }
        scan->length++;
        for (unsigned n = 0; n < scan->order; n++) {
            struct fiber_slice *slice = scan->count->slice[n];

            scan->last[n] = rows->coords[n][i];
            if (slice != NULL) {
                slice[scan->last[n]].fibers += !same;
                scan->count->slices[n] += slice[scan->last[n]].nnz++ == 0;
            }
        }
    }
    return SLC_OK;
}

static bool has_slices(const struct slc_manifest *manifest,
                       const struct fiber_order_options *options,
                       unsigned n)
{
    return n != options->mode && fiber_count_mode(manifest->order, n) == options->mode;
}

static enum slc_status create_slices(const struct slc_manifest *manifest,
                                     const struct fiber_order_options *options,
                                     struct fiber_count *count,
                                     struct slc_error *err)
{
    const uint64_t most = options->memory_bytes / 2 / sizeof(struct fiber_slice);
    uint64_t first[SLC_MAX_ORDER];
    uint64_t total = 0;

    for (unsigned n = 0; n < manifest->order; n++) {
        first[n] = total;
        total += has_slices(manifest, options, n) ? manifest->dims[n] : 0;
        if (total > most) {
            return slc_fail(err, SLC_ERR_BUDGET,
                            "counting the nonzeros of %" PRIu64
                            " slices exceeds half of the budget of %" PRIu64 " MiB: raise --memory",
                            total, options->memory_bytes >> 20);
        }
    }
    SLC_TRY(slc_buffer_create(&count->memory, (total + 1) * sizeof(struct fiber_slice),
                              SLC_PAGES_SMALL, err));
    for (unsigned n = 0; n < manifest->order; n++) {
        if (has_slices(manifest, options, n)) {
            count->slice[n] = (struct fiber_slice *)count->memory.data + first[n];
        }
    }
    return SLC_OK;
}

enum slc_status fiber_count_scan(const struct slc_store *store,
                                 const struct fiber_order_options *options,
                                 const char *temp_dir,
                                 bool slices,
                                 struct fiber_count *count,
                                 struct slc_error *err)
{
    struct scan scan = {.order = store->manifest.order, .mode = options->mode, .count = count};
    struct fiber_order_options wanted = *options;
    struct slc_fiber_order order = {.store = NULL};
    char *folder = NULL;

    *count = (struct fiber_count){.memory = SLC_BUFFER_INIT};
    if (slices) {
        SLC_TRY(create_slices(&store->manifest, options, count, err));
    }
    SLC_TRY(bench_temp_folder(temp_dir, &folder, err));
    char *path = slc_path_join(folder, "fibers");
    enum slc_status status = slc_check_memory(path != NULL, err, "for a path");
    wanted.output = path;
    wanted.memory_bytes -= count->memory.bytes;
    SLC_THEN(status, fiber_order_open(&order, store, &wanted, err));
    if (status == SLC_OK) {
        struct slc_store ordered = *store;

        ordered.reader = order.reader;
        status = slc_store_scan(&ordered, 1, NULL, count_rows, &scan, err);
        end_fiber(&scan);
    }
    fiber_order_close(&order);
    slc_free(path);
    bench_temp_folder_remove(folder);
    return status;
}
