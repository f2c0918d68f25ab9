/* Reads chunks ahead. One lock protects all data. The lock is released while a chunk is fetched,
 * which needs 0.1 ms or more, so the lock is rarely contended. */
#include "convert/build/spill/read_ahead.h"

#include "base/memory/memory.h"
#include "base/thread/thread.h"

#include <assert.h>
#include <pthread.h>

struct buffer {
    struct buffer *next;
    uint8_t *data;
    struct slc_chunk chunk;
};

enum request_state { REQUEST_FREE, REQUEST_QUEUED, REQUEST_READING, REQUEST_READ };

struct slc_read_request {
    enum request_state state;
    uint64_t ordinal;           /* requests are served in this order */
    struct slc_chunk_link link; /* next chunk to fetch */
    struct buffer *first;       /* buffers that are fetched but not yet delivered, in chain order */
    struct buffer *last;
    struct buffer *taken; /* buffer in use by the caller until its next call */
    struct slc_error fault;
};

struct slc_read_ahead {
    struct slc_spill *spill;
    uint32_t buffer_bytes;
    unsigned request_count;
    struct slc_read_request *requests;
    struct buffer *buffers;
    struct buffer *free;
    const struct slc_read_request *busy; /* request whose chunk is being fetched */
    uint64_t begun;
    bool has_thread;
    bool stop;
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
};

/* Returns the request to serve: the oldest request that is not complete. Needs the lock. */
static struct slc_read_request *oldest(const struct slc_read_ahead *ahead)
{
    struct slc_read_request *found = NULL;

    for (unsigned i = 0; i < ahead->request_count; i++) {
        struct slc_read_request *request = &ahead->requests[i];

        if ((request->state == REQUEST_QUEUED || request->state == REQUEST_READING) &&
            (found == NULL || request->ordinal < found->ordinal)) {
            found = request;
        }
    }
    return found;
}

/* Sets the next chunk of a request. If no chunk is left, or the chunk does not fit a buffer, the
 * request is complete. */
static void aim_request(const struct slc_read_ahead *ahead,
                        struct slc_read_request *request,
                        struct slc_chunk_link link)
{
    request->link = link;
    if (link.bytes == 0 || link.bytes > ahead->buffer_bytes - SLC_SPILL_FETCH_EXTRA_BYTES) {
        request->state = REQUEST_READ;
    }
}

/* Fetches the next chunk of a request into a free buffer. Needs the lock, and releases it during
 * the fetch. */
static void read_chunk(struct slc_read_ahead *ahead, struct slc_read_request *request)
{
    struct buffer *buffer = ahead->free;

    request->state = REQUEST_READING;
    ahead->free = buffer->next;
    buffer->next = NULL;
    ahead->busy = request;
    pthread_mutex_unlock(&ahead->mutex);
    enum slc_status status = slc_spill_fetch(ahead->spill, request->link, true, buffer->data,
                                             &buffer->chunk, &request->fault);
    pthread_mutex_lock(&ahead->mutex);
    ahead->busy = NULL;
    if (status != SLC_OK) {
        request->state = REQUEST_READ;
        buffer->next = ahead->free;
        ahead->free = buffer;
        return;
    }
    aim_request(ahead, request, buffer->chunk.previous);
    if (request->first == NULL) {
        request->first = buffer;
    } else {
        request->last->next = buffer;
    }
    request->last = buffer;
}

static void *read_requests(void *context)
{
    struct slc_read_ahead *ahead = context;
    struct slc_read_request *request;

    pthread_mutex_lock(&ahead->mutex);
    while (!ahead->stop) {
        request = oldest(ahead);
        if (request == NULL || ahead->free == NULL) {
            pthread_cond_wait(&ahead->changed, &ahead->mutex);
            continue;
        }
        read_chunk(ahead, request);
        pthread_cond_broadcast(&ahead->changed);
    }
    pthread_mutex_unlock(&ahead->mutex);
    return NULL;
}

enum slc_status slc_read_ahead_create(const struct slc_read_ahead_options *options,
                                      struct slc_read_ahead **ahead,
                                      struct slc_error *err)
{
    struct slc_read_ahead *a = slc_calloc(1, sizeof *a);

