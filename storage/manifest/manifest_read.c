/* Reads the manifest tensor.json (docs/FORMAT.md, section 9) and checks every member. The checksum
 * is verified before the text is parsed, so a parse error means that another program wrote the
 * manifest, not that a bit was flipped. */
#include "storage/manifest/store.h"

#include "base/hash.h"
#include "base/key.h"
#include "base/memory/bytes.h"
#include "base/memory/memory.h"
#include "base/text/plain_text.h"
#include "storage/manifest/folder_kind.h"
#include "storage/manifest/json_text.h"
#include "storage/manifest/labels.h"
#include "storage/manifest/manifest_text.h"
#include "storage/manifest/names.h"
#include "storage/manifest/values_json.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

/* State of the reader. After the first failure, all functions do nothing, so that the caller can
 * read all members and then check the status once. */
struct parser {
    enum slc_status status;
    struct slc_error *err;
};

static void set_member_error(struct parser *parser, const char *name, const char *expected)
{
    if (parser->status == SLC_OK) {
        parser->status = slc_fail(parser->err, SLC_ERR_FORMAT,
                                  "the manifest's member \"%s\" should be %s", name, expected);
    }
}

static uint64_t
get_count(struct parser *parser, const json_t *object, const char *name, uint64_t max)
{
    const json_t *value = json_object_get(object, name);
    json_int_t count = json_integer_value(value);

    if (!json_is_integer(value) || count < 0 || (uint64_t)count > max) {
        char expected[64];

        snprintf(expected, sizeof expected, "an integer from 0 to %" PRIu64, max);
        set_member_error(parser, name, expected);
        return 0;
    }
    return (uint64_t)count;
}

/* Returns a borrowed string, or "" after a failure. */
static const char *get_string(struct parser *parser, const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));

    if (text == NULL) {
        set_member_error(parser, name, "a string");
        return "";
    }
    return text;
}

/* Copies an informative text; truncates it between characters if it is too long. */
static void cut_text(const char *found, char *text, size_t text_bytes)
{
    size_t length = strlen(found);

    if (length >= text_bytes) {
        length = text_bytes - 1;
        while (length > 0 && ((unsigned char)found[length] & 0xc0) == 0x80) {
            length--;
        }
    }
    memcpy(text, found, length);
    text[length] = '\0';
}

static void get_text(
    struct parser *parser, const json_t *object, const char *name, char *text, size_t text_bytes)
{
    cut_text(get_string(parser, object, name), text, text_bytes);
}

/* Parses exactly 16 lower-case hexadecimal digits. */
static bool parse_hex(const char *text, uint64_t *value)
{
    *value = 0;
    for (unsigned i = 0; i < SLC_MANIFEST_DIGITS; i++) {
        const char *digits = "0123456789abcdef";
        const char *digit = text[i] == '\0' ? NULL : strchr(digits, text[i]);

        if (digit == NULL) {
            return false;
        }
        *value = *value << 4 | (uint64_t)(digit - digits);
    }
    return true;
}

static uint64_t get_hex(struct parser *parser, const json_t *object, const char *name)
{
    const char *text = get_string(parser, object, name);
    uint64_t value = 0;

    if (strlen(text) != SLC_MANIFEST_DIGITS || !parse_hex(text, &value)) {
        set_member_error(parser, name, "16 lower-case hexadecimal digits");
        return 0;
    }
    return value;
}

static void parse_dims(struct parser *parser, const json_t *root, struct slc_manifest *manifest)
{
    const json_t *dims = json_object_get(root, "dims");
    size_t order = json_array_size(dims);
    struct slc_key_layout keys;

    if (!json_is_array(dims) || order == 0) {
        set_member_error(parser, "dims", "an array of mode sizes");
        return;
    }
    if (order > SLC_MAX_ORDER) {
        parser->status = slc_fail(parser->err, SLC_ERR_UNSUPPORTED,
                                  "the manifest has %zu modes, but at most %d are supported", order,
                                  SLC_MAX_ORDER);
        return;
    }
    for (size_t mode = 0; mode < order; mode++) {
        const json_t *length = json_array_get(dims, mode);
        json_int_t value = json_integer_value(length);

        if (!json_is_integer(length) || value < 1 || (uint64_t)value > SLC_MAX_MODE_LENGTH) {
            set_member_error(parser, "dims", "mode sizes from 1 to 2^62");
            return;
        }
        manifest->dims[mode] = (uint64_t)value;
    }
    manifest->order = (unsigned)order;
    parser->status = slc_key_layout_init(&keys, manifest->order, manifest->dims, parser->err);
}

