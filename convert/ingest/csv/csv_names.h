/* Dictionary of a column, which numbers strings in the order of their first appearance. An unnamed
 * temporary file holds all strings. Memory holds a hash table (slots of 16 bytes, at most 3/4 of
 * them used) and as many of the first strings as fit. A dictionary may be larger than memory: a
 * string that is not in memory is compared with its copy in the file.
 *
 * Numbers depend only on the order of the input, not on memory or threads. One thread at a time
 * adds strings, in input order, while other threads look up existing strings. Look-ups need not
 * wait for additions, because the position in a slot is written after its other members. Only when
 * the table grows, which is rare, a lock ensures that no thread reads the old table. */
#ifndef SLC_CONVERT_CSV_NAMES_H
#define SLC_CONVERT_CSV_NAMES_H

#include "base/hash.h"
#include "base/key.h"
#include "base/memory/bytes.h"
#include "convert/ingest/input/spool.h"

#include <stddef.h>
#include <stdint.h>

struct slc_dictionary;

struct slc_dictionary_options {
    struct slc_spool_options spool;
    uint64_t text_bytes; /* maximum bytes of strings kept in memory */
    /* Bytes left for the hash tables of all dictionaries; each table subtracts its size.
     * Borrowed. */
    uint64_t *left_bytes;
};

enum {
    /* memory per dictionary without strings and hash table */
    SLC_DICTIONARY_FIXED_BYTES = 192 << 10,
    SLC_DICTIONARY_STRING_BYTES = 16 /* minimum bytes of the hash table per string */
};

/* Creates an empty dictionary. Ownership: release with slc_dictionary_destroy, which accepts NULL.
 * Errors: those of slc_spool_create; SLC_ERR_BUDGET. */
enum slc_status slc_dictionary_create(const struct slc_dictionary_options *options,
                                      struct slc_dictionary **dictionary,
                                      struct slc_error *err) SLC_NODISCARD;
void slc_dictionary_destroy(struct slc_dictionary *dictionary);

/* Stores the number of a string; a string that is not in the dictionary is added. Errors:
 * SLC_ERR_INPUT if the string is not a valid name (storage/manifest/names.h); SLC_ERR_BUDGET if a
 * larger hash table does not fit in memory; errors of file operations. */
enum slc_status slc_dictionary_find(struct slc_dictionary *dictionary,
                                    const char *text,
                                    size_t bytes,
                                    uint64_t *number,
                                    struct slc_error *err) SLC_NODISCARD;

enum {
    /* maximum number of strings per call of slc_dictionary_look_up */
    SLC_DICTIONARY_KEYS_MAX = 256,
    /* Number of readable bytes, of any content, that must follow a string. */
    SLC_DICTIONARY_SLACK = 8
};

/* Returns the hash of a string. For up to 16 bytes, the common case, two words are multiplied and
 * the two halves of the product are combined, as in a step of wyhash. Needs: SLC_DICTIONARY_SLACK
 * bytes follow the string. */
static inline uint64_t slc_dictionary_hash(const char *text, size_t bytes)
{
    uint64_t first, last;
    slc_u128 product;

    if (bytes > 16) {
        return slc_hash64(text, bytes);
    }
    first = slc_load_u64(text);
    if (bytes < 8) {
        /* Shift twice by half the distance, because a shift by 64 would be undefined. */
        first = first << 4 * (8 - bytes) << 4 * (8 - bytes);
        last = bytes;
    } else {
        last = slc_load_u64(text + bytes - 8) + bytes;
    }
    product =
        (slc_u128)(first ^ UINT64_C(0x2d358dccaa6c78a5)) * (last ^ UINT64_C(0x8bb84b93962eacc9));
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* A key is a string to look up: `bytes` bytes of a text, starting at byte `at`. */
struct slc_dictionary_key {
    uint64_t hash; /* slc_dictionary_hash of the string */
    uint32_t at, bytes;
};

/* Looks up the numbers of strings. A string that is not in the dictionary gets UINT64_MAX; a string
 * that is being added or was just added may get it, too. Threads: any number, also during
 * slc_dictionary_find. Cost: 10 to 20 ns per string if the dictionary is in the cache; otherwise
 * adjacent look-ups overlap their memory latency. */
void slc_dictionary_look_up(struct slc_dictionary *dictionary,
                            const char *text,
                            const struct slc_dictionary_key *keys,
                            unsigned count,
                            uint64_t *numbers);

/* Does the same as slc_dictionary_find for a string whose hash is known. */
enum slc_status slc_dictionary_add(struct slc_dictionary *dictionary,
                                   const char *text,
                                   const struct slc_dictionary_key *key,
                                   uint64_t *number,
                                   struct slc_error *err) SLC_NODISCARD;

/* Prefetches the slot in which a string with this hash would be added. Threads: one at a time. */
void slc_dictionary_expect(const struct slc_dictionary *dictionary,
                           const struct slc_dictionary_key *key);

/* Ends look-ups: writes the remaining strings to the file and frees the memory. */
enum slc_status slc_dictionary_finish(struct slc_dictionary *dictionary,
                                      struct slc_error *err) SLC_NODISCARD;

/* Like slc_dictionary_finish, but also sorts the strings from number `first` on (csv_order.h).
 * Strings then have labels, which are their positions in this order; earlier strings have their
 * numbers as labels. Memory: at most that of the hash table while it grows. Errors: SLC_ERR_BUDGET;
 * SLC_ERR_UNSUPPORTED for 2^32 strings or more; SLC_ERR_IO. Cost: O(n log n) comparisons. */
enum slc_status slc_dictionary_finish_sorted(struct slc_dictionary *dictionary,
                                             uint64_t first,
                                             struct slc_error *err) SLC_NODISCARD;
/* Returns the label of every number; NULL if the dictionary is not sorted. */
const uint32_t *slc_dictionary_labels(const struct slc_dictionary *dictionary);
/* Returns the memory of a sorted dictionary of `count` strings. */
uint64_t slc_dictionary_labels_bytes(uint64_t count);

/* Returns the bytes of the hash table for `count` strings. While a table grows, the old table, half
 * as large, also exists. */
uint64_t slc_dictionary_table_bytes(uint64_t count);
/* Returns the number of strings at which the hash table grows to `table_bytes`; 0 for the first
 * table. */
uint64_t slc_dictionary_grows_at(uint64_t table_bytes);
/* Returns the bytes that `count` strings of `bytes` bytes need, in the temporary file or in
 * memory. */
double slc_dictionary_text_bytes(double count, double bytes);

uint64_t slc_dictionary_count(const struct slc_dictionary *dictionary);
/* Returns the size in bytes of the temporary file. */
uint64_t slc_dictionary_bytes(const struct slc_dictionary *dictionary);

/* Calls `each` for every string, in the order of their numbers or, if the dictionary is sorted, of
 * their labels, until a call fails. Needs: slc_dictionary_finish or slc_dictionary_finish_sorted
 * was called. */
enum slc_status slc_dictionary_walk(
    const struct slc_dictionary *dictionary,
    enum slc_status (*each)(void *context, const char *text, size_t bytes, struct slc_error *err),
    void *context,
    struct slc_error *err) SLC_NODISCARD;

#endif
