#include "convert/ingest/csv/csv_internal.h"

#include "base/error/clock.h"
#include "base/error/stop.h"
#include "base/memory/checked.h"
#include "base/thread/team.h"
#include "convert/ingest/csv/csv_index.h"
#include "convert/ingest/input/foreign.h"

#include <pthread.h>
#include <string.h>

enum {
    /* Maximum size of the text that is read for a piece, without the incomplete record at the end
     * of the previous piece. The text and its rows fit in the second-level cache. */
    TEXT_BYTES_MAX = 512 << 10,
    TEXT_BYTES_MIN = 16 << 10,
    TEXT_BYTES_FIRST = 64 << 10,
    /* Size of the buffer for the text of a piece, which may begin with an incomplete record of the
     * maximum length. */
    ROOM_BYTES = SLC_CSV_RECORD_BYTES_MAX + 2 * TEXT_BYTES_MAX
};

_Static_assert((int)SLC_CSV_RECORD_BYTES_MAX + (int)TEXT_BYTES_MAX + (int)TEXT_BYTES_MIN +
                       (int)SLC_CSV_SLACK <=
                   (int)ROOM_BYTES,
               "reads fit the buffer, and an index has its slack after it");
_Static_assert((int)SLC_PIECE_BYTES >= (int)ROOM_BYTES, "and so does the text of the first worker");

static const double progress_seconds = 0.1;

struct crew {
    struct slc_csv_reading *reading;
    struct slc_csv_part *parts; /* one per worker */
    /* Lock for reading, and the members that it protects. */
    pthread_mutex_t input_lock;
    uint64_t pieces;  /* number of pieces that were read */
    bool ended;       /* the input has ended or there was a fault */
    const char *left; /* text after the last cut, in the part that was filled last */
    size_t left_bytes;
    uint64_t fed_rows;   /* rows delivered by a feed */
    size_t target_bytes; /* target size of a piece; protected by order_lock */
    /* Lock for committing, and the members that it protects. */
    pthread_mutex_t order_lock;
    pthread_cond_t order_changed;
    uint64_t committed; /* number of pieces that were committed */
    uint64_t line;      /* line of the first uncommitted record */
    uint64_t committed_bytes;
    uint64_t fault_piece; /* number of the piece with the first fault; UINT64_MAX without a fault */
    struct slc_error fault;
    uint64_t shown_ns;
};

/* The current piece of a worker. */
struct piece {
    struct slc_csv_part *part;
    uint64_t number;
    uint64_t consumed;      /* bytes of input read when the piece was filled */
    struct slc_error fault; /* fault that occurred while the text after the piece was read */
};

uint64_t slc_csv_worker_bytes(void)
{
    /* 256 KiB are for the first pages of the thread's stack. */
    return slc_csv_part_bytes(ROOM_BYTES) + (UINT64_C(256) << 10);
}

static void record_fault(struct crew *crew, uint64_t number, const struct slc_error *err)
{
    pthread_mutex_lock(&crew->order_lock);
    if (number < crew->fault_piece) {
        crew->fault_piece = number;
        crew->fault = *err;
    }
    pthread_cond_broadcast(&crew->order_changed);
    pthread_mutex_unlock(&crew->order_lock);
}

/* Fills a part with whole records, or with the start of a record that is too long. At the end of
 * the input the part is empty. Needs: input_lock is held. */
static void fill_piece(struct crew *crew, struct piece *piece, size_t needed)
{
    struct slc_input *input = crew->reading->request->input;
    struct slc_csv_part *part = piece->part;
    const char delimiter = part->table->delimiter;
    size_t filled = crew->left_bytes, got = 1, cut = 0, begin = 0;
    bool whole; /* true if no text is left for the next piece */

    memmove(part->text, crew->left, filled);
    needed += filled;
    while (cut == 0 && got > 0 && filled <= SLC_CSV_RECORD_BYTES_MAX) {
        while (filled < needed && got > 0) {
            if (slc_stop_check(crew->reading->request->stop, &piece->fault) != SLC_OK ||
                slc_input_read(input, part->text + filled, needed - filled, &got, &piece->fault) !=
                    SLC_OK) {
                got = 0;
            }
            filled += got;
        }
        begin = crew->pieces == 0 ? slc_byte_order_mark_bytes(part->text, filled) : 0;
        cut = slc_csv_cut(part->text + begin, filled - begin, delimiter);
        needed = filled + TEXT_BYTES_MIN;
    }
    part->last = got == 0 && piece->fault.status == SLC_OK;
    crew->ended = got == 0;
    whole = part->last || (cut == 0 && filled > SLC_CSV_RECORD_BYTES_MAX);
    part->bytes = whole ? filled : begin + cut;
    part->position = begin;
    part->spare_begin = filled + SLC_CSV_SLACK;
    part->spare_end = ROOM_BYTES - SLC_CSV_SLACK;
    part->lines = 0;
    crew->left = part->text + part->bytes;
    crew->left_bytes = filled - part->bytes;
    piece->consumed = slc_input_consumed(input);
    piece->number = crew->pieces++;
}

