/* Delivers input text in pieces of whole lines.
 *
 * A piece is filled to its capacity from the source or from its decoder, and cut after its last
 * line end. The incomplete line after the cut is kept for the next piece. If a fault occurs while a
 * piece is filled (a damaged stream, a line that is too long), the whole lines before the fault are
 * delivered first. Faults in these lines are therefore reported first, regardless of where pieces
 * are cut. */
#include "convert/ingest/input/input.h"

#include "base/hash.h"
#include "base/memory/checked.h"
#include "base/memory/memory.h"
#include "convert/ingest/input/input_source.h"
#include "storage/manifest/folder_kind.h"

#include <assert.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

enum {
    /* Number of ranges, and bytes per range, whose hash identifies a file. The ranges are spread
     * over the file, and reading them needs a few milliseconds. */
    IDENTITY_RANGES = 16,
    IDENTITY_RANGE_BYTES = 4096
};

/* The recorded length is accepted if it and the extrapolated length differ by at most this factor.
 * The factor is below 2, because a file of two equal parts may record the length of only one
 * part. */
#define LENGTH_OFF 1.7

struct slc_input {
    struct slc_input_source source;
    enum slc_compression compression;
    struct slc_input_decoder *decoder; /* NULL for plain input */
    uint64_t stored_bytes;             /* 0 means unknown */
    int64_t modified_ns;               /* time of the last change, read when the file was opened */
    bool owns_fd;
    bool at_end;
    uint64_t lines;     /* number of line ends delivered so far */
    uint64_t delivered; /* number of bytes delivered so far */
    /* text after the last piece: the start of a line whose end was not read yet */
    struct slc_buffer carry;
    size_t carry_bytes;
    struct slc_error pending; /* a fault in the text after the delivered lines */
};

/* Opens the path and sets the members that are known without reading. */
static enum slc_status open_source(struct slc_input *input, const char *path, struct slc_error *err)
{
    struct slc_input_source *source = &input->source;
    const struct slc_files *files = source->files;
    struct slc_file_stat stat;

    if (strcmp(path, "-") == 0) {
        /* Read standard input as a pipe even if it is a regular file, because its position may be
         * anywhere and may be shared. */
        source->name = "standard input";
        source->fd = STDIN_FILENO;
        return SLC_OK;
    }
    source->name = path;
    int result = files->open(files->self, path, O_RDONLY | O_CLOEXEC, 0);
    SLC_TRY(slc_check_call(result, err, path, "cannot open"));
    source->fd = result;
    input->owns_fd = true;
    result = files->stat_fd(files->self, source->fd, &stat);
    SLC_TRY(slc_check_call(result, err, path, "cannot inspect"));
    if (stat.kind == 'd') {
        return slc_fail_file(err, SLC_ERR_INPUT, path,
                             "this is a folder, not a file with a tensor%s",
                             slc_folder_advice(files, path, SLC_FOLDER_NONE));
    }
    source->by_offset = stat.kind == 'f';
    if (source->by_offset) {
        input->stored_bytes = stat.bytes;
        input->modified_ns = stat.modified_ns;
        /* The result is ignored, because the call only gives advice to the system. */
        (void)files->advise_file(files->self, source->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    }
    return SLC_OK;
}

static enum slc_status open_decoder(struct slc_input *input, struct slc_error *err)
{
    switch (input->compression) {
    case SLC_COMPRESSION_NONE:
        return SLC_OK;
    case SLC_COMPRESSION_GZIP:
        return slc_input_gzip_open(&input->source, &input->decoder, err);
    case SLC_COMPRESSION_XZ:
        return slc_input_xz_open(&input->source, &input->decoder, err);
    case SLC_COMPRESSION_ZSTD:
        return slc_input_zstd_open(&input->source, &input->decoder, err);
    case SLC_COMPRESSION_BZIP2:
        return slc_input_bzip2_open(&input->source, &input->decoder, err);
    default:
        return slc_input_lz4_open(&input->source, &input->decoder, err);
    }
}

enum slc_status slc_input_open(const struct slc_files *files,
                               const char *path,
                               struct slc_input **input,
                               struct slc_error *err)
{
    static const struct slc_error empty = SLC_ERROR_INIT;
    struct slc_input *in = slc_calloc(1, sizeof *in);

