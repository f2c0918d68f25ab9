/* Converts keys to offsets of every mode, and divides them into fiber runs.
 *
 * Modes that vary in one word and at most 32 bits are processed together (decode_ops.h). Modes that
 * vary in both words or in more bits only occur in tiles that cross a high power of two, and are
 * processed one by one. */
#include "storage/codec/decode_internal.h"

/* Computes fields with more than 32 varying bits, which are rare: they occur in tiles that cross a
 * high power of two. */
static uint64_t
wide_offsets(struct slc_decoder *decoder, const uint64_t *keys, unsigned n, uint32_t count)
{
    const struct slc_mode_plan *mode = &decoder->modes[n];
    uint64_t largest = 0;

    decoder->ops->gather_wide(&mode->lo, keys, count, decoder->wide_lo);
    if (mode->hi.bits > 0) {
        decoder->ops->gather_wide(&mode->hi, decoder->key_hi, count, decoder->wide_hi);
    }
    for (uint32_t i = 0; i < count; i++) {
        uint64_t field = decoder->wide_lo[i];

        if (mode->hi.bits > 0) {
            field |= decoder->wide_hi[i] << mode->lo.bits; /* a mode has at most 62 bits */
        }
        field -= mode->base;
        largest = field > largest ? field : largest;
        decoder->offset[n][i] = (uint32_t)field;
    }
    return largest;
}

static uint64_t
narrow_offsets(struct slc_decoder *decoder, const uint64_t *keys, unsigned n, uint32_t count)
{
    const struct slc_mode_plan *mode = &decoder->modes[n];
    uint32_t *offset = decoder->offset[n];

    if (mode->lo.bits == 0) {
        decoder->ops->gather(&mode->hi, decoder->key_hi, count, offset);
    } else {
        decoder->ops->gather(&mode->lo, keys, count, offset);
        if (mode->hi.bits > 0) {
            decoder->ops->gather(&mode->hi, decoder->key_hi, count, decoder->spare);
            for (uint32_t i = 0; i < count; i++) {
                offset[i] |= decoder->spare[i] << mode->lo.bits;
            }
        }
    }
    return decoder->ops->subtract_base(offset, count, (uint32_t)mode->base);
}

static bool check_offsets(const struct slc_decoder *decoder,
                          unsigned n,
                          uint64_t largest,
                          struct slc_damage *damage)
{
    if (largest > decoder->entry.extent[n]) {
        return slc_damage_set(damage, decoder->data,
                              "the offset of a coordinate from the tile's corner", largest,
                              "at most ", decoder->entry.extent[n]);
    }
    return true;
}

static bool check_fields(const struct slc_decoder *decoder,
                         const struct slc_fields *fields,
                         const uint32_t largest[SLC_MAX_ORDER],
                         struct slc_damage *damage)
{
    for (unsigned f = 0; f < fields->count; f++) {
        if (!check_offsets(decoder, fields->field[f].mode, largest[f], damage)) {
            return false;
        }
    }
    return true;
}

static bool field_offsets(struct slc_decoder *decoder,
                          const struct slc_fields *fields,
                          uint64_t *keys,
                          uint32_t count,
                          struct slc_damage *damage)
{
    uint32_t largest[SLC_MAX_ORDER];

    decoder->ops->fields(fields, keys, count, largest);
    return check_fields(decoder, fields, largest, damage);
}

/* Like field_offsets, but reads the lower halves of keys. */
static bool small_offsets(struct slc_decoder *decoder,
                          const struct slc_fields *fields,
                          uint32_t *keys,
                          uint32_t count,
                          struct slc_damage *damage)
{
    uint32_t largest[SLC_MAX_ORDER];

    if (fields->count == 1 &&
        fields->field[0].gather->mask == slc_low_mask(fields->field[0].gather->bits)) {
        const struct slc_field *field = &fields->field[0];

        largest[0] = decoder->ops->small_low(keys, count, (uint32_t)field->gather->mask,
                                             field->base, field->offsets);
    } else {
        decoder->ops->small_fields(fields, keys, count, largest);
    }
    return check_fields(decoder, fields, largest, damage);
}

/* Computes offsets of mode n, which is not plain, from the lower words `keys` and from key_hi. */
static bool mode_offsets(struct slc_decoder *decoder,
                         const uint64_t *keys,
                         unsigned n,
                         uint32_t count,
                         struct slc_damage *damage)
{
    const struct slc_mode_plan *mode = &decoder->modes[n];

    if (mode->lo.bits + mode->hi.bits == 0) {
        return true; /* the mode does not vary: its offsets have been zero since the first chunk */
    }
    return check_offsets(decoder, n,
                         mode->wide ? wide_offsets(decoder, keys, n, count)
                                    : narrow_offsets(decoder, keys, n, count),
                         damage);
}

bool slc_decoder_offsets(struct slc_decoder *decoder, uint32_t count, struct slc_damage *damage)
{
    if (decoder->small) {
        return small_offsets(decoder, &decoder->fields, decoder->key_small, count, damage);
    }
    for (unsigned n = 0; n < decoder->keys.order; n++) {
        if (!slc_mode_is_plain(&decoder->modes[n]) &&
            !mode_offsets(decoder, decoder->key_lo, n, count, damage)) {
            return false;
        }
    }
    return field_offsets(decoder, &decoder->fields, decoder->key_lo, count, damage);
}

bool slc_decoder_run_offsets(struct slc_decoder *decoder, uint32_t runs, struct slc_damage *damage)
{
    return small_offsets(decoder, &decoder->run_fields, decoder->run_small, runs, damage);
}

/* Like slc_decoder_runs, but for a tile with `small` set. In such a tile, modes that are not plain
 * do not vary. */
static bool runs_from_small(struct slc_decoder *decoder,
                            uint32_t count,
                            uint32_t *runs,
                            struct slc_damage *damage)
{
    uint32_t *begin = decoder->run_begin;

    *runs = decoder->ops->small_runs(decoder->key_small, count, decoder->keys.run.bits, begin);
    for (uint32_t r = 0; r < *runs; r++) {
        decoder->run_small[r] = decoder->key_small[begin[r]];
    }
    begin[*runs] = count;
    return small_offsets(decoder, &decoder->own_fields, decoder->key_small, count, damage) &&
           slc_decoder_run_offsets(decoder, *runs, damage);
}

bool slc_decoder_runs(struct slc_decoder *decoder,
                      uint32_t count,
                      uint32_t *runs,
                      struct slc_damage *damage)
{
    const struct slc_fiber_run run = decoder->keys.run;
    uint32_t *begin = decoder->run_begin;

    if (decoder->small) {
        return runs_from_small(decoder, count, runs, damage);
    }
    *runs = decoder->ops->runs(decoder->key_lo, count, run.bits, begin);
    for (uint32_t r = 0; r < *runs; r++) {
        decoder->run_keys[r] = decoder->key_lo[begin[r]];
    }
    begin[*runs] = count;
    for (unsigned n = 0; n < decoder->keys.order; n++) {
        const bool own = n == run.mode;

        if (!slc_mode_is_plain(&decoder->modes[n]) &&
            !mode_offsets(decoder, own ? decoder->key_lo : decoder->run_keys, n,
                          own ? count : *runs, damage)) {
            return false;
        }
    }
    return field_offsets(decoder, &decoder->own_fields, decoder->key_lo, count, damage) &&
           field_offsets(decoder, &decoder->run_fields, decoder->run_keys, *runs, damage);
}
