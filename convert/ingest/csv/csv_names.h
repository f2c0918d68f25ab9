/*
 * The strings of a column, each under the number of its first appearance. All of them are in a
 * temporary file without a name; in memory are the first of them, as many as there is room for, and
 * 16 bytes of a hash table per string at a load of at most 3/4. So a dictionary may be larger than
 * the memory there is: a string that is no longer there is compared with what the file has.
 *
 * Numbers follow the order of the input alone: not the memory, nor threads. Strings are added by
 * one thread at a time, in that order; meanwhile others look up what is there already, without a
 * lock for each: a slot of the table is written before its place is, and only a larger table, which
 * comes rarely, waits until nobody looks into the old one.
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
    uint64_t text_bytes;  /* of strings that are kept in memory */
    uint64_t *room_bytes; /* left for tables: what they take is subtracted; shared, borrowed */
};

enum {
    SLC_DICTIONARY_BESIDE_BYTES = 192 << 10, /* that one takes beside text_bytes and tables */
    SLC_DICTIONARY_STRING_BYTES = 16         /* that a string takes of a table, and more */
};

/* Owns: slc_dictionary_destroy, which takes NULL. Errors: as slc_spool_create; SLC_ERR_BUDGET. */
enum slc_status slc_dictionary_create(const struct slc_dictionary_options *options,
                                      struct slc_dictionary **dictionary,
                                      struct slc_error *err) SLC_NODISCARD;
void slc_dictionary_destroy(struct slc_dictionary *dictionary);

/*
 * The number of a string, a new one where it is new. Errors: SLC_ERR_INPUT for what is no name
 * (storage/manifest/names.h); SLC_ERR_BUDGET without room for a larger table; those of files.
 */
enum slc_status slc_dictionary_find(struct slc_dictionary *dictionary,
                                    const char *text,
                                    size_t bytes,
                                    uint64_t *number,
                                    struct slc_error *err) SLC_NODISCARD;

enum {
    SLC_DICTIONARY_KEYS_MAX = 256, /* that are looked up together */
    /* Bytes behind a string in its text that have to be there; what they are does not matter. */
    SLC_DICTIONARY_SLACK = 8
};

/*
 * What strings are sought by. Of up to 16 bytes, which most are, two words are multiplied, and both
 * halves of the product folded (wyhash's step). Needs SLC_DICTIONARY_SLACK.
 */
static inline uint64_t slc_dictionary_hash(const char *text, size_t bytes)
{
    uint64_t first, last;
    slc_u128 product;

    if (bytes > 16) {
        return slc_hash64(text, bytes);
    }
    first = slc_load_u64(text);
    if (bytes < 8) {
        /* A shift by 64, which is undefined, by halves. */
        first = first << 4 * (8 - bytes) << 4 * (8 - bytes);
        last = bytes;
    } else {
        last = slc_load_u64(text + bytes - 8) + bytes;
    }
    product =
        (slc_u128)(first ^ UINT64_C(0x2d358dccaa6c78a5)) * (last ^ UINT64_C(0x8bb84b93962eacc9));
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* A string: `bytes` bytes of a text from byte `at` on. */
struct slc_dictionary_key {
    uint64_t hash; /* slc_dictionary_hash of them */
    uint32_t at, bytes;
};

/*
 * The numbers of strings that are there and can be compared at once; of others, and of those being
 * added, or lately, UINT64_MAX. Threads: any number, also during slc_dictionary_find. Cost: 10 to
 * 20 ns a string where those of the dictionary are in a cache, and what memory's latency costs
 * beyond is shared by neighbours.
 */
void slc_dictionary_look_up(struct slc_dictionary *dictionary,
                            const char *text,
                            const struct slc_dictionary_key *keys,
                            unsigned count,
                            uint64_t *numbers);

/* slc_dictionary_find where the hash is known. */
enum slc_status slc_dictionary_settle(struct slc_dictionary *dictionary,
                                      const char *text,
                                      const struct slc_dictionary_key *key,
                                      uint64_t *number,
                                      struct slc_error *err) SLC_NODISCARD;

/* Has what is needed soon to settle a string brought to the cache. One thread at a time. */
void slc_dictionary_expect(const struct slc_dictionary *dictionary,
                           const struct slc_dictionary_key *key);

/* No string will be looked up any more: writes what is not yet in the file and frees the memory. */
enum slc_status slc_dictionary_finish(struct slc_dictionary *dictionary,
                                      struct slc_error *err) SLC_NODISCARD;

/* What the table of so many strings takes; its last growth began at half as many slots. */
uint64_t slc_dictionary_table_bytes(uint64_t count);
/* Strings at which the table grows to that many bytes; 0 of the first. */
uint64_t slc_dictionary_grows_at(uint64_t table_bytes);
/* Of the temporary file, and of memory, for strings of so many bytes. */
double slc_dictionary_text_bytes(double count, double bytes);

uint64_t slc_dictionary_count(const struct slc_dictionary *dictionary);
/* Of the temporary file. */
uint64_t slc_dictionary_bytes(const struct slc_dictionary *dictionary);

/* Calls `each` with all strings in the order of their numbers, after slc_dictionary_finish, until
 * it fails. */
enum slc_status slc_dictionary_walk(
    const struct slc_dictionary *dictionary,
    enum slc_status (*each)(void *context, const char *text, size_t bytes, struct slc_error *err),
    void *context,
    struct slc_error *err) SLC_NODISCARD;

#endif