    *input = NULL;
    SLC_TRY(slc_check_memory(in != NULL, err, "to open the input"));
    in->pending = empty;
    in->source.files = slc_files_or_system(files);
    in->source.fd = -1;
    enum slc_status status = open_source(in, path, err);
    SLC_THEN(status, slc_buffer_create(&in->carry, SLC_LINE_BYTES_MAX, SLC_PAGES_SMALL, err));
    SLC_THEN(status, slc_input_source_peek(&in->source, err));
    if (status == SLC_OK) {
        in->compression = slc_compression_detect(in->source.head, in->source.head_bytes);
    }
    SLC_THEN(status, open_decoder(in, err));
    if (status != SLC_OK) {
        slc_input_close(in);
        return status;
    }
    *input = in;
    return SLC_OK;
}

void slc_input_close(struct slc_input *input)
{
    if (!input) {
        return;
    }
    if (input->decoder) {
        input->decoder->close(input->decoder);
    }
    if (input->owns_fd) {
        /* Nothing was written, so a failing close cannot lose data. */
        (void)input->source.files->close(input->source.files->self, input->source.fd);
    }
    slc_buffer_destroy(&input->carry);
    slc_free(input);
}

void slc_input_info(const struct slc_input *input, struct slc_input_info *info)
{
    info->seekable = input->source.by_offset && input->compression == SLC_COMPRESSION_NONE;
    info->stored_bytes = input->stored_bytes;
    info->compression = slc_compression_name(input->compression);
    info->name = input->source.name;
    info->memory_bytes =
        input->carry.bytes +
        slc_compression_memory(input->compression, input->source.head, input->source.head_bytes);
}

uint64_t slc_input_consumed(const struct slc_input *input)
{
    return input->source.consumed;
}

uint64_t slc_input_lines(const struct slc_input *input)
{
    return input->lines;
}

bool slc_input_at_end(const struct slc_input *input)
{
    return input->at_end && input->carry_bytes == 0;
}

/* Returns the text bytes per bzip2 block. A block is decoded only after its last stored byte was
 * read. */
static uint64_t block_bytes(const struct slc_input *input)
{
    return input->compression == SLC_COMPRESSION_BZIP2
               ? (uint64_t)(input->source.head[3] - '0') * 100000
               : 1;
}

uint64_t slc_input_text_bytes(const struct slc_input *input)
{
    const uint64_t text = input->delivered + input->carry_bytes;

    if (input->at_end) {
        return text;
    }
    if (input->decoder == NULL || input->stored_bytes == 0) {
        return input->stored_bytes;
    }
    uint64_t used = input->source.consumed - input->decoder->held;
    if (text == 0 || used == 0) {
        return 0;
    }
    uint64_t recorded =
        slc_compression_length(&input->source, input->compression, input->stored_bytes);
    if (input->compression == SLC_COMPRESSION_XZ && recorded >= text) {
        return recorded;
    }
    double expected = (double)(slc_div_up_u64(text, block_bytes(input)) * block_bytes(input)) *
                      (double)input->stored_bytes / (double)used;
    if (input->compression == SLC_COMPRESSION_GZIP) {
        const double lengths = floor(expected / 0x1p32);

        /* gzip records only the low 32 bits of the length. Choose the length with these bits that
         * is nearest to the extrapolation. */
        for (double more = fmax(lengths - 1, 0); more <= lengths + 1 && recorded > 0; more++) {
            const double length = (double)recorded + more * 0x1p32;

            if (length >= (double)text && length >= expected / LENGTH_OFF &&
                length <= LENGTH_OFF * expected) {
                return (uint64_t)length;
            }
        }
    } else if (recorded >= text && (double)recorded >= expected / LENGTH_OFF &&
               (double)recorded <= LENGTH_OFF * expected) {
        return recorded;
    }
    return (uint64_t)fmax(expected, (double)text);
}

/* Counts the line ends. Compilers vectorize this loop to several bytes per cycle. */
static uint64_t count_line_ends(const char *text, size_t bytes)
{
    uint64_t count = 0;

    for (size_t i = 0; i < bytes; i++) {
        count += text[i] == '\n';
    }
    return count;
}

/* Reads until `text` is full or the input ends. Stores a fault in input->pending. */
static size_t fill_text(struct slc_input *input, char *text, size_t filled, size_t capacity)
{
    while (filled < capacity && !input->at_end) {
        size_t got = 0;
        enum slc_status status =
            input->decoder ? input->decoder->read(input->decoder, text + filled, capacity - filled,
                                                  &got, &input->pending)
                           : slc_input_source_read(&input->source, text + filled, capacity - filled,
                                                   &got, &input->pending);

        if (status != SLC_OK) {
            break;
        }
        input->at_end = got == 0;
        filled += got;
    }
    return filled;
}

/* Records a fault if the first decompressed bytes are compressed data, because these are not lines
 * of text. */
static size_t once_compressed(struct slc_input *input, const char *text, size_t filled)
{
    const enum slc_compression inner =
        input->decoder && input->delivered == 0
            ? slc_compression_detect((const unsigned char *)text, filled)
            : SLC_COMPRESSION_NONE;

    if (inner == SLC_COMPRESSION_NONE) {
        return filled;
    }
    slc_error_clear(&input->pending);
    (void)slc_fail(
        &input->pending, SLC_ERR_INPUT,
        "the input is compressed twice, with %s and inside it with %s: decompress it to text first",
        slc_compression_name(input->compression), slc_compression_name(inner));
    slc_error_locate_file(&input->pending, input->source.name);
    return 0;
}

const unsigned char *slc_input_peek(struct slc_input *input, size_t *bytes)
{
    char *text = input->carry.data;

    assert(input->delivered == 0);
    if (input->carry_bytes < SLC_INPUT_PEEK_BYTES && input->pending.status == SLC_OK) {
        size_t filled = fill_text(input, text, input->carry_bytes, SLC_INPUT_PEEK_BYTES);

        input->carry_bytes = once_compressed(input, text, filled);
    }
    *bytes = input->carry_bytes;
    return input->carry.data;
}

enum slc_status slc_input_read(
    struct slc_input *input, void *data, size_t bytes, size_t *got, struct slc_error *err)
{
    size_t kept = bytes < input->carry_bytes ? bytes : input->carry_bytes;