/* Does the same as fill_piece for a table with a feed. */
static void feed_piece(struct crew *crew, struct piece *piece)
{
    struct slc_csv_part *part = piece->part;
    const struct slc_csv_feed *feed = part->table->feed;

    part->position = part->bytes = 0;
    part->spare_begin = 0;
    part->spare_end = ROOM_BYTES - SLC_CSV_SLACK;
    part->lines = 0;
    if (slc_stop_check(crew->reading->request->stop, &piece->fault) == SLC_OK) {
        crew->ended = feed->next(feed->context, part, &piece->fault) != SLC_OK || part->bytes == 0;
    }
    crew->ended = crew->ended || piece->fault.status != SLC_OK;
    crew->fed_rows += part->bytes;
    piece->consumed = crew->fed_rows;
    piece->number = crew->pieces++;
}

/* Reads the next piece. Returns false at the end of the input. */
static bool read_piece(struct crew *crew, struct piece *piece)
{
    piece->fault = (struct slc_error)SLC_ERROR_INIT;
    pthread_mutex_lock(&crew->input_lock);
    pthread_mutex_lock(&crew->order_lock);
    size_t needed = crew->target_bytes;
    bool there = crew->fault_piece == UINT64_MAX && !crew->ended;
    pthread_mutex_unlock(&crew->order_lock);
    if (there && crew->reading->table.feed != NULL) {
        feed_piece(crew, piece);
    } else if (there) {
        fill_piece(crew, piece, needed);
    }
    pthread_mutex_unlock(&crew->input_lock);
    return there;
}

/* Waits until all earlier pieces are committed. Returns false if an earlier piece has a fault. */
static bool wait_turn(struct crew *crew, uint64_t number)
{
    pthread_mutex_lock(&crew->order_lock);
    while (crew->committed != number && crew->fault_piece > number) {
        pthread_cond_wait(&crew->order_changed, &crew->order_lock);
    }
    bool mine = crew->fault_piece > number;
    pthread_mutex_unlock(&crew->order_lock);
    return mine;
}

static void end_turn(struct crew *crew, const struct slc_csv_part *part)
{
    const struct slc_csv_reading *reading = crew->reading;

    pthread_mutex_lock(&crew->order_lock);
    crew->committed++;
    crew->line += part->lines;
    crew->committed_bytes += part->position;
    /* Aim slightly below the number of records for whose rows a part has space. */
    uint64_t needed = crew->committed_bytes / slc_max_u64(reading->rows, 1) *
                      (SLC_CSV_ROWS_BYTES / part->table->row_bytes * 7 / 8);
    crew->target_bytes = slc_max_u64(slc_min_u64(needed, TEXT_BYTES_MAX), TEXT_BYTES_MIN);
    pthread_cond_broadcast(&crew->order_changed);
    pthread_mutex_unlock(&crew->order_lock);
}

/* Counts the committed rows and reserves space for them in the spool. Needs: it is the turn of the
 * piece. */
static enum slc_status place_rows(struct slc_csv_reading *reading,
                                  struct slc_csv_part *part,
                                  uint64_t *at,
                                  struct slc_error *err)
{
    for (unsigned m = 0; m < part->table->spec->order; m++) {
        reading->lowest[m] =
            part->lowest[m] < reading->lowest[m] ? part->lowest[m] : reading->lowest[m];
        reading->highest[m] =
            part->highest[m] > reading->highest[m] ? part->highest[m] : reading->highest[m];
        slc_time_range_merge(&reading->days[m], part->days[m]);
    }
    reading->rows += part->records;
    reading->skipped += part->skipped;
    return slc_spool_reserve(reading->spool, part->row_count * part->table->row_bytes, at, err);
}

/* Translates a piece and commits it when its turn comes. */
static enum slc_status
translate_piece(struct crew *crew, struct piece *piece, struct slc_error *err)
{
    struct slc_csv_reading *reading = crew->reading;
    struct slc_csv_part *part = piece->part;
    enum slc_status status = SLC_OK;
    bool through = false;

    while (status == SLC_OK && !through) {
        uint64_t at = 0;

        slc_csv_part_clear(part);
        slc_csv_translate(part);
        if (!wait_turn(crew, piece->number)) {
            return SLC_OK;
        }
        status = slc_csv_commit(part, crew->line, err);
        SLC_THEN(status, place_rows(reading, part, &at, err));
        through = part->position == part->bytes;
        if (status == SLC_OK && through && piece->fault.status != SLC_OK) {
            *err = piece->fault;
            status = err->status;
        }
        /* If the rows of a piece exceed the space of the part, the piece keeps its turn until all
         * its rows are committed. */
        if (status == SLC_OK && through) {
            end_turn(crew, part);
        }
        SLC_THEN(status, slc_spool_write(reading->spool, at, part->rows,
                                         part->row_count * part->table->row_bytes, err));
    }
    return status;
}

