/* Implements the spill stream. A slot is memory for one segment; segment s uses slot s mod `slots`.
 * Slots are reused in order, so at most the newest `slots` segments are in memory. An older segment
 * s is in the file at s * segment_bytes; the unused end of a segment is a hole in the file. The
 * writer thread keeps one or two slots free. It writes without holding the lock, so other threads
 * can append concurrently. */
#include "convert/build/spill/spill.h"

#include "base/error/clock.h"
#include "base/memory/checked.h"
#include "base/memory/limits.h"
#include "base/memory/memory.h"
#include "base/thread/thread.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>

struct slc_spill {
    const struct slc_files *files;
    char *path;
    uint64_t max_bytes;
    uint32_t segment_bytes;
    uint32_t slots;
    struct slc_buffer memory;
    uint32_t *used;    /* bytes in use, per slot */
    uint32_t *copying; /* number of chunks being copied, per slot */
    uint32_t current;  /* segment being filled */
    uint32_t written;  /* segments 0 .. written - 1 are in the file */
    bool writing;      /* segment `written` is being written */
    bool frozen;       /* no appends are accepted */
    bool has_writer;   /* the writer thread exists */
    bool stop;         /* the writer thread must end */
    bool keep;         /* the file has a name */
    pthread_t writer;
    uint64_t file_bytes;  /* bytes written so far, without holes */
    uint64_t end_bytes;   /* end of the file at the last commit */
    uint32_t chunk_bytes; /* size of the largest chunk */
    uint64_t wait_ns;
    int fd;
    int direct_fd; /* descriptor for direct I/O; -1: none */
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct slc_error fault; /* the first fault; status SLC_OK: none */
};

static uint64_t page_end(uint64_t bytes)
{
    return (bytes + SLC_PAGE_BYTES - 1) & ~(uint64_t)(SLC_PAGE_BYTES - 1);
}

/* Opens a kept file and restores its extent. */
static enum slc_status
open_kept(struct slc_spill *spill, const struct slc_spill_extent *extent, struct slc_error *err)
{
    const struct slc_files *files = spill->files;
    struct slc_file_stat stat;
    int code = files->open(files->self, spill->path, O_RDWR | SLC_OPEN_OWN, 0);

    if (code >= 0) {
        spill->fd = code;
        code = files->stat_fd(files->self, spill->fd, &stat);
    }
    if (code == -ENOENT || (code >= 0 && stat.bytes < extent->end_bytes)) {
        return slc_fail_file(err, SLC_ERR_DAMAGED, spill->path,
                             "the spill file is missing or shorter than at its last commit");
    }
    SLC_TRY(slc_check_call(code, err, spill->path, "opening the spill file"));
    /* Segments are consecutive, and new segments follow the last one. */
    if (extent->segments != slc_div_up_u64(extent->end_bytes, extent->segment_bytes) ||
        extent->file_bytes > extent->end_bytes) {
        return slc_fail_file(err, SLC_ERR_DAMAGED, spill->path,
                             "the segments of the spill file do not match its size");
    }
    spill->current = spill->written = extent->segments;
    spill->file_bytes = extent->file_bytes;
    spill->chunk_bytes = extent->chunk_bytes;
    spill->end_bytes = extent->end_bytes;
    return slc_file_open_direct(files, spill->fd, spill->path, O_RDWR, &spill->direct_fd, err);
}

enum slc_status slc_spill_create(const struct slc_spill_options *options,
                                 struct slc_spill **spill,
                                 struct slc_error *err)
{
    struct slc_spill *s = slc_calloc(1, sizeof *s);

    assert(options->segment_count >= SLC_SPILL_SEGMENTS_MIN);
    assert(options->segment_bytes % SLC_PAGE_BYTES == 0);
    SLC_TRY(slc_check_memory(s != NULL, err, "for the spill stream"));
    s->files = options->files;
    s->max_bytes = options->max_bytes;
    s->segment_bytes = options->segment_bytes;
    s->slots = options->segment_count;
    s->keep = options->keep;
    s->fd = -1;
    s->direct_fd = -1;
    pthread_mutex_init(&s->mutex, NULL);
    pthread_cond_init(&s->changed, NULL);
    s->path = slc_strdup(options->path);
    s->used = slc_calloc(2 * (size_t)s->slots, sizeof *s->used);
    enum slc_status status =
        slc_check_memory(s->path != NULL && s->used != NULL, err, "for the spill stream");
    SLC_THEN(status, slc_buffer_create(&s->memory, (size_t)s->slots * s->segment_bytes,
                                       SLC_PAGES_MIXED, err));
    if (status == SLC_OK && options->extent.segments > 0) {
        assert(options->keep && options->extent.segment_bytes == s->segment_bytes);
        status = open_kept(s, &options->extent, err);
    }
    if (status != SLC_OK) {
        slc_spill_destroy(s);
        return status;
    }
    s->copying = s->used + s->slots;
    *spill = s;
    return SLC_OK;
}

