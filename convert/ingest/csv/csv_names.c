/* Implements the dictionary of a column. */
#include "convert/ingest/csv/csv_names_internal.h"

#include "base/memory/bytes.h"
#include "base/memory/checked.h"
#include "base/memory/memory.h"
#include "storage/manifest/names.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

/* Allocates `bytes` bytes for a hash table and subtracts them from *left_bytes. */
static enum slc_status allocate_table(const struct slc_dictionary *self,
                                      struct slc_buffer *buffer,
                                      uint64_t bytes,
                                      struct slc_error *err)
{
    const uint64_t footprint = slc_buffer_footprint(bytes, SLC_PAGES_SMALL);

    if (footprint > *self->left_bytes) {
        return slc_fail_field(err, SLC_ERR_BUDGET, SLC_FIELD_MEMORY,
                              "after %" PRIu64
                              " different strings of a column, the next string needs a hash "
                              "table of %" PRIu64 " MiB, but only %" PRIu64
                              " MiB of memory are left: give %" PRIu64 " MiB more",
                              self->count, footprint >> 20, *self->left_bytes >> 20,
                              ((footprint - *self->left_bytes) >> 20) + 1);
    }
    enum slc_status status = slc_buffer_create(buffer, bytes, SLC_PAGES_SMALL, err);
    *self->left_bytes -= status == SLC_OK ? footprint : 0;
    return status;
}

void slc_dictionary_release(const struct slc_dictionary *self, struct slc_buffer *buffer)
{
    *self->left_bytes += buffer->bytes;
    slc_buffer_destroy(buffer);
}

enum slc_status slc_dictionary_create(const struct slc_dictionary_options *options,
                                      struct slc_dictionary **dictionary,
                                      struct slc_error *err)
{
    struct slc_dictionary *self = slc_calloc(1, sizeof *self);

    *dictionary = NULL;
    SLC_TRY(slc_check_memory(self != NULL, err, "for the strings of a column"));
    self->files = slc_files_or_system(options->spool.files);
    self->left_bytes = options->left_bytes;
    self->slots = FIRST_SLOTS;
    pthread_rwlock_init(&self->resize, NULL);
    enum slc_status status = slc_spool_create(&options->spool, &self->spool, err);
    SLC_THEN(status, allocate_table(self, &self->table, FIRST_SLOTS * sizeof(struct slot), err));
    if (status == SLC_OK) {
        status = slc_buffer_create(&self->text, options->text_bytes, SLC_PAGES_SMALL, err);
        self->text_bytes = options->text_bytes;
    }
    if (status != SLC_OK) {
        slc_dictionary_destroy(self);
        return status;
    }
    *dictionary = self;
    return SLC_OK;
}

void slc_dictionary_destroy(struct slc_dictionary *self)
{
    if (self) {
        slc_buffer_destroy(&self->table);
        slc_buffer_destroy(&self->text);
        slc_buffer_destroy(&self->labels);
        slc_buffer_destroy(&self->places);
        slc_spool_destroy(self->spool);
        pthread_rwlock_destroy(&self->resize);
        slc_free(self);
    }
}

enum slc_status slc_dictionary_flush(struct slc_dictionary *self, struct slc_error *err)
{
    enum slc_status status =
        slc_spool_append(self->spool, self->tail, self->bytes - self->written, err);

    self->written = status == SLC_OK ? self->bytes : self->written;
    return status;
}

static bool is_string(const uint8_t *record, const char *text, uint32_t bytes)
{
    return slc_load_u16(record + 8) == bytes && memcmp(record + HEAD_BYTES, text, bytes) == 0;
}

/* Reads as many bytes of the record at `place` as a comparison with `bytes` bytes of text needs. */
static enum slc_status record_at(struct slc_dictionary *self,
                                 uint64_t place,
                                 size_t bytes,
                                 const uint8_t **record,
                                 struct slc_error *err)
{
    const uint64_t needed = HEAD_BYTES + bytes;

