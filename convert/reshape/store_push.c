#include "convert/reshape/store_push.h"

#include "base/memory/checked.h"

struct translation {
    const struct slc_store_push *push;
    slc_scan_fn *fn;
    void *context;
};

enum slc_status slc_store_push_open(struct slc_store_push *push,
                                    const struct slc_files *files,
                                    const char *path,
                                    uint64_t memory_bytes,
                                    struct slc_error *err)
{
    const enum slc_status status =
        slc_store_open_within(files, path, memory_bytes, &push->store, err);

    push->info = status == SLC_OK ? slc_reader_info(push->store.reader) : NULL;
    return status;
}

void slc_store_push_free(struct slc_store_push *push)
{
    for (unsigned n = 0; n < SLC_MAX_ORDER; n++) {
        slc_labels_destroy(&push->labels[n]);
    }
    slc_reader_close(push->store.reader);
    push->store.reader = NULL;
    push->info = NULL;
}

void slc_store_push_close(struct slc_store_push *push)
{
    slc_store_push_free(push);
    slc_store_close(&push->store);
}

uint64_t slc_store_push_bytes(const struct slc_store_push *push, unsigned workers)
{
    const struct slc_manifest *manifest = &push->store.manifest;
    uint64_t bytes = slc_reader_memory_bytes(push->store.reader) +
                     slc_store_scan_memory_bytes(push->info, workers);

    for (unsigned i = 0; i < manifest->permutation_count; i++) {
        const uint64_t length = manifest->dims[manifest->permutations[i].mode];

        if (!slc_add_u64(bytes, slc_labels_memory_bytes(length), &bytes)) {
            return UINT64_MAX / 2;
        }
    }
    return bytes;
}

static enum slc_status read_labels(struct slc_store_push *push, struct slc_error *err)
{
    const struct slc_manifest *manifest = &push->store.manifest;

    for (unsigned i = 0; i < manifest->permutation_count; i++) {
        const struct slc_store_permutation *listed = &manifest->permutations[i];

        SLC_TRY(slc_store_labels(&push->store, listed, &push->labels[listed->mode], err));
        slc_labels_invert(&push->labels[listed->mode]);
    }
    return SLC_OK;
}

static enum slc_status
translate_rows(void *context, unsigned worker, struct slc_scan_rows *rows, struct slc_error *err)
{
    const struct translation *translation = context;
    const struct slc_store_push *push = translation->push;

    for (unsigned n = 0; n < push->info->order; n++) {
        const uint32_t *label = push->labels[n].label;

        for (uint32_t i = 0; i < rows->count && label != NULL; i++) {
            rows->coords[n][i] = label[rows->coords[n][i]];
        }
    }
    return translation->fn(translation->context, worker, rows, err);
}

enum slc_status slc_store_push_scan(struct slc_store_push *push,
                                    unsigned workers,
                                    const struct slc_stop *stop,
                                    slc_scan_fn *fn,
                                    void *context,
                                    struct slc_error *err)
{
    struct translation translation = {.push = push, .fn = fn, .context = context};

    SLC_TRY(read_labels(push, err));
    return slc_store_scan(&push->store, workers, stop, translate_rows, &translation, err);
}

enum slc_status slc_store_push_try(struct slc_store_push *push,
                                   double seconds,
                                   struct slc_store_sample *sample,
                                   struct slc_store_trial *trial,
                                   struct slc_error *err)
{
    SLC_TRY(read_labels(push, err));
    SLC_TRY(slc_store_trial(push->store.reader, seconds, sample, trial, err));
    for (unsigned n = 0; n < push->info->order; n++) {
        const uint32_t *label = push->labels[n].label;

        for (uint32_t i = 0; i < sample->count && label != NULL; i++) {
            sample->coords[n][i] = label[sample->coords[n][i]];
        }
    }
    return SLC_OK;
}
