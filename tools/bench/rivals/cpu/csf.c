/* Builds compressed sparse fibers from a list of coordinates. */
#include "tools/bench/rivals/cpu/csf.h"

#include "base/key.h"

#include <inttypes.h>
#include <string.h>

enum {
    DIGIT_BITS = 16, /* a sort has one sweep over the list per digit of a coordinate */
    DIGITS = 1 << DIGIT_BITS
};

uint64_t slc_csf_bytes(const struct slc_csf_list *list, bool slices)
{
    /* Per nonzero: values and coordinates of the list; value, index, two permutations while
     * sorting; start and indices of a fiber. */
    const uint64_t per_nnz =
        2 * (slc_value_bytes(list->type) + (2 + list->order) * sizeof(uint32_t));
    uint64_t longest = 0;

    for (unsigned m = 0; slices && m < list->order; m++) {
        longest = list->dims[m] > longest ? list->dims[m] : longest;
    }
    return (list->nnz + 1) * per_nnz + (longest + 1) * sizeof(uint32_t) + DIGITS * sizeof(uint32_t);
}

static enum slc_status
check_list(const struct slc_csf_list *list, unsigned mode, struct slc_error *err)
{
    if (mode >= list->order) {
        return slc_fail(err, SLC_ERR_USAGE, "fibers of mode %u need a tensor of %u modes or more",
                        mode + 1, mode + 1);
    }
    if (list->nnz >= UINT32_MAX || list->dims[mode] > UINT64_C(1) << 32) {
        return slc_fail(err, SLC_ERR_UNSUPPORTED,
                        "%" PRIu64 " nonzeros with a mode of size %" PRIu64
                        ": slices and fibers are limited to 2^32 - 2 nonzeros and mode size 2^32",
                        list->nnz, list->dims[mode]);
    }
    return SLC_OK;
}

/* ---- sorting */

/* Copies `from` to `to`, stably sorted by a digit of the coordinates of `mode`. */
static void sweep(const struct slc_csf_list *list,
                  unsigned mode,
                  unsigned shift,
                  const uint32_t *from,
                  uint32_t *to,
                  uint32_t *start)
{
    const uint32_t *coords = list->coords + mode;
    uint32_t sum = 0;

    memset(start, 0, DIGITS * sizeof *start);
    for (uint64_t i = 0; i < list->nnz; i++) {
        start[coords[i * list->order] >> shift & (DIGITS - 1)]++;
    }
    for (unsigned d = 0; d < DIGITS; d++) {
        const uint32_t here = start[d];

        start[d] = sum;
        sum += here;
    }
    for (uint64_t i = 0; i < list->nnz; i++) {
        to[start[coords[from[i] * (uint64_t)list->order] >> shift & (DIGITS - 1)]++] = from[i];
    }
}

/* Sorts the numbers of the nonzeros by the slice mode, then by the other modes in their order: one
 * stable sort per mode, the least significant mode first. *places is in `scratch`, which the caller
 * must release, also after an error. */
static enum slc_status sort_list(const struct slc_csf_list *list,
                                 unsigned slice_mode,
                                 struct slc_buffer *scratch,
                                 const uint32_t **places,
                                 struct slc_error *err)
{
    SLC_TRY(slc_buffer_create(scratch, (2 * list->nnz + DIGITS) * sizeof(uint32_t), SLC_PAGES_HUGE,
                              err));
    uint32_t *start = scratch->data;
    uint32_t *from = start + DIGITS, *to = from + list->nnz;

    for (uint64_t i = 0; i < list->nnz; i++) {
        from[i] = (uint32_t)i;
    }
    for (unsigned k = list->order; k-- > 0;) {
        /* Significance k of the modes: slice_mode is moved to the front. */
        const unsigned mode = k == 0 ? slice_mode : k <= slice_mode ? k - 1 : k;

        const unsigned bits = slc_bits_for_length(list->dims[mode]);

        for (unsigned shift = 0; shift < bits; shift += DIGIT_BITS) {
            uint32_t *sorted = to;

            sweep(list, mode, shift, from, to, start);
            to = from;
            from = sorted;
        }
    }
    *places = from;
    return SLC_OK;
}

/* ---- pointers */

static const uint32_t *
coords_of(const struct slc_csf_list *list, const uint32_t *places, uint64_t i)
{
    return list->coords + (places != NULL ? places[i] : i) * list->order;
}

/* Returns true if nonzero i, in the order of `places`, is the first of a fiber. */
static bool starts_fiber(const struct slc_csf_list *list,
                         unsigned fiber_mode,
                         const uint32_t *places,
                         uint64_t i)
{
    if (i == 0) {
        return true;
    }
    const uint32_t *here = coords_of(list, places, i), *before = coords_of(list, places, i - 1);
    uint32_t difference = 0;

    for (unsigned m = 0; m < list->order; m++) {
        difference |= m != fiber_mode ? here[m] ^ before[m] : 0;
    }
    return difference != 0;
}