/* True if a file may have this name: it stays within the folder and is printable, and it is the
 * usual name `own` of this file, or a name that no command gives to another file. A command could
 * otherwise overwrite or remove the file. */
static bool is_possible_name(const char *name, const char *own)
{
    static const char *const starts[] = {"blco.", "sorted-", "fiber-", "perm-", "names-", "."};
    static const char *const ends[] = {".tmp",      ".part",     ".old",   ".journal", ".stripes",
                                       ".unstripe", ".gathered", ".state", ".stripe"};
    const size_t length = strlen(name);
    bool possible = length > 0 && length < SLC_STORE_FILE_BYTES && slc_text_is_plain(name) &&
                    strchr(name, '/') == NULL && strcmp(name, SLC_MANIFEST_NAME) != 0;

    for (size_t i = 0; i < sizeof starts / sizeof starts[0]; i++) {
        possible = possible && strncmp(name, starts[i], strlen(starts[i])) != 0;
    }
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        const size_t bytes = strlen(ends[i]);

        possible = possible && (length < bytes || strcmp(name + length - bytes, ends[i]) != 0);
    }
    return possible || strcmp(name, own) == 0;
}

/* True if another file of the store has this name. */
static bool is_file_name_used(const struct slc_manifest *manifest,
                              unsigned layouts,
                              unsigned permutations,
                              unsigned names,
                              const char *file)
{
    bool used = false;

    for (unsigned i = 0; i < layouts; i++) {
        used = used || strcmp(manifest->layouts[i].file, file) == 0;
    }
    for (unsigned i = 0; i < permutations; i++) {
        used = used || strcmp(manifest->permutations[i].file, file) == 0;
    }
    for (unsigned i = 0; i < names; i++) {
        used = used || strcmp(manifest->names[i].file, file) == 0;
    }
    return used;
}

/* Copies the member `file` of a layout, permutation or file of names whose usual name is `own`. The
 * three counts are the entries of the manifest that are already parsed. */
static void parse_file(struct parser *parser,
                       const json_t *object,
                       const struct slc_manifest *manifest,
                       unsigned layouts,
                       unsigned permutations,
                       unsigned names,
                       const char *own,
                       char file[SLC_STORE_FILE_BYTES])
{
    const char *found = get_string(parser, object, "file");

    if (!is_possible_name(found, own) ||
        is_file_name_used(manifest, layouts, permutations, names, found)) {
        char expected[200];

        (void)snprintf(expected, sizeof expected,
                       "\"%s\", or a plain file name of at most 63 bytes that no other file of "
                       "a store has or could get",
                       own);
        set_member_error(parser, "file", expected);
        return;
    }
    memcpy(file, found, strlen(found) + 1);
}