    if (place < self->text_bytes && self->text_bytes - place >= RECORD_BYTES_MAX) {
        *record = (const uint8_t *)self->text.data + place;
        return SLC_OK;
    }
    if (place >= self->written) {
        *record = self->tail + (place - self->written);
        return SLC_OK;
    }
    *record = self->record;
    return slc_file_read_at(self->files, slc_spool_fd(self->spool), "a temporary file",
                            self->record, slc_min_u64(needed, self->written - place), place, err);
}

static enum slc_status grow_table(struct slc_dictionary *self, struct slc_error *err)
{
    struct slc_buffer larger = SLC_BUFFER_INIT;
    const struct slot *old = self->table.data;

    SLC_TRY(allocate_table(self, &larger, 2 * self->slots * sizeof(struct slot), err));
    struct slot *slots = larger.data;
    for (uint64_t i = 0; i < self->slots; i++) {
        uint64_t at = old[i].hash & (2 * self->slots - 1);

        while (old[i].place != 0 && slots[at].place != 0) {
            at = (at + 1) & (2 * self->slots - 1);
        }
        if (old[i].place != 0) {
            slots[at].hash = old[i].hash;
            slots[at].place = old[i].place;
        }
    }
    pthread_rwlock_wrlock(&self->resize);
    slc_dictionary_release(self, &self->table);
    self->table = larger;
    self->slots *= 2;
    pthread_rwlock_unlock(&self->resize);
    return SLC_OK;
}

/* Appends a new string to the file and stores its position in a slot. */
static enum slc_status add_string(struct slc_dictionary *self,
                                  const char *text,
                                  size_t bytes,
                                  struct slot *slot,
                                  uint64_t hash,
                                  struct slc_error *err)
{
    if (self->bytes - self->written + HEAD_BYTES + bytes > TAIL_BYTES) {

        SLC_TRY(slc_dictionary_flush(self, err));
    }
    uint8_t *to = self->tail + (self->bytes - self->written);
    slc_store_u64(to, self->count);
    slc_store_u16(to + 8, (uint16_t)bytes);
    memcpy(to + HEAD_BYTES, text, bytes);
    if (self->bytes < self->text_bytes) {
        memcpy((uint8_t *)self->text.data + self->bytes, to,
               slc_min_u64(HEAD_BYTES + bytes, self->text_bytes - self->bytes));
    }
    slot->hash = hash;
    atomic_store_explicit(&slot->place, self->bytes + 1, memory_order_release);
    self->bytes += HEAD_BYTES + bytes;
    self->count++;
    return SLC_OK;
}

/* Checks that a string is a valid name. Errors: those of slc_dictionary_add. */
static enum slc_status
check_string(const char *text, const struct slc_dictionary_key *key, struct slc_error *err)
{
    if (key->bytes > SLC_NAME_BYTES_MAX || memchr(text + key->at, 0, key->bytes) != NULL) {
        return slc_fail(err, SLC_ERR_INPUT,
                        key->bytes > SLC_NAME_BYTES_MAX
                            ? "a string of %" PRIu32 " bytes: names have at most %d"
                            : "a string of %" PRIu32
                              " bytes with a zero byte: names must not contain it",
                        key->bytes, (int)SLC_NAME_BYTES_MAX);
    }
    return SLC_OK;
}

enum slc_status slc_dictionary_add(struct slc_dictionary *self,
                                   const char *text,
                                   const struct slc_dictionary_key *key,
                                   uint64_t *number,
                                   struct slc_error *err)
{
    struct slot *slots;
    enum slc_status status = check_string(text, key, err);
    uint64_t at;

    if (status == SLC_OK && self->count >= self->slots / 4 * 3) {
        status = grow_table(self, err);
    }
    if (status != SLC_OK) {
        return status;
    }
    slots = self->table.data;
    for (at = key->hash & (self->slots - 1); slots[at].place != 0;
         at = (at + 1) & (self->slots - 1)) {
        if (slots[at].hash == key->hash) {
            const uint8_t *record;

            status = record_at(self, slots[at].place - 1, key->bytes, &record, err);
            if (status != SLC_OK) {
                return status;
            }
            if (is_string(record, text + key->at, key->bytes)) {
                *number = slc_load_u64(record);
                return SLC_OK;
            }
        }
    }
    *number = self->count;
    return add_string(self, text + key->at, key->bytes, &slots[at], key->hash, err);
}

