/* Allocation with fault points, and the memory limits of the system.
 *
 * Large buffers are anonymous mappings instead of malloc memory. Mappings are aligned to pages,
 * which O_DIRECT and registration require; their pages are zero without being touched, and munmap
 * returns them to the system at once. */
#include "base/memory/memory.h"

#include "base/error/fault.h"
#include "base/memory/checked.h"

#include <assert.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

static const uint64_t huge_page_bytes = UINT64_C(2) << 20;

void *slc_malloc(size_t bytes)
{
    return slc_fault_hit(SLC_FAULT_ALLOCATION) ? NULL : malloc(bytes > 0 ? bytes : 1);
}

void *slc_calloc(size_t count, size_t bytes)
{
    if (slc_fault_hit(SLC_FAULT_ALLOCATION)) {
        return NULL;
    }
    return calloc(count > 0 ? count : 1, bytes > 0 ? bytes : 1);
}

void *slc_realloc(void *memory, size_t bytes)
{
    return slc_fault_hit(SLC_FAULT_ALLOCATION) ? NULL : realloc(memory, bytes > 0 ? bytes : 1);
}

void slc_free(void *memory)
{
    free(memory);
}

char *slc_strdup(const char *text)
{
    size_t bytes = strlen(text) + 1;
    char *copy = slc_malloc(bytes);

    if (copy) {
        memcpy(copy, text, bytes);
    }
    return copy;
}

uint64_t slc_memory_page_bytes(void)
{
    return (uint64_t)sysconf(_SC_PAGESIZE);
}

uint64_t slc_buffer_footprint(uint64_t bytes, enum slc_pages pages)
{
    uint64_t unit = pages == SLC_PAGES_HUGE ? huge_page_bytes : slc_memory_page_bytes();
    uint64_t rounded;

    if (bytes == 0) {
        return 0;
    }
    return slc_round_up_u64(bytes, unit, &rounded) ? rounded : UINT64_MAX;
}

/* Maps `bytes` bytes at a multiple of the huge page size. To get this alignment, it maps a larger
 * range and unmaps the unaligned ends. */
