/* Writes the manifest tensor.json (docs/FORMAT.md, section 9) atomically: a checksum at a fixed
 * position and in a fixed format, followed by JSON from jansson. */
#include "storage/manifest/store.h"

#include "base/hash.h"
#include "base/memory/bytes.h"
#include "base/memory/memory.h"
#include "storage/manifest/json_text.h"
#include "storage/manifest/manifest_text.h"
#include "storage/manifest/values_json.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static json_t *json_hex(uint64_t value)
{
    char text[SLC_MANIFEST_DIGITS + 1];

    snprintf(text, sizeof text, "%016" PRIx64, value);
    return json_string(text);
}

static json_t *json_count(uint64_t value)
{
    return json_integer((json_int_t)value);
}

/* Adds a member; always takes ownership of `value`. Clears *ok if `value` or `object` is NULL or
 * memory runs out, so that a caller can add all members and then test *ok once. */
static void add_member(json_t *object, const char *name, json_t *value, bool *ok)
{
    if (json_object_set_new(object, name, value) != 0) {
        *ok = false;
    }
}

/* Appends `value` to `array`; errors as in add_member. */
static void add_element(json_t *array, json_t *value, bool *ok)
{
    if (json_array_append_new(array, value) != 0) {
        *ok = false;
    }
}

static json_t *json_dims(const struct slc_manifest *manifest, bool *ok)
{
    json_t *dims = json_array();

    for (unsigned mode = 0; mode < manifest->order; mode++) {
        add_element(dims, json_count(manifest->dims[mode]), ok);
    }
    return dims;
}

static json_t *json_layouts(const struct slc_manifest *manifest, bool *ok)
{
    json_t *layouts = json_array();

    for (unsigned i = 0; i < manifest->layout_count; i++) {
        const struct slc_store_layout *layout = &manifest->layouts[i];
        bool whole = layout->layout == SLC_LAYOUT_BLCO;
        json_t *object = json_object();

        add_member(object, "file", slc_json_string(layout->file), ok);
        add_member(object, "layout", json_string(slc_layout_name(layout->layout)), ok);
        add_member(object, "mode", json_count(whole ? 0 : layout->layout_mode + 1), ok);
        add_member(object, "codec", json_string(slc_codec_name(layout->codec)), ok);
        add_member(object, "file_bytes", json_count(layout->file_bytes), ok);
        add_member(object, "block_count", json_count(layout->block_count), ok);
        add_member(object, "index_bytes", json_count(layout->index_bytes), ok);
        add_member(object, "header_hash", json_hex(layout->header_hash), ok);
        add_element(layouts, object, ok);
    }
    return layouts;
}

static json_t *json_permutations(const struct slc_manifest *manifest, bool *ok)
{
    json_t *permutations = json_array();

    for (unsigned i = 0; i < manifest->permutation_count; i++) {
        const struct slc_store_permutation *permutation = &manifest->permutations[i];
        json_t *object = json_object();

        add_member(object, "mode", json_count(permutation->mode + 1), ok);
        add_member(object, "file", slc_json_string(permutation->file), ok);
        add_member(object, "file_bytes", json_count(permutation->file_bytes), ok);
        add_member(object, "hash", json_hex(permutation->hash), ok);
        add_element(permutations, object, ok);
    }
    return permutations;
}

static json_t *json_appended(const struct slc_store_origin *origin, bool *ok)
{
    json_t *list = json_array();

    for (unsigned i = 0; i < origin->appended_count; i++) {
        const struct slc_store_appended *appended = &origin->appended[i];
        json_t *object = json_object();

        add_member(object, "source", slc_json_string(appended->source), ok);
        add_member(object, "input", json_hex(appended->input), ok);
        add_member(object, "content", json_hex(appended->content), ok);
        add_member(object, "entries", json_count(appended->entries), ok);
        add_element(list, object, ok);
    }
    return list;
}

static json_t *json_names(const struct slc_manifest *manifest, bool *ok)
{
    json_t *list = json_array();

    for (unsigned i = 0; i < manifest->names_count; i++) {
        const struct slc_store_names *names = &manifest->names[i];
        json_t *object = json_object();

        add_member(object, "mode", json_count(names->mode + 1), ok);
        add_member(object, "file", slc_json_string(names->file), ok);
        add_member(object, "count", json_count(names->count), ok);
        add_member(object, "file_bytes", json_count(names->file_bytes), ok);
        add_member(object, "hash", json_hex(names->hash), ok);
        add_element(list, object, ok);
    }
    return list;
}

/* Returns the titles of the modes, or NULL if no mode has a title. */
static json_t *json_titles(const struct slc_manifest *manifest, bool *ok)
{
    bool any = false;

    for (unsigned mode = 0; mode < manifest->order; mode++) {
        any = any || manifest->titles[mode][0] != '\0';
    }
    if (!any) {
        return NULL;
    }
    json_t *titles = json_array();
    for (unsigned mode = 0; mode < manifest->order; mode++) {
        add_element(titles, slc_json_string(manifest->titles[mode]), ok);
    }
    *ok = *ok && titles != NULL;
    return titles;
}

