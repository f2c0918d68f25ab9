/* The row source of a store reads one block at a time. It delivers one record per nonzero, with
 * indices and value; the function `parse` only copies them. */
#include "engine/product/predict/predict_source.h"

#include "base/error/log.h"
#include "base/memory/checked.h"
#include "base/memory/memory.h"
#include "convert/ingest/csv/csv_remember.h"
#include "engine/stream/relabel.h"
#include "storage/codec/codec.h"
#include "storage/file/block_file.h"

#include <errno.h>
#include <string.h>

enum { CHUNK = 1024 };

struct store_source {
    struct slc_row_source source;
    const struct slc_store *store;
    const struct slc_layout_info *info;
    struct slc_block_file file;
    struct slc_decoder *decoder;
    struct slc_buffer memory; /* the current block */
    struct slc_block_view view;
    struct slc_tile_view tile;
    struct slc_chunk_view chunk;
    uint32_t chunk_at;  /* next nonzero of the chunk */
    uint32_t next_tile; /* next tile of the block */
    uint64_t next_block;
    bool in_block, in_tile;
    uint64_t row, consumed;
    struct slc_labels labels[SLC_MAX_ORDER];
    const uint32_t *index[SLC_MAX_ORDER];
};

uint64_t slc_store_source_bytes(const struct slc_store *store)
{
    const struct slc_layout_info *info = slc_reader_info(store->reader);

    return slc_buffer_footprint(info->max_block_bytes, SLC_PAGES_SMALL) +
           slc_decoder_memory_bytes(info, SLC_F64) + slc_relabel_all_bytes(info);
}

static unsigned words_of(const struct store_source *self)
{
    return self->info->order + 1;
}

static enum slc_status read_block(struct store_source *self, struct slc_error *err)
{
    struct slc_block_entry entry;

    slc_reader_entry(self->store->reader, self->next_block, &entry);
    SLC_TRY(
        slc_block_file_read(&self->file, self->memory.data, entry.padded_bytes, entry.offset, err));
    self->consumed += entry.padded_bytes;
    self->in_block = true;
    self->next_tile = 0;
    return slc_block_open(self->store->reader, self->next_block++, self->memory.data, false,
                          &self->view, err);
}

/* Decodes the next chunk; self->chunk.nnz is 0 at the end of the store. */
static enum slc_status next_chunk(struct store_source *self, struct slc_error *err)
{
    self->chunk_at = 0;
    for (;;) {
        if (self->in_tile) {
            SLC_TRY(self->tile.next(&self->tile, CHUNK, &self->chunk, err));
            self->in_tile = self->chunk.nnz > 0;
            if (self->in_tile) {
                return SLC_OK;
            }
        }
        if (self->in_block && self->next_tile < self->view.entry.tile_count) {
            SLC_TRY(slc_tile_open(self->decoder, &self->view, self->next_tile++, &self->tile, err));
            self->in_tile = true;
        } else if (self->next_block < self->info->block_count) {
            SLC_TRY(read_block(self, err));
        } else {
            self->chunk.nnz = 0;
            return SLC_OK;
        }
    }
}

static enum slc_status
store_next(struct slc_row_source *source, struct slc_piece *piece, struct slc_error *err)
{
    struct store_source *self = (struct store_source *)source;
    const unsigned words = words_of(self);
    const uint64_t most = SLC_PIECE_BYTES / (words * sizeof(uint64_t));
    uint64_t *to = piece->buffer.data;
    uint64_t rows = 0;

    for (; rows < most; rows++, to += words) {
        if (self->chunk_at == self->chunk.nnz) {
            SLC_TRY(next_chunk(self, err));
            if (self->chunk.nnz == 0) {
                break;
            }
        }
        for (unsigned n = 0; n < self->info->order; n++) {
            const uint64_t stored = self->tile.corner[n] + self->chunk.offset[n][self->chunk_at];

            to[n] = self->index[n] != NULL ? self->index[n][stored] : stored;
        }
        memcpy(&to[words - 1], (const double *)self->chunk.values + self->chunk_at, sizeof(double));
        self->chunk_at++;
    }
    piece->position = 0;
    piece->bytes = rows * words * sizeof(uint64_t);
    piece->lines_before = self->row;
    self->row += rows;
    return SLC_OK;
}

static enum slc_status store_parse(const struct slc_row_source *source,
                                   const struct slc_piece *piece,
                                   size_t *position,
                                   struct slc_text_rows *rows,
                                   struct slc_error *err)
{
    const unsigned words = words_of((const struct store_source *)source);
    const size_t row_bytes = words * sizeof(uint64_t);