void slc_dictionary_expect(const struct slc_dictionary *self, const struct slc_dictionary_key *key)
{
    const struct slot *slots = self->table.data;

    __builtin_prefetch(&slots[key->hash & (self->slots - 1)], 1);
}

enum slc_status slc_dictionary_find(struct slc_dictionary *self,
                                    const char *text,
                                    size_t bytes,
                                    uint64_t *number,
                                    struct slc_error *err)
{
    char slack[2 * SLC_DICTIONARY_SLACK] = {0};
    struct slc_dictionary_key key = {.bytes = (uint32_t)bytes};

    if (bytes < SLC_DICTIONARY_SLACK) {
        memcpy(slack, text, bytes);
        text = slack;
    }
    key.hash = slc_dictionary_hash(text, bytes);
    return slc_dictionary_add(self, text, &key, number, err);
}

/* Returns the record at `place` if it is completely in memory, otherwise NULL. */
static const uint8_t *in_memory(const struct slc_dictionary *self, uint64_t place)
{
    return place < self->text_bytes && self->text_bytes - place >= RECORD_BYTES_MAX
               ? (const uint8_t *)self->text.data + place
               : NULL;
}

static uint64_t place_of(const struct slot *slot)
{
    return atomic_load_explicit(&slot->place, memory_order_acquire);
}

/* Does the same as is_string for a record in memory. Most strings are short, so comparing words is
 * faster than calling memcmp. The last word may overlap the previous word. The function reads
 * nothing after the record, where another thread may be writing. */
static bool is_string_here(const uint8_t *record, const char *text, uint32_t bytes)
{
    const uint8_t *own = record + HEAD_BYTES;

    if (slc_load_u16(record + 8) != bytes) {
        return false;
    }
    if (bytes < 8) {
        /* Shift twice by half the distance, because a shift by 64 would be undefined. */
        const unsigned half = 4 * (8 - bytes);

        return slc_load_u64(own + bytes - 8) >> half >> half ==
               slc_load_u64(text) << half << half >> half >> half;
    }
    if (bytes <= 16) {
        return ((slc_load_u64(own) ^ slc_load_u64(text)) |
                (slc_load_u64(own + bytes - 8) ^ slc_load_u64(text + bytes - 8))) == 0;
    }
    return memcmp(own, text, bytes) == 0;
}

/* Returns true if the record at `place`, which is only in the file, is this string, and stores its
 * number in *number. */
static bool read_string(const struct slc_dictionary *self,
                        uint64_t place,
                        const char *text,
                        uint32_t bytes,
                        bool *known,
                        uint64_t *number)
{
    const uint64_t written = atomic_load_explicit(&self->written, memory_order_acquire);
    uint8_t record[RECORD_BYTES_MAX];

    *known =
        place < written && bytes <= SLC_NAME_BYTES_MAX &&
        slc_file_read_at(self->files, slc_spool_fd(self->spool), "a temporary file", record,
                         slc_min_u64(HEAD_BYTES + bytes, written - place), place, NULL) == SLC_OK;
    if (!*known || !is_string(record, text, bytes)) {
        return false;
    }
    *number = slc_load_u64(record);
    return true;
}

/* Returns the number of a key; UINT64_MAX if the dictionary does not have the key, or if its record
 * is in `tail`, which another thread may be writing. */
static uint64_t
number_of(const struct slc_dictionary *self, const char *text, const struct slc_dictionary_key *key)
{
    const struct slot *slots = self->table.data;
    uint64_t place;

    for (uint64_t at = key->hash & (self->slots - 1); (place = place_of(&slots[at])) != 0;
         at = (at + 1) & (self->slots - 1)) {
        const uint8_t *record;
        uint64_t number = UINT64_MAX;
        bool known = true;

        if (slots[at].hash != key->hash) {
            continue;
        }
        record = in_memory(self, place - 1);
        if (record != NULL && is_string_here(record, text + key->at, key->bytes)) {
            return slc_load_u64(record);
        }
        if (record == NULL &&
            (read_string(self, place - 1, text + key->at, key->bytes, &known, &number) || !known)) {
            return number;
        }
    }
    return UINT64_MAX;
}

