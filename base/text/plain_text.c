/* Finds and replaces control characters of ASCII and UTF-8, and characters that change the
 * direction of text. */
#include "base/text/plain_text.h"

/* Returns the length in bytes of the control character at `at`; 0 if the character is not a control
 * character. */
static unsigned control_bytes(const char *at)
{
    const unsigned char *byte = (const unsigned char *)at;

    if (byte[0] < ' ' || byte[0] == 0x7f) {
        return byte[0] != '\0';
    }
    if ((byte[0] == 0xc2 && byte[1] >= 0x80 && byte[1] < 0xa0) || /* U+0080 to U+009F */
        (byte[0] == 0xd8 && byte[1] == 0x9c)) {                   /* U+061C */
        return 2;
    }
    if ((byte[0] == 0xe2 && byte[1] == 0x80 && /* U+200E, U+200F, U+2028 to U+202E */
         (byte[2] == 0x8e || byte[2] == 0x8f || (byte[2] >= 0xa8 && byte[2] <= 0xae))) ||
        (byte[0] == 0xe2 && byte[1] == 0x81 && byte[2] >= 0xa6 && byte[2] <= 0xa9)) {
        return 3; /* also U+2066 to U+2069 */
    }
    return 0;
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
