/* Ring of output buffers. Buffer k holds the bytes of the file from offset k * buffer_bytes and
 * uses slot k modulo the number of slots. The window consists of buffers `written` to `written` +
 * slots - 1. Copying and writing happen outside the lock: a slot is written only after all its
 * bytes were counted as filled, and passes to its next buffer only after it was written. */
#include "storage/file/output_ring.h"

#include "base/error/clock.h"
#include "base/memory/checked.h"
#include "base/memory/limits.h"
#include "base/memory/memory.h"
#include "base/thread/thread.h"

#include <assert.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>

/* Without direct I/O, a buffer is dropped from the page cache after this number of further buffers.
 * Dropping it right after writing fails, but starts to write its pages to the drive; by the second
 * request, they are on the drive. */
enum { DROP_BEHIND = 4 };

struct slc_output_ring {
    const struct slc_files *files;
    char *path;
    char *temporary;
    uint32_t buffer_bytes;
    uint32_t slots;
    struct slc_buffer memory;
    uint32_t *filled; /* number of filled bytes of each slot */
    int fd;           /* -1 if closed */
    int direct_fd;    /* -1 without direct I/O */
    bool direct;      /* direct I/O was used */
    bool created;     /* PATH.tmp exists and belongs to this ring */
    bool has_thread;
    pthread_t thread;

    pthread_mutex_t mutex;
    pthread_cond_t changed; /* signals a change of the following members */
    uint64_t written;       /* number of buffers written */
    uint64_t end;           /* size of the file; UINT64_MAX if not yet known */
    bool stop;
    struct slc_error fault; /* the first error; status SLC_OK if none */
    uint64_t write_ns;
    uint64_t wait_ns;
};

uint64_t slc_output_ring_memory_bytes(uint32_t buffer_bytes, uint32_t buffer_count)
{
    return slc_buffer_footprint((uint64_t)buffer_bytes * buffer_count, SLC_PAGES_MIXED);
}

static uint8_t *slot_of(const struct slc_output_ring *ring, uint64_t buffer)
{
    return (uint8_t *)ring->memory.data + buffer % ring->slots * ring->buffer_bytes;
}

/* Returns the bytes of the file in a buffer; the last buffer may be partial. */
static uint64_t bytes_of(const struct slc_output_ring *ring, uint64_t buffer)
{
    const uint64_t offset = buffer * ring->buffer_bytes;

    return offset >= ring->end ? 0 : slc_min_u64(ring->end - offset, ring->buffer_bytes);
}

/* Writes a buffer: whole pages with direct I/O, a partial last page through the page cache. */
static enum slc_status write_buffer(const struct slc_output_ring *ring,
                                    uint64_t buffer,
                                    uint64_t bytes,
                                    struct slc_error *err)
{
    const struct slc_files *files = ring->files;
    const uint64_t offset = buffer * ring->buffer_bytes;
    const uint64_t pages = bytes - bytes % SLC_PAGE_BYTES;

    SLC_TRY(slc_file_write_pages(files, ring->direct_fd, ring->fd, ring->temporary,
                                 slot_of(ring, buffer), pages, offset, err));
    if (pages < bytes) {
        SLC_TRY(slc_file_write_at(files, ring->fd, ring->temporary, slot_of(ring, buffer) + pages,
                                  bytes - pages, offset + pages, err));
    }
    if (ring->direct_fd < 0) {
        /* This call is only advice, so the result is ignored. */
        (void)files->advise_file(files->self, ring->fd, offset, bytes, POSIX_FADV_DONTNEED);
        if (buffer >= DROP_BEHIND) {
            (void)files->advise_file(files->self, ring->fd,
                                     offset - (uint64_t)DROP_BEHIND * ring->buffer_bytes,
                                     ring->buffer_bytes, POSIX_FADV_DONTNEED);
        }
    }
    return SLC_OK;
}

