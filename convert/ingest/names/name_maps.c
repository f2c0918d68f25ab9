#include "convert/ingest/names/name_maps.h"

#include "base/hash.h"
#include "base/memory/checked.h"
#include "base/memory/memory.h"
#include "convert/ingest/input/foreign.h"
#include "storage/manifest/names.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { PIECE_BYTES = 2 * SLC_LINE_BYTES_MAX };

/* Parses a mode number (from 1) at the beginning of `text` and sets *rest to the text after it.
 * Returns 0 if there is no valid mode number. */
static unsigned read_mode(const char *text, const char **rest)
{
    unsigned long mode = 0;

    while (*text >= '0' && *text <= '9' && mode <= SLC_MAX_ORDER) {
        mode = 10 * mode + (unsigned long)(*text++ - '0');
    }
    *rest = text;
    return mode <= SLC_MAX_ORDER ? (unsigned)mode : 0;
}

/* If `name` is mode-K-TITLE.map or mode-K.map, optionally followed by the suffix of a compression
 * format, returns K (from 1) and stores the position of the title. Otherwise returns 0. */
static unsigned is_map(const char *name, const char **title, size_t *title_bytes)
{
    const char *end = strstr(name, ".map");
    const char *rest;

    for (const char *next = end; next != NULL; next = strstr(next + 1, ".map")) {
        end = next;
    }
    if (strncmp(name, "mode-", 5) != 0 || end == NULL || (end[4] != '\0' && end[4] != '.')) {
        return 0;
    }
    unsigned mode = read_mode(name + 5, &rest);
    if (mode == 0 || (*rest != '-' && rest != end)) {
        return 0;
    }
    *title = rest == end ? rest : rest + 1;
    *title_bytes = (size_t)(end - *title);
    return mode;
}

/* Determines the memory for reading a map, and its identity. */
static enum slc_status look_at(struct slc_name_maps *maps, unsigned mode, struct slc_error *err)
{
    struct slc_input_info info;
    struct slc_input *input;
    uint64_t numbers[4] = {maps->identity, mode, 0, 0};
    struct slc_file_stat stat;

    /* Maps are opened more than once; a pipe would then be empty, or reading it would not end. */
    if (maps->files->stat_path(maps->files->self, maps->path[mode], &stat) >= 0 &&
        stat.kind == 'o') {
        return slc_fail_file(err, SLC_ERR_INPUT, maps->path[mode],
                             "not a regular file: names are read more than once, so save them in a "
                             "file");
    }
    SLC_TRY(slc_input_open(maps->files, maps->path[mode], &input, err));
    slc_input_info(input, &info);
    /* Upper bound of the number of names: one per byte, or 16 per compressed byte. */
    uint64_t names_most = (info.seekable ? 1 : 16) * info.stored_bytes;
    maps->memory_bytes = slc_max_u64(
        maps->memory_bytes, info.memory_bytes + slc_buffer_footprint(PIECE_BYTES, SLC_PAGES_SMALL) +
                                slc_names_memory_bytes(names_most));
    enum slc_status status = slc_input_identity(input, &numbers[2], err);
    numbers[3] = slc_hash64(maps->path[mode], strlen(maps->path[mode]));
    maps->identity = slc_hash64(numbers, sizeof numbers);
    slc_input_close(input);
    return status;
}

/* Adds the map at `path` and owns `path` from now on, even after an error. */
static enum slc_status add_map(struct slc_name_maps *maps,
                               unsigned mode,
                               char *path,
                               const char *title,
                               size_t title_bytes,
                               struct slc_error *err)
{
    SLC_TRY(slc_check_memory(path != NULL, err, "for a path"));
    if (maps->path[mode] != NULL) {
        const enum slc_status status =
            slc_fail(err, SLC_ERR_USAGE, "two files of names for mode %u: %s and %s", mode + 1,
                     maps->path[mode], path);

        slc_free(path);
        return status;
    }
    maps->path[mode] = path;
    (void)snprintf(maps->title[mode], SLC_TITLE_BYTES, "%.*s", (int)title_bytes, title);
    return look_at(maps, mode, err);
}

struct search {
    struct slc_name_maps *maps;
    const char *folder;
    unsigned found;
    enum slc_status status;
    struct slc_error *err;
};