    assert(options->buffers >= 2 && options->requests > 0);
    assert(options->buffer_bytes % SLC_PAGE_BYTES == 0);
    assert(options->buffer_bytes > SLC_SPILL_FETCH_EXTRA_BYTES);
    SLC_TRY(slc_check_memory(a != NULL, err, "for reading ahead"));
    a->spill = options->spill;
    a->buffer_bytes = options->buffer_bytes;
    a->request_count = options->requests;
    pthread_mutex_init(&a->mutex, NULL);
    pthread_cond_init(&a->changed, NULL);
    a->requests = slc_calloc(options->requests, sizeof *a->requests);
    a->buffers = slc_calloc(options->buffers, sizeof *a->buffers);
    enum slc_status status =
        slc_check_memory(a->requests != NULL && a->buffers != NULL, err, "for reading ahead");
    for (uint32_t i = 0; i < options->buffers && status == SLC_OK; i++) {
        a->buffers[i].data = options->memory + (size_t)i * options->buffer_bytes;
        a->buffers[i].next = a->free;
        a->free = &a->buffers[i];
    }
    SLC_THEN(status, slc_thread_start(&a->thread, read_requests, a,
                                      "the thread that reads the spill file ahead", err));
    a->has_thread = status == SLC_OK;
    if (status != SLC_OK) {
        slc_read_ahead_destroy(a);
        return status;
    }
    *ahead = a;
    return SLC_OK;
}

void slc_read_ahead_destroy(struct slc_read_ahead *ahead)
{
    if (ahead == NULL) {
        return;
    }
    if (ahead->has_thread) {
        pthread_mutex_lock(&ahead->mutex);
        ahead->stop = true;
        pthread_cond_broadcast(&ahead->changed);
        pthread_mutex_unlock(&ahead->mutex);
        pthread_join(ahead->thread, NULL);
    }
    pthread_cond_destroy(&ahead->changed);
    pthread_mutex_destroy(&ahead->mutex);
    slc_free(ahead->buffers);
    slc_free(ahead->requests);
    slc_free(ahead);
}

struct slc_read_request *slc_read_ahead_request(struct slc_read_ahead *ahead,
                                                struct slc_chunk_link last)
{
    struct slc_read_request *request = ahead->requests;

    pthread_mutex_lock(&ahead->mutex);
    while (request->state != REQUEST_FREE) {
        request++;
        assert(request < ahead->requests + ahead->request_count);
    }
    *request = (struct slc_read_request){.state = REQUEST_QUEUED, .ordinal = ahead->begun++};
    aim_request(ahead, request, last);
    pthread_cond_broadcast(&ahead->changed);
    pthread_mutex_unlock(&ahead->mutex);
    return request;
}

/* Releases the buffer of the chunk that the caller has finished. Needs the lock. */
static void release_buffer(struct slc_read_ahead *ahead, struct slc_read_request *request)
{
    struct buffer *buffer = request->taken;

    if (buffer != NULL) {
        request->taken = NULL;
        buffer->next = ahead->free;
        ahead->free = buffer;
        pthread_cond_broadcast(&ahead->changed);
    }
}

/* Delivers the next fetched chunk of a request. Returns false if none is ready. Needs the lock. */
static bool deliver_next(struct slc_read_ahead *ahead, struct slc_read_request *request)
{
    release_buffer(ahead, request);
    request->taken = request->first;
    if (request->taken != NULL) {
        request->first = request->taken->next;
    }
    return request->taken != NULL;
}

enum slc_status slc_read_ahead_next(struct slc_read_ahead *ahead,
                                    struct slc_read_request *request,
                                    struct slc_chunk *chunk,
                                    bool *found,
                                    struct slc_error *err)
{
    enum slc_status status = SLC_OK;

    pthread_mutex_lock(&ahead->mutex);
    release_buffer(ahead, request);
    if (request->state == REQUEST_QUEUED) {
        request->state = REQUEST_READ;
    }
    while (request->first == NULL && request->state == REQUEST_READING) {
        pthread_cond_wait(&ahead->changed, &ahead->mutex);
    }
    *found = deliver_next(ahead, request);
    if (*found) {
        *chunk = request->taken->chunk;
    } else if (request->fault.status != SLC_OK) {
        status = slc_error_pass(err, &request->fault);
    }
    pthread_mutex_unlock(&ahead->mutex);
    return status;
}

void slc_read_ahead_end(struct slc_read_ahead *ahead, struct slc_read_request *request)
{
    pthread_mutex_lock(&ahead->mutex);
    request->state = REQUEST_READ;
    while (ahead->busy == request) {
        pthread_cond_wait(&ahead->changed, &ahead->mutex);
    }
    while (deliver_next(ahead, request)) {
    }
    request->state = REQUEST_FREE;
    pthread_mutex_unlock(&ahead->mutex);
}