    memcpy(data, input->carry.data, kept);
    input->carry_bytes -= kept;
    memmove(input->carry.data, (char *)input->carry.data + kept, input->carry_bytes);
    *got = kept;
    if (input->pending.status == SLC_OK) {
        *got = fill_text(input, data, kept, bytes);
    }
    input->delivered += *got;
    if (*got == 0 && input->pending.status != SLC_OK) {
        if (err && err->status == SLC_OK) {
            *err = input->pending;
        }
        return input->pending.status;
    }
    return SLC_OK;
}

int slc_input_fd(const struct slc_input *input)
{
    assert(input->source.by_offset && !input->decoder);
    return input->source.fd;
}

enum slc_status slc_input_next(
    struct slc_input *input, char *text, size_t capacity, size_t *bytes, struct slc_error *err)
{
    size_t filled = input->carry_bytes;
    size_t whole = 0;

    assert(capacity >= 2 * (size_t)SLC_LINE_BYTES_MAX);
    *bytes = 0;
    memcpy(text, input->carry.data, filled);
    input->carry_bytes = 0;
    if (input->pending.status == SLC_OK) {
        filled = once_compressed(input, text, fill_text(input, text, filled, capacity));
    }
    if (filled > 0) {
        whole = filled;
        if (!input->at_end) {
            const char *last = memrchr(text, '\n', filled);

            whole = last ? (size_t)(last - text) + 1 : 0;
        }
        input->lines += count_line_ends(text, whole);
        input->delivered += whole;
    }
    if (input->pending.status == SLC_OK && filled - whole > SLC_LINE_BYTES_MAX) {
        (void)slc_fail(&input->pending, SLC_ERR_INPUT,
                       "a line of more than %d bytes is too long for a row",
                       (int)SLC_LINE_BYTES_MAX);
        slc_error_locate_text(&input->pending, input->source.name, input->lines + 1,
                              (uint64_t)SLC_LINE_BYTES_MAX + 1);
    }
    if (input->pending.status == SLC_OK) {
        input->carry_bytes = filled - whole;
        memcpy(input->carry.data, text + whole, input->carry_bytes);
    } else if (whole == 0) {
        if (err && err->status == SLC_OK) {
            *err = input->pending;
        }
        return input->pending.status;
    }
    *bytes = whole;
    return SLC_OK;
}

enum slc_status slc_input_sample(struct slc_input *input,
                                 uint64_t offset,
                                 char *text,
                                 size_t capacity,
                                 size_t *bytes,
                                 struct slc_error *err)
{
    struct slc_input_source at = input->source;
    size_t filled = 0, begin = 0, end;
    bool at_end = false;

