/* Expands LZ4 sections on the device, following the public description of the block format: a
 * section is a series of sequences. A sequence has a token, the rest of the literal length,
 * literals, a distance of two bytes, and the rest of the match length. The token has 4 bits for
 * each of the two lengths; 15 means that further bytes of the length follow, up to the first byte
 * that is less than 255. The last sequence ends with its literals.
 *
 * One warp expands a section: all warp lanes read the same tokens and lengths, and then copy in
 * parallel. A match that overlaps itself repeats the `distance` bytes before it. These bytes were
 * written before the match begins, so no warp lane waits for another warp lane within a match. For
 * any input bytes, nothing outside the section is read and nothing outside the destination is
 * written.
 *
 * Cost: two dependent loads per sequence, so long sequences expand faster. Expanding the sections
 * of many tiles at a time hides the latency of the loads. */
#include "gpu/decode/expand.h"

#include "gpu/cuda/fault.h"
#include "gpu/decode/decode_bits.h"

enum {
    LENGTH_MORE = 15,  /* value of the four bits of a length if more bytes of the length follow */
    BYTE_MORE = 255,   /* value of a byte of a length if another byte follows */
    MATCH_MIN = 4,     /* bytes of the shortest match; a stored length is the length minus this */
    LAST_LITERALS = 5, /* a section with matches ends with at least this number of literals */
    LAST_MATCH = 12,   /* the last match begins at least this number of bytes before the end */
    /* minimum number of bytes for which copying words is faster than copying bytes */
    COPY_WORDS = 64,
    WORD = 4
};

struct section {
    const uint8_t *in;
    uint8_t *out;
    uint32_t in_bytes, out_bytes;
    uint32_t at, made; /* bytes read and written so far */
    uint32_t lane;
};

/* Returns the number of bytes before the next word boundary. */
__device__ static uint32_t bytes_to_word(const uint8_t *bytes)
{
    return (uint32_t)(-reinterpret_cast<uintptr_t>(bytes) % WORD);
}

/* Copies bytes between disjoint ranges. Reads at most one word past the end of the source. */
__device__ static void copy_apart(uint8_t *to, const uint8_t *from, uint32_t count, uint32_t lane)
{
    const uint32_t head = count < COPY_WORDS ? count : bytes_to_word(to);
    const uint32_t words = (count - head) / WORD;
    const uint32_t odd = (WORD - bytes_to_word(from + head)) % WORD;
    const uint32_t *source = reinterpret_cast<const uint32_t *>(from + head - odd);
    uint32_t *target = reinterpret_cast<uint32_t *>(to + head);

    for (uint32_t i = lane; i < head; i += SLC_WARP) {
        to[i] = from[i];
    }
    for (uint32_t i = lane; i < words; i += SLC_WARP) {
        target[i] = __funnelshift_r(source[i], odd > 0 ? source[i + 1] : 0, 8 * odd);
    }
    for (uint32_t i = head + WORD * words + lane; i < count; i += SLC_WARP) {
        to[i] = from[i];
    }
}

/* Fills `count` bytes at `to` by repeating the `distance` bytes before `to`. Needs: `distance`
 * divides the bytes of a word. */
__device__ static void fill_words(uint8_t *to, uint32_t distance, uint32_t count, uint32_t lane)
{
    const uint32_t head = bytes_to_word(to), words = (count - head) / WORD;
    uint32_t *target = reinterpret_cast<uint32_t *>(to + head);
    uint32_t pattern = 0;

    for (uint32_t k = 0; k < WORD; k++) {
        pattern |= (uint32_t)to[(head + k) % distance - (ptrdiff_t)distance] << 8 * k;
    }
    for (uint32_t i = lane; i < head; i += SLC_WARP) {
        to[i] = to[i % distance - (ptrdiff_t)distance];
    }
    for (uint32_t i = lane; i < words; i += SLC_WARP) {
        target[i] = pattern;
    }
    for (uint32_t i = head + WORD * words + lane; i < count; i += SLC_WARP) {
        to[i] = to[i % distance - (ptrdiff_t)distance];
    }
}

/* Copies a match. All bytes that the function reads were written before the last
 * synchronization. */
