/*
 * Keys of one layout and index base to keys of another, or to coordinates. A key's bits move as the
 * layouts say (base/key_moves.h). Another index base is no matter of bits: keys go to coordinates
 * and back then.
 *
 * Memory: the tables of the moves; none where the layouts are the same.
 */
#ifndef SLC_CONVERT_RECODE_H
#define SLC_CONVERT_RECODE_H

#include "base/error/error.h"
#include "base/key.h"
#include "base/key_moves.h"
#include "convert/build/sort/key_tables.h"

#include <stdbool.h>
#include <stdint.h>

struct slc_recoder {
    bool same;                       /* keys stay as they are */
    bool wide;                       /* they have more than 64 bits */
    const struct slc_key_tables *to; /* NULL: coordinates are all that is wanted */
    bool rebased;
    uint64_t base_shift; /* what is added to coordinates, modulo 2^64 */
    struct slc_key_moves moves;
    unsigned order;
    unsigned offset[SLC_MAX_ORDER]; /* of a mode's bits, where tables give coordinates */
    unsigned mode_bits[SLC_MAX_ORDER];
};

/*
 * From keys of `from` under base `from_base` to those of `to` under `to_base`. `tables`: of `to`,
 * borrowed. What does not fit `to` is lost: the caller has checked the lengths. Owns:
 * slc_recoder_destroy, which takes an all-zero struct. Errors: SLC_ERR_MEMORY.
 */
enum slc_status slc_recoder_init(struct slc_recoder *recoder,
                                 const struct slc_key_layout *from,
                                 uint64_t from_base,
                                 const struct slc_key_layout *to,
                                 const struct slc_key_tables *tables,
                                 uint64_t to_base,
                                 struct slc_error *err) SLC_NODISCARD;

/* From keys of `from` under `from_base` to coordinates less `to_base`, for slc_recode_coords. */
enum slc_status slc_recoder_init_coords(struct slc_recoder *recoder,
                                        const struct slc_key_layout *from,
                                        uint64_t from_base,
                                        uint64_t to_base,
                                        struct slc_error *err) SLC_NODISCARD;
void slc_recoder_destroy(struct slc_recoder *recoder);

/*
 * Recodes `count` keys (at most SLC_KEY_BATCH) in place, where they are not the `same`. hi: read
 * where keys of `from` are wide, written where those of `to` are; not looked at where neither is.
 */
void slc_recode(const struct slc_recoder *recoder, uint64_t *lo, uint64_t *hi, uint32_t count);

/* Coordinates of `count` keys (at most SLC_KEY_BATCH), a column per mode. */
void slc_recode_coords(const struct slc_recoder *recoder,
                       const uint64_t *lo,
                       const uint64_t *hi,
                       uint32_t count,
                       uint64_t (*columns)[SLC_KEY_BATCH]);

#endif
