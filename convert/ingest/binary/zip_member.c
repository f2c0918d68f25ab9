/* Reads .zip members with libzip from a view of a file. The read callback records errors of the
 * file system, because libzip reports only that a read failed. */
#include "convert/ingest/binary/npy_array.h"

#include "base/memory/bytes.h"
#include "base/memory/checked.h"

#include <inttypes.h>
#include <string.h>
#include <zip.h>

enum {
    END_BYTES = 22, /* bytes of the end record of a .zip file, without a comment */
    /* maximum number of members; the .npz file of a sparse tensor has four or five */
    MEMBERS_MAX = 64,
    /* Maximum number of bytes that one deflated byte can produce: [RFC1951] allows 258 bytes per 2
     * bits. */
    DEFLATE_RATIO_MAX = 1032,
    STORED_SLACK = 64
};

struct slc_zip {
    struct slc_bytes_view file;
    uint64_t position;
    zip_error_t source_error;
    struct slc_error fault; /* first error when reading the file */
    zip_t *archive;
    zip_file_t *member;
    char member_name[32]; /* name of the last member that was opened; "" before the first */
};

static zip_int64_t read_file(struct slc_zip *zip, void *data, uint64_t bytes)
{
    uint64_t some = slc_min_u64(bytes, zip->file.bytes - zip->position);

    if (slc_bytes_read(&zip->file, data, some, zip->position, &zip->fault) != SLC_OK) {
        zip_error_set(&zip->source_error, ZIP_ER_READ, zip->fault.system_errno);
        return -1;
    }
    zip->position += some;
    return (zip_int64_t)some;
}

/* Implements the source operations that libzip calls. */
static zip_int64_t
answer_source(void *context, void *data, zip_uint64_t bytes, zip_source_cmd_t command)
{
    struct slc_zip *zip = context;
    zip_int64_t position;

    switch (command) {
    case ZIP_SOURCE_OPEN:
        zip->position = 0;
        return 0;
    case ZIP_SOURCE_READ:
        return read_file(zip, data, bytes);
    case ZIP_SOURCE_CLOSE:
    case ZIP_SOURCE_FREE:
        return 0;
    case ZIP_SOURCE_STAT: {
        zip_stat_t *stat = ZIP_SOURCE_GET_ARGS(zip_stat_t, data, bytes, &zip->source_error);

        if (!stat) {
            return -1;
        }
        zip_stat_init(stat);
        stat->size = zip->file.bytes;
        stat->valid |= ZIP_STAT_SIZE;
        return sizeof *stat;
    }
    case ZIP_SOURCE_ERROR:
        return zip_error_to_data(&zip->source_error, data, bytes);
    case ZIP_SOURCE_SEEK:
        position = zip_source_seek_compute_offset(zip->position, zip->file.bytes, data, bytes,
                                                  &zip->source_error);
        zip->position = position < 0 ? zip->position : (uint64_t)position;
        return position < 0 ? -1 : 0;
    case ZIP_SOURCE_TELL:
        return (zip_int64_t)zip->position;
    case ZIP_SOURCE_SUPPORTS:
        return zip_source_make_command_bitmap(
            ZIP_SOURCE_OPEN, ZIP_SOURCE_READ, ZIP_SOURCE_CLOSE, ZIP_SOURCE_STAT, ZIP_SOURCE_ERROR,
            ZIP_SOURCE_FREE, ZIP_SOURCE_SEEK, ZIP_SOURCE_TELL, ZIP_SOURCE_SUPPORTS, -1);
    default:
        zip_error_set(&zip->source_error, ZIP_ER_OPNOTSUPP, 0);
        return -1;
    }
}

/* Records a fault that libzip found: the recorded error of the file system if there is one,
 * otherwise that the file is damaged. */
static enum slc_status fault(struct slc_zip *zip, const char *reason, struct slc_error *err)
{
    if (zip->fault.status != SLC_OK) {
        if (err && err->status == SLC_OK) {
            *err = zip->fault;
        }
        return zip->fault.status;
    }
    return slc_fail_file(err, SLC_ERR_INPUT, zip->file.name, "the .npz file is damaged%s%s: %s",
                         zip->member_name[0] ? ", member " : "", zip->member_name, reason);
}

