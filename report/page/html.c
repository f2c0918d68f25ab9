/* Escapes and writes HTML in pieces. */
#include "report/page/html.h"

#include "base/text/utf8.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { PIECE_BYTES = 4096, PRINT_BYTES = 512 };

static void write_bytes(struct slc_html *html, const char *bytes, size_t count)
{
    while (count > 0 && html->status == SLC_OK) {
        const size_t piece = count < PIECE_BYTES ? count : PIECE_BYTES;
        uint8_t *space;

        html->status = slc_output_reserve(html->output, piece, &space, html->err);
        if (html->status == SLC_OK) {
            memcpy(space, bytes, piece);
            html->output->used += piece;
            bytes += piece;
            count -= piece;
        }
    }
}

void slc_html_put(struct slc_html *html, const char *markup)
{
    write_bytes(html, markup, strlen(markup));
}

void slc_html_print(struct slc_html *html, const char *format, ...)
{
    char text[PRINT_BYTES];
    va_list list;

    va_start(list, format);
    int length = vsnprintf(text, sizeof text, format, list);
    va_end(list);
    if (length > 0) {
        write_bytes(html, text, (size_t)length < sizeof text ? (size_t)length : sizeof text - 1);
    }
}

/* Stores the UTF-8 character at `at` and returns its length in bytes, or 0 if there is no valid
 * character. */
static unsigned decode(const char *at, uint32_t *character)
{
    const unsigned char *byte = (const unsigned char *)at;
    const unsigned length = slc_utf8_length(at, 4);

    *character = length <= 1 ? byte[0] : byte[0] & (0x7FU >> length);
    for (unsigned i = 1; i < length; i++) {
        *character = *character << 6 | (byte[i] & 0x3FU);
    }
    return length;
}

/* Returns false for control characters, direction marks and non-characters. */
static bool is_shown(uint32_t c)
{
    return c >= 0x20 && !(c >= 0x7F && c <= 0x9F) && !(c >= 0x200E && c <= 0x200F) && c != 0x061C &&
           !(c >= 0x2028 && c <= 0x202E) && !(c >= 0x2066 && c <= 0x2069) &&
           !(c >= 0xFDD0 && c <= 0xFDEF) && (c & 0xFFFE) != 0xFFFE && c != 0xFEFF;
}

static const char *escape(uint32_t character)
{
    switch (character) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '"':
        return "&quot;";
    case '\'':
        return "&#39;";
    default:
        return NULL;
    }
}

void slc_html_text(struct slc_html *html, const char *text)
{
    const char *at = text;
    const char *plain = at; /* start of the text that has not been written yet */

    while (at != NULL && *at != '\0') {
        uint32_t character;
        const unsigned length = decode(at, &character);
        const char *other =
            length == 0 || !is_shown(character) ? SLC_UTF8_REPLACEMENT : escape(character);

        if (other != NULL) {
            write_bytes(html, plain, (size_t)(at - plain));
            slc_html_put(html, other);
        }
        at += length > 0 ? length : 1;
        plain = other != NULL ? at : plain;
    }
    if (at != NULL) {
        write_bytes(html, plain, (size_t)(at - plain));
    }
}