static void
parse_layout(struct parser *parser, const json_t *object, struct slc_manifest *manifest, unsigned i)
{
    struct slc_store_layout *layout = &manifest->layouts[i];
    char own[SLC_STORE_FILE_BYTES];
    const char *kind = get_string(parser, object, "layout");
    const char *codec = get_string(parser, object, "codec");
    uint64_t mode = get_count(parser, object, "mode", manifest->order);

    for (unsigned k = SLC_LAYOUT_BLCO; k <= SLC_LAYOUT_FIBER; k++) {
        if (strcmp(kind, slc_layout_name((enum slc_layout_kind)k)) == 0) {
            layout->layout = (enum slc_layout_kind)k;
        }
    }
    if (layout->layout == 0) {
        set_member_error(parser, "layout", "\"blco\", \"sorted\" or \"fiber\"");
    }
    if ((mode == 0) != (layout->layout == SLC_LAYOUT_BLCO)) {
        set_member_error(parser, "mode", "0 for \"blco\", and a mode from 1 for others");
    }
    if (layout->layout == SLC_LAYOUT_BLCO) {
        (void)snprintf(own, sizeof own, SLC_BLCO_NAME);
    } else {
        (void)snprintf(own, sizeof own, "%s-%u.blk", slc_layout_name(layout->layout),
                       (unsigned)mode);
    }
    parse_file(parser, object, manifest, i, 0, 0, own, layout->file);
    if (!slc_codec_parse(codec, &layout->codec)) {
        set_member_error(parser, "codec", "\"packed\", \"lz4\" or \"blco\"");
    }
    layout->file_bytes = get_count(parser, object, "file_bytes", INT64_MAX);
    layout->block_count = get_count(parser, object, "block_count", layout->file_bytes);
    layout->index_bytes = get_count(parser, object, "index_bytes", layout->file_bytes);
    layout->header_hash = get_hex(parser, object, "header_hash");
    if (parser->status == SLC_OK) {
        layout->layout_mode = mode == 0 ? 0 : (unsigned)mode - 1;
    }
}

static void parse_layouts(struct parser *parser, const json_t *root, struct slc_manifest *manifest)
{
    const json_t *layouts = json_object_get(root, "layouts");
    size_t count = json_array_size(layouts);

    if (!json_is_array(layouts) || count == 0 || count > SLC_MAX_LAYOUTS) {
        set_member_error(parser, "layouts", "an array of 1 to 33 objects");
        return;
    }
    for (unsigned i = 0; i < count && parser->status == SLC_OK; i++) {
        struct slc_store_layout *layout = &manifest->layouts[i];

        parse_layout(parser, json_array_get(layouts, i), manifest, i);
        for (unsigned other = 0; other < i; other++) {
            const struct slc_store_layout *listed = &manifest->layouts[other];

            if (listed->layout == layout->layout && listed->layout_mode == layout->layout_mode) {
                set_member_error(parser, "layouts", "an array without duplicates");
            }
        }
    }
    manifest->layout_count = (unsigned)count;
}

/* Parses element `i` of the list of permutations; modes must ascend. */
static void parse_permutation(struct parser *parser,
                              const json_t *object,
                              struct slc_manifest *manifest,
                              unsigned i)
{
    struct slc_store_permutation *permutation = &manifest->permutations[i];
    uint64_t mode = get_count(parser, object, "mode", manifest->order);
    char own[SLC_STORE_FILE_BYTES];

    if (mode == 0 || (i > 0 && mode - 1 <= manifest->permutations[i - 1].mode)) {
        set_member_error(parser, "mode",
                         "a mode from 1, above the mode of the previous permutation");
        return;
    }
    permutation->mode = (unsigned)mode - 1;
    slc_labels_file(permutation->mode, own);
    parse_file(parser, object, manifest, manifest->layout_count, i, 0, own, permutation->file);
    permutation->file_bytes = get_count(parser, object, "file_bytes", INT64_MAX);
    permutation->hash = get_hex(parser, object, "hash");
    uint64_t expected_bytes = slc_labels_file_bytes(manifest->dims[permutation->mode]);
    if (expected_bytes == 0 || permutation->file_bytes != expected_bytes) {
        set_member_error(parser, "file_bytes", "the file size of a permutation of that mode");
    }
}

static void
parse_permutations(struct parser *parser, const json_t *root, struct slc_manifest *manifest)
{
    const json_t *permutations = json_object_get(root, "permutations");
    size_t count = json_array_size(permutations);

    if (!json_is_array(permutations) || count == 0 || count > manifest->order) {
        set_member_error(parser, "permutations", "an array of at most one object per mode");
        return;
    }
    for (unsigned i = 0; i < count && parser->status == SLC_OK; i++) {
        parse_permutation(parser, json_array_get(permutations, i), manifest, i);
    }
    manifest->permutation_count = (unsigned)count;
}

