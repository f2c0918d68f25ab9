#include "base/text/csv_text.h"

#include <stdbool.h>
#include <string.h>

/* Returns the number of digits at `text`. */
static size_t count_digits(const char *text)
{
    return strspn(text, "0123456789");
}

/* True if the text is a decimal number, such as -1.5e-3. */
static bool is_number(const char *text)
{
    text += strspn(text, "+-") == 1;
    const size_t whole = count_digits(text);
    const size_t part = text[whole] == '.' ? count_digits(text + whole + 1) : 0;
    text += whole + (text[whole] == '.') + part;
    if (whole + part > 0 && (*text == 'e' || *text == 'E')) {
        text += 1 + (strspn(text + 1, "+-") == 1);
        return *text != '\0' && text[count_digits(text)] == '\0';
    }
    return whole + part > 0 && *text == '\0';
}

/* True if a spreadsheet could run the text as a formula. Also true if apostrophes precede such a
 * text, so that removing one apostrophe always restores the original. */
static bool is_formula(const char *text)
{
    const char *first = text + strspn(text, "'");

    return *first != '\0' && strchr("=+-@\t\r", *first) != NULL && !is_number(text);
}

static size_t quote(char *out, const char *text, size_t bytes, bool apostrophe)
{
    char *at = out;

    *at++ = '"';
    if (apostrophe) {
        *at++ = '\'';
    }
    for (size_t i = 0; i < bytes; i++) {
        if (text[i] == '"') {
            *at++ = '"';
        }
        *at++ = text[i];
    }
    *at++ = '"';
    return (size_t)(at - out);
}

size_t slc_csv_quote(char *out, const char *text, size_t bytes)
{
    return quote(out, text, bytes, bytes > 0 && is_formula(text));
}

size_t slc_csv_quote_raw(char *out, const char *text, size_t bytes)
{
    return quote(out, text, bytes, false);
}
