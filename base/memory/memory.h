/* Allocates memory. slc_malloc is for small objects. All memory whose size grows with the data
 * (slots, factors, outputs, sort areas) is a slc_buffer: a mapping of anonymous pages, optionally
 * huge pages. A buffer can be registered with io_uring or CUDA. Small allocations and buffers both
 * use the fault points of base/error/fault.h. */
#ifndef SLC_BASE_MEMORY_H
#define SLC_BASE_MEMORY_H

#include "base/error/error.h"

#include <stddef.h>
#include <stdint.h>

/* These functions work like malloc, calloc, realloc, free and strdup. Each allocation is a fault
 * point (SLC_FAULT_ALLOCATION) and returns NULL on failure. Ownership: release with slc_free. */
void *slc_malloc(size_t bytes) __attribute__((malloc));
void *slc_calloc(size_t count, size_t bytes) __attribute__((malloc));
void *slc_realloc(void *memory, size_t bytes);
void slc_free(void *memory);
char *slc_strdup(const char *text);

enum slc_pages {
    /* system pages only, so that little memory is lost by rounding up; used under small budgets */
    SLC_PAGES_SMALL,
    /* Transparent huge pages as far as whole huge pages fit, and system pages for the rest; used
     * for the slots of the ring. A read of 4 MiB into 4 KiB pages is a list of a thousand segments
     * for the drive. With huge pages a virtual NVMe drive delivered 2.9 GB/s instead of 1.5
     * GB/s. */
    SLC_PAGES_MIXED,
    /* transparent huge pages only; reading random rows of large factors is then 1.6 times as fast
     * as with system pages */
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
 * release with slc_buffer_destroy, which accepts an empty buffer. Errors: SLC_ERR_MEMORY, and the
 * message states the size; *buffer is then empty. */
enum slc_status slc_buffer_create(struct slc_buffer *buffer,
                                  size_t bytes,
                                  enum slc_pages pages,
                                  struct slc_error *err) SLC_NODISCARD;
void slc_buffer_destroy(struct slc_buffer *buffer);

/* Shrinks the buffer: returns the whole pages after the first `bytes` bytes to the system. Needs:
 * `bytes` is at most buffer->bytes. */
void slc_buffer_shrink(struct slc_buffer *buffer, size_t bytes);

/* Returns the bytes that slc_buffer_create would map for `bytes` bytes, for plans. */
uint64_t slc_buffer_footprint(uint64_t bytes, enum slc_pages pages);

/* Returns the page size of the system: 4096 on x86, up to 65,536 on Arm. SLC_PAGE_BYTES, the page
 * size of block files, is always 4096. */
uint64_t slc_memory_page_bytes(void);

/* slc_memory_resident returns the resident bytes of this process (VmRSS), slc_memory_peak their
 * maximum so far (VmHWM); both return 0 if the system does not report the number. */
uint64_t slc_memory_resident(void);
uint64_t slc_memory_peak(void);
/* Sets a minimum for the result of slc_memory_resident. A forked process needs it, because the
 * system counts the pages of the parent only when the child touches them. Call this function before
 * threads start. */
void slc_memory_resident_at_least(uint64_t bytes);
/* Environment variable with an upper limit, in bytes, for the result of slc_memory_machine. */
#define SLC_MEMORY_VARIABLE "SLUICE_MEMORY"

/* Returns the memory in bytes beyond which the kernel ends this process: the minimum of physical
 * memory, the cgroup limit (v1 and v2, also of the ancestors) and SLC_MEMORY_VARIABLE. */
uint64_t slc_memory_machine(void);
/* Returns the memory in bytes that this process may use: the minimum of slc_memory_machine and half
 * of the address space limit (ulimit -v). Libraries, stacks and thread heaps may reserve the other
 * half of the address space without using memory. */
uint64_t slc_memory_total(void);

#endif