/* Parses the appended inputs. If the member is missing, there are none. */
static void
parse_appended(struct parser *parser, const json_t *object, struct slc_store_origin *origin)
{
    const json_t *list = json_object_get(object, "appended");
    const size_t count = json_array_size(list);

    if (list != NULL && (!json_is_array(list) || count == 0 || count > SLC_MAX_APPENDED)) {
        set_member_error(parser, "appended", "an array of 1 to 128 objects");
        return;
    }
    for (size_t i = 0; i < count && parser->status == SLC_OK; i++) {
        const json_t *from = json_array_get(list, i);
        struct slc_store_appended *appended = &origin->appended[i];

        get_text(parser, from, "source", appended->source, sizeof appended->source);
        appended->input = get_hex(parser, from, "input");
        appended->content = get_hex(parser, from, "content");
        appended->entries = get_count(parser, from, "entries", INT64_MAX);
    }
    origin->appended_count = (unsigned)count;
}

/* Parses element `i` of the list of names; modes must ascend. */
static void
parse_names(struct parser *parser, const json_t *object, struct slc_manifest *manifest, unsigned i)
{
    struct slc_store_names *names = &manifest->names[i];
    const uint64_t mode = get_count(parser, object, "mode", manifest->order);
    char own[SLC_STORE_FILE_BYTES];

    if (mode == 0 || (i > 0 && mode - 1 <= manifest->names[i - 1].mode)) {
        set_member_error(parser, "mode", "a mode from 1, above the mode of the previous names");
        return;
    }
    names->mode = (unsigned)mode - 1;
    slc_names_file(names->mode, own);
    parse_file(parser, object, manifest, manifest->layout_count, manifest->permutation_count, i,
               own, names->file);
    names->count = get_count(parser, object, "count", manifest->dims[names->mode]);
    names->file_bytes = get_count(parser, object, "file_bytes", INT64_MAX);
    names->hash = get_hex(parser, object, "hash");
    if (names->file_bytes < SLC_NAMES_HEAD_BYTES + SLC_NAMES_TAIL_BYTES) {
        set_member_error(parser, "file_bytes", "a possible file size of these names");
    }
}

static void
parse_all_names(struct parser *parser, const json_t *list, struct slc_manifest *manifest)
{
    const size_t count = json_array_size(list);

    if (!json_is_array(list) || count == 0 || count > manifest->order) {
        set_member_error(parser, "names", "an array of at most one object per mode");
        return;
    }
    for (unsigned i = 0; i < count && parser->status == SLC_OK; i++) {
        parse_names(parser, json_array_get(list, i), manifest, i);
    }
    manifest->names_count = (unsigned)count;
}

static void parse_titles(struct parser *parser, const json_t *list, struct slc_manifest *manifest)
{
    if (!json_is_array(list) || json_array_size(list) != manifest->order) {
        set_member_error(parser, "titles", "an array of one text per mode");
        return;
    }
    for (unsigned mode = 0; mode < manifest->order; mode++) {
        const char *title = json_string_value(json_array_get(list, mode));

        if (title == NULL) {
            set_member_error(parser, "titles", "an array of one text per mode");
            return;
        }
        /* The title may be longer than SLC_TITLE_BYTES, because each byte that is not UTF-8 was
         * written as U+FFFD. */
        cut_text(title, manifest->titles[mode], SLC_TITLE_BYTES);
    }
}

/* Parses optional members, which do not depend on the version. */
static void parse_optional(struct parser *parser, const json_t *root, struct slc_manifest *manifest)
{
    const json_t *titles = json_object_get(root, "titles");
    const json_t *names = json_object_get(root, "names");
    const json_t *values = json_object_get(root, "values");

    if (values != NULL && !slc_values_from_json(values, manifest->nnz, &manifest->values)) {
        set_member_error(parser, "values", "an object of valid statistics of values");
    }
    if (titles != NULL && parser->status == SLC_OK) {
        parse_titles(parser, titles, manifest);
    }
    if (names != NULL && parser->status == SLC_OK) {
        parse_all_names(parser, names, manifest);
    }
}