static json_t *json_origin(const struct slc_store_origin *origin, bool *ok)
{
    json_t *object = json_object();

    add_member(object, "source", slc_json_string(origin->source), ok);
    add_member(object, "dialect", slc_json_string(origin->dialect), ok);
    add_member(object, "index_base", json_count(origin->index_base), ok);
    add_member(object, "entries_read", json_count(origin->entries_read), ok);
    add_member(object, "duplicates", json_count(origin->duplicates), ok);
    add_member(object, "explicit_zeros", json_count(origin->explicit_zeros), ok);
    add_member(object, "duplicate_policy", slc_json_string(origin->duplicate_policy), ok);
    add_member(object, "writer", slc_json_string(origin->writer), ok);
    if (origin->keeps_zeros) {
        add_member(object, "keep_zeros", json_true(), ok);
    }
    if (origin->table[0] != '\0') {
        add_member(object, "table", slc_json_string(origin->table), ok);
    }
    if (origin->transforms[0] != '\0') {
        add_member(object, "transforms", slc_json_string(origin->transforms), ok);
    }
    if (origin->part[0] != '\0') {
        add_member(object, "part", slc_json_string(origin->part), ok);
    }
    if (origin->appended_count > 0) {
        add_member(object, "appended", json_appended(origin, ok), ok);
    }
    return object;
}

/* Returns the manifest without its checksum, or NULL if out of memory. */
static json_t *json_manifest(const struct slc_manifest *manifest)
{
    json_t *root = json_object();
    double norm = sqrt(manifest->sum_of_squares);
    bool ok = true;
    json_t *titles = json_titles(manifest, &ok);

    add_member(root, "format", json_string(SLC_MANIFEST_FORMAT), &ok);
    add_member(root, "version",
               json_integer(manifest->permutation_count > 0 ? SLC_MANIFEST_VERSION_RELABELLED
                                                            : SLC_MANIFEST_VERSION),
               &ok);
    add_member(root, "dims", json_dims(manifest, &ok), &ok);
    add_member(root, "nnz", json_count(manifest->nnz), &ok);
    add_member(root, "value_type", json_string(manifest->value_type == SLC_F32 ? "f32" : "f64"),
               &ok);
    add_member(root, "sum_of_squares", json_hex(slc_bits_f64(manifest->sum_of_squares)), &ok);
    /* The squares of huge values overflow, and JSON has no infinity. */
    add_member(root, "norm", isfinite(norm) ? json_real(norm) : json_null(), &ok);
    add_member(root, "content_sum", json_hex(manifest->content_sum), &ok);
    if (manifest->values.distinct > 0) {
        add_member(root, "values", slc_values_to_json(&manifest->values), &ok);
    }
    add_member(root, "layouts", json_layouts(manifest, &ok), &ok);
    if (manifest->permutation_count > 0) {
        add_member(root, "permutations", json_permutations(manifest, &ok), &ok);
    }
    if (titles != NULL) {
        add_member(root, "titles", titles, &ok);
    }
    if (manifest->names_count > 0) {
        add_member(root, "names", json_names(manifest, &ok), &ok);
    }
    add_member(root, "origin", json_origin(&manifest->origin, &ok), &ok);
    if (!ok) {
        json_decref(root);
        root = NULL;
    }
    return root;
}

/* Returns the whole text with its checksum; NULL if out of memory. The first line, with the
 * checksum, replaces the opening brace that jansson writes. */
static char *manifest_text(json_t *root, size_t *bytes)
{
    size_t dumped = json_dumpb(root, NULL, 0, JSON_INDENT(1));
    size_t head = SLC_MANIFEST_PREFIX_BYTES + SLC_MANIFEST_DIGITS +
                  2; /* the prefix, the digits, a quote and a comma */
    char digits[SLC_MANIFEST_DIGITS + 1];

    if (dumped == 0) {
        return NULL;
    }
    *bytes = head + dumped; /* jansson's opening brace is dropped, and a newline added */
    char *text = slc_malloc(*bytes + 1);
    if (text == NULL) {
        return NULL;
    }
    if (json_dumpb(root, text + head - 1, dumped, JSON_INDENT(1)) != dumped) {
        slc_free(text);
        return NULL;
    }
    memcpy(text, SLC_MANIFEST_PREFIX, SLC_MANIFEST_PREFIX_BYTES);
    memset(text + SLC_MANIFEST_PREFIX_BYTES, '0', SLC_MANIFEST_DIGITS);
    memcpy(text + SLC_MANIFEST_PREFIX_BYTES + SLC_MANIFEST_DIGITS, "\",", 2);
    text[*bytes - 1] = '\n';
    snprintf(digits, sizeof digits, "%016" PRIx64, slc_hash64(text, *bytes));
    memcpy(text + SLC_MANIFEST_PREFIX_BYTES, digits, SLC_MANIFEST_DIGITS);
    return text;
}

enum slc_status slc_manifest_write(const struct slc_files *files,
                                   const char *folder,
                                   const struct slc_manifest *manifest,
                                   struct slc_error *err)
{
    enum slc_status status;
    char *path = slc_path_join(folder, SLC_MANIFEST_NAME);
    json_t *root = json_manifest(manifest);
    char *text = NULL;
    size_t bytes = 0;

    files = files != NULL ? files : slc_files_system();
    if (path != NULL && root != NULL) {
        text = manifest_text(root, &bytes);
    }
    if (text == NULL) {
        status = slc_fail(err, SLC_ERR_MEMORY, "no memory for the manifest of %s", folder);
    } else {
        status = slc_file_replace(files, path, text, bytes, err);
    }
    slc_free(text);
    json_decref(root);
    slc_free(path);
    return status;
}
