/* Reads blocks with io_uring: one submission per block, no copies and no additional threads.
 *
 * The slots are registered as fixed buffers, so that the kernel pins their pages once instead of at
 * every read. The descriptors are registered as fixed files. Pinned memory counts against
 * RLIMIT_MEMLOCK on most systems: if not all slots fit, as many as possible are registered, and
 * reads into the other slots work without registration.
 *
 * A slot has at most one request and the ring has an entry for every slot, so the kernel's queues
 * cannot overflow. A submission that the kernel refuses for the moment (EAGAIN, EBUSY, ENOMEM,
 * EINTR) stays queued and is sent by the next wait. If the kernel keeps refusing while no read is
 * in flight, pread takes over unless the user requested io_uring. */
#include "storage/io/io_impl.h"

#include "base/error/fault.h"
#include "base/error/log.h"

#ifdef SLC_HAVE_URING

#include <errno.h>
#include <liburing.h>
#include <string.h>
#include <time.h>

/* MAX_REFUSALS: number of consecutive refused submissions, with no read in flight, after which a
 * wait fails; with the pauses between them, this is about half a second. */
enum { MAX_REFUSALS = 60, FIRST_PAUSE_NS = 50000, LAST_PAUSE_NS = 10000000 };

struct uring_slot {
    struct slc_io_request *request; /* NULL if no read of the slot is queued or in flight */
    struct slc_io_progress progress;
};

struct uring_backend {
    struct io_uring ring;
    struct uring_slot *slots;
    unsigned registered_slots; /* number of registered slots, which are the first slots */
    bool registered_files;     /* file f has fd at index 2 f and buffered_fd at 2 f + 1 */
    unsigned in_kernel; /* submissions that have not completed, queued submissions included */
};

/* Queues a read of the rest of the slot's request. */
static void queue_read(struct slc_io *io, unsigned slot)
{
    struct uring_backend *uring = io->backend;
    struct uring_slot *state = &uring->slots[slot];
    const uint64_t done = state->progress.done;
    const struct slc_io_place place = slc_io_place(io, state->request, done);
    const uint64_t at = place.offset;
    char *memory = (char *)slc_io_slot(io, slot) + done;
    const unsigned bytes = (unsigned)place.bytes;
    int fd = slc_io_fd_at(place.file, at);
    struct io_uring_sqe *sqe = io_uring_get_sqe(&uring->ring);

    /* The ring has as many entries as slots, and a slot queues one read at a time, so an entry is
     * free. */
    if (uring->registered_files) {
        fd = (int)(2 * place.number) + !slc_io_whole_pages(at);
    }
    if (slot < uring->registered_slots) {
        io_uring_prep_read_fixed(sqe, fd, memory, bytes, at, (int)slot);
    } else {
        io_uring_prep_read(sqe, fd, memory, bytes, at);
    }
    if (uring->registered_files) {
        sqe->flags |= IOSQE_FIXED_FILE;
    }
    io_uring_sqe_set_data(sqe, state);
    uring->in_kernel++;
}

/* Sends queued submissions. Returns the number sent or a negated errno. */
static int send_queued(struct uring_backend *uring)
{
    return slc_fault_hit(SLC_FAULT_URING) ? -ENOMEM : io_uring_submit(&uring->ring);
}

/* Returns the number of reads that the kernel performs. */
static unsigned in_flight(const struct uring_backend *uring)
{
    return uring->in_kernel - io_uring_sq_ready(&uring->ring);
}

/* Pauses before the next call; the pause grows with the number of refusals. */
static void pause_after(unsigned refusals)
{
    const long pause = refusals < 8 ? (long)FIRST_PAUSE_NS << refusals : LAST_PAUSE_NS;

    (void)nanosleep(&(struct timespec){.tv_nsec = pause}, NULL);
}

/* Waits for a read in flight. If the kernel refuses to wait, polls: the read completes anyway. */
static void wait_in_flight(struct uring_backend *uring, struct io_uring_cqe **cqe)
{
    for (unsigned refusals = 0; io_uring_peek_cqe(&uring->ring, cqe) != 0; refusals++) {
        int rc = slc_fault_hit(SLC_FAULT_URING) ? -EBUSY : io_uring_wait_cqe(&uring->ring, cqe);

        if (rc == 0) {
            return;
        }
        if (rc != -EINTR) {
            pause_after(refusals);
        }
    }
}

