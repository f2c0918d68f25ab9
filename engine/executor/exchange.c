/* Implements the exchange in a ring.
 *
 * With D devices, device d receives the pieces d - 1, d - 2, .. d - D + 1 (modulo D) in this order.
 * It sends its own piece first, and then the received pieces in the same order. It does not send
 * the last received piece, because the next device has written this piece. After its own piece, the
 * c-th chunk that a device sends is therefore the c-th chunk that it received. The only state
 * shared with neighbours is the number of chunks that have passed each link.
 *
 * Both ends of a link iterate over the rows of a piece in the same way (`struct cursor`), so a
 * chunk needs no header. A device empties its receive buffer before it sends, and it can always do
 * so without waiting. So some device can always proceed, and the ring cannot deadlock. */
#include "engine/executor/exchange.h"

#include "base/error/clock.h"
#include "base/memory/checked.h"
#include "base/memory/memory.h"
#include "base/thread/team.h"

#include <pthread.h>
#include <stdbool.h>
#include <string.h>

enum {
    /* Each link has two buffers: one is filled while the other is emptied. */
    BUFFERS = 2,
    /* The four buffers of a device's two links fit in a second-level cache. Copying one chunk takes
     * about 50 us, far longer than signalling a neighbour. */
    CHUNK_BYTES = 256 * 1024
};

/* Position of one end of a link in the sequence of rows that pass the link. */
struct cursor {
    unsigned piece;
    uint64_t range; /* number of the current range of the piece */
    uint64_t row;   /* number of rows of the range that have passed the link */
};

/* The link from a device to the next one in the ring. The mutex of the exchange protects its
 * counters. */
struct link {
    unsigned char *buffer[BUFFERS];
    /* Numbers of chunks of the current exchange that have been written to a buffer, and that have
     * been taken from it. */
    uint64_t filled, emptied;
};

struct member {
    struct cursor sending, receiving;
    /* Numbers of chunks that the device sends and receives in the whole exchange. */
    uint64_t to_send, to_receive;
    uint64_t own;           /* number of chunks in the device's own piece */
    pthread_cond_t changed; /* signalled when a link to or from this device changes */
};

struct slc_exchange {
    unsigned devices;
    uint64_t chunk_bytes;
    struct slc_buffer buffers;
    struct link *links;     /* link from each device to the next */
    struct member *members; /* one per device */
    pthread_mutex_t mutex;

    /* The exchange that is running (slc_exchange_run). */
    const struct slc_exchange_job *job;
    struct slc_exchange_stats *stats;
    uint64_t row_bytes;
    uint64_t chunk_rows;
    bool aborted;           /* protected by the mutex, as is `fault` */
    struct slc_error fault; /* the first fault */
};

/* Returns the bytes of a chunk, which consists of whole rows, at least one. */
static uint64_t chunk_bytes_of(uint64_t row_bytes)
{
    return slc_max_u64(CHUNK_BYTES, row_bytes);
}

uint64_t slc_exchange_memory_bytes(unsigned devices, uint64_t row_bytes)
{
    uint64_t bytes;

    if (!slc_mul_u64(chunk_bytes_of(row_bytes), (uint64_t)devices * BUFFERS, &bytes)) {
        return UINT64_MAX;
    }
    bytes = devices > 1 ? slc_buffer_footprint(bytes, SLC_PAGES_SMALL) : 0;
    return bytes + sizeof(struct slc_exchange) +
           devices * (sizeof(struct link) + sizeof(struct member));
}

enum slc_status slc_exchange_create(unsigned devices,
                                    uint64_t row_bytes,
                                    struct slc_exchange **result,
                                    struct slc_error *err)
{
    struct slc_exchange *exchange = slc_calloc(1, sizeof *exchange);
    enum slc_status status;

    SLC_TRY(slc_check_memory(exchange != NULL, err, "for an exchange of rows"));
    pthread_mutex_init(&exchange->mutex, NULL);
    exchange->chunk_bytes = chunk_bytes_of(row_bytes);
    exchange->links = slc_calloc(devices, sizeof *exchange->links);
    exchange->members = slc_calloc(devices, sizeof *exchange->members);
    if (exchange->links == NULL || exchange->members == NULL) {
        slc_exchange_destroy(exchange);
        return slc_fail(err, SLC_ERR_MEMORY, "no memory for a ring of %u devices", devices);
    }
    exchange->devices = devices;
    for (unsigned d = 0; d < devices; d++) {
        pthread_cond_init(&exchange->members[d].changed, NULL);
    }
    if (devices > 1) {
        status = slc_buffer_create(&exchange->buffers,
                                   (size_t)(exchange->chunk_bytes * devices * BUFFERS),
                                   SLC_PAGES_SMALL, err);
        if (status != SLC_OK) {
            slc_exchange_destroy(exchange);
            return status;
        }
    }
    for (unsigned b = 0; devices > 1 && b < devices * BUFFERS; b++) {
        exchange->links[b / BUFFERS].buffer[b % BUFFERS] =
            (unsigned char *)exchange->buffers.data + b * exchange->chunk_bytes;
    }
    *result = exchange;
    return SLC_OK;
}