/* Writes the first buffer of the window. The caller holds the lock, except during the write. */
static void write_first(struct slc_output_ring *ring, uint64_t bytes)
{
    const uint64_t buffer = ring->written;
    struct slc_error fault = SLC_ERROR_INIT;
    const uint64_t start_ns = slc_clock_ns();

    pthread_mutex_unlock(&ring->mutex);
    enum slc_status status = write_buffer(ring, buffer, bytes, &fault);
    pthread_mutex_lock(&ring->mutex);
    ring->write_ns += slc_clock_ns() - start_ns;
    if (status == SLC_OK) {
        ring->filled[buffer % ring->slots] = 0;
        ring->written++;
    } else if (ring->fault.status == SLC_OK) {
        ring->fault = fault;
    }
    pthread_cond_broadcast(&ring->changed);
}

static void *run_writer(void *context)
{
    struct slc_output_ring *ring = context;

    pthread_mutex_lock(&ring->mutex);
    while (!ring->stop) {
        const uint64_t bytes = bytes_of(ring, ring->written);

        if (ring->fault.status == SLC_OK && bytes > 0 &&
            ring->filled[ring->written % ring->slots] == bytes) {
            write_first(ring, bytes);
        } else {
            pthread_cond_wait(&ring->changed, &ring->mutex);
        }
    }
    pthread_mutex_unlock(&ring->mutex);
    return NULL;
}

/* Allocates the paths, the slots and their counters. */
static enum slc_status allocate_ring(struct slc_output_ring *ring,
                                     const struct slc_output_ring_options *options,
                                     struct slc_error *err)
{
    const size_t length = strlen(options->path);

    ring->path = slc_strdup(options->path);
    ring->temporary = slc_malloc(length + sizeof ".tmp");
    ring->filled = slc_calloc(ring->slots, sizeof *ring->filled);
    SLC_TRY(slc_check_memory(ring->path != NULL && ring->temporary != NULL && ring->filled != NULL,
                             err, "for writing %s", options->path));
    memcpy(ring->temporary, options->path, length);
    memcpy(ring->temporary + length, ".tmp", sizeof ".tmp");
    return slc_buffer_create(&ring->memory, (size_t)ring->slots * ring->buffer_bytes,
                             SLC_PAGES_MIXED, err);
}

enum slc_status slc_output_ring_create(const struct slc_output_ring_options *options,
                                       struct slc_output_ring **result,
                                       struct slc_error *err)
{
    struct slc_output_ring *ring = slc_calloc(1, sizeof *ring);

    assert(options->buffer_bytes > 0 && options->buffer_bytes % SLC_PAGE_BYTES == 0);
    assert(options->buffer_count >= SLC_OUTPUT_RING_BUFFERS_MIN);
    SLC_TRY(slc_check_memory(ring != NULL, err, "for writing %s", options->path));
    ring->files = slc_files_or_system(options->files);
    ring->buffer_bytes = options->buffer_bytes;
    ring->slots = options->buffer_count;
    ring->end = UINT64_MAX;
    slc_error_clear(&ring->fault);
    ring->fd = -1;
    ring->direct_fd = -1;
    pthread_mutex_init(&ring->mutex, NULL);
    pthread_cond_init(&ring->changed, NULL);
    enum slc_status status = allocate_ring(ring, options, err);
    if (status == SLC_OK) {
        ring->fd = ring->files->open(ring->files->self, ring->temporary,
                                     O_WRONLY | O_CREAT | O_TRUNC | SLC_OPEN_OWN, 0666);
        ring->created = ring->fd >= 0;
        status = ring->created
                     ? slc_file_open_direct(ring->files, ring->fd, ring->temporary, O_WRONLY,
                                            &ring->direct_fd, err)
                     : slc_fail_errno(err, -ring->fd, ring->temporary, "creating the file");
    }
    if (status == SLC_OK) {
        status = slc_thread_start(&ring->thread, run_writer, ring,
                                  "the thread that writes the result", err);
        ring->has_thread = status == SLC_OK;
    }
    if (status == SLC_OK) {
        ring->direct = ring->direct_fd >= 0;
        *result = ring;
        return SLC_OK;
    }
    slc_output_ring_destroy(ring);
    return status;
}

