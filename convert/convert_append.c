/*
 * `sluice append`: a conversion whose store has the nonzeros of another one, the one at its output,
 * before those of its input, as if the texts of both stood one behind the other. The old store is
 * read when the input has been: only then its index base, to which the builder takes all entries,
 * is certain. Its entries have the lower sequence numbers all the same.
 *
 * The new store is built beside the old one and the names are exchanged at the very end. A run that
 * is killed then, or later, is found to be complete by the same command line, which does not append
 * twice (build_complete.h): what was noted says to which store it was appended, so that a store
 * that came to its place since is not replaced by it.
 */
#include "convert/convert_internal.h"

#include "base/checked.h"
#include "convert/store_push.h"

#include <inttypes.h>

struct slc_appending {
    struct slc_store_push push;
    struct slc_conversion *conversion;
    uint64_t content; /* what tells the store from others */
};

enum slc_status slc_conversion_open_old(struct slc_conversion *c, struct slc_error *err)
{
    struct slc_appending *a = slc_calloc(1, sizeof *a);
    enum slc_status status;

    if (a == NULL) {
        return slc_fail(err, SLC_ERR_MEMORY, "no memory to append to a store");
    }
    a->conversion = c;
    c->appending = a;
    status =
        slc_store_push_open(&a->push, c->options->files, c->options->output, c->memory_bytes, err);
    if (status == SLC_OK) {
        const struct slc_manifest *manifest = &a->push.store.manifest;

        a->content = a->push.info->header_hash;
        c->report->layouts_dropped = manifest->layout_count - 1;
        c->report->old_nnz = manifest->nnz;
        c->build.codec = slc_manifest_find(manifest, SLC_LAYOUT_BLCO, 0)->codec;
        c->build.relabel =
            manifest->permutation_count > 0 ? SLC_RELABEL_FREQUENCY : SLC_RELABEL_NONE;
        c->job.first_sequence = slc_store_scan_sequences(a->push.info);
    }
    return status;
}

void slc_conversion_close_old(struct slc_conversion *c)
{
    if (c->appending != NULL) {
        slc_store_push_close(&c->appending->push);
        slc_free(c->appending);
        c->appending = NULL;
    }
}

enum slc_status slc_conversion_check_order(const struct slc_conversion *c, struct slc_error *err)
{
    const unsigned order = c->appending->push.info->order;

    return c->header.order == order
               ? SLC_OK
               : slc_fail(err, SLC_ERR_INPUT, "entries of %u modes, but %s has %u", c->header.order,
                          c->options->output, order);
}

unsigned slc_conversion_old_base(const struct slc_conversion *c)
{
    return c->appending->push.store.manifest.origin.index_base;
}

uint64_t slc_conversion_old_bytes(const struct slc_conversion *c, unsigned workers)
{
    return c->appending != NULL ? slc_store_push_bytes(&c->appending->push, workers) : 0;
}

uint64_t slc_conversion_old_content(const struct slc_conversion *c)
{
    return c->appending != NULL ? c->appending->content : 0;
}

static enum slc_status
push_rows(void *context, unsigned worker, struct slc_scan_rows *rows, struct slc_error *err)
{
    const struct slc_conversion *c = context;
    struct slc_entries entries = {.order = c->header.order,
                                  .count = rows->count,
                                  .values = rows->values,
                                  .sequence = rows->sequence};

    for (unsigned n = 0; n < entries.order; n++) {
        for (uint32_t i = 0; i < rows->count; i++) {
            rows->coords[n][i] += (uint64_t)c->job.index_base;
        }
        entries.coords[n] = rows->coords[n];
    }
    return slc_builder_push(c->job.builder, worker, &entries, err);
}

/* The builder has the store locked by now: what it was when it was opened is what is replaced. */
static enum slc_status check_unchanged(const struct slc_appending *a, struct slc_error *err)
{
    const struct slc_conversion *c = a->conversion;
    struct slc_store_push now = {.info = NULL};
    enum slc_status status =
        slc_store_push_open(&now, c->options->files, c->options->output, c->memory_bytes, err);

    if (status == SLC_OK && now.info->header_hash != a->content) {
        status =
            slc_fail(err, SLC_ERR_IO, "another run has changed the store meanwhile: append again");
        slc_error_locate_file(err, c->options->output);
    }
    slc_store_push_close(&now);
    return status;
}

enum slc_status
slc_conversion_push_old(struct slc_conversion *c, uint64_t *dims, struct slc_error *err)
{
    struct slc_appending *a = c->appending;
    enum slc_status status = check_unchanged(a, err);

    for (unsigned n = 0; n < c->header.order; n++) {
        dims[n] = slc_max_u64(dims[n], a->push.info->dims[n]);
        c->report->dims[n] = dims[n];
    }
    if (status == SLC_OK) {
        status = slc_store_push_scan(&a->push, c->job.workers, push_rows, c, err);
    }
    /* Before everything is sorted in its place. */
    slc_store_push_close(&a->push);
    return status;
}