void slc_exchange_destroy(struct slc_exchange *exchange)
{
    if (exchange == NULL) {
        return;
    }
    for (unsigned d = 0; d < exchange->devices; d++) {
        /* If `devices` is not 0, `members` is allocated.
         * NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker) */
        pthread_cond_destroy(&exchange->members[d].changed);
    }
    pthread_mutex_destroy(&exchange->mutex);
    slc_buffer_destroy(&exchange->buffers);
    slc_free(exchange->links);
    slc_free(exchange->members);
    slc_free(exchange);
}

/* Return the device before, and the device after, a device in the ring. */
static unsigned device_before(const struct slc_exchange *exchange, unsigned device)
{
    return device == 0 ? exchange->devices - 1 : device - 1;
}

static unsigned device_after(const struct slc_exchange *exchange, unsigned device)
{
    return device + 1 == exchange->devices ? 0 : device + 1;
}

static uint64_t piece_chunks(const struct slc_exchange *exchange, unsigned device)
{
    const struct slc_device_rows *piece = &exchange->job->pieces[device];
    uint64_t rows = 0;

    for (uint64_t i = 0; i < piece->count; i++) {
        rows += piece->ranges[i].end - piece->ranges[i].first;
    }
    return slc_div_up_u64(rows, exchange->chunk_rows);
}

/* Returns the next contiguous rows of the chunk at the cursor, at most `max_rows`, and advances the
 * cursor. At the end of a piece, returns no rows if the chunk already has some; otherwise continues
 * with the next piece that has rows. Needs: the chunk has rows, or a piece with rows follows. */
static struct slc_row_span cursor_advance(const struct slc_exchange *exchange,
                                          struct cursor *cursor,
                                          bool begun,
                                          uint64_t max_rows)
{
    for (;;) {
        const struct slc_device_rows *piece = &exchange->job->pieces[cursor->piece];

        if (cursor->range == piece->count) {
            if (begun) {
                return (struct slc_row_span){0, 0};
            }
            cursor->piece = device_before(exchange, cursor->piece);
            cursor->range = 0;
            continue;
        }
        const struct slc_row_span *range = &piece->ranges[cursor->range];
        const uint64_t first = range->first + cursor->row;
        const uint64_t rows = slc_min_u64(range->end - first, max_rows);

        cursor->row += rows;
        if (first + rows == range->end) {
            cursor->range++;
            cursor->row = 0;
        }
        if (rows > 0) {
            return (struct slc_row_span){first, first + rows};
        }
    }
}

/* Copies one chunk between a device's matrix and a buffer, and updates the statistics. */
static enum slc_status move_chunk(struct slc_exchange *exchange,
                                  unsigned device,
                                  bool sending,
                                  unsigned char *buffer,
                                  struct slc_error *fault)
{
    struct slc_backend *backend = exchange->job->backends[device];
    struct slc_matrix *copy = exchange->job->copies[device];
    struct slc_exchange_stats *stats = &exchange->stats[device];
    struct member *member = &exchange->members[device];
    const uint64_t start_ns = slc_clock_ns();
    enum slc_status status = SLC_OK;
    uint64_t done = 0;

    while (done < exchange->chunk_rows && status == SLC_OK) {
        const struct slc_row_span rows =
            cursor_advance(exchange, sending ? &member->sending : &member->receiving, done > 0,
                           exchange->chunk_rows - done);
        const uint64_t count = rows.end - rows.first;
        unsigned char *at = buffer + done * exchange->row_bytes;

        if (count == 0) {
            break;
        }
        status = sending ? backend->ops->rows_read(backend, copy, rows.first, count, at, fault)
                         : backend->ops->rows_write(backend, copy, rows.first, count, at, fault);
        done += count;
    }
    stats->copy_seconds += slc_seconds_since(start_ns);
    stats->bytes_sent += sending ? done * exchange->row_bytes : 0;
    return status;
}