void slc_spill_destroy(struct slc_spill *spill)
{
    if (spill == NULL) {
        return;
    }
    if (spill->has_writer) {
        pthread_mutex_lock(&spill->mutex);
        spill->stop = true;
        pthread_cond_broadcast(&spill->changed);
        pthread_mutex_unlock(&spill->mutex);
        pthread_join(spill->writer, NULL);
    }
    if (spill->direct_fd >= 0) {
        spill->files->close(spill->files->self, spill->direct_fd);
    }
    if (spill->fd >= 0) {
        spill->files->close(spill->files->self, spill->fd);
    }
    slc_buffer_destroy(&spill->memory);
    pthread_cond_destroy(&spill->changed);
    pthread_mutex_destroy(&spill->mutex);
    slc_free(spill->used);
    slc_free(spill->path);
    slc_free(spill);
}

static uint8_t *slot_of(const struct slc_spill *spill, uint32_t segment)
{
    return (uint8_t *)spill->memory.data + (size_t)(segment % spill->slots) * spill->segment_bytes;
}

static enum slc_status open_file(struct slc_spill *spill, struct slc_error *err)
{
    const struct slc_files *files = spill->files;
    /* A kept file always has the same name, so an earlier run may have left one. This run did not
     * resume from that file, so the file is truncated. */
    int known = spill->keep ? O_TRUNC : O_EXCL;
    int fd = files->open(files->self, spill->path, O_RDWR | O_CREAT | known | SLC_OPEN_OWN, 0600);
    int code = 0;

    SLC_TRY(slc_check_call(fd, err, spill->path, "creating the spill file"));
    spill->fd = fd;
    enum slc_status status =
        slc_file_open_direct(files, fd, spill->path, O_RDWR, &spill->direct_fd, err);
    if (!spill->keep) {
        code = files->unlink(files->self, spill->path);
    }
    SLC_TRY(status);
    if (code < 0 && code != -ENOENT) {
        return slc_fail_errno(err, -code, spill->path, "unlinking the open spill file");
    }
    return SLC_OK;
}

/* Writes one segment, in whole pages. Called without the lock, by the only writer. With buffered
 * writes, the page cache is asked twice to drop the segment: the first request starts writing dirty
 * pages back, and the second request drops the pages, which are then clean. */
static enum slc_status
write_segment(struct slc_spill *spill, uint32_t segment, uint32_t bytes, struct slc_error *err)
{
    const struct slc_files *files = spill->files;
    uint64_t offset = (uint64_t)segment * spill->segment_bytes;
    enum slc_status status = SLC_OK;

    if (spill->max_bytes > 0 && spill->file_bytes + bytes > spill->max_bytes) {
        return slc_fail_fields(err, SLC_ERR_BUDGET, SLC_FIELD_MAX_TEMP, SLC_FIELD_MEMORY,
                               "sorting needs more than the allowed %llu bytes of temporary disk "
                               "space: allow more, or increase the memory budget",
                               (unsigned long long)spill->max_bytes);
    }
    if (spill->fd < 0) {
        status = open_file(spill, err);
    }
    if (status == SLC_OK) {
        uint8_t *data = slot_of(spill, segment);

        memset(data + bytes, 0, page_end(bytes) - bytes);
        status = slc_file_write_pages(files, spill->direct_fd, spill->fd, spill->path, data,
                                      page_end(bytes), offset, err);
    }
    SLC_TRY(status);
    if (spill->direct_fd < 0 && files->advise_file != NULL) {
        files->advise_file(files->self, spill->fd, offset, bytes, POSIX_FADV_DONTNEED);
        if (segment >= 4) {
            files->advise_file(files->self, spill->fd, offset - UINT64_C(4) * spill->segment_bytes,
                               spill->segment_bytes, POSIX_FADV_DONTNEED);
        }
    }
    return SLC_OK;
}