static void stop_writer(struct slc_output_ring *ring)
{
    if (!ring->has_thread) {
        return;
    }
    pthread_mutex_lock(&ring->mutex);
    ring->stop = true;
    pthread_cond_broadcast(&ring->changed);
    pthread_mutex_unlock(&ring->mutex);
    pthread_join(ring->thread, NULL);
    ring->has_thread = false;
}

/* Closes the open descriptors; returns the first negated errno, or 0. */
static int close_files(struct slc_output_ring *ring)
{
    int first = 0;

    if (ring->direct_fd >= 0) {
        first = ring->files->close(ring->files->self, ring->direct_fd);
        ring->direct_fd = -1;
    }
    if (ring->fd >= 0) {
        const int rc = ring->files->close(ring->files->self, ring->fd);

        first = first < 0 ? first : rc;
        ring->fd = -1;
    }
    return first;
}

void slc_output_ring_destroy(struct slc_output_ring *ring)
{
    if (ring == NULL) {
        return;
    }
    stop_writer(ring);
    (void)close_files(ring);
    if (ring->created) {
        (void)ring->files->unlink(ring->files->self, ring->temporary);
    }
    slc_buffer_destroy(&ring->memory);
    pthread_cond_destroy(&ring->changed);
    pthread_mutex_destroy(&ring->mutex);
    slc_free(ring->filled);
    slc_free(ring->temporary);
    slc_free(ring->path);
    slc_free(ring);
}

/* Waits until a buffer is inside the window. */
static enum slc_status
wait_for_window(struct slc_output_ring *ring, uint64_t buffer, struct slc_error *err)
{
    enum slc_status status = SLC_OK;
    uint64_t start_ns;

    pthread_mutex_lock(&ring->mutex);
    if (ring->fault.status == SLC_OK && buffer - ring->written >= ring->slots) {
        start_ns = slc_clock_ns();
        while (ring->fault.status == SLC_OK && buffer - ring->written >= ring->slots) {
            pthread_cond_wait(&ring->changed, &ring->mutex);
        }
        ring->wait_ns += slc_clock_ns() - start_ns;
    }
    status = slc_error_pass(err, &ring->fault);
    pthread_mutex_unlock(&ring->mutex);
    return status;
}

/* Counts bytes of a buffer as filled. */
static void count_filled(struct slc_output_ring *ring, uint64_t buffer, uint32_t bytes)
{
    uint32_t *filled = &ring->filled[buffer % ring->slots];

    pthread_mutex_lock(&ring->mutex);
    *filled += bytes;
    assert(*filled <= ring->buffer_bytes);
    if (*filled == ring->buffer_bytes) {
        pthread_cond_broadcast(&ring->changed);
    }
    pthread_mutex_unlock(&ring->mutex);
}

/* Copies `bytes` bytes of the rows, starting at byte `from` of the concatenated rows. */
static void
copy_rows(uint8_t *to, const struct slc_output_rows *rows, uint64_t from, uint64_t bytes)
{
    const uint8_t *row = (const uint8_t *)rows->first + from / rows->row_bytes * rows->stride_bytes;
    uint64_t inside = from % rows->row_bytes;

    if (rows->stride_bytes == rows->row_bytes) {
        memcpy(to, (const uint8_t *)rows->first + from, bytes);
        return;
    }
    while (bytes > 0) {
        const uint64_t piece = slc_min_u64(rows->row_bytes - inside, bytes);

        memcpy(to, row + inside, piece);
        to += piece;
        bytes -= piece;
        row += rows->stride_bytes;
        inside = 0;
    }
}

