/* Finds the name closest to a mistyped word: by edit distance (optimal string alignment: changed,
 * inserted, deleted and swapped letters), or by a common prefix. Cost per name: the product of the
 * lengths of the word and the name. */
#include "tools/options/options.h"

#include <stdbool.h>
#include <string.h>

enum { WIDTH = 48 };

static size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Returns the edit distance; SIZE_MAX if a word has more than WIDTH letters. */
static size_t edit_distance(const char *a, const char *b)
{
    size_t rows[3][WIDTH + 1];
    const size_t a_bytes = strlen(a), b_bytes = strlen(b);

    if (a_bytes > WIDTH || b_bytes > WIDTH) {
        return SIZE_MAX;
    }
    for (size_t j = 0; j <= b_bytes; j++) {
        rows[0][j] = j;
    }
    for (size_t i = 1; i <= a_bytes; i++) {
        size_t *row = rows[i % 3];
        const size_t *above = rows[(i + 2) % 3];

        row[0] = i;
        for (size_t j = 1; j <= b_bytes; j++) {
            row[j] =
                min_size(above[j - 1] + (a[i - 1] != b[j - 1]), min_size(above[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
                row[j] = min_size(row[j], rows[(i + 1) % 3][j - 2] + 1);
            }
        }
    }
    return rows[a_bytes % 3][b_bytes];
}

/* Returns whether the shorter word has at least three letters and is a prefix of the longer
 * word. */
static bool shares_prefix(const char *word, const char *name)
{
    const size_t bytes = min_size(strlen(word), strlen(name));

    return bytes >= 3 && memcmp(word, name, bytes) == 0;
}

const char *options_nearest(const char *word, const char *const *names)
{
    /* At most a third of the letters may differ, so that only similar names are suggested. */
    size_t limit = strlen(word) / 3 > 1 ? strlen(word) / 3 : 1;
    const char *nearest = NULL, *beginning = NULL;

    if (strlen(word) < 2) {
        return NULL;
    }
    for (size_t i = 0; names[i] != NULL; i++) {
        const size_t apart = edit_distance(word, names[i]);

        if (apart <= limit && apart < strlen(names[i]) && (nearest == NULL || apart < limit)) {
            limit = apart;
            nearest = names[i];
        }
        if (shares_prefix(word, names[i]) &&
            (beginning == NULL || strlen(names[i]) < strlen(beginning))) {
            beginning = names[i];
        }
    }
    return nearest != NULL && (limit <= 1 || beginning == NULL) ? nearest : beginning;
}