/* Writes segment `written`. Needs the lock, and releases it while writing. */
static void write_oldest(struct slc_spill *spill)
{
    uint32_t segment = spill->written;
    uint32_t bytes = spill->used[segment % spill->slots];
    struct slc_error fault = SLC_ERROR_INIT;

    spill->writing = true;
    pthread_mutex_unlock(&spill->mutex);
    enum slc_status status = write_segment(spill, segment, bytes, &fault);
    pthread_mutex_lock(&spill->mutex);
    spill->writing = false;
    if (status != SLC_OK) {
        spill->fault = fault;
        spill->fault.status = status;
    } else {
        spill->written++;
        spill->file_bytes += bytes;
    }
    pthread_cond_broadcast(&spill->changed);
}

/* Returns true if too few slots are free. Needs the lock. */
static bool must_write(const struct slc_spill *spill)
{
    /* Keep two free slots if possible, so that a short delay of the writer blocks no append. */
    uint32_t ahead = spill->slots > SLC_SPILL_SEGMENTS_MIN ? 2 : 1;

    return spill->fault.status == SLC_OK && !spill->frozen && spill->written < spill->current &&
           spill->current - spill->written + 1 + ahead > spill->slots &&
           spill->copying[spill->written % spill->slots] == 0;
}

static void *write_when_needed(void *context)
{
    struct slc_spill *spill = context;

    pthread_mutex_lock(&spill->mutex);
    while (!spill->stop) {
        if (must_write(spill) && !spill->writing) {
            write_oldest(spill);
        } else {
            pthread_cond_wait(&spill->changed, &spill->mutex);
        }
    }
    pthread_mutex_unlock(&spill->mutex);
    return NULL;
}

/* Wakes the writer, and starts it when it is first needed. Needs the lock. */
static void wake_writer(struct slc_spill *spill)
{
    if (!must_write(spill)) {
        return;
    }
    if (!spill->has_writer) {
        enum slc_status status =
            slc_thread_start(&spill->writer, write_when_needed, spill,
                             "the thread that writes the spill file", &spill->fault);

        spill->has_writer = status == SLC_OK;
    }
    pthread_cond_broadcast(&spill->changed);
}

/* Reserves `bytes` bytes in the current segment or, if they do not fit, in the next segment. Needs
 * the lock. */
static void reserve_space(struct slc_spill *spill, uint32_t bytes)
{
    while (spill->fault.status == SLC_OK &&
           spill->used[spill->current % spill->slots] + bytes > spill->segment_bytes) {
        uint32_t next = spill->current + 1;

        if (next == UINT32_MAX) {
            slc_fail(&spill->fault, SLC_ERR_UNSUPPORTED, "the spill stream exceeds 2^32 segments");
        } else if (next - spill->written < spill->slots) {
            spill->current = next;
            spill->used[next % spill->slots] = 0;
            wake_writer(spill);
        } else {
            uint64_t start = slc_clock_ns();

            pthread_cond_wait(&spill->changed, &spill->mutex);
            spill->wait_ns += slc_clock_ns() - start;
        }
    }
}

/* Marks every mark_stride-th chunk. When the table of marks is full, drops every other mark and
 * doubles the stride. */
static void mark_chunk(struct slc_chain *chain)
{
    if (chain->mark_stride == 0) {
        chain->mark_stride = 1;
    }
    if (chain->chunks % chain->mark_stride != 0) {
        return;
    }
    if (chain->mark_count == SLC_CHAIN_MARKS) {
        for (unsigned i = 0; i < SLC_CHAIN_MARKS / 2; i++) {
            chain->marks[i] = chain->marks[2 * i];
        }
        chain->mark_count = SLC_CHAIN_MARKS / 2;
        chain->mark_stride *= 2;
    }
    chain->marks[chain->mark_count++] = chain->last;
}

