/*
 * Dictionary of a column: numbers its strings by first appearance. An unnamed temporary file holds
 * all strings. Memory holds as many of the first strings as fit, and a hash table with 16 bytes per
 * slot and a load of at most 3/4. A dictionary may be larger than memory: a string that is not in
 * memory is compared with its copy in the file.
 *
 * Numbers depend only on the order of the input, not on memory or threads. One thread at a time
 * adds strings, in input order, while other threads look up existing strings without locks. This is
 * safe because a slot's content is written before its position, and the table grows (rarely) only
 * when no thread reads the old table.
 */
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
    uint64_t text_bytes; /* of strings kept in memory */
    /* Memory left for the hash tables, which subtract their size; shared, borrowed. */
    uint64_t *left_bytes;
};

enum {
    SLC_DICTIONARY_FIXED_BYTES = 192 << 10, /* per dictionary, without text_bytes and tables */
    SLC_DICTIONARY_STRING_BYTES = 16        /* least bytes of a table per string */
};

/* Owns: slc_dictionary_destroy, which accepts NULL. Errors: as slc_spool_create; SLC_ERR_BUDGET. */
enum slc_status slc_dictionary_create(const struct slc_dictionary_options *options,
                                      struct slc_dictionary **dictionary,
                                      struct slc_error *err) SLC_NODISCARD;
void slc_dictionary_destroy(struct slc_dictionary *dictionary);

/*
 * Returns the number of a string and adds it if it is new. Errors: SLC_ERR_INPUT for an invalid
 * name (storage/manifest/names.h); SLC_ERR_BUDGET if a larger table does not fit; errors of file
 * operations.
 */
enum slc_status slc_dictionary_find(struct slc_dictionary *dictionary,
                                    const char *text,
                                    size_t bytes,
                                    uint64_t *number,
                                    struct slc_error *err) SLC_NODISCARD;

enum {
    SLC_DICTIONARY_KEYS_MAX = 256, /* most strings per look-up call */
    /* Bytes of any content that must follow a string in its text. */
    SLC_DICTIONARY_SLACK = 8
};

/* Hash of a string. For up to 16 bytes, the common case, two words are multiplied and the halves of
 * the product are combined, as in a step of wyhash. Needs SLC_DICTIONARY_SLACK. */
static inline uint64_t slc_dictionary_hash(const char *text, size_t bytes)
{
    uint64_t first, last;
    slc_u128 product;

    if (bytes > 16) {
        return slc_hash64(text, bytes);
    }
    first = slc_load_u64(text);
    if (bytes < 8) {
        /* A shift by 64 is undefined: shift twice by half. */
        first = first << 4 * (8 - bytes) << 4 * (8 - bytes);
        last = bytes;
    } else {
        last = slc_load_u64(text + bytes - 8) + bytes;
    }
    product =
        (slc_u128)(first ^ UINT64_C(0x2d358dccaa6c78a5)) * (last ^ UINT64_C(0x8bb84b93962eacc9));
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* A string: `bytes` bytes of a text, starting at byte `at`. */
struct slc_dictionary_key {
    uint64_t hash; /* slc_dictionary_hash of the string */
    uint32_t at, bytes;
};

/*
 * Looks up the numbers of strings that are in memory. Sets UINT64_MAX for all other strings,
 * including strings that are being added or were just added. Threads: any number, also during
 * slc_dictionary_find. Cost: 10 to 20 ns per string if the dictionary is cached; otherwise
 * neighbouring look-ups overlap their memory latency.
 */
void slc_dictionary_look_up(struct slc_dictionary *dictionary,
                            const char *text,
                            const struct slc_dictionary_key *keys,
                            unsigned count,
                            uint64_t *numbers);

/* Like slc_dictionary_find, with a known hash. */
enum slc_status slc_dictionary_add(struct slc_dictionary *dictionary,
                                   const char *text,
                                   const struct slc_dictionary_key *key,
                                   uint64_t *number,
                                   struct slc_error *err) SLC_NODISCARD;

/* Prefetches the slot that will be needed to add a string. One thread at a time. */
void slc_dictionary_expect(const struct slc_dictionary *dictionary,
                           const struct slc_dictionary_key *key);

/* Ends look-ups: writes all remaining strings to the file and frees the memory. */
enum slc_status slc_dictionary_finish(struct slc_dictionary *dictionary,
                                      struct slc_error *err) SLC_NODISCARD;

/* Bytes of the table for `count` strings. While it last grew, the old table, half as large, also
 * existed. */
uint64_t slc_dictionary_table_bytes(uint64_t count);
/* Number of strings at which the table grows to `table_bytes`; 0 for the first table. */
uint64_t slc_dictionary_grows_at(uint64_t table_bytes);
/* Bytes of the temporary file, and of memory, for `count` strings of `bytes` bytes. */
double slc_dictionary_text_bytes(double count, double bytes);

uint64_t slc_dictionary_count(const struct slc_dictionary *dictionary);
/* Bytes of the temporary file. */
uint64_t slc_dictionary_bytes(const struct slc_dictionary *dictionary);

/* After slc_dictionary_finish: calls `each` with all strings in the order of their numbers until it
 * fails. */
enum slc_status slc_dictionary_walk(
    const struct slc_dictionary *dictionary,
    enum slc_status (*each)(void *context, const char *text, size_t bytes, struct slc_error *err),
    void *context,
    struct slc_error *err) SLC_NODISCARD;

#endif