static void parse_origin(struct parser *parser, const json_t *root, struct slc_store_origin *origin)
{
    const json_t *object = json_object_get(root, "origin");

    if (!json_is_object(object)) {
        set_member_error(parser, "origin", "an object");
        return;
    }
    get_text(parser, object, "source", origin->source, sizeof origin->source);
    get_text(parser, object, "dialect", origin->dialect, sizeof origin->dialect);
    origin->index_base = (unsigned)get_count(parser, object, "index_base", 1);
    origin->entries_read = get_count(parser, object, "entries_read", INT64_MAX);
    origin->duplicates = get_count(parser, object, "duplicates", INT64_MAX);
    origin->explicit_zeros = get_count(parser, object, "explicit_zeros", INT64_MAX);
    get_text(parser, object, "duplicate_policy", origin->duplicate_policy,
             sizeof origin->duplicate_policy);
    get_text(parser, object, "writer", origin->writer, sizeof origin->writer);
    origin->keeps_zeros = json_is_true(json_object_get(object, "keep_zeros"));
    if (json_object_get(object, "keep_zeros") != NULL && !origin->keeps_zeros) {
        set_member_error(parser, "keep_zeros", "true or missing");
    }
    if (json_object_get(object, "table") != NULL) {
        get_text(parser, object, "table", origin->table, sizeof origin->table);
    }
    if (json_object_get(object, "transforms") != NULL) {
        get_text(parser, object, "transforms", origin->transforms, sizeof origin->transforms);
    }
    if (json_object_get(object, "part") != NULL) {
        get_text(parser, object, "part", origin->part, sizeof origin->part);
    }
    parse_appended(parser, object, origin);
}

static enum slc_status
parse_manifest(const json_t *root, struct slc_manifest *manifest, struct slc_error *err)
{
    struct parser parser = {SLC_OK, err};
    const json_t *norm = json_object_get(root, "norm");

    memset(manifest, 0, sizeof *manifest);
    if (strcmp(get_string(&parser, root, "format"), SLC_MANIFEST_FORMAT) != 0) {
        set_member_error(&parser, "format", "\"" SLC_MANIFEST_FORMAT "\"");
    }
    uint64_t version = get_count(&parser, root, "version", INT64_MAX);
    if (parser.status == SLC_OK && version > SLC_MANIFEST_VERSION_RELABELLED) {
        return slc_fail(
            err, SLC_ERR_UNSUPPORTED,
            "store version %" PRIu64
            " is not supported; this program reads versions up to %d: use a newer program",
            version, SLC_MANIFEST_VERSION_RELABELLED);
    }
    if (version < SLC_MANIFEST_VERSION) {
        set_member_error(&parser, "version", "1 or 2");
    }
    if (parser.status == SLC_OK) {
        parse_dims(&parser, root, manifest);
    }
    manifest->nnz = get_count(&parser, root, "nnz", INT64_MAX);
    const char *type = get_string(&parser, root, "value_type");
    manifest->value_type = strcmp(type, "f32") == 0 ? SLC_F32 : SLC_F64;
    if (manifest->value_type == SLC_F64 && strcmp(type, "f64") != 0) {
        set_member_error(&parser, "value_type", "\"f32\" or \"f64\"");
    }
    uint64_t bits = get_hex(&parser, root, "sum_of_squares");
    memcpy(&manifest->sum_of_squares, &bits, sizeof bits);
    if (!(manifest->sum_of_squares >= 0)) {
        set_member_error(&parser, "sum_of_squares", "the bits of a number that is not negative");
    }
    if (!json_is_number(norm) && !json_is_null(norm)) {
        set_member_error(&parser, "norm", "a number");
    }
    manifest->content_sum = get_hex(&parser, root, "content_sum");
    if (parser.status == SLC_OK) {
        parse_layouts(&parser, root, manifest);
    }
    if (parser.status == SLC_OK && version == SLC_MANIFEST_VERSION_RELABELLED) {
        parse_permutations(&parser, root, manifest);
    }
    parse_optional(&parser, root, manifest);
    parse_origin(&parser, root, &manifest->origin);
    return parser.status;
}

/* Verifies the checksum and replaces its digits with zeros. */
static enum slc_status check_text(char *text, uint64_t bytes, struct slc_error *err)
{
    uint64_t expected;

