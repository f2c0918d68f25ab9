/* Tracks which bytes of device memory were written: one bit per byte, at a fixed distance. */
#include "written.h"

#include "device_code.h"
#include "scheduler.h"

#include <cstdint>
#include <cstdlib>
#include <sys/mman.h>

#ifndef SLC_EMULATION_WRITTEN

unsigned char *slc_written_allocate(size_t bytes)
{
    return static_cast<unsigned char *>(aligned_alloc(256, (bytes + 255) / 256 * 256));
}

void slc_written_release(unsigned char *memory, size_t)
{
    free(memory);
}

void slc_written_mark(const void *, size_t)
{
}

void slc_written_check(const void *, size_t)
{
}

#else

/* Address space of all device memory that a process ever allocates: addresses are not reused, so
 * that new memory has no written bytes. */
static const size_t space_bytes = (size_t)1 << 37;
/* A multiple of the page size of every system. */
static const size_t unit = (size_t)1 << 16;
/* The longest access of a kernel. */
enum { ACCESS_MAX = 16 };

static unsigned char *space, *bits;
static size_t used; /* bytes of the space */

static size_t units_down(size_t bytes)
{
    return bytes / unit * unit;
}

static size_t units_up(size_t bytes)
{
    return units_down(bytes + unit - 1);
}

/* Returns address space without memory. */
static unsigned char *reserve(size_t bytes)
{
    void *memory = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (memory == MAP_FAILED) {
        slc_emulation_fail("no address space for the memory of devices");
    }
    return static_cast<unsigned char *>(memory);
}

unsigned char *slc_written_allocate(size_t bytes)
{
    const size_t first = used;

    if (space == nullptr) {
        space = reserve(space_bytes);
        bits = reserve(space_bytes / 8);
    }
    /* A byte that is never written follows. */
    if (bytes >= space_bytes - used - 2 * unit) {
        slc_emulation_fail("the memory of devices has used all its address space");
    }
    used += units_up(bytes + 1);
    /* The bits of an access begin at one byte and are read as four. */
    if (mprotect(space + first, used - first, PROT_READ | PROT_WRITE) != 0 ||
        mprotect(bits + units_down(first / 8), units_up(used / 8 + 4) - units_down(first / 8),
                 PROT_READ | PROT_WRITE) != 0) {
        used = first;
        return nullptr;
    }
    return space + first;
}

void slc_written_release(unsigned char *memory, size_t bytes)
{
    const size_t first = (size_t)(memory - space), end = first + units_up(bytes + 1);

    (void)madvise(memory, end - first, MADV_DONTNEED);
    if (units_up(first / 8) < units_down(end / 8)) {
        (void)madvise(bits + units_up(first / 8), units_down(end / 8) - units_up(first / 8),
                      MADV_DONTNEED);
    }
}

/* Returns true if the memory is of a device, and its place. */
static inline bool is_device(const void *memory, size_t *at)
{
    *at = (size_t)(static_cast<const unsigned char *>(memory) - space);
    return *at < used;
}

/* Bits of an access of at most ACCESS_MAX bytes, from the byte that has the first. */
static inline uint32_t access_bits(size_t at, size_t bytes)
{
    return ((UINT32_C(1) << bytes) - 1) << at % 8;
}

[[noreturn]] static void fail_unwritten(const void *memory, size_t bytes)
{
    const unsigned char *first = static_cast<const unsigned char *>(memory);
    size_t k = 0;

    while ((bits[(size_t)(first + k - space) / 8] >> (size_t)(first + k - space) % 8 & 1) != 0) {
        k++;
    }
    if (slc_emulated_here == nullptr) {
        slc_emulation_fail("byte %zu of the %zu that a copy reads was never written", k, bytes);
    }
    slc_emulation_fail("block %u, thread %u: byte %zu of the %zu that it reads at %p was never "
                       "written",
                       blockIdx.x, threadIdx.x, k, bytes, memory);
}

static inline void read_access(const void *memory, size_t bytes)
{
    size_t at;
    uint32_t written;

    if (is_device(memory, &at)) {
        memcpy(&written, bits + at / 8, sizeof written);
        if ((~written & access_bits(at, bytes)) != 0) {
            fail_unwritten(memory, bytes);
        }
    }
}

static inline void write_access(const void *memory, size_t bytes)
{
    size_t at;
    uint32_t written;

    if (is_device(memory, &at)) {
        memcpy(&written, bits + at / 8, sizeof written);
        written |= access_bits(at, bytes);
        memcpy(bits + at / 8, &written, sizeof written);
    }
}