    (void)err;
    for (; *position < piece->bytes && rows->count < rows->capacity; *position += row_bytes) {
        const uint64_t *from = (const uint64_t *)piece->buffer.data + *position / sizeof(uint64_t);

        for (unsigned n = 0; n + 1 < words; n++) {
            rows->coords[n][rows->count] = from[n];
        }
        memcpy(&rows->values[rows->count++], &from[words - 1], sizeof(double));
        rows->lines++;
    }
    return SLC_OK;
}

static void store_locate_fault(const struct slc_row_source *source,
                               uint64_t line,
                               uint64_t column,
                               struct slc_error *err)
{
    (void)line;
    (void)column;
    slc_error_locate_file(err, source->name);
}

static uint64_t store_lines(const struct slc_row_source *source)
{
    return ((const struct store_source *)source)->row;
}

static uint64_t store_consumed(const struct slc_row_source *source)
{
    return ((const struct store_source *)source)->consumed;
}

static void store_close(struct slc_row_source *source)
{
    struct store_source *self = (struct store_source *)source;

    for (unsigned n = 0; n < SLC_MAX_ORDER; n++) {
        slc_labels_destroy(&self->labels[n]);
    }
    slc_block_file_close(&self->file);
    slc_decoder_destroy(self->decoder);
    slc_buffer_destroy(&self->memory);
    slc_free(self);
}

enum slc_status slc_store_source_open(const struct slc_store *store,
                                      struct slc_text_header *header,
                                      struct slc_row_source **source,
                                      struct slc_error *err)
{
    static const struct slc_row_source_ops ops = {
        .next = store_next,
        .parse = store_parse,
        .locate_fault = store_locate_fault,
        .lines = store_lines,
        .consumed = store_consumed,
        .close = store_close,
    };
    struct store_source *self = slc_calloc(1, sizeof *self);

    *source = NULL;
    SLC_TRY(slc_check_memory(self != NULL, err, "for reading a store"));
    self->source = (struct slc_row_source){.ops = &ops, .name = store->path, .header = header};
    self->store = store;
    self->info = slc_reader_info(store->reader);
    self->file = (struct slc_block_file)SLC_BLOCK_FILE_INIT;
    *header = (struct slc_text_header){.dialect = SLC_DIALECT_AUTO,
                                       .order = self->info->order,
                                       .has_nnz = true,
                                       .nnz = self->info->nnz,
                                       .has_values = true};
    enum slc_status status =
        slc_buffer_create(&self->memory, self->info->max_block_bytes, SLC_PAGES_SMALL, err);
    SLC_THEN(status, slc_decoder_create(self->info, SLC_F64, &self->decoder, err));
    SLC_THEN(status, slc_relabel_names(store, SLC_MAX_ORDER, self->labels, self->index, err));
    SLC_THEN(status, slc_block_file_open(store->files, slc_reader_path(store->reader),
                                         "opening the block file", &self->file, err));
    if (status != SLC_OK) {
        store_close(&self->source);
        return status;
    }
    *source = &self->source;
    return SLC_OK;
}

/* Returns true if two items convert the values of their columns to indices by the same rule. */
static bool same_rule(const struct slc_csv_item *a, const struct slc_csv_item *b)
{
    return a->rule == b->rule && a->unit == b->unit && a->width == b->width &&
           a->origin == b->origin && a->power == b->power && a->base == b->base;
}

/* Replaces the recorded columns with those of `columns`; fails if their rules differ. */
static enum slc_status
set_columns(struct slc_csv_spec *spec, bool recorded, const char *columns, struct slc_error *err)
{
    struct slc_csv_spec *given = slc_calloc(1, sizeof *given);

    SLC_TRY(slc_check_memory(given != NULL, err, "for the columns of a table"));
    enum slc_status status = slc_csv_spec_parse(columns, given, err);
    for (unsigned m = 0; m < given->order && status == SLC_OK && recorded; m++) {
        if (given->order != spec->order || !same_rule(&given->items[m], &spec->items[m])) {
            status = slc_fail_field(err, SLC_ERR_USAGE, SLC_FIELD_COLUMNS,
                                    "%s: the store has %u modes, and its mode %u is %s; only the "
                                    "names of columns may differ",
                                    given->items[m].title, spec->order, m + 1,
                                    m < spec->order ? spec->items[m].title : "missing");
        }
    }
    if (status == SLC_OK) {
        memcpy(spec->items, given->items, sizeof spec->items);
        spec->order = given->order;
    }
    slc_free(given);
    return status;
}

/* Prepares to read a table with the columns that the store of the model records. */
static enum slc_status set_table(struct slc_predict_table *table,
                                 const char *store,
                                 const struct slc_manifest *manifest,
                                 const struct slc_predict_coords_options *options,
                                 struct slc_error *err)
{
    const char *columns = options->columns, *value = options->value;
    const bool recorded = manifest->origin.table[0] != '\0';

