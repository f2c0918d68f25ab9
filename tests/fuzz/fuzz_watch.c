/* Arbitrary lines of a JSON log, as read by `sluice watch`: the state stays within its bounds, and
 * can be printed as text and as JSON. */
#include "tools/progress/run_state.h"

#include "base/text/plain_text.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct run_state state = {.seconds_left = -1};
    const char *at = (const char *)data;
    const char *end = at + size;
    char text[512];
    json_t *object;

    while (at < end) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        const size_t bytes = (size_t)((stop != NULL ? stop : end) - at);

        (void)run_state_apply(&state, at, bytes);
        at += bytes + 1;
        must(state.exit_code >= 0 && state.exit_code <= 255);
        must(state.pid >= 0 && state.pid <= INT32_MAX);
        run_state_describe(&state, text, sizeof text);
        must(strlen(text) < sizeof text && slc_text_is_plain(text));
    }
    object = run_state_json(&state, -1);
    must(object == NULL || json_is_object(object));
    json_decref(object);
    return 0;
}
