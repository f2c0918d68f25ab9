/* Little-endian loads and stores of unaligned bytes. All file structures are read and written with
 * these functions, which compile to one instruction on little-endian machines. */
#ifndef SLC_BASE_BYTES_H
#define SLC_BASE_BYTES_H

#include <stdint.h>
#include <string.h>

#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define SLC_LE16(x) __builtin_bswap16(x)
#define SLC_LE32(x) __builtin_bswap32(x)
#define SLC_LE64(x) __builtin_bswap64(x)
#else
#define SLC_LE16(x) (x)
#define SLC_LE32(x) (x)
#define SLC_LE64(x) (x)
#endif

static inline uint16_t slc_load_u16(const void *bytes)
{
    uint16_t value;
    memcpy(&value, bytes, sizeof value);
    return SLC_LE16(value);
}

static inline uint32_t slc_load_u32(const void *bytes)
{
    uint32_t value;
    memcpy(&value, bytes, sizeof value);
    return SLC_LE32(value);
}

static inline uint64_t slc_load_u64(const void *bytes)
{
    uint64_t value;
    memcpy(&value, bytes, sizeof value);
    return SLC_LE64(value);
}

static inline double slc_load_f64(const void *bytes)
{
    uint64_t bits = slc_load_u64(bytes);
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline float slc_load_f32(const void *bytes)
{
    uint32_t bits = slc_load_u32(bytes);
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline void slc_store_u16(void *bytes, uint16_t value)
{
    value = SLC_LE16(value);
    memcpy(bytes, &value, sizeof value);
}

static inline void slc_store_u32(void *bytes, uint32_t value)
{
    value = SLC_LE32(value);
    memcpy(bytes, &value, sizeof value);
}

static inline void slc_store_u64(void *bytes, uint64_t value)
{
    value = SLC_LE64(value);
    memcpy(bytes, &value, sizeof value);
}

static inline void slc_store_f64(void *bytes, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    slc_store_u64(bytes, bits);
}

static inline void slc_store_f32(void *bytes, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    slc_store_u32(bytes, bits);
}

/* Returns the bit pattern of a value, for comparisons that distinguish 0.0 and -0.0. */
static inline uint64_t slc_bits_f64(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

#endif
