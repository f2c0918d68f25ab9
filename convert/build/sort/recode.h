/* Converts keys of one layout and index base to keys of another, or to coordinates. Each key bit
 * moves to its position in the other layout (base/key_moves.h). If the index bases differ, keys are
 * converted to coordinates and back.
 *
 * Memory: the tables of the moves, which are not needed if the layouts are equal. */
#ifndef SLC_CONVERT_RECODE_H
#define SLC_CONVERT_RECODE_H

#include "base/error/error.h"
#include "base/key.h"
#include "base/key_moves.h"
#include "convert/build/sort/key_tables.h"

#include <stdbool.h>
#include <stdint.h>

struct slc_recoder {
    bool same;                       /* keys do not change */
    bool wide;                       /* keys have more than 64 bits */
    const struct slc_key_tables *to; /* NULL: only coordinates are needed */
    bool rebased;
    uint64_t base_shift; /* number added to coordinates, modulo 2^64 */
    struct slc_key_moves moves;
    unsigned order;
    /* If keys become coordinates: position and number of each mode's bits after the moves. */
    unsigned offset[SLC_MAX_ORDER];
    unsigned mode_bits[SLC_MAX_ORDER];
};

/* Prepares conversion from keys of `from` under base `from_base` to keys of `to` under `to_base`.
 * `tables`: key tables of `to`, borrowed. Bits that do not fit `to` are lost: the caller must have
 * checked the sizes. Ownership: release with slc_recoder_destroy, which accepts an all-zero struct.
 * Errors: SLC_ERR_MEMORY. */
enum slc_status slc_recoder_init(struct slc_recoder *recoder,
                                 const struct slc_key_layout *from,
                                 uint64_t from_base,
                                 const struct slc_key_layout *to,
                                 const struct slc_key_tables *tables,
                                 uint64_t to_base,
                                 struct slc_error *err) SLC_NODISCARD;

/* Prepares conversion from keys of `from` under `from_base` to coordinates minus `to_base`, for
 * slc_recode_coords. */
enum slc_status slc_recoder_init_coords(struct slc_recoder *recoder,
                                        const struct slc_key_layout *from,
                                        uint64_t from_base,
                                        uint64_t to_base,
                                        struct slc_error *err) SLC_NODISCARD;
void slc_recoder_destroy(struct slc_recoder *recoder);

/* Converts `count` keys (at most SLC_KEY_BATCH) in place, unless `same`. hi: read if keys of `from`
 * are wide; written if keys of `to` are wide; otherwise unused. */
void slc_recode(const struct slc_recoder *recoder, uint64_t *lo, uint64_t *hi, uint32_t count);

/* Decodes `count` keys (at most SLC_KEY_BATCH) to coordinates, one column per mode. */
void slc_recode_coords(const struct slc_recoder *recoder,
                       const uint64_t *lo,
                       const uint64_t *hi,
                       uint32_t count,
                       uint64_t (*columns)[SLC_KEY_BATCH]);

#endif
