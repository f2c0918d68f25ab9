/* Reads a file without the library. Each read in flight has its own thread and buffer. A thread
 * reads the next block of the file until there are no more blocks. Only the buffers come from the
 * library, because they must be in huge pages like the slots of a ring. */
#include "tools/bench/measure/raw_read.h"

#include "base/memory/checked.h"
#include "base/memory/memory.h"
#include "base/thread/team.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <unistd.h>

struct bench_raw {
    int fd;
    bool direct;
    char *path;
    uint64_t file_bytes;
    uint64_t block_bytes;
    unsigned depth;
    struct slc_buffer memory;  /* one block per read in flight */
    atomic_uint_fast64_t next; /* offset of the next block */
    atomic_int failed;         /* errno of a failed read, or 0 */
    bool load_lines;           /* true: load every cache line of the data after reading it */
};

static enum slc_status open_file(struct bench_raw *raw, struct slc_error *err)
{
    struct stat status;

    raw->fd = open(raw->path, O_RDONLY | O_CLOEXEC | O_DIRECT);
    raw->direct = raw->fd >= 0;
    if (raw->fd < 0 && errno == EINVAL) {
        raw->fd = open(raw->path, O_RDONLY | O_CLOEXEC);
    }
    if (raw->fd < 0 || fstat(raw->fd, &status) < 0) {
        return slc_fail_errno(err, errno, raw->path, "opening the file for raw reads");
    }
    raw->file_bytes = (uint64_t)status.st_size;
    return SLC_OK;
}

enum slc_status bench_raw_open(const char *path,
                               uint64_t block_bytes,
                               unsigned depth,
                               struct bench_raw **result,
                               struct slc_error *err)
{
    struct bench_raw *raw = slc_calloc(1, sizeof *raw);

    if (raw == NULL || (raw->path = slc_strdup(path)) == NULL) {
        slc_free(raw);
        return slc_fail(err, SLC_ERR_MEMORY, "no memory for raw reads");
    }
    raw->fd = -1;
    raw->block_bytes = block_bytes;
    raw->depth = depth;
    enum slc_status status =
        slc_buffer_create(&raw->memory, (size_t)(depth * block_bytes), SLC_PAGES_MIXED, err);
    SLC_THEN(status, open_file(raw, err));
    if (status != SLC_OK) {
        bench_raw_close(raw);
        return status;
    }
    *result = raw;
    return SLC_OK;
}

/* Loads a byte of every cache line of the buffer. */
static void load_cache_lines(const char *memory, uint64_t bytes)
{
    for (uint64_t at = 0; at < bytes; at += 64) {
        (void)*(const volatile char *)(memory + at);
    }
}

/* Reads the next block; the last block may be shorter. Returns false if there is no block left. */
static bool read_block(struct bench_raw *raw, char *memory)
{
    const uint64_t at = atomic_fetch_add(&raw->next, raw->block_bytes);
    uint64_t done = 0;

    if (at >= raw->file_bytes || atomic_load(&raw->failed) != 0) {
        return false;
    }
    while (done < slc_min_u64(raw->block_bytes, raw->file_bytes - at)) {
        const ssize_t got =
            pread(raw->fd, memory + done, raw->block_bytes - done, (off_t)(at + done));

        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            atomic_store(&raw->failed, got < 0 ? errno : EIO);
            return false;
        }
        done += (uint64_t)got;
    }
    if (raw->load_lines) {
        load_cache_lines(memory, done);
    }
    return true;
}

static void read_blocks(void *context, unsigned worker, unsigned workers)
{
    struct bench_raw *raw = context;
    char *memory = (char *)raw->memory.data + worker * raw->block_bytes;

    (void)workers;
    while (read_block(raw, memory)) {
    }
}

enum slc_status bench_raw_sweep(struct bench_raw *raw, bool load_lines, struct slc_error *err)
{
    raw->load_lines = load_lines;
    atomic_store(&raw->next, 0);
    atomic_store(&raw->failed, 0);
    enum slc_status status = slc_team_run(raw->depth, read_blocks, raw, err);
    if (!raw->direct) {
        /* Without this call, the next sweep would measure the page cache. The system may ignore
         * this advice, but then the rate is obviously too high. */
        (void)posix_fadvise(raw->fd, 0, 0, POSIX_FADV_DONTNEED);
    }
    SLC_TRY(status);
    if (atomic_load(&raw->failed) != 0) {
        return slc_fail_errno(err, atomic_load(&raw->failed), raw->path, "reading the file");
    }
    return SLC_OK;
}

uint64_t bench_raw_file_bytes(const struct bench_raw *raw)
{
    return raw->file_bytes;
}

bool bench_raw_direct(const struct bench_raw *raw)
{
    return raw->direct;
}

void bench_raw_close(struct bench_raw *raw)
{
    if (raw == NULL) {
        return;
    }
    if (raw->fd >= 0) {
        (void)close(raw->fd);
    }
    slc_buffer_destroy(&raw->memory);
    slc_free(raw->path);
    slc_free(raw);
}
