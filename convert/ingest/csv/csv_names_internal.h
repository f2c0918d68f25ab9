/* State of a dictionary, which csv_names.c (strings) and csv_names_sort.c (their order) share. The
 * record of a string in the file is its number (8 bytes), its length (2 bytes) and its text. */
#ifndef SLC_CONVERT_CSV_NAMES_INTERNAL_H
#define SLC_CONVERT_CSV_NAMES_INTERNAL_H

#include "base/memory/memory.h"
#include "convert/ingest/csv/csv_names.h"
#include "storage/manifest/names.h"

#include <pthread.h>
#include <stdatomic.h>

enum {
    HEAD_BYTES = 10,
    RECORD_BYTES_MAX = HEAD_BYTES + SLC_NAME_BYTES_MAX,
    TAIL_BYTES = 64 << 10, /* bytes per write; one system call writes many strings */
    FIRST_SLOTS = 4096,
    /* Number of strings that are looked up together. The number is large enough to overlap memory
     * latency, and small enough for the first-level cache. */
    SIDE_BY_SIDE = 64
};

struct slot {
    uint64_t hash;
    /* position of the record in the file, plus 1; 0 for a free slot; written last */
    _Atomic uint64_t place;
};

_Static_assert(sizeof(struct slot) >= SLC_DICTIONARY_STRING_BYTES, "a string has a slot");

struct slc_dictionary {
    const struct slc_files *files;
    struct slc_spool *spool;
    uint64_t *left_bytes;
    uint64_t count;
    uint64_t bytes;          /* bytes of the file, including bytes that are still in `tail` */
    pthread_rwlock_t resize; /* lock of `table`; look-ups lock it for reading */
    struct slc_buffer table;
    uint64_t slots;         /* number of slots, a power of two */
    struct slc_buffer text; /* copy of the first bytes of the file */
    uint64_t text_bytes;
    _Atomic uint64_t written;
    /* If the dictionary is sorted: the label of each number, and the place of each label. */
    struct slc_buffer labels, places;
    uint8_t tail[TAIL_BYTES]; /* last bytes of the file, which are not written yet */
    uint8_t record[RECORD_BYTES_MAX];
};

/* Frees a table and adds its bytes to those that are left for tables. */
void slc_dictionary_release(const struct slc_dictionary *self, struct slc_buffer *buffer);

/* Writes the tail to the file. */
enum slc_status slc_dictionary_flush(struct slc_dictionary *self,
                                     struct slc_error *err) SLC_NODISCARD;

#endif