static enum slc_status
uring_submit(struct slc_io *io, struct slc_io_request *request, struct slc_error *err)
{
    struct uring_backend *uring = io->backend;

    (void)err;
    uring->slots[request->slot].request = request;
    uring->slots[request->slot].progress = (struct slc_io_progress){0, 0};
    queue_read(io, request->slot);
    /* If the submission is refused, the next wait sends it. */
    (void)send_queued(uring);
    return SLC_OK;
}

/* Sends queued submissions and waits for one completion. Returns 0 or a negated errno. After an
 * error, no read is in flight. */
static int next_completion(struct uring_backend *uring, struct io_uring_cqe **cqe)
{
    for (unsigned refusals = 0; io_uring_peek_cqe(&uring->ring, cqe) != 0; refusals++) {
        int rc = io_uring_sq_ready(&uring->ring) > 0 ? send_queued(uring) : 0;

        if (in_flight(uring) > 0) {
            wait_in_flight(uring, cqe);
            return 0;
        }
        rc = rc >= 0 ? -EAGAIN : rc;
        if ((rc != -EAGAIN && rc != -EBUSY && rc != -ENOMEM && rc != -EINTR) ||
            refusals == MAX_REFUSALS) {
            return rc;
        }
        pause_after(refusals);
    }
    return 0;
}

/* Waits for reads in flight, because they write into the slots, and frees the ring. Drops queued
 * submissions. */
static void release_ring(struct uring_backend *uring)
{
    while (in_flight(uring) > 0) {
        struct io_uring_cqe *cqe;

        wait_in_flight(uring, &cqe);
        io_uring_cqe_seen(&uring->ring, cqe);
        uring->in_kernel--;
    }
    io_uring_queue_exit(&uring->ring);
    slc_free(uring->slots);
    slc_free(uring);
}

/* Replaces io_uring, which refuses reads, with pread, and repeats all reads not yet delivered. */
static enum slc_status use_pread(struct slc_io *io, int reason, struct slc_error *err)
{
    struct uring_backend *uring = io->backend;

    if (!io->may_use_pread) {
        return slc_fail_field(err, SLC_ERR_IO, SLC_FIELD_IO,
                              "io_uring refuses to read %s (%s); use pread, which works everywhere",
                              io->opened[0].path, strerror(-reason));
    }
    slc_io_note(io, "reading by pread threads since io_uring refused reads (%s)",
                strerror(-reason));
    slc_log(SLC_LOG_NOTE, "io_uring refuses reads (%s): pread threads read from now on",
            strerror(-reason));
    io->kind = SLC_IO_PREAD;
    io->stats.registered = false;
    enum slc_status status = slc_io_pread_open(io, err);
    for (unsigned slot = 0; slot < io->slot_count && status == SLC_OK; slot++) {
        if (uring->slots[slot].request != NULL) {
            status = io->ops->submit(io, uring->slots[slot].request, err);
        }
    }
    release_ring(uring);
    return status;
}

static enum slc_status
uring_wait(struct slc_io *io, struct slc_io_request **request, struct slc_error *err)
{
    struct uring_backend *uring = io->backend;

    for (;;) {
        struct io_uring_cqe *cqe;
        int rc = next_completion(uring, &cqe);

        if (rc < 0) {
            SLC_TRY(use_pread(io, rc, err));
            return io->ops->wait(io, request, err);
        }
        struct uring_slot *state = io_uring_cqe_get_data(cqe);
        int64_t result = cqe->res;
        *request = state->request;
        io_uring_cqe_seen(&uring->ring, cqe);
        uring->in_kernel--;
        struct slc_io_place place = slc_io_place(io, *request, state->progress.done);
        result = slc_io_completed(io, &place, result);
        if (slc_io_advance(io, *request, &state->progress, slc_io_slot(io, (*request)->slot),
                           result)) {
            state->request = NULL;
            return SLC_OK;
        }
        queue_read(io, (*request)->slot);
    }
}

static void uring_close(struct slc_io *io)
{
    release_ring(io->backend);
    io->backend = NULL;
}

/* Tries to register the first `count` slots. Returns 0 or a negated errno. */
static int register_slots(struct slc_io *io, struct iovec *vectors, unsigned count)
{
    struct uring_backend *uring = io->backend;

    for (unsigned slot = 0; slot < count; slot++) {
        vectors[slot].iov_base = slc_io_slot(io, slot);
        vectors[slot].iov_len = io->slot_bytes;
    }
    return io_uring_register_buffers(&uring->ring, vectors, count);
}

