/* A key frame is an index base and a set of mode sizes. Pushed coordinates become keys under a
 * frame before the true index base and mode sizes are known. The first frame has the mode sizes of
 * a sample. Coordinates that exceed a frame become keys of a new, larger frame; an index 0 under an
 * assumed index base of 1 leads to a new frame with index base 0. Frames never change, so keys can
 * be decoded for as long as their frame exists. Frames with the same index base and fiber run order
 * coordinates in the same way. recode.h converts keys from one frame to another. */
#ifndef SLC_CONVERT_KEY_FRAME_H
#define SLC_CONVERT_KEY_FRAME_H

#include "base/error/error.h"
#include "convert/build/sort/key_tables.h"
#include "convert/build/sort/splitters.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    /* Every new frame needs at least one more key bit than the previous frame, except for the frame
     * that changes the index base. */
    SLC_FRAMES_MAX = SLC_MAX_KEY_BITS + 2,
    /* Frame number that marks final keys; no frame in a list has this number. */
    SLC_FRAME_FINAL = SLC_FRAMES_MAX,
    /* Largest number of bits per mode. */
    SLC_FRAME_MODE_BITS_MAX = 62
};

/* Range of the keys of a bucket. `narrow` is true if the last key is less than 2^64 above the first
 * key; keys are then stored as 64-bit differences from the first key. */
struct slc_key_range {
    uint64_t first_lo, first_hi;
    bool narrow;
};

struct slc_key_frame {
    uint32_t number;
    uint64_t index_base;
    /* True if keys would need too many bits. Entries of such a frame are counted and dropped. */
    bool hopeless;
    struct slc_key_layout layout;
    struct slc_key_tables tables;
    struct slc_splitter_keys splitters;
    struct slc_key_range *ranges; /* one per bucket */
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

/* Returns the range of keys first .. last. */
struct slc_key_range slc_key_range_of(slc_u128 first, slc_u128 last);

/* Initializes an empty list of frames. Ownership: release with slc_key_frames_destroy, which
 * accepts an all-zero struct. */
void slc_key_frames_init(struct slc_key_frames *frames,
                         unsigned order,
                         const struct slc_splitters *splitters,
                         uint64_t index_base);
void slc_key_frames_destroy(struct slc_key_frames *frames);

/* Adds a frame for a resumed build. `dims`: mode sizes of the frame, powers of two that all
 * splitters fit. The index base of the frame is frames->index_base. Threads: no concurrent use of
 * `frames`. Errors: those of slc_key_layout_init_run; SLC_ERR_MEMORY. */
enum slc_status slc_key_frames_add(struct slc_key_frames *frames,
                                   bool hopeless,
                                   const uint64_t *dims,
                                   struct slc_error *err) SLC_NODISCARD;

/* Returns a frame for coordinates smallest[n] .. largest[n] in every mode n: `frame` (NULL: no
 * frame yet) if they fit it, otherwise a frame with larger mode sizes or another index base.
 * Threads: any. Errors: SLC_ERR_MEMORY. */
enum slc_status slc_key_frames_fit(struct slc_key_frames *frames,
                                   const struct slc_key_frame *frame,
                                   const uint64_t *smallest,
                                   const uint64_t *largest,
                                   const struct slc_key_frame **fitting,
                                   struct slc_error *err) SLC_NODISCARD;

#endif
