/*
 * A frame is an index base and mode sizes under which pushed coordinates become keys before either
 * is known for certain. The first frame has the mode sizes of a sample. Coordinates that do not fit
 * are keyed under a new, wider frame; an index 0 under an assumed base of 1 starts a frame with
 * base 0. Frames never change, so keys can be decoded for as long as their frame exists. Frames of
 * the same base and fiber run order coordinates alike, and convert/build/sort/recode.h converts
 * keys between them.
 */
#ifndef SLC_CONVERT_KEY_FRAME_H
#define SLC_CONVERT_KEY_FRAME_H

#include "base/error/error.h"
#include "convert/build/sort/key_tables.h"
#include "convert/build/sort/splitters.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    /* Every new frame has at least one more of the 128 key bits than the frame before, except the
     * frame that changes the base. */
    SLC_FRAMES_MAX = SLC_MAX_KEY_BITS + 2,
    /* Frame number of final keys; no list contains this frame. */
    SLC_FRAME_FINAL = SLC_FRAMES_MAX,
    /* Most bits per mode in any frame. */
    SLC_FRAME_MODE_BITS_MAX = 62
};

/* Bounds of the keys of a bucket. If the last is less than 2^64 above the first, keys are stored as
 * 64-bit differences from the first. */
struct slc_key_range {
    uint64_t first_lo, first_hi;
    bool narrow;
};

struct slc_key_frame {
    uint32_t number;
    uint64_t index_base;
    /* True if keys would need too many bits: entries are then counted and dropped. */
    bool hopeless;
    struct slc_key_layout layout;
    struct slc_key_tables tables;
    struct slc_splitter_keys splitters;
    struct slc_key_range *ranges; /* per bucket */
};

struct slc_key_frames {
    const struct slc_splitters *splitters; /* borrowed */
    unsigned order;
    uint64_t index_base;          /* index base of the next frame */
    unsigned bits[SLC_MAX_ORDER]; /* bits per mode that the coordinates seen so far need */
    pthread_mutex_t mutex;
    uint32_t count;
    struct slc_key_frame *list[SLC_FRAMES_MAX];
};

/* The range of keys first .. last. */
struct slc_key_range slc_key_range_of(slc_u128 first, slc_u128 last);

/* Starts without a frame. Owns: slc_key_frames_destroy, which accepts an all-zero struct. */
void slc_key_frames_init(struct slc_key_frames *frames,
                         unsigned order,
                         const struct slc_splitters *splitters,
                         uint64_t index_base);
void slc_key_frames_destroy(struct slc_key_frames *frames);

/*
 * Adds a frame for a resumed build. `dims`: its mode sizes, powers of two that hold all splitters.
 * Its index base is frames->index_base. Threads: no concurrent use of `frames`. Errors: those of
 * slc_key_layout_init_run; SLC_ERR_MEMORY.
 */
enum slc_status slc_key_frames_add(struct slc_key_frames *frames,
                                   bool hopeless,
                                   const uint64_t *dims,
                                   struct slc_error *err) SLC_NODISCARD;

/* Returns a frame for coordinates smallest[n] .. largest[n] in every mode n: `frame` (NULL: none
 * yet) if they fit it, otherwise another frame. Threads: any. Errors: SLC_ERR_MEMORY. */
enum slc_status slc_key_frames_fit(struct slc_key_frames *frames,
                                   const struct slc_key_frame *frame,
                                   const uint64_t *smallest,
                                   const uint64_t *largest,
                                   const struct slc_key_frame **fitting,
                                   struct slc_error *err) SLC_NODISCARD;

#endif
