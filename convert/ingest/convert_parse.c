/* Threads of a conversion: one thread reads pieces of rows, the other threads parse them.
 *
 * One lock protects the list of free pieces and the list of ready pieces. The reader queues pieces
 * in input order. When a parser finds a fault in a piece, all earlier pieces have therefore been
 * started and will be finished. The fault with the smallest sequence number is kept, so that the
 * first fault of the input is reported for any number of threads. */
#include "convert/ingest/convert_parse.h"

#include "base/error/clock.h"
#include "base/hash.h"
#include "base/memory/checked.h"
#include "base/thread/team.h"

#include <assert.h>
#include <pthread.h>
#include <string.h>

/* Seconds between progress reports. */
static const double progress_seconds = 0.1;

struct slc_parse_queue {
    pthread_mutex_t lock;
    /* signals any change of the members below; changes are milliseconds apart */
    pthread_cond_t changed;
    struct slc_piece **free_pieces; /* a stack */
    unsigned free_count;
    struct slc_piece **ready; /* a ring of up to piece_count pieces, in input order */
    unsigned ready_first;
    unsigned ready_count;
    bool finished; /* true when the reader has queued its last piece */
    /* sequence number of the piece with the first fault so far; UINT64_MAX without a fault */
    uint64_t fault_sequence;
    struct slc_error fault;
};

static void
record_fault(struct slc_parse_queue *queue, uint64_t sequence, const struct slc_error *err)
{
    pthread_mutex_lock(&queue->lock);
    if (sequence < queue->fault_sequence) {
        queue->fault_sequence = sequence;
        queue->fault = *err;
    }
    pthread_cond_broadcast(&queue->changed);
    pthread_mutex_unlock(&queue->lock);
}

/* Appends a piece to the ring. Needs: the lock is held. */
static void add_ready(struct slc_parse_job *job, struct slc_piece *piece)
{
    struct slc_parse_queue *queue = job->queue;

    assert(queue->ready_count < job->piece_count);
    queue->ready[(queue->ready_first + queue->ready_count) % job->piece_count] = piece;
    queue->ready_count++;
    pthread_cond_broadcast(&queue->changed);
}

/* Waits until a piece is free and returns it to the reader; returns NULL if a fault ends the
 * run. */
static struct slc_piece *wait_for_free(struct slc_parse_queue *queue)
{
    struct slc_piece *piece = NULL;

    pthread_mutex_lock(&queue->lock);
    while (queue->free_count == 0 && queue->fault_sequence == UINT64_MAX) {
        pthread_cond_wait(&queue->changed, &queue->lock);
    }
    if (queue->fault_sequence == UINT64_MAX) {
        piece = queue->free_pieces[--queue->free_count];
    }
    pthread_mutex_unlock(&queue->lock);
    return piece;
}

/* Waits for the next piece to parse and returns it; NULL at the end of the input. Does not return
 * pieces after a fault. */
static struct slc_piece *wait_for_ready(struct slc_parse_job *job)
{
    struct slc_parse_queue *queue = job->queue;
    struct slc_piece *piece = NULL;

    pthread_mutex_lock(&queue->lock);
    while (queue->ready_count == 0 && !queue->finished) {
        pthread_cond_wait(&queue->changed, &queue->lock);
    }
    if (queue->ready_count > 0 &&
        queue->ready[queue->ready_first]->sequence <= queue->fault_sequence) {
        piece = queue->ready[queue->ready_first];
        queue->ready_first = (queue->ready_first + 1) % job->piece_count;
        queue->ready_count--;
    }
    pthread_mutex_unlock(&queue->lock);
    return piece;
}

static void release_piece(struct slc_parse_queue *queue, struct slc_piece *piece)
{
    pthread_mutex_lock(&queue->lock);
    queue->free_pieces[queue->free_count++] = piece;
    pthread_cond_broadcast(&queue->changed);
    pthread_mutex_unlock(&queue->lock);
}

static void finish_reading(struct slc_parse_queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    queue->finished = true;
    pthread_cond_broadcast(&queue->changed);
    pthread_mutex_unlock(&queue->lock);
}

/* Waits until all pieces except that of the reader are parsed. Then commits the builder, unless
 * there was a fault. */
static enum slc_status
commit_pieces(struct slc_parse_job *job, uint64_t sequence, struct slc_error *err)
{
    struct slc_parse_queue *queue = job->queue;

    pthread_mutex_lock(&queue->lock);
    while (queue->free_count + 1 < job->piece_count && queue->fault_sequence == UINT64_MAX) {
        pthread_cond_wait(&queue->changed, &queue->lock);
    }
    bool sound = queue->fault_sequence == UINT64_MAX;
    pthread_mutex_unlock(&queue->lock);
    return sound ? job->commit(job, sequence, err) : SLC_OK;
}