static void *map_aligned(uint64_t bytes)
{
    uint64_t mapped_bytes = bytes + huge_page_bytes;
    uint8_t *mapped = mmap(NULL, mapped_bytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (mapped == MAP_FAILED) {
        return NULL;
    }
    uint64_t head =
        (huge_page_bytes - ((uintptr_t)mapped & (huge_page_bytes - 1))) & (huge_page_bytes - 1);
    if (head > 0) {
        (void)munmap(mapped, head);
    }
    if (mapped_bytes - head > bytes) {
        (void)munmap(mapped + head + bytes, mapped_bytes - head - bytes);
    }
    /* madvise fails if transparent huge pages are disabled. The buffer then has small pages, which
     * are only slower. */
    (void)madvise(mapped + head, bytes, MADV_HUGEPAGE);
    return mapped + head;
}

enum slc_status slc_buffer_create(struct slc_buffer *buffer,
                                  size_t bytes,
                                  enum slc_pages pages,
                                  struct slc_error *err)
{
    uint64_t footprint = slc_buffer_footprint(bytes, pages);
    void *data = NULL;

    buffer->data = NULL;
    buffer->bytes = 0;
    if (bytes == 0) {
        return SLC_OK;
    }
    if (footprint <= SIZE_MAX / 2 && !slc_fault_hit(SLC_FAULT_ALLOCATION)) {
        if (pages != SLC_PAGES_SMALL) {
            data = map_aligned(footprint);
        } else {
            data =
                mmap(NULL, footprint, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            data = data == MAP_FAILED ? NULL : data;
        }
    }
    if (!data) {
        return slc_fail_field(err, SLC_ERR_MEMORY, SLC_FIELD_MEMORY,
                              "cannot map %zu bytes of memory: free memory or lower the budget",
                              bytes);
    }
    buffer->data = data;
    buffer->bytes = footprint;
    return SLC_OK;
}

void slc_buffer_destroy(struct slc_buffer *buffer)
{
    if (buffer->data) {
        (void)munmap(buffer->data, buffer->bytes);
    }
    buffer->data = NULL;
    buffer->bytes = 0;
}

void slc_buffer_shrink(struct slc_buffer *buffer, size_t bytes)
{
    size_t kept = (size_t)slc_buffer_footprint(bytes, SLC_PAGES_SMALL);

    assert(bytes <= buffer->bytes);
    if (kept == 0) {
        slc_buffer_destroy(buffer);
    } else if (kept < buffer->bytes) {
        (void)munmap((uint8_t *)buffer->data + kept, buffer->bytes - kept);
        buffer->bytes = kept;
    }
}

/* Reads a small file of /proc or /sys and returns the length of its text, or 0 if it cannot be
 * read. */
static size_t read_small(const char *path, char *text, size_t text_bytes)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = 0;

    if (fd >= 0) {
        length = read(fd, text, text_bytes - 1);
        (void)close(fd);
    }
    length = length < 0 ? 0 : length;
    text[length] = '\0';
    return (size_t)length;
}

/* Returns in bytes the size that follows `name` in /proc/self/status, where it is in kB. */
static uint64_t status_bytes(const char *name)
{
    char text[8192];
    uint64_t kilobytes = 0;

    if (read_small("/proc/self/status", text, sizeof text) == 0) {
        return 0;
    }
    const char *found = strstr(text, name);
    if (!found || sscanf(found + strlen(name), " %" SCNu64, &kilobytes) != 1) {
        return 0;
    }
    return kilobytes * 1024;
}

static uint64_t resident_least;

void slc_memory_resident_at_least(uint64_t bytes)
{
    resident_least = bytes;
}

uint64_t slc_memory_resident(void)
{
    return slc_max_u64(status_bytes("VmRSS:"), resident_least);
}

uint64_t slc_memory_peak(void)
{
    return status_bytes("VmHWM:");
}

static uint64_t limit_in(const char *folder, const char *file, uint64_t total)
{
    char path[640];
    char text[64];
    uint64_t limit;

    if (snprintf(path, sizeof path, "%s/%s", folder, file) >= (int)sizeof path ||
        read_small(path, text, sizeof text) == 0 || sscanf(text, "%" SCNu64, &limit) != 1) {
        return total; /* the file is missing or contains "max" */
    }
    return slc_min_u64(total, limit);
}

/* Returns the minimum of the limits of this process's cgroup and of the ancestors of this cgroup.
 * `root` is the mount point of the controller, and `path` is the cgroup below it. */
static uint64_t
limit_of_cgroup(const char *root, const char *path, const char *file, uint64_t total)
{
    char folder[512];
    char *slash;

    if (snprintf(folder, sizeof folder, "%s%s", root, path) >= (int)sizeof folder) {
        return total;
    }
    for (;;) {
        total = limit_in(folder, file, total);
        slash = strrchr(folder, '/');
        if (!slash || (size_t)(slash - folder) < strlen(root)) {
            return total;
        }
        *slash = '\0';
    }
}

uint64_t slc_memory_machine(void)
{
    long pages = sysconf(_SC_PHYS_PAGES);
    uint64_t total = pages > 0 ? (uint64_t)pages * slc_memory_page_bytes() : UINT64_MAX;
    const char *wanted = getenv(SLC_MEMORY_VARIABLE);
    uint64_t limit;
    char text[8192];
    char *rest = NULL;

    if (wanted != NULL && sscanf(wanted, "%" SCNu64, &limit) == 1 && limit > 0) {
        total = slc_min_u64(total, limit);
    }
    if (read_small("/proc/self/cgroup", text, sizeof text) == 0) {
        return total;
    }
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        char *controllers = strchr(line, ':');
        char *path = controllers ? strchr(controllers + 1, ':') : NULL;

        if (!path) {
            continue;
        }
        *path++ = '\0';
        if (strcmp(controllers + 1, "memory") == 0) {
            total = limit_of_cgroup("/sys/fs/cgroup/memory", path, "memory.limit_in_bytes", total);
            total = limit_in("/sys/fs/cgroup/memory", "memory.limit_in_bytes", total);
        } else if (controllers[1] == '\0') {
            total = limit_of_cgroup("/sys/fs/cgroup", path, "memory.max", total);
        }
    }
    return total;
}

uint64_t slc_memory_total(void)
{
    const uint64_t machine = slc_memory_machine();
    struct rlimit limit;

    return getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY
               ? slc_min_u64(machine, limit.rlim_cur / 2)
               : machine;
}
