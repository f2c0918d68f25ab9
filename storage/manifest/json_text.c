/* Reads and writes JSON, and detects by errno if memory runs out. */
#include "storage/manifest/json_text.h"

#include "base/memory/memory.h"
#include "base/text/utf8.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DIGITS = 17 }; /* a number with 17 digits is read back with the same bits */
enum { RESERVE_BYTES = 64 << 10 };

static _Atomic uint64_t failures;
static _Atomic(void *) reserve; /* freed when an allocation fails */

static void *allocate_recorded(size_t bytes)
{
    void *memory = slc_malloc(bytes);

    if (memory == NULL) {
        atomic_fetch_add(&failures, 1);
        free(atomic_exchange(&reserve, NULL));
        memory = malloc(bytes);
        errno = ENOMEM;
    }
    return memory;
}

void slc_json_record_failures(void)
{
    free(atomic_exchange(&reserve, malloc(RESERVE_BYTES)));
    atomic_store(&failures, 0);
    json_set_alloc_funcs(allocate_recorded, slc_free);
}

uint64_t slc_json_failures(void)
{
    return atomic_load(&failures);
}

enum slc_status slc_json_read(const char *text,
                              uint64_t bytes,
                              const char *what,
                              enum slc_status unsound,
                              json_t **ret_root,
                              struct slc_error *err)
{
    const uint64_t earlier = slc_json_failures();
    json_error_t fault;

    memset(&fault, 0, sizeof fault);
    errno = 0;
    json_t *root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &fault);
    /* If memory runs out, jansson often reports an error in the text, or drops characters of it. */
    if (errno == ENOMEM || slc_json_failures() != earlier ||
        (root == NULL &&
         (fault.text[0] == '\0' || json_error_code(&fault) == json_error_out_of_memory))) {
        json_decref(root);
        return slc_fail(err, SLC_ERR_MEMORY, "no memory for %s", what);
    }
    if (root == NULL) {
        return slc_fail(err, unsound, "%s is not valid JSON: line %d: %s", what, fault.line,
                        fault.text);
    }
    *ret_root = root;
    return SLC_OK;
}

void slc_json_begin(void)
{
    errno = 0;
}

enum slc_status slc_json_whole(const char *what, struct slc_error *err)
{
    return errno == ENOMEM ? slc_fail(err, SLC_ERR_MEMORY, "no memory for %s", what) : SLC_OK;
}

enum slc_status
slc_json_write(const json_t *object, const char *what, char **ret_text, struct slc_error *err)
{
    char *text =
        json_dumps(object, JSON_INDENT(2) | JSON_REAL_PRECISION(DIGITS) | JSON_PRESERVE_ORDER);

    if (errno == ENOMEM) {
        free(text);
        return slc_fail(err, SLC_ERR_MEMORY, "no memory for %s", what);
    }
    if (text == NULL) {
        return slc_fail(err, SLC_ERR_INPUT, "%s has text that is not UTF-8", what);
    }
    *ret_text = text;
    return SLC_OK;
}

json_t *slc_json_string(const char *text)
{
    const size_t bytes = text != NULL ? strlen(text) : 0;
    json_malloc_t allocate;
    json_free_t release;
    json_t *string = NULL;
    size_t used = 0;

    json_get_alloc_funcs(&allocate, &release);
    char *clean = text != NULL ? allocate(3 * bytes + 1) : NULL;
    for (size_t at = 0; clean != NULL && at < bytes;) {
        const unsigned length = slc_utf8_length(text + at, bytes - at);

        memcpy(clean + used, length > 0 ? text + at : SLC_UTF8_REPLACEMENT,
               length > 0 ? length : 3);
        used += length > 0 ? length : 3;
        at += length > 0 ? length : 1;
    }
    if (clean != NULL) {
        string = json_stringn_nocheck(clean, used);
        release(clean);
    }
    return string;
}

enum { MEMBER_BYTES = 64 }; /* bytes of the name of a member with the suffix "_bytes" */

static bool is_utf8(const char *text)
{
    size_t bytes = strlen(text);

    for (unsigned length; bytes > 0; bytes -= length, text += length) {
        length = slc_utf8_length(text, bytes);
        if (length == 0) {
            return false;
        }
    }
    return true;
}

/* Returns the bytes of a path in hexadecimal; null if it is UTF-8, NULL if out of memory. */
static json_t *bytes_of(const char *path)
{
    const size_t bytes = strlen(path);

    if (is_utf8(path)) {
        return json_null();
    }
    char *digits = slc_malloc(2 * bytes + 1);
    if (digits == NULL) {
        errno = ENOMEM;
        return NULL;
    }
    for (size_t i = 0; i < bytes; i++) {
        (void)snprintf(digits + 2 * i, 3, "%02x", (unsigned char)path[i]);
    }
    json_t *string = json_string(digits);
    slc_free(digits);
    return string;
}

void slc_json_set_path(json_t *object, const char *name, const char *path)
{
    char member[MEMBER_BYTES];

    (void)json_object_set_new(object, name, path != NULL ? slc_json_string(path) : json_null());
    if (path != NULL && !is_utf8(path)) {
        (void)snprintf(member, sizeof member, "%s_bytes", name);
        (void)json_object_set_new(object, member, bytes_of(path));
    }
}

void slc_json_set_paths(json_t *object, const char *name, unsigned count, const char *const *paths)
{
    json_t *strings = json_array(), *bytes = json_array();
    char member[MEMBER_BYTES];
    bool plain = true;

    for (unsigned i = 0; i < count; i++) {
        plain = plain && is_utf8(paths[i]);
        (void)json_array_append_new(strings, slc_json_string(paths[i]));
        (void)json_array_append_new(bytes, bytes_of(paths[i]));
    }
    (void)json_object_set_new(object, name, strings);
    if (plain) {
        json_decref(bytes);
    } else {
        (void)snprintf(member, sizeof member, "%s_bytes", name);
        (void)json_object_set_new(object, member, bytes);
    }
}

/* Returns the value of two hexadecimal digits; 0, which no path contains, if they are not valid. */
static unsigned byte_of_digits(const char *digits)
{
    static const char hex[] = "0123456789abcdef";
    const char *high = strchr(hex, digits[0]), *low = strchr(hex, digits[1]);

    return high != NULL && low != NULL && digits[0] != '\0' && digits[1] != '\0'
               ? (unsigned)((high - hex) * 16 + (low - hex))
               : 0;
}

bool slc_json_get_path(const json_t *object, const char *name, char *path, size_t capacity)
{
    char member[MEMBER_BYTES];

    (void)snprintf(member, sizeof member, "%s_bytes", name);
    const char *text = json_string_value(json_object_get(object, name));
    const char *digits = json_string_value(json_object_get(object, member));
    const size_t bytes = digits != NULL ? strlen(digits) / 2 : text != NULL ? strlen(text) : 0;
    if (text == NULL || bytes >= capacity || (digits != NULL && strlen(digits) % 2 != 0)) {
        return false;
    }
    for (size_t i = 0; digits != NULL && i < bytes; i++) {
        if (byte_of_digits(digits + 2 * i) == 0) {
            return false;
        }
    }
    for (size_t i = 0; i < bytes; i++) {
        path[i] = digits != NULL ? (char)byte_of_digits(digits + 2 * i) : text[i];
    }
    path[bytes] = '\0';
    return true;
}

uint64_t slc_json_count(const json_t *object, const char *name)
{
    const json_int_t number = json_integer_value(json_object_get(object, name));

    return number > 0 ? (uint64_t)number : 0;
}
