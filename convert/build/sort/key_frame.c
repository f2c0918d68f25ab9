#include "convert/build/sort/key_frame.h"

#include "base/memory/memory.h"

#include <assert.h>

enum {
    /* Additional bits for a mode whose indices exceeded the frame. Probably the input is sorted by
     * this mode and the sample is its beginning, so that larger indices follow. */
    SPARE_BITS = 2
};

struct slc_key_range slc_key_range_of(slc_u128 first, slc_u128 last)
{
    return (struct slc_key_range){.first_lo = (uint64_t)first,
                                  .first_hi = (uint64_t)(first >> 64),
                                  .narrow = last - first <= UINT64_MAX};
}

void slc_key_frames_init(struct slc_key_frames *frames,
                         unsigned order,
                         const struct slc_splitters *splitters,
                         uint64_t index_base)
{
    *frames =
        (struct slc_key_frames){.splitters = splitters, .order = order, .index_base = index_base};
    /* With default attributes, this call cannot fail on Linux. */
    pthread_mutex_init(&frames->mutex, NULL);
    for (unsigned n = 0; n < order; n++) {
        frames->bits[n] = slc_bits_for_length(splitters->largest[n] + 1);
    }
}

static void destroy_frame(struct slc_key_frame *frame)
{
    if (frame != NULL) {
        slc_key_tables_destroy(&frame->tables);
        slc_splitter_keys_destroy(&frame->splitters);
        slc_free(frame->ranges);
        slc_free(frame);
    }
}

void slc_key_frames_destroy(struct slc_key_frames *frames)
{
    if (frames->splitters == NULL) {
        return;
    }
    for (uint32_t i = 0; i < frames->count; i++) {
        destroy_frame(frames->list[i]);
    }
    pthread_mutex_destroy(&frames->mutex);
    *frames = (struct slc_key_frames){0};
}

static bool fits(const struct slc_key_frame *frame,
                 unsigned order,
                 const uint64_t *smallest,
                 const uint64_t *largest)
{
    bool inside = frame != NULL && !frame->hopeless;

    for (unsigned n = 0; n < order && inside; n++) {
        inside = smallest[n] >= frame->index_base &&
                 (largest[n] - frame->index_base) >> frame->layout.mode_bits[n] == 0;
    }
    return inside || (frame != NULL && frame->hopeless);
}

/* Updates the index base and the bits per mode to include coordinates smallest .. largest, and sets
 * dims[] to the mode sizes of the next frame. Modes that exceeded `frame` get spare bits. */
static void widen(struct slc_key_frames *frames,
                  const struct slc_key_frame *frame,
                  const uint64_t *smallest,
                  const uint64_t *largest,
                  bool *hopeless,
                  uint64_t *dims)
{
    unsigned total = 0;

    *hopeless = false;
    for (unsigned n = 0; n < frames->order; n++) {
        frames->index_base = smallest[n] == 0 ? 0 : frames->index_base;
    }
    for (unsigned n = 0; n < frames->order; n++) {
        uint64_t coord = largest[n] - frames->index_base;
        unsigned bits = coord == 0 ? 0 : 64U - (unsigned)__builtin_clzll(coord);

        frames->bits[n] = bits > frames->bits[n] ? bits : frames->bits[n];
        *hopeless = *hopeless || frames->bits[n] > SLC_FRAME_MODE_BITS_MAX;
        total += frames->bits[n];
    }
    *hopeless = *hopeless || total > SLC_MAX_KEY_BITS;
    for (unsigned n = 0; n < frames->order && !*hopeless; n++) {
        bool grew = frame != NULL && frames->bits[n] > frame->layout.mode_bits[n];
        unsigned spare = grew ? SPARE_BITS : 0;

        if (frames->bits[n] + spare > SLC_FRAME_MODE_BITS_MAX || total + spare > SLC_MAX_KEY_BITS) {
            spare = 0;
        }
        total += spare;
        dims[n] = UINT64_C(1) << (frames->bits[n] + spare);
    }
}

static enum slc_status set_ranges(struct slc_key_frame *frame, struct slc_error *err)
{
    const struct slc_splitter_keys *splitters = &frame->splitters;
    unsigned bits = frame->layout.bits;
    slc_u128 most = bits == 0 ? 0 : ~(slc_u128)0 >> (128 - bits);
    slc_u128 first = 0;

    frame->ranges = slc_calloc(splitters->count + (size_t)1, sizeof *frame->ranges);
    SLC_TRY(slc_check_memory(frame->ranges != NULL, err, "for %u buckets", splitters->count + 1));
    for (uint32_t b = 0; b <= splitters->count; b++) {
        slc_u128 next = b < splitters->count ? slc_key_join(splitters->lo[b], splitters->hi[b]) : 0;

        frame->ranges[b] = slc_key_range_of(first, b < splitters->count ? next - 1 : most);
        first = next;
    }
    return SLC_OK;
}

enum slc_status slc_key_frames_add(struct slc_key_frames *frames,
                                   bool hopeless,
                                   const uint64_t *dims,
                                   struct slc_error *err)
{
    struct slc_key_frame *frame = slc_calloc(1, sizeof *frame);
    enum slc_status status = SLC_OK;

    SLC_TRY(slc_check_memory(frame != NULL, err, "for keys"));
    frame->number = frames->count;
    frame->index_base = frames->index_base;
    frame->hopeless = hopeless;
    if (!hopeless) {
        status = slc_key_layout_init_run(&frame->layout, frames->order, dims,
                                         frames->splitters->run, err);
        SLC_THEN(status, slc_key_tables_init(&frame->tables, &frame->layout, err));
        if (status == SLC_OK) {
            status =
                slc_splitter_keys_init(&frame->splitters, frames->splitters, &frame->layout, err);
        }
        SLC_THEN(status, set_ranges(frame, err));
    }
    if (status != SLC_OK) {
        destroy_frame(frame);
        return status;
    }
    assert(frames->count < SLC_FRAMES_MAX);
    frames->list[frames->count++] = frame;
    return SLC_OK;
}

static enum slc_status make_frame(struct slc_key_frames *frames,
                                  const struct slc_key_frame *outgrown,
                                  const uint64_t *smallest,
                                  const uint64_t *largest,
                                  struct slc_error *err)
{
    uint64_t dims[SLC_MAX_ORDER];
    bool hopeless;

    widen(frames, outgrown, smallest, largest, &hopeless, dims);
    return slc_key_frames_add(frames, hopeless, dims, err);
}

enum slc_status slc_key_frames_fit(struct slc_key_frames *frames,
                                   const struct slc_key_frame *frame,
                                   const uint64_t *smallest,
                                   const uint64_t *largest,
                                   const struct slc_key_frame **fitting,
                                   struct slc_error *err)
{
    enum slc_status status = SLC_OK;

    if (fits(frame, frames->order, smallest, largest)) {
        *fitting = frame;
        return SLC_OK;
    }
    pthread_mutex_lock(&frames->mutex);
    if (frames->count > 0) {
        frame = frames->list[frames->count - 1];
    }
    if (!fits(frame, frames->order, smallest, largest)) {
        status = make_frame(frames, frame, smallest, largest, err);
    }
    if (status == SLC_OK) {
        *fitting = frames->list[frames->count - 1];
    }
    pthread_mutex_unlock(&frames->mutex);
    return status;
}