static int add_found(void *context, const char *name, char kind)
{
    struct search *search = context;
    const char *title;
    size_t bytes;
    const unsigned mode = kind != 'd' ? is_map(name, &title, &bytes) : 0;

    if (mode > 0) {
        search->found++;
        search->status = add_map(search->maps, mode - 1, slc_path_join(search->folder, name), title,
                                 slc_min_u64(bytes, SLC_TITLE_BYTES - 1), search->err);
    }
    return search->status != SLC_OK;
}

static enum slc_status
add_folder(struct slc_name_maps *maps, const char *folder, struct slc_error *err)
{
    struct search search = {maps, folder, 0, SLC_OK, err};
    const int code = maps->files->list_folder(maps->files->self, folder, add_found, &search);

    SLC_TRY(slc_check_call(code, err, folder, "cannot search for files of names"));
    if (search.status == SLC_OK && search.found == 0) {
        return slc_fail(
            err, SLC_ERR_USAGE,
            "%s has no file of names: expected mode-1-TITLE.map or mode-1.map for mode 1", folder);
    }
    return search.status;
}

enum slc_status slc_name_maps_add(struct slc_name_maps *maps,
                                  const struct slc_files *files,
                                  const char *where,
                                  struct slc_error *err)
{
    const char *rest, *title = "", *base;
    size_t title_bytes = 0;
    const unsigned mode = read_mode(where, &rest);

    maps->files = slc_files_or_system(files);
    if (rest == where || *rest != '=') {
        return add_folder(maps, where, err);
    }
    if (mode == 0 || rest[1] == '\0') {
        return slc_fail(err, SLC_ERR_USAGE, "'%s' is not K=FILE, with a mode K from 1 to %d", where,
                        SLC_MAX_ORDER);
    }
    base = strrchr(rest + 1, '/') != NULL ? strrchr(rest + 1, '/') + 1 : rest + 1;
    if (is_map(base, &title, &title_bytes) == 0) {
        title = "";
        title_bytes = 0;
    }
    return add_map(maps, mode - 1, slc_strdup(rest + 1), title,
                   slc_min_u64(title_bytes, SLC_TITLE_BYTES - 1), err);
}

void slc_name_maps_destroy(struct slc_name_maps *maps)
{
    for (unsigned mode = 0; mode < SLC_MAX_ORDER; mode++) {
        slc_free(maps->path[mode]);
    }
    *maps = (struct slc_name_maps){.files = NULL};
}

enum slc_status
slc_name_maps_check_order(const struct slc_name_maps *maps, unsigned order, struct slc_error *err)
{
    for (unsigned mode = order; mode < SLC_MAX_ORDER; mode++) {
        if (maps->path[mode] != NULL) {
            return slc_fail(err, SLC_ERR_USAGE,
                            "%s has names for mode %u, but the tensor has %u modes",
                            maps->path[mode], mode + 1, order);
        }
    }
    return SLC_OK;
}

/* State while a map is read. */
struct reading {
    const char *path;
    uint64_t line;  /* line number of the last name, from 1 */
    uint64_t count; /* expected number of names */
    unsigned mode;
    struct slc_names *old; /* names in the old store; NULL if there are none */
    struct slc_names_writer *writer;
};

static enum slc_status wrong_count(const struct reading *reading, bool more, struct slc_error *err)
{
    enum slc_status status = more ? slc_fail_field(err, SLC_ERR_INPUT, SLC_FIELD_DIMS,
                                                   "more lines than the %" PRIu64
                                                   " indices of mode %u: each line is the name of "
                                                   "one index; a larger mode size can be given",
                                                   reading->count, reading->mode + 1)
                                  : slc_fail(err, SLC_ERR_INPUT,
                                             "%" PRIu64 " names end here, but mode %u has %" PRIu64
                                             " indices: each needs a line, which may be empty",
                                             reading->line, reading->mode + 1, reading->count);

    slc_error_locate_text(err, reading->path, more ? reading->line + 1 : reading->line, 1);
    return status;
}

/* Checks that an index with a name in the store has the same name in the map. */
static enum slc_status check_old(const struct reading *reading,
                                 uint64_t index,
                                 const char *name,
                                 size_t bytes,
                                 struct slc_error *err)
{
    const char *old = NULL;
    size_t old_bytes = 0;