/* Runs the reader: fills free pieces until the input ends. */
static void read_pieces(struct slc_parse_job *job)
{
    struct slc_parse_queue *queue = job->queue;
    uint64_t sequence = job->pieces[0].sequence + 1; /* the first piece is already filled */
    uint64_t shown_ns = slc_clock_ns();
    struct slc_piece *piece;

    job->text_bytes = job->pieces[0].offset + job->pieces[0].bytes;
    while ((piece = wait_for_free(queue)) != NULL) {
        struct slc_error err = SLC_ERROR_INIT;
        uint64_t start_ns = slc_clock_ns();
        enum slc_status status = slc_stop_check(job->stop, &err);

        if (status == SLC_OK && job->commit != NULL &&
            slc_builder_commit_due(job->builder, false)) {
            status = commit_pieces(job, sequence, &err);
        }
        if (status != SLC_OK) {
            record_fault(queue, sequence, &err);
            break;
        }
        piece->sequence = sequence++;
        piece->offset = job->text_bytes;
        status = slc_row_source_next(job->source, piece, &err);
        job->read_seconds += slc_seconds_since(start_ns);
        if (status != SLC_OK) {
            record_fault(queue, piece->sequence, &err);
            break;
        }
        if (piece->bytes == 0) {
            break;
        }
        job->text_bytes += piece->bytes;
        pthread_mutex_lock(&queue->lock);
        add_ready(job, piece);
        pthread_mutex_unlock(&queue->lock);
        if (job->progress && slc_seconds_since(shown_ns) >= progress_seconds) {
            shown_ns = slc_clock_ns();
            job->progress(job->context, "parse", slc_row_source_consumed(job->source),
                          job->stored_bytes);
        }
    }
    finish_reading(queue);
}

static void parse_pieces(struct slc_parse_job *job, unsigned worker)
{
    struct slc_piece *piece;

    while ((piece = wait_for_ready(job)) != NULL) {
        struct slc_error err = SLC_ERROR_INIT;
        uint64_t sequence = piece->sequence;
        enum slc_status status = slc_parse_piece(job, worker, piece, &err);

        release_piece(job->queue, piece);
        if (status != SLC_OK) {
            record_fault(job->queue, sequence, &err);
        }
    }
}

/* Runs a member of the team. Member 0 reads, all other members parse. */
static void run_member(void *context, unsigned member, unsigned members)
{
    struct slc_parse_job *job = context;

    (void)members;
    if (member == 0) {
        read_pieces(job);
    } else {
        parse_pieces(job, member - 1);
    }
}

void slc_parse_totals(const struct slc_parse_job *job, struct slc_parse_totals *totals)
{
    *totals = (struct slc_parse_totals){.row_count = 0};
    memset(totals->smallest, 0xff, sizeof totals->smallest);
    for (unsigned w = 0; w < job->workers; w++) {
        const struct slc_parser *parser = &job->parsers[w];

        totals->row_count += parser->row_count;
        totals->line_count += parser->line_count;
        for (unsigned m = 0; m < job->header->order; m++) {
            totals->smallest[m] = slc_min_u64(totals->smallest[m], parser->smallest[m]);
            totals->largest[m] = slc_max_u64(totals->largest[m], parser->largest[m]);
        }
    }
}

static void sum_totals(struct slc_parse_job *job)
{
    struct slc_parse_totals totals;

    slc_parse_totals(job, &totals);
    job->row_count = totals.row_count;
    job->line_count = job->header->header_lines + totals.line_count;
    memcpy(job->smallest, totals.smallest, sizeof job->smallest);
    memcpy(job->largest, totals.largest, sizeof job->largest);
    for (unsigned w = 0; w < job->workers; w++) {
        job->parse_seconds += job->parsers[w].parse_seconds;
        job->scatter_seconds += job->parsers[w].scatter_seconds;
    }
}

enum slc_status slc_parse_run(struct slc_parse_job *job, struct slc_error *err)
{
    struct slc_parse_queue queue = {.fault_sequence = UINT64_MAX, .fault = SLC_ERROR_INIT};
    struct slc_piece **places = slc_calloc(2 * (size_t)job->piece_count, sizeof *places);

    if (job->all_read) {
        slc_free(places);
        sum_totals(job);
        return SLC_OK;
    }
    SLC_TRY(slc_check_memory(places != NULL, err, "for a queue of %u pieces", job->piece_count));
    /* These two calls cannot fail on Linux with default attributes. */
    pthread_mutex_init(&queue.lock, NULL);
    pthread_cond_init(&queue.changed, NULL);
    queue.free_pieces = places;
    queue.ready = places + job->piece_count;
    job->queue = &queue;
    job->lock = &queue.lock;
    for (unsigned i = 1; i < job->piece_count; i++) {
        queue.free_pieces[queue.free_count++] = &job->pieces[i];
    }
    queue.ready[0] = &job->pieces[0];
    queue.ready_count = 1;

    enum slc_status status = slc_team_run(job->workers + 1, run_member, job, err);
    if (status == SLC_OK && queue.fault_sequence != UINT64_MAX) {
        if (err && err->status == SLC_OK) {
            *err = queue.fault;
        }
        status = queue.fault.status;
    }
    if (status == SLC_OK) {
        sum_totals(job);
    }
    job->queue = NULL;
    pthread_cond_destroy(&queue.changed);
    pthread_mutex_destroy(&queue.lock);
    slc_free(places);
    return status;
}

uint64_t slc_parse_content(const struct slc_parse_job *job, uint64_t *entries)
{
    uint64_t numbers[] = {job->header->order, (uint64_t)job->index_base, 0, 0};

    for (unsigned w = 0; w < job->workers; w++) {
        numbers[2] += job->parsers[w].entry_count;
        numbers[3] += job->parsers[w].content;
    }
    *entries = numbers[2];
    return slc_hash64(numbers, sizeof numbers);
}