/* Checks the number of members in the end record, because libzip allocates memory for each member.
 * The end record is at the end of the file, because NumPy writes no comment after it. */
static enum slc_status check_end(struct slc_zip *zip, struct slc_error *err)
{
    unsigned char end[END_BYTES];

    if (zip->file.bytes < END_BYTES) {
        return fault(zip, "it ends early", err);
    }
    SLC_TRY(slc_bytes_read(&zip->file, end, END_BYTES, zip->file.bytes - END_BYTES, err));
    if (slc_load_u32(end) != 0x06054b50 || slc_load_u16(end + 20) != 0) {
        return fault(zip, "the end record of a .zip file is not at the end", err);
    }
    if (slc_load_u16(end + 10) > MEMBERS_MAX) {
        return fault(zip, "it has more members than a tensor has arrays", err);
    }
    return SLC_OK;
}

enum slc_status
slc_zip_open(const struct slc_bytes_view *file, struct slc_zip **zip, struct slc_error *err)
{
    static const struct slc_error none = SLC_ERROR_INIT;
    struct slc_zip *made = slc_calloc(1, sizeof *made);
    zip_source_t *source = NULL;
    zip_error_t error;

    *zip = NULL;
    SLC_TRY(slc_check_memory(made != NULL, err, "to read a .npz file"));
    made->file = *file;
    made->fault = none;
    zip_error_init(&made->source_error);
    zip_error_init(&error);
    enum slc_status status = check_end(made, err);
    if (status == SLC_OK) {
        source = zip_source_function_create(answer_source, made, &error);
        made->archive = source ? zip_open_from_source(source, ZIP_RDONLY, &error) : NULL;
        if (!made->archive) {
            status = fault(made, zip_error_strerror(&error), err);
            zip_source_free(source);
        }
    }
    if (status == SLC_OK && zip_get_num_entries(made->archive, 0) > MEMBERS_MAX) {
        status = fault(made, "it has more members than a tensor has arrays", err);
    }
    zip_error_fini(&error);
    if (status != SLC_OK) {
        slc_zip_close(made);
        return status;
    }
    *zip = made;
    return SLC_OK;
}

static void end_member(struct slc_zip *zip)
{
    if (zip->member) {
        (void)zip_fclose(zip->member);
        zip->member = NULL;
    }
}

void slc_zip_close(struct slc_zip *zip)
{
    if (!zip) {
        return;
    }
    end_member(zip);
    if (zip->archive) {
        zip_discard(zip->archive);
    }
    zip_error_fini(&zip->source_error);
    slc_free(zip);
}

bool slc_zip_find(struct slc_zip *zip, const char *name, uint64_t *bytes)
{
    const uint64_t needed = ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD;
    zip_stat_t stat;

    zip_stat_init(&stat);
    if (zip_stat(zip->archive, name, ZIP_FL_UNCHANGED, &stat) != 0 ||
        (stat.valid & needed) != needed) {
        return false;
    }
    *bytes = stat.size;
    return true;
}

enum slc_status slc_zip_open_member(struct slc_zip *zip, const char *name, struct slc_error *err)
{
    zip_stat_t stat;

    end_member(zip);
    (void)snprintf(zip->member_name, sizeof zip->member_name, "%s", name);
    zip_stat_init(&stat);
    if (zip_stat(zip->archive, name, ZIP_FL_UNCHANGED, &stat) == 0 &&
        stat.size / DEFLATE_RATIO_MAX > stat.comp_size + STORED_SLACK) {
        return fault(zip, "the declared size is larger than the compressed bytes can produce", err);
    }
    zip->member = zip_fopen(zip->archive, name, ZIP_FL_UNCHANGED);
    return zip->member ? SLC_OK : fault(zip, zip_strerror(zip->archive), err);
}

enum slc_status
slc_zip_next(struct slc_zip *zip, void *data, size_t bytes, size_t *got, struct slc_error *err)
{
    *got = 0;
    while (*got < bytes) {
        zip_int64_t some = zip_fread(zip->member, (char *)data + *got, bytes - *got);

        if (some < 0) {
            return fault(zip, zip_error_strerror(zip_file_get_error(zip->member)), err);
        }
        if (some == 0) {
            break;
        }
        *got += (size_t)some;
    }
    return SLC_OK;
}
