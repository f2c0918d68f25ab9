/* Copies names to a new store. Kept indices stay in order, so indices without names still come
 * last. */
#include "convert/reshape/names_carry.h"

#include "base/memory/checked.h"
#include "storage/file/output.h"
#include "storage/manifest/names.h"

#include <string.h>

void slc_names_carry_init(struct slc_names_carry *carry,
                          const struct slc_files *files,
                          const char *store,
                          const struct slc_manifest *manifest)
{
    *carry = (struct slc_names_carry){
        .files = files, .store = store, .names_count = manifest->names_count};
    memcpy(carry->names, manifest->names, sizeof carry->names);
    memcpy(carry->titles, manifest->titles, sizeof carry->titles);
    for (unsigned n = 0; n < SLC_MAX_ORDER; n++) {
        carry->modes[n] = n;
    }
}

uint64_t slc_names_carry_bytes(const struct slc_names_carry *carry)
{
    uint64_t most = 0;

    for (unsigned i = 0; i < carry->names_count; i++) {
        most = slc_max_u64(most, slc_names_memory_bytes(carry->names[i].count));
    }
    return 2 * most; /* memory of one reader and one writer */
}

const struct slc_store_names *slc_names_carry_find(const struct slc_names_carry *carry,
                                                   unsigned mode)
{
    for (unsigned i = 0; i < carry->names_count; i++) {
        if (carry->names[i].mode == mode) {
            return &carry->names[i];
        }
    }
    return NULL;
}

uint64_t slc_names_carry_touched(const struct slc_names_carry *carry)
{
    uint64_t most = 0;

    for (unsigned i = 0; i < carry->names_count; i++) {
        const struct slc_store_names *names = &carry->names[i];
        const uint64_t each = names->file_bytes / slc_max_u64(names->count, 1) + 1;

        /* A piece of names in the reader and in the writer, whose buffers may each have grown by
         * half, and a table entry per piece. */
        most = slc_max_u64(most, 3 * SLC_NAMES_PIECE * each + names->count / SLC_NAMES_PIECE * 32 +
                                     SLC_OUTPUT_BUFFER_BYTES);
    }
    return most;
}

uint64_t
slc_names_carry_length(const struct slc_names_carry *carry, unsigned order, const uint64_t *dims)
{
    double bytes = 0;

    for (unsigned m = 0; m < order; m++) {
        const struct slc_store_names *names = slc_names_carry_find(carry, carry->modes[m]);

        if (names != NULL && names->count > 0) {
            const double share = (double)dims[m] / (double)names->count;

            bytes += (double)names->file_bytes * (share < 1 ? share : 1);
        }
    }
    return (uint64_t)bytes;
}

/* Copies the names of indices first .. last; indices after the last named index have no names. */
static enum slc_status copy_range(const struct slc_stop *stop,
                                  struct slc_names *names,
                                  struct slc_names_writer *writer,
                                  uint64_t first,
                                  uint64_t last,
                                  struct slc_error *err)
{
    const uint64_t end = slc_min_u64(last, slc_names_count(names) - 1);

    for (uint64_t i = first; i <= end; i++) {
        const char *name = NULL;
        size_t bytes = 0;

        SLC_TRY(slc_stop_check(stop, err));
        SLC_TRY(slc_names_get(names, i, &name, &bytes, err));
        if (name != NULL) {
            SLC_TRY(slc_names_writer_add(writer, name, bytes, err));
        }
    }
    return SLC_OK;
}

static enum slc_status copy_names(const struct slc_stop *stop,
                                  struct slc_names *names,
                                  struct slc_names_writer *writer,
                                  const struct slc_ranges *ranges,
                                  struct slc_error *err)
{
    if (slc_names_count(names) == 0) {
        return SLC_OK;
    }
    if (ranges == NULL || ranges->count == 0) {
        return copy_range(stop, names, writer, 0, UINT64_MAX, err);
    }
    for (unsigned i = 0; i < ranges->count; i++) {
        SLC_TRY(
            copy_range(stop, names, writer, ranges->range[i].first, ranges->range[i].last, err));
    }
    return SLC_OK;
}

/* Writes the kept names of `listed` as the names of mode `mode` of the new store. */
static enum slc_status carry_mode(const struct slc_names_carry *carry,
                                  const struct slc_store_names *listed,
                                  const char *folder,
                                  unsigned mode,
                                  struct slc_manifest *manifest,
                                  struct slc_error *err)
{
    const struct slc_ranges *ranges = carry->ranges != NULL ? &carry->ranges[listed->mode] : NULL;
    struct slc_names_writer *writer = NULL;
    struct slc_names *names = NULL;
    enum slc_status status = slc_names_open(carry->files, carry->store, listed, &names, err);

    SLC_THEN(status, slc_names_writer_open(carry->files, folder, mode, &writer, err));
    SLC_THEN(status, copy_names(carry->stop, names, writer, ranges, err));
    if (status == SLC_OK && slc_names_writer_count(writer) > 0) {
        status = slc_names_writer_finish(writer, &manifest->names[manifest->names_count], err);
        writer = NULL;
        manifest->names_count += status == SLC_OK;
    }
    slc_names_writer_abandon(writer);
    slc_names_close(names);
    return status;
}

enum slc_status slc_names_carry_mode(const struct slc_names_carry *carry,
                                     unsigned mode,
                                     const char *folder,
                                     struct slc_manifest *manifest,
                                     struct slc_error *err)
{
    const struct slc_store_names *listed = slc_names_carry_find(carry, carry->modes[mode]);

    memcpy(manifest->titles[mode], carry->titles[carry->modes[mode]],
           sizeof manifest->titles[mode]);
    return listed != NULL ? carry_mode(carry, listed, folder, mode, manifest, err) : SLC_OK;
}

enum slc_status slc_names_carry(void *context,
                                const char *folder,
                                struct slc_manifest *manifest,
                                struct slc_error *err)
{
    const struct slc_names_carry *carry = context;

    for (unsigned mode = 0; mode < manifest->order; mode++) {
        SLC_TRY(slc_names_carry_mode(carry, mode, folder, manifest, err));
    }
    return SLC_OK;
}