void slc_written_mark(const void *memory, size_t bytes)
{
    const unsigned char *first = static_cast<const unsigned char *>(memory);
    size_t at, k = 0;

    if (!is_device(memory, &at)) {
        return;
    }
    for (; k < bytes && (at + k) % 8 != 0; k++) {
        write_access(first + k, 1);
    }
    memset(bits + (at + k) / 8, 0xff, (bytes - k) / 8);
    for (k += (bytes - k) / 8 * 8; k < bytes; k++) {
        write_access(first + k, 1);
    }
}

void slc_written_check(const void *memory, size_t bytes)
{
    const unsigned char *first = static_cast<const unsigned char *>(memory);
    size_t at;

    if (is_device(memory, &at)) {
        for (size_t k = 0; k < bytes; k += ACCESS_MAX) {
            read_access(first + k, bytes - k < ACCESS_MAX ? bytes - k : (size_t)ACCESS_MAX);
        }
    }
}

/* ---- the functions that compiled kernels call (the names are those of ThreadSanitizer) */

extern "C" {
void __tsan_init(void)
{
}
void __tsan_func_entry(void *)
{
}
void __tsan_func_exit(void)
{
}
void __tsan_vptr_update(void **, void *)
{
}
void __tsan_read_range(const void *memory, size_t bytes)
{
    slc_written_check(memory, bytes);
}
void __tsan_write_range(const void *memory, size_t bytes)
{
    slc_written_mark(memory, bytes);
}

#define ACCESSES(bytes)                                                                            \
    void __tsan_read##bytes(const void *memory)                                                    \
    {                                                                                              \
        read_access(memory, bytes);                                                                \
    }                                                                                              \
    void __tsan_unaligned_read##bytes(const void *memory)                                          \
    {                                                                                              \
        read_access(memory, bytes);                                                                \
    }                                                                                              \
    void __tsan_write##bytes(const void *memory)                                                   \
    {                                                                                              \
        write_access(memory, bytes);                                                               \
    }                                                                                              \
    void __tsan_unaligned_write##bytes(const void *memory)                                         \
    {                                                                                              \
        write_access(memory, bytes);                                                               \
    }
ACCESSES(1)
ACCESSES(2)
ACCESSES(4)
ACCESSES(8)
ACCESSES(16)

/* Atomic functions read before they write. */
#define ATOMICS(bits)                                                                              \
    uint##bits##_t __tsan_atomic##bits##_load(const uint##bits##_t *from, int order)               \
    {                                                                                              \
        (void)order;                                                                               \
        read_access(from, sizeof *from);                                                           \
        return __atomic_load_n(from, __ATOMIC_RELAXED);                                            \
    }                                                                                              \
    uint##bits##_t __tsan_atomic##bits##_exchange(uint##bits##_t *to, uint##bits##_t value,        \
                                                  int order)                                       \
    {                                                                                              \
        (void)order;                                                                               \
        read_access(to, sizeof *to);                                                               \
        return __atomic_exchange_n(to, value, __ATOMIC_RELAXED);                                   \
    }                                                                                              \
    uint##bits##_t __tsan_atomic##bits##_fetch_add(uint##bits##_t *to, uint##bits##_t value,       \
                                                   int order)                                      \
    {                                                                                              \
        (void)order;                                                                               \
        read_access(to, sizeof *to);                                                               \
        return __atomic_fetch_add(to, value, __ATOMIC_RELAXED);                                    \
    }                                                                                              \
    uint##bits##_t __tsan_atomic##bits##_fetch_or(uint##bits##_t *to, uint##bits##_t value,        \
                                                  int order)                                       \
    {                                                                                              \
        (void)order;                                                                               \
        read_access(to, sizeof *to);                                                               \
        return __atomic_fetch_or(to, value, __ATOMIC_RELAXED);                                     \
    }                                                                                              \
    bool __tsan_atomic##bits##_compare_exchange_strong(                                            \
        uint##bits##_t *to, uint##bits##_t *expected, uint##bits##_t value, int order, int failed) \
    {                                                                                              \
        (void)order;                                                                               \
        (void)failed;                                                                              \
        read_access(to, sizeof *to);                                                               \
        return __atomic_compare_exchange_n(to, expected, value, false, __ATOMIC_RELAXED,           \
                                           __ATOMIC_RELAXED);                                      \
    }
ATOMICS(32)
ATOMICS(64)
}

#endif
