/*
 * Memory. slc_malloc allocates small objects. Everything that grows with the data (slots, factors,
 * outputs, sort areas) is a slc_buffer: anonymous pages, page-aligned, optionally in huge pages,
 * ready for registration with io_uring or CUDA. Both use the fault points of base/error/fault.h.
 */
#ifndef SLC_BASE_MEMORY_H
#define SLC_BASE_MEMORY_H

#include "base/error/error.h"

#include <stddef.h>
#include <stdint.h>

/* malloc, calloc and realloc with the allocation fault point. Return NULL on failure. Ownership:
 * slc_free. */
void *slc_malloc(size_t bytes) __attribute__((malloc));
void *slc_calloc(size_t count, size_t bytes) __attribute__((malloc));
void *slc_realloc(void *memory, size_t bytes);
void slc_free(void *memory);
char *slc_strdup(const char *text);

enum slc_pages {
    SLC_PAGES_SMALL, /* system pages: exact sizes, for small budgets */
    /*
     * Exact sizes, with transparent huge pages for the part that whole huge pages fill; for the
     * slots of the ring. For the drive, a read into 4 KiB pages is a list of a thousand pieces;
     * with huge pages, a virtual NVMe drive delivered 2.9 instead of 1.5 GB/s.
     */
    SLC_PAGES_MIXED,
    /* transparent huge pages: reading random rows of large factors is 1.6 times faster */
    SLC_PAGES_HUGE
};

struct slc_buffer {
    void *data;   /* page-aligned, zeroed; NULL when empty */
    size_t bytes; /* mapped size: a multiple of the page size, or of 2 MiB for huge pages */
};

#define SLC_BUFFER_INIT                                                                            \
    {                                                                                              \
        NULL, 0                                                                                    \
    }

/* Maps at least `bytes` bytes of zeroed memory; if `bytes` is 0, the buffer is empty. Ownership:
 * slc_buffer_destroy, which accepts an empty buffer. Errors: SLC_ERR_MEMORY with the size; *buffer
 * is then empty. */
enum slc_status slc_buffer_create(struct slc_buffer *buffer,
                                  size_t bytes,
                                  enum slc_pages pages,
                                  struct slc_error *err) SLC_NODISCARD;
void slc_buffer_destroy(struct slc_buffer *buffer);

/* Releases whole pages after the first `bytes` bytes to the system. Needs: `bytes` is at most
 * buffer->bytes. */
void slc_buffer_shrink(struct slc_buffer *buffer, size_t bytes);

/* Returns the bytes that slc_buffer_create maps for `bytes`, for plans. */
uint64_t slc_buffer_footprint(uint64_t bytes, enum slc_pages pages);

/* Returns the page size of the system: 4096 on x86, up to 65,536 on Arm. SLC_PAGE_BYTES of files is
 * fixed. */
uint64_t slc_memory_page_bytes(void);

/* Return the resident bytes of this process now and their maximum so far (VmRSS, VmHWM); 0 if
 * unknown. */
uint64_t slc_memory_resident(void);
uint64_t slc_memory_peak(void);
/* Sets a lower bound of slc_memory_resident: in a forked process, the system counts pages only when
 * that process touches them, although the parent holds them. To be called before threads start. */
void slc_memory_resident_at_least(uint64_t bytes);
/*
 * Returns the smallest of physical memory, the cgroup limit (v1 and v2) of this process, and half
 * of its address space limit (ulimit -v): libraries, stacks and thread heaps may reserve the other
 * half of the address space without using memory.
 */
uint64_t slc_memory_total(void);

#endif