static void process_pieces(struct crew *crew, struct piece *piece)
{
    const struct slc_csv_feed *feed = crew->reading->table.feed;
    struct slc_error err = SLC_ERROR_INIT;

    if (translate_piece(crew, piece, &err) != SLC_OK) {
        record_fault(crew, piece->number, &err);
    }
    if (feed != NULL) {
        feed->release(feed->context, piece->part);
    }
}

static void run_worker(void *context, unsigned worker, unsigned workers)
{
    struct crew *crew = context;
    const struct slc_csv_request *request = crew->reading->request;
    struct piece piece = {.part = &crew->parts[worker]};

    (void)workers;
    while (read_piece(crew, &piece)) {
        process_pieces(crew, &piece);
        if (worker == 0 && request->progress &&
            slc_seconds_since(crew->shown_ns) >= progress_seconds) {
            crew->shown_ns = slc_clock_ns();
            request->progress(request->context, "parse", piece.consumed,
                              crew->reading->stored_bytes);
        }
    }
}

/* Finds the columns by the first record, then translates the rest of the first piece. */
static enum slc_status read_first(struct crew *crew,
                                  enum slc_status (*header)(struct slc_csv_table *table,
                                                            const struct slc_csv_field *fields,
                                                            unsigned count,
                                                            uint64_t line,
                                                            struct slc_error *err),
                                  struct slc_error *err)
{
    struct slc_csv_table *table = &crew->reading->table;
    struct slc_csv_part *part = &crew->parts[0];
    struct piece piece = {.part = part};
    enum slc_status status = SLC_OK;

    while (table->columns == 0 && status == SLC_OK && read_piece(crew, &piece)) {
        unsigned count;
        size_t end;

        while (table->columns == 0 && status == SLC_OK && slc_csv_next_record(part, &count, &end)) {
            if (count > 0) {
                status = header(table, part->fields, count, crew->line + part->lines, err);
            }
            if (count == 0 || !table->spec->no_header) {
                slc_csv_pass_record(part, end);
            }
        }
        if (status == SLC_OK) {
            process_pieces(crew, &piece);
        }
    }
    return status;
}

static enum slc_status create_parts(struct crew *crew, struct slc_error *err)
{
    const struct slc_csv_reading *reading = crew->reading;

    crew->parts = slc_calloc(reading->workers, sizeof *crew->parts);
    SLC_TRY(slc_check_memory(crew->parts != NULL, err, "to read a table"));
    for (unsigned w = 0; w < reading->workers; w++) {
        SLC_TRY(
            slc_csv_part_create(&reading->table, w == 0 ? 0 : ROOM_BYTES, &crew->parts[w], err));
    }
    crew->parts[0].text = reading->request->buffer;
    return SLC_OK;
}

enum slc_status slc_csv_read(struct slc_csv_reading *reading,
                             enum slc_status (*header)(struct slc_csv_table *table,
                                                       const struct slc_csv_field *fields,
                                                       unsigned count,
                                                       uint64_t line,
                                                       struct slc_error *err),
                             struct slc_error *err)
{
    struct crew crew = {.reading = reading,
                        .left = reading->request->buffer,
                        .target_bytes = TEXT_BYTES_FIRST,
                        .line = 1,
                        .fault_piece = UINT64_MAX,
                        .fault = SLC_ERROR_INIT};

    for (unsigned m = 0; m < reading->table.spec->order; m++) {
        reading->lowest[m] = INT64_MAX;
        reading->highest[m] = INT64_MIN;
        reading->days[m] = (struct slc_time_range)SLC_TIME_RANGE_EMPTY;
    }
    /* These calls cannot fail on Linux with default attributes. */
    pthread_mutex_init(&crew.input_lock, NULL);
    pthread_mutex_init(&crew.order_lock, NULL);
    pthread_cond_init(&crew.order_changed, NULL);
    enum slc_status status = create_parts(&crew, err);
    if (reading->table.feed != NULL) {
        SLC_THEN(status,
                 reading->table.feed->bind(reading->table.feed->context, &reading->table, err));
    } else {
        SLC_THEN(status, read_first(&crew, header, err));
    }
    SLC_THEN(status, slc_team_run(reading->workers, run_worker, &crew, err));
    if (status == SLC_OK && crew.fault_piece != UINT64_MAX) {
        status = crew.fault.status;
        if (err != NULL) {
            *err = crew.fault;
        }
    }
    reading->text_bytes = crew.committed_bytes;
    pthread_cond_destroy(&crew.order_changed);
    pthread_mutex_destroy(&crew.order_lock);
    pthread_mutex_destroy(&crew.input_lock);
    for (unsigned w = 0; crew.parts != NULL && w < reading->workers; w++) {
        slc_csv_part_destroy(&crew.parts[w]);
    }
    slc_free(crew.parts);
    SLC_TRY(status);
    return reading->table.feed != NULL ? SLC_OK : slc_input_check(reading->request->input, err);
}