    memset(table, 0, sizeof *table);
    table->scaled = manifest->origin.transforms[0] != '\0';
    table->old.store = store;
    table->old.manifest = manifest;
    if (recorded) {
        SLC_TRY(slc_csv_recall(manifest->origin.table, &table->spec, table->old.lowest, err));
    } else if (columns == NULL) {
        return slc_fail_field(
            err, SLC_ERR_INPUT, SLC_FIELD_COLUMNS,
            "%s does not record the columns of a table: specify the columns of its "
            "modes",
            store);
    }
    table->spec.missing_fixed = true;
    if (columns != NULL) {
        SLC_TRY(set_columns(&table->spec, recorded, columns, err));
    }
    if (table->spec.order != manifest->order) {
        return slc_fail_field(err, SLC_ERR_USAGE, SLC_FIELD_COLUMNS,
                              "%u columns for the %u modes of %s", table->spec.order,
                              manifest->order, store);
    }
    if (value != NULL && strlen(value) >= sizeof table->spec.value) {
        return slc_fail_field(err, SLC_ERR_USAGE, SLC_FIELD_VALUE_COLUMN,
                              "the name of the value column is too long");
    }
    if (value != NULL) {
        (void)strcpy(table->spec.value, value);
    }
    return options->null != NULL ? slc_csv_spec_set_null(&table->spec, options->null, err) : SLC_OK;
}

static enum slc_status open_table(struct slc_predict_coords *coords,
                                  const struct slc_predict_coords_options *options,
                                  const struct slc_run_folder *run,
                                  struct slc_error *err)
{
    const struct slc_files *files = slc_files_system();

    if (options->store != NULL) {
        coords->store_path = slc_strdup(options->store);
        SLC_TRY(slc_check_memory(coords->store_path != NULL, err, "for a path"));
    } else {
        SLC_TRY(slc_run_store_find(files, run, &coords->store_path, err));
    }
    SLC_TRY(slc_manifest_read(files, coords->store_path, &coords->manifest, err));
    SLC_TRY(set_table(&coords->table, coords->store_path, &coords->manifest, options, err));
    if (coords->table.scaled && coords->table.spec.value[0] != '\0') {
        slc_log(SLC_LOG_NOTE,
                "the model is of transformed values (%s), so the values of the table are not "
                "compared with it",
                coords->manifest.origin.transforms);
    }
    return SLC_OK;
}

enum slc_status slc_predict_coords_open(struct slc_predict_coords *coords,
                                        const struct slc_predict_coords_options *options,
                                        const struct slc_run_folder *run,
                                        struct slc_predict_options *predict,
                                        struct slc_error *err)
{
    const struct slc_files *files = slc_files_system();
    const char *input = predict->input, *store = input;
    const bool piped = strcmp(input, "-") == 0;
    struct slc_file_stat stat;
    const int code = piped ? -ENOENT : files->stat_path(files->self, input, &stat);

    /* Reading a file that does not exist reports its absence. */
    if (code < 0 && code != -ENOENT) {
        return slc_fail_errno(err, -code, input, "checking the coordinates");
    }
    const bool is_store = code >= 0 && stat.kind == 'd';
    const bool is_table =
        !is_store && (options->columns != NULL || options->value != NULL || slc_csv_is_name(input));
    if (options->null != NULL && !is_table) {
        return slc_fail_fields(err, SLC_ERR_USAGE, SLC_FIELD_NULL, SLC_FIELD_COLUMNS,
                               "words for empty fields apply to tables: name the columns of the "
                               "table that are its modes");
    }
    if (is_store) {
        SLC_TRY(slc_store_open_within(files, input, options->memory_bytes, &coords->store, err));
        coords->store_open = true;
        predict->store = &coords->store;
        files = coords->store.files;
    } else if (is_table) {
        SLC_TRY(open_table(coords, options, run, err));
        store = coords->store_path;
        predict->table = &coords->table;
    } else {
        return SLC_OK;
    }
    SLC_TRY(slc_run_names_open(files, run, store, &coords->names, err));
    predict->names = coords->names.names;
    return SLC_OK;
}

void slc_predict_coords_close(struct slc_predict_coords *coords)
{
    slc_run_names_close(&coords->names);
    slc_store_close(&coords->store);
    slc_free(coords->store_path);
}

uint64_t slc_predict_coords_bytes(const struct slc_predict_coords *coords)
{
    return slc_run_names_bytes(&coords->names) +
           (coords->store_open ? slc_store_source_bytes(&coords->store) : 0) +
           (coords->store_path != NULL ? SLC_PREDICT_TABLE_BYTES : 0);
}