enum slc_status slc_output_ring_fill_rows(struct slc_output_ring *ring,
                                          uint64_t offset,
                                          const struct slc_output_rows *rows,
                                          struct slc_error *err)
{
    const uint64_t bytes = rows->count * rows->row_bytes;
    uint64_t done = 0;

    while (done < bytes) {
        const uint64_t buffer = (offset + done) / ring->buffer_bytes;
        const uint64_t at = (offset + done) % ring->buffer_bytes;
        const uint64_t piece = slc_min_u64(ring->buffer_bytes - at, bytes - done);

        SLC_TRY(wait_for_window(ring, buffer, err));
        copy_rows(slot_of(ring, buffer) + at, rows, done, piece);
        count_filled(ring, buffer, (uint32_t)piece);
        done += piece;
    }
    return SLC_OK;
}

enum slc_status slc_output_ring_fill(struct slc_output_ring *ring,
                                     uint64_t offset,
                                     const void *data,
                                     uint64_t bytes,
                                     struct slc_error *err)
{
    const struct slc_output_rows row = {
        .first = data, .count = 1, .row_bytes = bytes, .stride_bytes = bytes};

    return slc_output_ring_fill_rows(ring, offset, &row, err);
}

void slc_output_ring_abort(struct slc_output_ring *ring)
{
    pthread_mutex_lock(&ring->mutex);
    (void)slc_fail(&ring->fault, SLC_ERR_INTERRUPTED, "writing %s was aborted", ring->path);
    pthread_cond_broadcast(&ring->changed);
    pthread_mutex_unlock(&ring->mutex);
}

enum slc_status slc_output_ring_finish(struct slc_output_ring *ring,
                                       uint64_t bytes,
                                       const void *head,
                                       uint64_t head_bytes,
                                       struct slc_error *err)
{
    const struct slc_files *files = ring->files;
    enum slc_status status = SLC_OK;
    int rc;

    assert(head_bytes <= bytes && ring->end == UINT64_MAX);
    pthread_mutex_lock(&ring->mutex);
    ring->end = bytes;
    pthread_cond_broadcast(&ring->changed);
    while (ring->fault.status == SLC_OK && bytes_of(ring, ring->written) > 0) {
        pthread_cond_wait(&ring->changed, &ring->mutex);
    }
    status = slc_error_pass(err, &ring->fault);
    pthread_mutex_unlock(&ring->mutex);
    stop_writer(ring);
    SLC_THEN(status, slc_file_write_at(files, ring->fd, ring->temporary, head, head_bytes, 0, err));
    if (status == SLC_OK && (rc = files->sync(files->self, ring->fd)) < 0) {
        status = slc_fail_errno(err, -rc, ring->temporary, "syncing the file");
    }
    /* Network file systems may report a failed write only on close. */
    rc = close_files(ring);
    SLC_TRY(status);
    SLC_TRY(slc_check_call(rc, err, ring->temporary, "closing the file"));
    return SLC_OK;
}

enum slc_status slc_output_ring_publish(struct slc_output_ring *ring, struct slc_error *err)
{
    const int rc = ring->files->rename(ring->files->self, ring->temporary, ring->path);

    assert(ring->fd < 0);
    SLC_TRY(slc_check_call(rc, err, ring->path, "renaming %s to its final name", ring->temporary));
    ring->created = false;
    return SLC_OK;
}

void slc_output_ring_stats(struct slc_output_ring *ring, struct slc_output_ring_stats *stats)
{
    pthread_mutex_lock(&ring->mutex);
    stats->bytes = slc_min_u64(ring->written * ring->buffer_bytes, ring->end);
    stats->write_seconds = (double)ring->write_ns * 1e-9;
    stats->wait_seconds = (double)ring->wait_ns * 1e-9;
    stats->direct = ring->direct;
    pthread_mutex_unlock(&ring->mutex);
}