    if (bytes < SLC_MANIFEST_PREFIX_BYTES + SLC_MANIFEST_DIGITS ||
        memcmp(text, SLC_MANIFEST_PREFIX, SLC_MANIFEST_PREFIX_BYTES) != 0 ||
        !parse_hex(text + SLC_MANIFEST_PREFIX_BYTES, &expected)) {
        return slc_fail(err, SLC_ERR_DAMAGED,
                        "the manifest does not start with its checksum: it was altered; restore it "
                        "or convert the store again");
    }
    memset(text + SLC_MANIFEST_PREFIX_BYTES, '0', SLC_MANIFEST_DIGITS);
    uint64_t hash = slc_hash64(text, bytes);
    if (hash != expected) {
        return slc_fail(err, SLC_ERR_DAMAGED,
                        "checksum mismatch in the manifest: expected %016" PRIx64
                        ", but its bytes hash to %016" PRIx64
                        "; restore it or convert the store again",
                        expected, hash);
    }
    return SLC_OK;
}

/* Distinguishes a folder that is not a (finished) store from a folder that cannot be read. */
static enum slc_status check_is_store(const struct slc_files *files,
                                      const char *folder,
                                      const char *path,
                                      struct slc_error *err)
{
    enum slc_status status = SLC_OK;
    struct slc_file_stat stat;
    int rc = files->stat_path(files->self, folder, &stat);

    SLC_TRY(slc_check_call(rc, err, folder, "opening the store"));
    if (stat.kind != 'd') {
        status = slc_fail(err, SLC_ERR_FORMAT,
                          "not a folder; a store is a folder NAME.slc, which sluice convert makes "
                          "from a tensor in another format");
    } else if ((rc = files->stat_path(files->self, path, &stat)) == -ENOENT) {
        status =
            slc_fail(err, SLC_ERR_FORMAT,
                     "not a store, or a store whose conversion has not finished: it has no %s%s",
                     SLC_MANIFEST_NAME, slc_folder_advice(files, folder, SLC_FOLDER_STORE));
    } else if (rc < 0) {
        return slc_fail_errno(err, -rc, path, "opening the manifest");
    }
    if (status != SLC_OK) {
        slc_error_locate_file(err, folder);
    }
    return status;
}

/* Reads the whole file at `path`, the manifest of `folder`. */
static enum slc_status load_text(const struct slc_files *files,
                                 const char *folder,
                                 const char *path,
                                 void **text,
                                 uint64_t *bytes,
                                 struct slc_error *err)
{
    struct slc_error fault = SLC_ERROR_INIT;

    if (slc_file_load(files, path, SLC_MANIFEST_MAX_BYTES, text, bytes, &fault) == SLC_ERR_IO) {
        SLC_TRY(check_is_store(files, folder, path, err));
    }
    return slc_error_pass(err, &fault);
}

static enum slc_status
parse_text(const char *text, uint64_t bytes, struct slc_manifest *manifest, struct slc_error *err)
{
    struct slc_manifest parsed;
    json_t *root = NULL;
    enum slc_status status = slc_json_read(text, bytes, "the manifest", SLC_ERR_FORMAT, &root, err);

    SLC_THEN(status, parse_manifest(root, &parsed, err));
    if (status == SLC_OK) {
        *manifest = parsed;
    }
    json_decref(root);
    return status;
}

enum slc_status slc_manifest_read(const struct slc_files *files,
                                  const char *folder,
                                  struct slc_manifest *manifest,
                                  struct slc_error *err)
{
    char *path = slc_path_join(folder, SLC_MANIFEST_NAME);
    void *text = NULL;
    uint64_t bytes = 0;

    files = files != NULL ? files : slc_files_system();
    SLC_TRY(slc_check_memory(path != NULL, err, "for a path"));
    enum slc_status status = load_text(files, folder, path, &text, &bytes, err);
    SLC_THEN(status, check_text(text, bytes, err));
    SLC_THEN(status, parse_text(text, bytes, manifest, err));
    if (status != SLC_OK) {
        slc_error_locate_file(err, path);
    }
    slc_free(text);
    slc_free(path);
    return status;
}