    assert(input->source.by_offset && !input->decoder);
    *bytes = 0;
    at.consumed = offset;
    at.head_used = at.head_bytes;
    while (filled < capacity && !at_end) {
        size_t got;

        SLC_TRY(slc_input_source_read(&at, text + filled, capacity - filled, &got, err));
        at_end = got == 0;
        filled += got;
    }
    end = filled;
    if (offset > 0) {
        const char *first = memchr(text, '\n', filled);

        begin = first ? (size_t)(first - text) + 1 : filled;
    }
    if (!at_end) {
        const char *last = memrchr(text + begin, '\n', filled - begin);

        end = last ? (size_t)(last - text) + 1 : begin;
    }
    memmove(text, text + begin, end - begin);
    *bytes = end - begin;
    return SLC_OK;
}

enum slc_status slc_input_go_to(struct slc_input *input,
                                uint64_t offset,
                                uint64_t lines,
                                char *text,
                                size_t capacity,
                                bool *there,
                                struct slc_error *err)
{
    enum slc_status status = SLC_OK;
    size_t bytes = 1;

    if (input->source.by_offset && !input->decoder) {
        input->source.consumed = offset;
        input->source.head_used = input->source.head_bytes;
        input->carry_bytes = 0;
        input->at_end = false;
        input->delivered = offset;
        input->lines = lines;
    }
    while (status == SLC_OK && bytes > 0 && input->delivered < offset) {
        status = slc_input_next(input, text, capacity, &bytes, err);
    }
    *there = status == SLC_OK && input->delivered == offset && input->lines == lines;
    return status;
}

enum slc_status slc_input_check(const struct slc_input *input, struct slc_error *err)
{
    const struct slc_input_source *source = &input->source;
    enum slc_status status = SLC_OK;
    struct slc_file_stat stat;

    if (!source->by_offset) {
        return SLC_OK;
    }
    int code = source->files->stat_fd(source->files->self, source->fd, &stat);
    SLC_TRY(slc_check_call(code, err, source->name, "cannot inspect"));
    if (stat.bytes != input->stored_bytes) {
        status = slc_fail(err, SLC_ERR_INPUT,
                          "the file had %" PRIu64 " bytes when it was opened and has %" PRIu64
                          " now: repeat the command when no other process writes to it",
                          input->stored_bytes, stat.bytes);
    } else if (stat.modified_ns != input->modified_ns) {
        status = slc_fail(err, SLC_ERR_INPUT,
                          "the file changed while it was read: repeat the command when no other "
                          "process writes to it");
    }
    slc_error_locate_file(err, source->name);
    return status;
}

enum slc_status
slc_input_identity(struct slc_input *input, uint64_t *identity, struct slc_error *err)
{
    const struct slc_input_source *source = &input->source;
    const struct slc_files *files = source->files;
    uint64_t numbers[4 + IDENTITY_RANGES];
    struct slc_file_stat stat;

    *identity = 0;
    if (!source->by_offset) {
        return SLC_OK;
    }
    int code = files->stat_fd(files->self, source->fd, &stat);
    SLC_TRY(slc_check_call(code, err, source->name, "cannot inspect"));
    numbers[0] = stat.bytes;
    numbers[1] = stat.inode;
    numbers[2] = (uint64_t)stat.modified_ns;
    numbers[3] = IDENTITY_RANGES;
    for (unsigned r = 0; r < IDENTITY_RANGES; r++) {
        char bytes[IDENTITY_RANGE_BYTES];
        uint64_t length = slc_min_u64(stat.bytes, sizeof bytes);
        uint64_t offset = (stat.bytes - length) / (IDENTITY_RANGES - 1) * r;

        SLC_TRY(slc_file_read_at(files, source->fd, source->name, bytes, length, offset, err));
        numbers[4 + r] = slc_hash64(bytes, length);
    }
    *identity = slc_max_u64(slc_hash64(numbers, sizeof numbers), 1);
    return SLC_OK;
}

uint64_t slc_input_identity_bytes(const struct slc_input *input)
{
    return input->source.by_offset
               ? IDENTITY_RANGES * slc_min_u64(input->stored_bytes, IDENTITY_RANGE_BYTES)
               : 0;
}