/* Registers as many slots as the limit on locked memory allows, found by bisection. A failure is
 * not an error: reads into unregistered slots are only slower. */
static enum slc_status register_most(struct slc_io *io, struct slc_error *err)
{
    struct uring_backend *uring = io->backend;
    struct iovec *vectors = slc_calloc(io->slot_count, sizeof *vectors);
    unsigned fits = 0;
    unsigned fails = io->slot_count;

    SLC_TRY(slc_check_memory(vectors != NULL, err, "for %u buffers of io_uring", io->slot_count));
    int rc = register_slots(io, vectors, io->slot_count);
    if (rc == 0) {
        uring->registered_slots = io->slot_count;
    } else {
        slc_io_note(io, "io_uring: not all buffers are registered (%s; see ulimit -l)",
                    strerror(-rc));
        while (fails - fits > 1) {
            unsigned middle = fits + (fails - fits) / 2;

            if (register_slots(io, vectors, middle) == 0) {
                (void)io_uring_unregister_buffers(&uring->ring);
                fits = middle;
            } else {
                fails = middle;
            }
        }
        if (fits > 0 && register_slots(io, vectors, fits) == 0) {
            uring->registered_slots = fits;
        }
    }
    io->stats.registered = uring->registered_slots == io->slot_count;
    slc_free(vectors);
    return SLC_OK;
}

/* Registers the descriptors. If this fails, the kernel looks up the descriptor of every read. */
static enum slc_status register_files(struct slc_io *io, struct slc_error *err)
{
    struct uring_backend *uring = io->backend;
    const unsigned count = 2 * io->file_count;
    int *fds = slc_calloc(count, sizeof *fds);

    SLC_TRY(slc_check_memory(fds != NULL, err, "for %u descriptors of io_uring", count));
    for (unsigned f = 0; f < io->file_count; f++) {
        fds[2 * f] = io->opened[f].fd;
        fds[2 * f + 1] = io->opened[f].buffered_fd;
    }
    uring->registered_files = io_uring_register_files(&uring->ring, fds, count) == 0;
    slc_free(fds);
    return SLC_OK;
}

/* True if this kernel's io_uring supports the reads used here (Linux 5.6). */
static bool reads_are_supported(struct io_uring *ring)
{
    struct io_uring_probe *probe = io_uring_get_probe_ring(ring);
    bool supported = probe != NULL && io_uring_opcode_supported(probe, IORING_OP_READ) &&
                     io_uring_opcode_supported(probe, IORING_OP_READ_FIXED);

    io_uring_free_probe(probe);
    return supported;
}

enum slc_status slc_io_uring_open(struct slc_io *io, struct slc_error *err)
{
    static const struct slc_io_ops ops = {uring_submit, uring_wait, NULL, NULL, uring_close};
    struct uring_backend *uring = slc_calloc(1, sizeof *uring);

    if (uring == NULL ||
        (uring->slots = slc_calloc(io->slot_count, sizeof *uring->slots)) == NULL) {
        slc_free(uring);
        return slc_fail(err, SLC_ERR_MEMORY, "no memory for io_uring");
    }
    int rc = io_uring_queue_init(io->slot_count, &uring->ring, 0);
    if (rc == 0 && !reads_are_supported(&uring->ring)) {
        io_uring_queue_exit(&uring->ring);
        rc = -ENOSYS;
    }
    if (rc < 0) {
        slc_free(uring->slots);
        slc_free(uring);
        return slc_fail_field(err, SLC_ERR_UNSUPPORTED, SLC_FIELD_IO,
                              "the system refuses io_uring (%s); use pread, which works everywhere",
                              strerror(-rc));
    }
    io->backend = uring;
    enum slc_status status = register_most(io, err);
    SLC_THEN(status, register_files(io, err));
    if (status != SLC_OK) {
        uring_close(io);
        return status;
    }
    io->ops = &ops;
    return SLC_OK;
}

#else

enum slc_status slc_io_uring_open(struct slc_io *io, struct slc_error *err)
{
    (void)io;
    return slc_fail_field(err, SLC_ERR_UNSUPPORTED, SLC_FIELD_IO,
                          "this build has no io_uring (it was built without liburing); use pread");
}

#endif
