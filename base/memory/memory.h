/*
 * Memory. Small objects come from slc_malloc; everything that scales with the data (slots, factors,
 * outputs, sort areas) is a slc_buffer: anonymous pages, page-aligned, in huge pages where asked,
 * ready to be registered with io_uring or CUDA. Both go through the fault points of
 * base/error/fault.h.
 */
#ifndef SLC_BASE_MEMORY_H
#define SLC_BASE_MEMORY_H

#include "base/error/error.h"

#include <stddef.h>
#include <stdint.h>

/* malloc/calloc behind the allocation fault point; NULL when refused. Free with slc_free. */
void *slc_malloc(size_t bytes) __attribute__((malloc));
void *slc_calloc(size_t count, size_t bytes) __attribute__((malloc));
void *slc_realloc(void *memory, size_t bytes);
void slc_free(void *memory);
char *slc_strdup(const char *text);

enum slc_pages {
    SLC_PAGES_SMALL, /* the system's pages: exact sizes, for small budgets */
    /*
     * Exact sizes, in transparent huge pages as far as whole ones fit: the slots of the ring. A
     * read into 4 KiB pages is a list of a thousand pieces to the drive; a virtual NVMe drive
     * delivered 2.9 instead of 1.5 GB/s into huge ones.
     */
    SLC_PAGES_MIXED,
    SLC_PAGES_HUGE /* transparent huge pages: 1.6 times faster random rows in large factors */
};

struct slc_buffer {
    void *data;   /* page-aligned, zeroed; NULL when empty */
    size_t bytes; /* mapped size: a multiple of the page, of 2 MiB for huge pages */
};

#define SLC_BUFFER_INIT                                                                            \
    {                                                                                              \
        NULL, 0                                                                                    \
    }

/*
 * Maps at least `bytes` bytes of zeroed memory. `bytes` 0 gives an empty buffer.
 * Owns: the caller destroys it with slc_buffer_destroy, which takes an empty one.
 * Errors: SLC_ERR_MEMORY, naming the size; *buffer is then empty.
 */
enum slc_status slc_buffer_create(struct slc_buffer *buffer,
                                  size_t bytes,
                                  enum slc_pages pages,
                                  struct slc_error *err) SLC_NODISCARD;
void slc_buffer_destroy(struct slc_buffer *buffer);

/* Gives back what lies behind the first `bytes` bytes (at most buffer->bytes), in whole pages. */
void slc_buffer_shrink(struct slc_buffer *buffer, size_t bytes);

/* What slc_buffer_create would map for `bytes`: what a plan has to count. */
uint64_t slc_buffer_footprint(uint64_t bytes, enum slc_pages pages);

/* The system's page: 4096 on x86, up to 65,536 on Arm. A file's pages (SLC_PAGE_BYTES) never
 * change. */
uint64_t slc_memory_page_bytes(void);

/* Bytes of this process that are resident now, and at most so far (VmRSS, VmHWM); 0 if unknown. */
uint64_t slc_memory_resident(void);
uint64_t slc_memory_peak(void);
/*
 * From now on so much is resident at least: of a process that was forked, whose pages are counted
 * when it touches them, to tell what the one that it came from holds. Before there are threads.
 */
void slc_memory_resident_at_least(uint64_t bytes);
/*
 * The smallest of physical memory, the cgroup limit (v1 and v2) of this process, and half of what
 * its address space is limited to (ulimit -v): libraries, stacks and heaps of threads take as much
 * of that as may be without ever being memory.
 */
uint64_t slc_memory_total(void);

#endif
