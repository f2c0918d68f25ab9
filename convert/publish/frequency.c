/* Numbers indices by frequency with a counting sort, which replaces the count of each index with
 * its new number. A table of all possible counts would be too large, so indices with large counts
 * are sorted separately. They are few, because the sum of all counts is the number of nonzeros. */
#include "convert/publish/frequency.h"

#include "base/memory/memory.h"
#include "convert/build/sort/heap_sort.h"

enum {
    COUNTS = 1 << 16 /* a table of 256 KiB; indices with larger counts are sorted separately */
};

struct heavy {
    uint32_t count;
    uint32_t index;
};

static bool heavy_less(const void *context, const void *a, const void *b)
{
    const struct heavy *x = a;
    const struct heavy *y = b;

    (void)context;
    return x->count != y->count ? x->count > y->count : x->index < y->index;
}

uint64_t slc_frequency_memory_bytes(uint64_t nnz)
{
    return COUNTS * sizeof(uint32_t) + (nnz / COUNTS + 1) * sizeof(struct heavy);
}

/* Sets histogram[c] to the number of indices with count c, for c below COUNTS. Returns the number
 * of other indices. */
static uint32_t count_frequencies(const struct slc_labels *labels, uint32_t *histogram)
{
    uint32_t heavies = 0;

    for (uint64_t i = 0; i < labels->length; i++) {
        if (labels->label[i] < COUNTS) {
            histogram[labels->label[i]]++;
        } else {
            heavies++;
        }
    }
    return heavies;
}

static void collect_heavies(const struct slc_labels *labels, struct heavy *heavies, uint32_t count)
{
    uint32_t found = 0;

    for (uint64_t i = 0; i < labels->length && found < count; i++) {
        if (labels->label[i] >= COUNTS) {
            heavies[found++] = (struct heavy){labels->label[i], (uint32_t)i};
        }
    }
    slc_heap_sort(heavies, count, sizeof *heavies, heavy_less, NULL);
}

/* Replaces histogram[c], the number of indices with count c, with their first label. */
static void convert_to_labels(uint32_t *histogram, uint32_t first)
{
    for (uint32_t count = COUNTS; count-- > 0;) {
        uint32_t have = histogram[count];

        histogram[count] = first;
        first += have;
    }
}

enum slc_status
slc_frequency_labels(struct slc_labels *labels, bool *identity, struct slc_error *err)
{
    uint32_t *places = slc_calloc(COUNTS, sizeof *places);
    uint32_t heavy_count = places != NULL ? count_frequencies(labels, places) : 0;
    struct heavy *heavies = slc_malloc((heavy_count + (size_t)1) * sizeof *heavies);

    if (places == NULL || heavies == NULL) {
        slc_free(places);
        slc_free(heavies);
        return slc_fail(err, SLC_ERR_MEMORY, "no memory to sort indices by frequency");
    }
    collect_heavies(labels, heavies, heavy_count);
    convert_to_labels(places, heavy_count);
    *identity = true;
    for (uint64_t i = 0; i < labels->length; i++) {
        if (labels->label[i] < COUNTS) {
            labels->label[i] = places[labels->label[i]]++;
            *identity = *identity && labels->label[i] == i;
        }
    }
    for (uint32_t k = 0; k < heavy_count; k++) {
        labels->label[heavies[k].index] = k;
        *identity = *identity && heavies[k].index == k;
    }
    slc_free(places);
    slc_free(heavies);
    return SLC_OK;
}