/* Assigns a chunk its position in the stream and in its chain. Needs the lock. */
static struct slc_chunk_link
place_chunk(struct slc_spill *spill, struct slc_chain *chain, uint32_t bytes)
{
    uint32_t slot = spill->current % spill->slots;
    struct slc_chunk_link previous = chain->last;

    chain->last = (struct slc_chunk_link){spill->current, spill->used[slot], bytes};
    spill->used[slot] += bytes;
    spill->copying[slot]++;
    spill->chunk_bytes = bytes > spill->chunk_bytes ? bytes : spill->chunk_bytes;
    mark_chunk(chain);
    chain->chunks++;
    return previous;
}

/* Copies the chunk to its position, without the lock, because the kernel may have to clear
 * pages. */
static void copy_chunk(struct slc_spill *spill,
                       struct slc_chunk_link place,
                       uint8_t *chunk,
                       struct slc_chunk_link previous)
{
    slc_chunk_seal(chunk, previous);
    memcpy(slot_of(spill, place.segment) + place.offset, chunk, place.bytes);
    pthread_mutex_lock(&spill->mutex);
    spill->copying[place.segment % spill->slots]--;
    wake_writer(spill);
    pthread_mutex_unlock(&spill->mutex);
}

enum slc_status slc_spill_append(struct slc_spill *spill,
                                 struct slc_chain *chain,
                                 uint8_t *chunk,
                                 uint32_t bytes,
                                 uint32_t entries,
                                 uint32_t runs,
                                 struct slc_error *err)
{
    struct slc_chunk_link place = {0};
    struct slc_chunk_link previous = {0};

    assert(bytes <= spill->segment_bytes);
    pthread_mutex_lock(&spill->mutex);
    reserve_space(spill, bytes);
    enum slc_status status = spill->fault.status;
    if (status == SLC_OK) {
        previous = place_chunk(spill, chain, bytes);
        place = chain->last;
        chain->entries += entries;
        chain->runs += runs;
    } else if (err != NULL && err->status == SLC_OK) {
        *err = spill->fault;
    }
    pthread_mutex_unlock(&spill->mutex);
    SLC_TRY(status);
    copy_chunk(spill, place, chunk, previous);
    return SLC_OK;
}

void slc_spill_freeze(struct slc_spill *spill, bool frozen)
{
    pthread_mutex_lock(&spill->mutex);
    /* Wait for the writer: a segment must not move from memory to the file during a fetch. */
    while (spill->writing) {
        pthread_cond_wait(&spill->changed, &spill->mutex);
    }
    spill->frozen = frozen;
    pthread_cond_broadcast(
        &spill->changed); /* wakes the writer, which does not write while the stream is frozen */
    pthread_mutex_unlock(&spill->mutex);
}

/* Returns true if a chunk can be at `link`. Links that another run wrote may be wrong. Needs the
 * lock. */
static bool is_within(const struct slc_spill *spill, struct slc_chunk_link link)
{
    return link.segment <= spill->current && link.bytes <= spill->chunk_bytes &&
           link.offset <= spill->segment_bytes - link.bytes;
}

enum slc_status slc_spill_fetch(struct slc_spill *spill,
                                struct slc_chunk_link link,
                                bool once,
                                uint8_t *data,
                                struct slc_chunk *chunk,
                                struct slc_error *err)
{
    const struct slc_files *files = spill->files;
    enum slc_status status = SLC_OK;

    assert((uintptr_t)data % SLC_PAGE_BYTES == 0);
    pthread_mutex_lock(&spill->mutex);
    bool resident = link.segment >= spill->written;
    bool within = is_within(spill, link);
    if (within && resident && !spill->frozen) {
        memcpy(data, slot_of(spill, link.segment) + link.offset, link.bytes);
    }
    pthread_mutex_unlock(&spill->mutex);
    if (!within) {
        status = slc_fail(err, SLC_ERR_DAMAGED,
                          "a chunk of the spill file refers to a chunk outside the file");
    } else if (resident && spill->frozen) {
        data = slot_of(spill, link.segment) + link.offset;
    } else if (!resident) {
        uint64_t offset = (uint64_t)link.segment * spill->segment_bytes + link.offset;
        uint64_t lead = offset % SLC_PAGE_BYTES;

        status = slc_file_read_pages(files, spill->direct_fd, spill->fd, spill->path, data,
                                     lead + link.bytes, offset - lead, err);
        if (status == SLC_OK && once && spill->direct_fd < 0 && files->advise_file != NULL) {
            files->advise_file(files->self, spill->fd, offset, link.bytes, POSIX_FADV_DONTNEED);
        }
        data += lead;
    }
    SLC_THEN(status, slc_chunk_open(chunk, data, link.bytes, err));
    if (status != SLC_OK) {
        slc_error_locate_file(err, spill->path);
    }
    return status;
}

