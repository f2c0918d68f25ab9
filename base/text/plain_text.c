/* Finds and replaces control characters of ASCII and UTF-8. */
#include "base/text/plain_text.h"

/* Returns the length in bytes of the control character at `at`; 0 if the character is not a control
 * character. */
static unsigned control_bytes(const char *at)
{
    const unsigned char *byte = (const unsigned char *)at;

    if (byte[0] < ' ' || byte[0] == 0x7f) {
        return byte[0] != '\0';
    }
    return byte[0] == 0xc2 && byte[1] >= 0x80 && byte[1] < 0xa0 ? 2 : 0;
}

bool slc_text_is_plain(const char *text)
{
    while (*text != '\0' && control_bytes(text) == 0) {
        text++;
    }
    return *text == '\0';
}

void slc_text_make_plain(char *text)
{
    while (*text != '\0') {
        unsigned left = control_bytes(text);

        for (text += left == 0; left > 0; left--) {
            *text++ = '?';
        }
    }
}