__device__ static void copy_match(uint8_t *to, uint32_t distance, uint32_t count, uint32_t lane)
{
    const uint8_t *from = to - distance;

    if (distance >= count + 2 * WORD) {
        copy_apart(to, from, count, lane);
    } else if (WORD % distance == 0 && count >= COPY_WORDS) {
        fill_words(to, distance, count, lane);
    } else {
        const uint32_t step = SLC_WARP % distance;
        uint32_t place = lane % distance;

        for (uint32_t i = lane; i < count; i += SLC_WARP) {
            to[i] = from[place];
            place += step;
            place -= place >= distance ? distance : 0;
        }
    }
}

/* Reads the further bytes of a length; *length has the four bits of the token. Returns false if the
 * section ends before the length, or if the length is too large. */
__device__ static bool read_length(struct section *section, uint32_t *length)
{
    uint32_t byte = BYTE_MORE;

    if (*length < LENGTH_MORE) {
        return true;
    }
    while (byte == BYTE_MORE) {
        if (section->at == section->in_bytes || *length > section->out_bytes) {
            return false;
        }
        byte = __ldg(section->in + section->at++);
        *length += byte;
    }
    return true;
}

__device__ static bool copy_literals(struct section *section, uint32_t length)
{
    if (!read_length(section, &length) || length > section->in_bytes - section->at ||
        length > section->out_bytes - section->made) {
        return false;
    }
    copy_apart(section->out + section->made, section->in + section->at, length, section->lane);
    section->at += length;
    section->made += length;
    return true;
}

__device__ static bool copy_next_match(struct section *section, uint32_t length)
{
    uint32_t distance;

    if (section->in_bytes - section->at < 2 || section->out_bytes - section->made < LAST_MATCH) {
        return false;
    }
    distance = __ldg(section->in + section->at) | (uint32_t)__ldg(section->in + section->at + 1)
                                                      << 8;
    section->at += 2;
    if (!read_length(section, &length) || distance == 0 || distance > section->made) {
        return false;
    }
    length += MATCH_MIN;
    if (length > section->out_bytes - section->made - LAST_LITERALS) {
        return false;
    }
    /* Makes the writes of each warp lane visible to all warp lanes. */
    SLC_PLANT(expand_unsynced, __syncwarp());
    copy_match(section->out + section->made, distance, length, section->lane);
    section->made += length;
    return true;
}

/* Expands a section. Returns false if it does not expand to the stated size. */
__device__ static bool expand(struct section *section)
{
    while (section->at < section->in_bytes) {
        const uint32_t token = __ldg(section->in + section->at++);

        if (!copy_literals(section, token >> 4)) {
            return false;
        }
        if (section->at == section->in_bytes) {
            return section->made == section->out_bytes;
        }
        if (!copy_next_match(section, token & 15)) {
            return false;
        }
    }
    return false;
}

/* Clears the bytes after those that were written: kernels read all bytes of a section before the
 * host learns of the fault. */
__device__ static void clear(const struct section *section)
{
    for (uint32_t i = section->made + section->lane; i < section->out_bytes; i += SLC_WARP) {
        section->out[i] = 0;
    }
}

/* Expands the sections of tiles. Each tile has a thread block of one warp. */
__global__ static void __launch_bounds__(SLC_WARP)
    expand_sections(const struct slc_gpu_tile *tiles, struct slc_gpu_fault *fault)
{
    const struct slc_gpu_tile *tile = &tiles[blockIdx.x];
    const struct slc_encoded_lz4 *lz4 = &tile->tile.lz4;
    /* Only this kernel writes `expanded` while it runs, so the const_cast is safe. */
    struct section section = {tile->block + lz4->at,
                              const_cast<uint8_t *>(tile->expanded) + lz4->expanded_at,
                              lz4->bytes,
                              lz4->expanded_bytes,
                              0,
                              0,
                              threadIdx.x};

    if (lz4->bytes > 0) {
        const bool sound = expand(&section);

        if (!sound) {
            clear(&section);
        }
        slc_gpu_report(fault, tile, sound ? SLC_GPU_SOUND : SLC_GPU_FAULT_LZ4);
    }
}

cudaError_t slc_gpu_expand(const struct slc_gpu_tile *tiles,
                           uint32_t tile_count,
                           struct slc_gpu_fault *fault,
                           cudaStream_t stream)
{
    return tile_count == 0 ? cudaSuccess
                           : slc_launch(expand_sections, dim3(tile_count), dim3(SLC_WARP), 0,
                                        stream, tiles, fault);
}
