/* Sorts the strings of a dictionary. */
#include "convert/build/sort/heap_sort.h"
#include "convert/ingest/csv/csv_names_internal.h"
#include "convert/ingest/csv/csv_order.h"

#include "base/memory/checked.h"

#include <inttypes.h>

enum { SHORT_RECORD_BYTES = 256 /* first bytes read of a record; most records are shorter */ };

/* A string to be sorted. Its members are words of 32 bits, so that it has 20 bytes. */
struct sort_item {
    uint32_t prefix[2]; /* slc_csv_order_prefix, the upper half first */
    uint32_t place[2];
    uint32_t number;
};

static uint64_t join_words(const uint32_t words[2])
{
    return (uint64_t)words[0] << 32 | words[1];
}

/* Strings that are compared, and the first error. */
struct sorting {
    struct slc_dictionary *dictionary;
    uint8_t *records; /* two records that were read from the file */
    struct slc_error err;
};

/* Returns the record of a string, read into part `part` of sorting->records unless it is in
 * memory. */
static const uint8_t *sorted_record(struct sorting *sorting, uint64_t place, unsigned part)
{
    static const uint8_t empty[HEAD_BYTES] = {0};
    struct slc_dictionary *self = sorting->dictionary;
    uint8_t *record = sorting->records + (size_t)part * RECORD_BYTES_MAX;

    if (place < self->text_bytes && self->text_bytes - place >= RECORD_BYTES_MAX) {
        return (const uint8_t *)self->text.data + place;
    }
    for (unsigned turn = 0; turn < 2 && sorting->err.status == SLC_OK; turn++) {
        const uint64_t most = turn == 0 ? SHORT_RECORD_BYTES : RECORD_BYTES_MAX;
        const uint64_t bytes = slc_min_u64(most, self->written - place);

        if (slc_file_read_at(self->files, slc_spool_fd(self->spool), "a temporary file", record,
                             bytes, place, &sorting->err) == SLC_OK &&
            HEAD_BYTES + (uint64_t)slc_load_u16(record + 8) <= bytes) {
            return record;
        }
    }
    return empty;
}

static bool item_less(const void *context, const void *a, const void *b)
{
    struct sorting *sorting = (struct sorting *)(uintptr_t)context;
    const struct sort_item *left = a, *right = b;
    const uint64_t left_prefix = join_words(left->prefix), right_prefix = join_words(right->prefix);

    if (left_prefix != right_prefix) {
        return left_prefix < right_prefix;
    }
    const uint8_t *one = sorted_record(sorting, join_words(left->place), 0);
    const uint8_t *other = sorted_record(sorting, join_words(right->place), 1);
    return slc_csv_order((const char *)one + HEAD_BYTES, slc_load_u16(one + 8),
                         (const char *)other + HEAD_BYTES, slc_load_u16(other + 8)) < 0;
}

/* Allocates `bytes` bytes of the memory that was left for hash tables. */
static enum slc_status allocate_sorted(const struct slc_dictionary *self,
                                       struct slc_buffer *buffer,
                                       uint64_t bytes,
                                       struct slc_error *err)
{
    const uint64_t footprint = slc_buffer_footprint(bytes, SLC_PAGES_SMALL);

    if (footprint > *self->left_bytes) {
        return slc_fail_field(err, SLC_ERR_BUDGET, SLC_FIELD_MEMORY,
                              "sorting %" PRIu64 " strings of a column needs %" PRIu64
                              " MiB more memory",
                              self->count, ((footprint - *self->left_bytes) >> 20) + 1);
    }
    SLC_TRY(slc_buffer_create(buffer, bytes, SLC_PAGES_SMALL, err));
    *self->left_bytes -= footprint;
    return SLC_OK;
}

/* Fills in the items from number `first` on, and the places of the strings before it. */
struct item_filling {
    struct sort_item *items;
    uint64_t *places;
    uint64_t first, number, place;
};

static enum slc_status
fill_item(void *context, const char *text, size_t bytes, struct slc_error *err)
{
    struct item_filling *filling = context;
    const uint64_t prefix = slc_csv_order_prefix(text, bytes), place = filling->place;

    (void)err;
    if (filling->number < filling->first) {
        filling->places[filling->number] = place;
    } else {
        filling->items[filling->number - filling->first] =
            (struct sort_item){{(uint32_t)(prefix >> 32), (uint32_t)prefix},
                               {(uint32_t)(place >> 32), (uint32_t)place},
                               (uint32_t)filling->number};
    }
    filling->number++;
    filling->place += HEAD_BYTES + bytes;
    return SLC_OK;
}

/* Sorts the items and stores labels and places. */
static enum slc_status sort_items(struct slc_dictionary *self,
                                  struct sort_item *items,
                                  uint64_t first,
                                  struct slc_error *err)
{
    struct sorting sorting = {.dictionary = self,
                              .records = slc_malloc(2 * (size_t)RECORD_BYTES_MAX),
                              .err = SLC_ERROR_INIT};
    uint32_t *labels = self->labels.data;
    uint64_t *places = self->places.data;

    SLC_TRY(slc_check_memory(sorting.records != NULL, err, "to sort strings"));
    slc_heap_sort(items, self->count - first, sizeof *items, item_less, &sorting);
    slc_free(sorting.records);
    if (sorting.err.status != SLC_OK) {
        if (err != NULL) {
            *err = sorting.err;
        }
        return sorting.err.status;
    }
    for (uint64_t i = 0; i < self->count; i++) {
        if (i < first) {
            labels[i] = (uint32_t)i;
        } else {
            labels[items[i - first].number] = (uint32_t)i;
            places[i] = join_words(items[i - first].place);
        }
    }
    return SLC_OK;
}

enum slc_status
slc_dictionary_finish_sorted(struct slc_dictionary *self, uint64_t first, struct slc_error *err)
{
    struct slc_buffer items = SLC_BUFFER_INIT, labels = SLC_BUFFER_INIT;
    const uint64_t count = slc_max_u64(self->count, 1);
    struct item_filling filling = {.first = first};

    if (self->count > UINT32_MAX) {
        return slc_fail(err, SLC_ERR_UNSUPPORTED,
                        "%" PRIu64 " strings of a column: at most %" PRIu32 " can be sorted",
                        self->count, UINT32_MAX);
    }
    slc_dictionary_release(self, &self->table);
    enum slc_status status = slc_dictionary_flush(self, err);
    SLC_THEN(status, allocate_sorted(self, &labels, count * sizeof(uint32_t), err));
    SLC_THEN(status, allocate_sorted(self, &self->places, count * sizeof(uint64_t), err));
    SLC_THEN(status, allocate_sorted(self, &items, count * sizeof(struct sort_item), err));
    if (status == SLC_OK) {
        filling.items = items.data;
        filling.places = self->places.data;
        status = slc_dictionary_walk(self, fill_item, &filling, err);
    }
    self->labels = labels;
    SLC_THEN(status, sort_items(self, items.data, first, err));
    slc_dictionary_release(self, &items);
    slc_buffer_destroy(&self->text);
    return status;
}

const uint32_t *slc_dictionary_labels(const struct slc_dictionary *self)
{
    return self->labels.data;
}

uint64_t slc_dictionary_labels_bytes(uint64_t count)
{
    return slc_buffer_footprint(slc_max_u64(count, 1) * sizeof(uint32_t), SLC_PAGES_SMALL) +
           slc_buffer_footprint(slc_max_u64(count, 1) * sizeof(uint64_t), SLC_PAGES_SMALL);
}
