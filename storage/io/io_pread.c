/* Reads blocks with a few threads that each perform one blocking read at a time. Works for every
 * readable file, and is needed because container profiles often forbid io_uring.
 *
 * Two queues under one mutex: submit adds requests to the first queue, workers move them to the
 * second queue, wait removes them. A slot holds at most one request, so neither queue exceeds
 * slot_count entries and nothing is allocated after open. At the usual block size (4 MiB) the
 * kernel splits every read into many commands, so a handful of threads fills a drive's queue. */
#include "storage/io/io_impl.h"

#include "base/memory/checked.h"
#include "base/thread/thread.h"

#include <pthread.h>

enum { DEFAULT_THREADS = 8, MAX_THREADS = 64 };

/* A first-in, first-out queue with capacity slot_count. */
struct queue {
    struct slc_io_request **items;
    unsigned head;
    unsigned count;
};

struct pread_backend {
    struct slc_io *io;
    pthread_mutex_t mutex;
    pthread_cond_t asked;    /* signals that `pending` grew or `stop` was set */
    pthread_cond_t finished; /* signals that `completed` grew */
    struct queue pending;
    struct queue completed;
    bool stop;
    unsigned thread_count; /* number of threads started */
    pthread_t threads[MAX_THREADS];
};

static void queue_push(struct queue *queue, unsigned capacity, struct slc_io_request *request)
{
    queue->items[(queue->head + queue->count) % capacity] = request;
    queue->count++;
}

static struct slc_io_request *queue_pop(struct queue *queue, unsigned capacity)
{
    struct slc_io_request *request = queue->items[queue->head];

    queue->head = (queue->head + 1) % capacity;
    queue->count--;
    return request;
}

static void read_request(const struct slc_io *io, struct slc_io_request *request)
{
    char *slot = slc_io_slot(io, request->slot);
    struct slc_io_progress progress = {0, 0};
    int64_t result;

    do {
        const struct slc_io_place place = slc_io_place(io, request, progress.done);

        result = io->files->read_at(io->files->self, slc_io_fd_at(place.file, place.offset),
                                    slot + progress.done, place.bytes, place.offset);
    } while (!slc_io_advance(io, request, &progress, slot, result));
}

static void *worker_run(void *context)
{
    struct pread_backend *pread = context;
    unsigned capacity = pread->io->slot_count;

    pthread_mutex_lock(&pread->mutex);
    for (;;) {
        while (pread->pending.count == 0 && !pread->stop) {
            pthread_cond_wait(&pread->asked, &pread->mutex);
        }
        if (pread->stop) {
            break;
        }
        struct slc_io_request *request = queue_pop(&pread->pending, capacity);
        pthread_mutex_unlock(&pread->mutex);
        read_request(pread->io, request);
        pthread_mutex_lock(&pread->mutex);
        queue_push(&pread->completed, capacity, request);
        pthread_cond_signal(&pread->finished);
    }
    pthread_mutex_unlock(&pread->mutex);
    return NULL;
}

static enum slc_status
pread_submit(struct slc_io *io, struct slc_io_request *request, struct slc_error *err)
{
    struct pread_backend *pread = io->backend;

    (void)err;
    pthread_mutex_lock(&pread->mutex);
    queue_push(&pread->pending, io->slot_count, request);
    pthread_cond_signal(&pread->asked);
    pthread_mutex_unlock(&pread->mutex);
    return SLC_OK;
}

static enum slc_status
pread_wait(struct slc_io *io, struct slc_io_request **request, struct slc_error *err)
{
    struct pread_backend *pread = io->backend;

    (void)err;
    pthread_mutex_lock(&pread->mutex);
    while (pread->completed.count == 0) {
        pthread_cond_wait(&pread->finished, &pread->mutex);
    }
    *request = queue_pop(&pread->completed, io->slot_count);
    pthread_mutex_unlock(&pread->mutex);
    return SLC_OK;
}

/* Drops requests that no worker has started. Joining the threads waits for the started requests. */
static void pread_close(struct slc_io *io)
{
    struct pread_backend *pread = io->backend;

    pthread_mutex_lock(&pread->mutex);
    pread->stop = true;
    pthread_cond_broadcast(&pread->asked);
    pthread_mutex_unlock(&pread->mutex);
    for (unsigned t = 0; t < pread->thread_count; t++) {
        pthread_join(pread->threads[t], NULL);
    }
    pthread_cond_destroy(&pread->finished);
    pthread_cond_destroy(&pread->asked);
    pthread_mutex_destroy(&pread->mutex);
    slc_free(pread->pending.items);
    slc_free(pread->completed.items);
    slc_free(pread);
    io->backend = NULL;
}

enum slc_status slc_io_pread_open(struct slc_io *io, struct slc_error *err)
{
    static const struct slc_io_ops ops = {pread_submit, pread_wait, NULL, NULL, pread_close};
    struct pread_backend *pread = slc_calloc(1, sizeof *pread);
    unsigned threads = io->threads == 0 ? DEFAULT_THREADS : io->threads;

    SLC_TRY(slc_check_memory(pread != NULL, err, "for reading threads"));
    pread->io = io;
    pthread_mutex_init(&pread->mutex, NULL);
    pthread_cond_init(&pread->asked, NULL);
    pthread_cond_init(&pread->finished, NULL);
    /* From here on, slc_io_close frees everything, also after an error. */
    io->backend = pread;
    io->ops = &ops;

    pread->pending.items = slc_calloc(io->slot_count, sizeof(struct slc_io_request *));
    pread->completed.items = slc_calloc(io->slot_count, sizeof(struct slc_io_request *));
    SLC_TRY(slc_check_memory(pread->pending.items != NULL && pread->completed.items != NULL, err,
                             "for the queues of reading threads"));
    threads = (unsigned)slc_min_u64(threads, slc_min_u64(io->slot_count, MAX_THREADS));
    while (pread->thread_count < threads) {

        SLC_TRY(slc_thread_start(&pread->threads[pread->thread_count], worker_run, pread,
                                 "a thread that reads blocks", err));
        pread->thread_count++;
    }
    return SLC_OK;
}