/* Writes all segments in memory, including the segment being filled. Needs the lock. */
static enum slc_status write_all(struct slc_spill *spill, struct slc_error *err)
{
    while (spill->writing || (spill->fault.status == SLC_OK && spill->written <= spill->current)) {
        if (spill->writing) {
            pthread_cond_wait(&spill->changed, &spill->mutex);
        } else {
            write_oldest(spill);
        }
    }
    return slc_error_pass(err, &spill->fault);
}

uint64_t slc_spill_unwritten_bytes(struct slc_spill *spill)
{
    pthread_mutex_lock(&spill->mutex);
    uint64_t segments = spill->current + UINT64_C(1) - spill->written;
    pthread_mutex_unlock(&spill->mutex);
    return segments * spill->segment_bytes;
}

enum slc_status
slc_spill_commit(struct slc_spill *spill, struct slc_spill_extent *extent, struct slc_error *err)
{
    enum slc_status status = SLC_OK;
    uint32_t last;
    int code;

    assert(spill->keep);
    pthread_mutex_lock(&spill->mutex);
    if (spill->written < spill->current || spill->used[spill->current % spill->slots] > 0) {
        if (spill->current == UINT32_MAX - 1) {
            slc_fail(&spill->fault, SLC_ERR_UNSUPPORTED, "the spill stream exceeds 2^32 segments");
        }
        last = spill->used[spill->current % spill->slots];
        status = write_all(spill, err);
        if (status == SLC_OK) {
            spill->end_bytes = (uint64_t)spill->current * spill->segment_bytes + page_end(last);
            spill->current = spill->written;
            spill->used[spill->current % spill->slots] = 0;
        }
    }
    *extent = (struct slc_spill_extent){.segments = spill->written,
                                        .segment_bytes = spill->segment_bytes,
                                        .chunk_bytes = spill->chunk_bytes,
                                        .file_bytes = spill->file_bytes,
                                        .end_bytes = spill->end_bytes};
    pthread_mutex_unlock(&spill->mutex);
    SLC_TRY(status);
    if (spill->fd >= 0) {
        code = spill->files->sync(spill->files->self, spill->fd);
        SLC_TRY(slc_check_call(code, err, spill->path, "syncing the spill file"));
    }
    return SLC_OK;
}

enum slc_status slc_spill_shrink(struct slc_spill *spill, struct slc_error *err)
{
    pthread_mutex_lock(&spill->mutex);
    enum slc_status status = write_all(spill, err);
    if (status == SLC_OK) {
        slc_buffer_destroy(&spill->memory);
        spill->slots = SLC_SPILL_SEGMENTS_MIN;
        spill->current = spill->written;
        memset(spill->used, 0, spill->slots * sizeof *spill->used);
        status = slc_buffer_create(&spill->memory, (size_t)spill->slots * spill->segment_bytes,
                                   SLC_PAGES_MIXED, err);
    }
    pthread_mutex_unlock(&spill->mutex);
    return status;
}

uint32_t slc_spill_chunk_bytes(const struct slc_spill *spill)
{
    return spill->chunk_bytes;
}

uint64_t slc_spill_resident_bytes(const struct slc_spill *spill)
{
    uint32_t touched = spill->current < spill->slots ? spill->current + 1 : spill->slots;
    uint64_t bytes = (uint64_t)touched * spill->segment_bytes;

    /* Round up, because the last page may be a huge page. */
    return slc_min_u64(slc_buffer_footprint(bytes, SLC_PAGES_HUGE), spill->memory.bytes);
}

uint64_t slc_spill_written_bytes(struct slc_spill *spill)
{
    pthread_mutex_lock(&spill->mutex);
    uint64_t bytes = spill->file_bytes;
    pthread_mutex_unlock(&spill->mutex);
    return bytes;
}

double slc_spill_seconds(const struct slc_spill *spill)
{
    return (double)spill->wait_ns * 1e-9;
}