    if (reading->old == NULL || index >= slc_names_count(reading->old)) {
        return SLC_OK;
    }
    SLC_TRY(slc_names_get(reading->old, index, &old, &old_bytes, err));
    if (old != NULL && (old_bytes != bytes || memcmp(old, name, bytes) != 0)) {
        return slc_fail(err, SLC_ERR_INPUT,
                        "index %" PRIu64 " of mode %u is called '%.*s' here and '%.60s' in the "
                        "store: names in the store must not change",
                        index + 1, reading->mode + 1, (int)slc_min_u64(bytes, 60), name, old);
    }
    return SLC_OK;
}

/* Adds the names in a piece of text, which consists of whole lines, to the map. */
static enum slc_status
add_lines(struct reading *reading, const char *text, size_t bytes, struct slc_error *err)
{
    const char *end = text + bytes;

    while (text < end) {
        const char *stop = memchr(text, '\n', (size_t)(end - text));
        const char *next = stop != NULL ? stop + 1 : end;
        const char *last = stop != NULL ? stop : end;

        if (last > text && last[-1] == '\r') {
            last--;
        }
        const char *alone = last > text ? memchr(text, '\r', (size_t)(last - text)) : NULL;
        if (alone != NULL) {
            enum slc_status status = slc_fail(err, SLC_ERR_INPUT,
                                              "a carriage return within a name: lines must end in "
                                              "LF or CR LF (convert them with: tr '\\r' '\\n')");
            slc_error_locate_text(err, reading->path, reading->line + 1,
                                  (uint64_t)(alone - text) + 1);
            return status;
        }
        if (reading->line == reading->count) {
            return wrong_count(reading, true, err);
        }
        reading->line++;
        enum slc_status status =
            check_old(reading, reading->line - 1, text, (size_t)(last - text), err);
        SLC_THEN(status, slc_names_writer_add(reading->writer, text, (size_t)(last - text), err));
        if (status != SLC_OK) {
            if (status == SLC_ERR_INPUT) {
                slc_error_locate_text(err, reading->path, reading->line, 1);
            }
            return status;
        }
        text = next;
    }
    return SLC_OK;
}

static enum slc_status
read_lines(struct reading *reading, struct slc_input *input, struct slc_error *err)
{
    struct slc_buffer piece;
    enum slc_status status = slc_buffer_create(&piece, PIECE_BYTES, SLC_PAGES_SMALL, err);
    size_t bytes = 1;

    SLC_TRY(status);
    SLC_THEN(status, slc_input_check_text(input, false, err));
    while (status == SLC_OK && bytes > 0) {
        status = slc_input_next(input, piece.data, PIECE_BYTES, &bytes, err);
        if (status == SLC_OK) {
            const size_t mark =
                reading->line == 0 ? slc_byte_order_mark_bytes(piece.data, bytes) : 0;

            status = add_lines(reading, (char *)piece.data + mark, bytes - mark, err);
        }
    }
    slc_buffer_destroy(&piece);
    SLC_THEN(status, slc_input_check(input, err));
    return status == SLC_OK && reading->line < reading->count ? wrong_count(reading, false, err)
                                                              : status;
}

enum slc_status slc_name_maps_attach_mode(const struct slc_name_maps *maps,
                                          unsigned mode,
                                          struct slc_names *old,
                                          const char *folder,
                                          struct slc_manifest *manifest,
                                          struct slc_error *err)
{
    struct reading reading = {
        .path = maps->path[mode], .count = manifest->dims[mode], .mode = mode, .old = old};
    struct slc_input *input;

    SLC_TRY(slc_input_open(maps->files, reading.path, &input, err));
    enum slc_status status = slc_names_writer_open(maps->files, folder, mode, &reading.writer, err);
    if (status == SLC_OK) {
        status = read_lines(&reading, input, err);
        if (status == SLC_OK) {
            status = slc_names_writer_finish(reading.writer,
                                             &manifest->names[manifest->names_count], err);
        } else {
            slc_names_writer_abandon(reading.writer);
        }
    }
    slc_input_close(input);
    SLC_TRY(status);
    manifest->names_count++;
    memcpy(manifest->titles[mode], maps->title[mode], SLC_TITLE_BYTES);
    return SLC_OK;
}

enum slc_status slc_name_maps_attach(void *maps,
                                     const char *folder,
                                     struct slc_manifest *manifest,
                                     struct slc_error *err)
{
    const struct slc_name_maps *all = maps;

    for (unsigned mode = 0; mode < manifest->order; mode++) {
        if (all->path[mode] != NULL) {
            SLC_TRY(slc_name_maps_attach_mode(all, mode, NULL, folder, manifest, err));
        }
    }
    return SLC_OK;
}
