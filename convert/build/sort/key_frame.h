/*
 * Frames: under which index base and mode lengths pushed coordinates become keys, before either is
 * certain. The first frame has the lengths of a sample; coordinates that do not fit get a wider
 * one, and an index 0 where indices were to start at 1 gets one that starts at 0. A frame is never
 * changed, so that keys formed under it can be read as long as it lives; frames of one base and run
 * of fibers order coordinates alike, and convert/build/sort/recode.h takes keys from one to
 * another.
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
    /* Every frame needs a bit more than those before, of 128; one changes the base. */
    SLC_FRAMES_MAX = SLC_MAX_KEY_BITS + 2,
    /* The number of the frame of final keys, which is in no list. */
    SLC_FRAME_FINAL = SLC_FRAMES_MAX,
    /* Of one mode, in any frame. */
    SLC_FRAME_MODE_BITS_MAX = 62
};

/*
 * What keys a bucket may hold. Where the last is less than 2^64 above the first, keys are kept as
 * 64-bit differences from it.
 */
struct slc_key_range {
    uint64_t first_lo, first_hi;
    bool narrow;
};

struct slc_key_frame {
    uint32_t number;
    uint64_t index_base;
    /* Longer keys than there are would be needed: entries are counted and dropped. */
    bool hopeless;
    struct slc_key_layout layout;
    struct slc_key_tables tables;
    struct slc_splitter_keys splitters;
    struct slc_key_range *ranges; /* per bucket */
};

struct slc_key_frames {
    const struct slc_splitters *splitters; /* borrowed */
    unsigned order;
    uint64_t index_base;          /* of the next frame */
    unsigned bits[SLC_MAX_ORDER]; /* that the coordinates seen so far need */
    pthread_mutex_t mutex;
    uint32_t count;
    struct slc_key_frame *list[SLC_FRAMES_MAX];
};

/* The range of keys first .. last. */
struct slc_key_range slc_key_range_of(slc_u128 first, slc_u128 last);

/* No frame yet. Owns: slc_key_frames_destroy, which takes an all-zero struct. */
void slc_key_frames_init(struct slc_key_frames *frames,
                         unsigned order,
                         const struct slc_splitters *splitters,
                         uint64_t index_base);
void slc_key_frames_destroy(struct slc_key_frames *frames);

/*
 * Adds a frame of lengths `dims`, powers of two that hold all splitters, and of the next frame's
 * base: for those of a build that goes on. Nobody else uses `frames` meanwhile. Errors: those of
 * slc_key_layout_init_run; SLC_ERR_MEMORY.
 */
enum slc_status slc_key_frames_add(struct slc_key_frames *frames,
                                   bool hopeless,
                                   const uint64_t *dims,
                                   struct slc_error *err) SLC_NODISCARD;

/*
 * A frame for coordinates smallest[n] .. largest[n] in every mode n: `frame` (NULL: none yet) if
 * they fit it, else another. Called by any thread. Errors: SLC_ERR_MEMORY.
 */
enum slc_status slc_key_frames_fit(struct slc_key_frames *frames,
                                   const struct slc_key_frame *frame,
                                   const uint64_t *smallest,
                                   const uint64_t *largest,
                                   const struct slc_key_frame **fitting,
                                   struct slc_error *err) SLC_NODISCARD;

#endif
