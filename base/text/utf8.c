/* Validates UTF-8 sequences. */
#include "base/text/utf8.h"

unsigned slc_utf8_length(const char *at, size_t bytes)
{
    const unsigned char *byte = (const unsigned char *)at;
    unsigned char low = 0x80, high = 0xbf;

    if (bytes == 0 || (byte[0] >= 0x80 && (byte[0] < 0xc2 || byte[0] > 0xf4))) {
        return 0;
    }
    unsigned length = byte[0] < 0x80 ? 1 : byte[0] < 0xe0 ? 2 : byte[0] < 0xf0 ? 3 : 4;
    if (length > bytes) {
        return 0;
    }
    /* The limits of the second byte exclude overlong encodings, surrogates and characters beyond
     * U+10FFFF. */
    low = byte[0] == 0xe0 ? 0xa0 : byte[0] == 0xf0 ? 0x90 : low;
    high = byte[0] == 0xed ? 0x9f : byte[0] == 0xf4 ? 0x8f : high;
    for (unsigned i = 1; i < length; i++) {
        if (byte[i] < low || byte[i] > high) {
            return 0;
        }
        low = 0x80;
        high = 0xbf;
    }
    return length;
}