static enum slc_status create_arrays(struct slc_csf *csf, struct slc_error *err)
{
    const bool slices = csf->slice_mode < csf->order;
    const uint64_t value_bytes = slc_value_bytes(csf->type);
    const uint64_t indices = csf->fibers * (csf->order - 1 - slices);
    const uint64_t numbers = (slices ? csf->slices + 1 : 0) + csf->fibers + 1 + indices + csf->nnz;

    SLC_TRY(slc_buffer_create(&csf->memory, csf->nnz * value_bytes + numbers * sizeof(uint32_t),
                              SLC_PAGES_HUGE, err));
    csf->values = csf->memory.data;
    csf->index = (uint32_t *)(void *)((unsigned char *)csf->values + csf->nnz * value_bytes);
    csf->fiber_begin = csf->index + csf->nnz;
    uint32_t *at = csf->fiber_begin + csf->fibers + 1;
    for (unsigned m = 0; m < csf->order; m++) {
        if (m != csf->fiber_mode && m != csf->slice_mode) {
            csf->fiber_index[m] = at;
            at += csf->fibers;
        }
    }
    csf->slice_begin = slices ? at : NULL;
    return SLC_OK;
}

static void
fill_arrays(struct slc_csf *csf, const struct slc_csf_list *list, const uint32_t *places)
{
    const uint64_t value_bytes = slc_value_bytes(csf->type);
    uint64_t fiber = 0;

    for (uint64_t i = 0; i < csf->nnz; i++) {
        const uint32_t *coords = coords_of(list, places, i);

        if (starts_fiber(list, csf->fiber_mode, places, i)) {
            csf->fiber_begin[fiber] = (uint32_t)i;
            for (unsigned m = 0; m < csf->order; m++) {
                if (csf->fiber_index[m] != NULL) {
                    csf->fiber_index[m][fiber] = coords[m];
                }
            }
            fiber++;
            if (csf->slice_begin != NULL) {
                csf->slice_begin[coords[csf->slice_mode] + 1] = (uint32_t)fiber;
            }
        }
        csf->index[i] = coords[csf->fiber_mode];
        memcpy((unsigned char *)csf->values + i * value_bytes,
               (const unsigned char *)list->values + (places != NULL ? places[i] : i) * value_bytes,
               value_bytes);
    }
    csf->fiber_begin[fiber] = (uint32_t)csf->nnz;
    /* Slices ascend, so an empty slice, whose end is still 0, ends where the slice before it ends.
     */
    for (uint64_t s = 0; s < csf->slices; s++) {
        if (csf->slice_begin[s + 1] == 0) {
            csf->slice_begin[s + 1] = csf->slice_begin[s];
        }
    }
}

/* Builds the arrays of the nonzeros in the order of `places`, or in the order of the list if it is
 * NULL. Needs: the modes of *csf are set. */
static enum slc_status build(struct slc_csf *csf,
                             const struct slc_csf_list *list,
                             const uint32_t *places,
                             struct slc_error *err)
{
    csf->order = list->order;
    memcpy(csf->dims, list->dims, list->order * sizeof *csf->dims);
    csf->type = list->type;
    csf->nnz = list->nnz;
    for (uint64_t i = 0; i < csf->nnz; i++) {
        csf->fibers += starts_fiber(list, csf->fiber_mode, places, i);
    }
    SLC_TRY(create_arrays(csf, err));
    fill_arrays(csf, list, places);
    return SLC_OK;
}

enum slc_status slc_csf_create_fibers(struct slc_csf *csf,
                                      const struct slc_csf_list *list,
                                      unsigned fiber_mode,
                                      struct slc_error *err)
{
    SLC_TRY(check_list(list, fiber_mode, err));
    csf->slice_mode = list->order;
    csf->fiber_mode = fiber_mode;
    return build(csf, list, NULL, err);
}

enum slc_status slc_csf_create_slices(struct slc_csf *csf,
                                      const struct slc_csf_list *list,
                                      unsigned slice_mode,
                                      struct slc_error *err)
{
    struct slc_buffer scratch = SLC_BUFFER_INIT;
    const uint32_t *places = NULL;

    SLC_TRY(check_list(list, slice_mode, err));
    if (list->order < 3) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "slices of fibers need a tensor of 3 modes or more, not %u", list->order);
    }
    csf->slice_mode = slice_mode;
    csf->slices = list->dims[slice_mode];
    csf->fiber_mode = list->order - (slice_mode + 1 == list->order ? 2 : 1);
    enum slc_status status = sort_list(list, slice_mode, &scratch, &places, err);
    SLC_THEN(status, build(csf, list, places, err));
    slc_buffer_destroy(&scratch);
    return status;
}

void slc_csf_destroy(struct slc_csf *csf)
{
    slc_buffer_destroy(&csf->memory);
    memset(csf, 0, sizeof *csf);
}