static void abort_exchange(struct slc_exchange *exchange, const struct slc_error *fault)
{
    pthread_mutex_lock(&exchange->mutex);
    if (!exchange->aborted) {
        exchange->aborted = true;
        exchange->fault = *fault;
    }
    for (unsigned d = 0; d < exchange->devices; d++) {
        pthread_cond_signal(&exchange->members[d].changed);
    }
    pthread_mutex_unlock(&exchange->mutex);
}

/* What a device does next. */
enum move { MOVE_RECEIVE, MOVE_SEND, MOVE_END };

/* Waits until the device can receive or send a chunk, or has finished or must abort (MOVE_END). */
static enum move next_move(struct slc_exchange *exchange, unsigned device)
{
    struct member *member = &exchange->members[device];
    const struct link *in = &exchange->links[device_before(exchange, device)];
    const struct link *out = &exchange->links[device];
    enum move move = MOVE_END;
    uint64_t start_ns = 0;

    pthread_mutex_lock(&exchange->mutex);
    while (!exchange->aborted &&
           (in->emptied < member->to_receive || out->filled < member->to_send)) {
        if (in->filled > in->emptied) {
            move = MOVE_RECEIVE;
            break;
        }
        if (out->filled < member->to_send && out->filled - out->emptied < BUFFERS &&
            out->filled < member->own + in->emptied) {
            move = MOVE_SEND;
            break;
        }
        start_ns = start_ns != 0 ? start_ns : slc_clock_ns();
        pthread_cond_wait(&member->changed, &exchange->mutex);
    }
    pthread_mutex_unlock(&exchange->mutex);
    if (start_ns != 0) {
        exchange->stats[device].wait_seconds += slc_seconds_since(start_ns);
    }
    return move;
}

/* Counts a chunk that has passed one end of a link, and wakes the device at the other end. */
static void report_chunk(struct slc_exchange *exchange, unsigned device, uint64_t *counter)
{
    pthread_mutex_lock(&exchange->mutex);
    (*counter)++;
    pthread_cond_signal(&exchange->members[device].changed);
    pthread_mutex_unlock(&exchange->mutex);
}

static void run_device(void *context, unsigned device, unsigned devices)
{
    struct slc_exchange *exchange = context;
    struct link *in = &exchange->links[device_before(exchange, device)];
    struct link *out = &exchange->links[device];

    (void)devices;
    for (;;) {
        struct slc_error fault = SLC_ERROR_INIT;
        const enum move move = next_move(exchange, device);
        /* Only this thread changes out->filled and in->emptied. */
        unsigned char *buffer = move == MOVE_SEND ? out->buffer[out->filled % BUFFERS]
                                                  : in->buffer[in->emptied % BUFFERS];

        if (move == MOVE_END) {
            return;
        }
        if (move_chunk(exchange, device, move == MOVE_SEND, buffer, &fault) != SLC_OK) {
            abort_exchange(exchange, &fault);
            return;
        }
        if (move == MOVE_SEND) {
            report_chunk(exchange, device_after(exchange, device), &out->filled);
        } else {
            report_chunk(exchange, device_before(exchange, device), &in->emptied);
        }
    }
}

enum slc_status slc_exchange_run(struct slc_exchange *exchange,
                                 const struct slc_exchange_job *job,
                                 struct slc_exchange_stats *stats,
                                 struct slc_error *err)
{
    uint64_t all = 0;

    memset(stats, 0, exchange->devices * sizeof *stats);
    exchange->job = job;
    exchange->stats = stats;
    exchange->row_bytes = slc_matrix_row_bytes(job->copies[0]);
    exchange->chunk_rows = exchange->chunk_bytes / exchange->row_bytes;
    exchange->aborted = false;
    if (exchange->chunk_rows == 0) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "rows of %llu bytes exceed the row size for which the exchange was created",
                        (unsigned long long)exchange->row_bytes);
    }
    for (unsigned d = 0; d < exchange->devices; d++) {
        exchange->members[d].own = piece_chunks(exchange, d);
        all += exchange->members[d].own;
    }
    for (unsigned d = 0; d < exchange->devices; d++) {
        struct member *member = &exchange->members[d];

        member->to_receive = all - member->own;
        member->to_send = all - exchange->members[device_after(exchange, d)].own;
        member->sending = (struct cursor){.piece = d};
        member->receiving = (struct cursor){.piece = device_before(exchange, d)};
        exchange->links[d].filled = 0;
        exchange->links[d].emptied = 0;
    }
    if (exchange->devices > 1) {
        SLC_TRY(slc_team_run(exchange->devices, run_device, exchange, err));
    }
    if (exchange->aborted && err != NULL && err->status == SLC_OK) {
        *err = exchange->fault;
    }
    return exchange->aborted ? exchange->fault.status : SLC_OK;
}
