/* Forms many keys at once from columns of coordinates, with the x86 instruction pdep if that is
 * fast, otherwise with tables, which are fast on every machine. One table per byte of a mode's
 * indices holds the key bits of each byte value. A key then costs one load and one OR per byte.
 *
 * Memory: 2 KiB (4 KiB for keys above 64 bits) per index byte of each mode, at most 128 KiB. */
#ifndef SLC_CONVERT_KEY_TABLES_H
#define SLC_CONVERT_KEY_TABLES_H

#include "base/key.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    /* maximum number of entries per call, so that their columns stay in the level-1 cache */
    SLC_KEY_BATCH = 256,
    SLC_KEY_TABLES_BYTES_MAX = 128 << 10
};

struct slc_key_tables {
    unsigned order;
    bool wide;                          /* keys have more than 64 bits */
    unsigned byte_count[SLC_MAX_ORDER]; /* bytes of an index, per mode */
    uint64_t *lo[SLC_MAX_ORDER];        /* byte_count tables of 256 words */
    uint64_t *hi[SLC_MAX_ORDER];        /* NULL unless wide */
    bool spread;                        /* true: pdep is used instead of the tables */
    /* Number of index bits of each mode that are in the low word of the key. */
    unsigned low_bits[SLC_MAX_ORDER];
    uint64_t mask_lo[SLC_MAX_ORDER], mask_hi[SLC_MAX_ORDER];
    uint64_t *memory;
};

/* Ownership: release with slc_key_tables_destroy, which accepts an all-zero struct. Errors:
 * SLC_ERR_MEMORY. */
enum slc_status slc_key_tables_init(struct slc_key_tables *tables,
                                    const struct slc_key_layout *layout,
                                    struct slc_error *err) SLC_NODISCARD;
void slc_key_tables_destroy(struct slc_key_tables *tables);

/* Subtracts `index_base` from the coordinates of entries begin .. begin + count - 1 and forms their
 * keys. Each coordinate must then be below its mode size. hi: written only if wide; if NULL, only
 * lo is formed. */
void slc_key_tables_form(const struct slc_key_tables *tables,
                         const uint64_t *const *coords,
                         uint32_t begin,
                         uint32_t count,
                         uint64_t index_base,
                         uint64_t *lo,
                         uint64_t *hi);

/* ORs the key bits of `count` coordinates of `mode` into lo[] (and hi[] if wide and not NULL).
 * Bits above the mode's index bytes are ignored; the caller must check them. */
void slc_key_tables_add(const struct slc_key_tables *tables,
                        unsigned mode,
                        const uint64_t *coords,
                        uint32_t count,
                        uint64_t *lo,
                        uint64_t *hi);

#endif