void slc_dictionary_look_up(struct slc_dictionary *self,
                            const char *text,
                            const struct slc_dictionary_key *keys,
                            unsigned count,
                            uint64_t *numbers)
{
    assert(count <= SLC_DICTIONARY_KEYS_MAX);
    pthread_rwlock_rdlock(&self->resize);
    for (unsigned begin = 0; begin < count; begin += SIDE_BY_SIDE) {
        const unsigned end = begin + SIDE_BY_SIDE < count ? begin + SIDE_BY_SIDE : count;
        const struct slot *slots = self->table.data;
        const uint64_t mask = self->slots - 1;

        for (unsigned i = begin; i < end; i++) {
            __builtin_prefetch(&slots[keys[i].hash & mask]);
        }
        for (unsigned i = begin; i < end; i++) {
            const uint64_t place = place_of(&slots[keys[i].hash & mask]);
            const uint8_t *record = place != 0 ? in_memory(self, place - 1) : NULL;

            __builtin_prefetch(record);
        }
        for (unsigned i = begin; i < end; i++) {
            numbers[i] = number_of(self, text, &keys[i]);
        }
    }
    pthread_rwlock_unlock(&self->resize);
}

enum slc_status slc_dictionary_finish(struct slc_dictionary *self, struct slc_error *err)
{
    slc_dictionary_release(self, &self->table);
    slc_buffer_destroy(&self->text);
    return slc_dictionary_flush(self, err);
}

uint64_t slc_dictionary_table_bytes(uint64_t count)
{
    uint64_t slots = FIRST_SLOTS;

    while (count > slots / 4 * 3) {
        slots *= 2;
    }
    return slots * sizeof(struct slot);
}

uint64_t slc_dictionary_grows_at(uint64_t table_bytes)
{
    const uint64_t slots = table_bytes / sizeof(struct slot);

    return slots > FIRST_SLOTS ? slots / 8 * 3 : 0;
}

double slc_dictionary_text_bytes(double count, double bytes)
{
    return bytes + HEAD_BYTES * count;
}

uint64_t slc_dictionary_count(const struct slc_dictionary *self)
{
    return self->count;
}

uint64_t slc_dictionary_bytes(const struct slc_dictionary *self)
{
    return self->bytes;
}

enum slc_status slc_dictionary_walk(
    const struct slc_dictionary *self,
    enum slc_status (*each)(void *context, const char *text, size_t bytes, struct slc_error *err),
    void *context,
    struct slc_error *err)
{
    uint8_t *piece = slc_malloc(TAIL_BYTES);
    const uint64_t *places = self->labels.data != NULL ? self->places.data : NULL;
    uint64_t begin = 0, filled = 0, at = 0;
    enum slc_status status = SLC_OK;

    SLC_TRY(slc_check_memory(piece != NULL, err, "to read strings"));
    for (uint64_t i = 0; i < self->count && status == SLC_OK; i++) {
        if (places != NULL) {
            /* Find the string in the part of the file in `piece`, or read another part. */
            const bool here = places[i] >= begin && places[i] - begin < filled &&
                              (filled - (places[i] - begin) >= RECORD_BYTES_MAX ||
                               begin + filled == self->written);
            at = here ? places[i] - begin : 0;
            begin = here ? begin : places[i];
            filled = here ? filled : 0;
        }
        if (filled - at < RECORD_BYTES_MAX && begin + filled < self->written) {
            begin += at;
            at = 0;
            filled =
                slc_min_u64(places != NULL ? RECORD_BYTES_MAX : TAIL_BYTES, self->written - begin);
            status = slc_file_read_at(self->files, slc_spool_fd(self->spool), "a temporary file",
                                      piece, filled, begin, err);
            if (status != SLC_OK) {
                break;
            }
        }
        size_t bytes = slc_load_u16(piece + at + 8);
        status = each(context, (const char *)piece + at + HEAD_BYTES, bytes, err);
        at += HEAD_BYTES + bytes;
    }
    slc_free(piece);
    return status;
}
