/* Template of the functions that find fields and record ends. csv_index.c includes this file once
 * per instruction set. Before that, it defines NAME(x), TARGET (the function attribute),
 * NAME(classify), which computes the bit masks of 64 bytes, and NAME(flatten), which stores the
 * positions of the set bits of a word. */

TARGET unsigned NAME(index)(const char *text,
                            size_t begin,
                            size_t end,
                            char delimiter,
                            unsigned columns,
                            unsigned most,
                            uint32_t *starts,
                            unsigned *marks)
{
    const size_t limit = SLC_CSV_STARTS - FLATTENED_MAX;
    struct quotes quotes = {.separated = 1};
    /* number of positions; the last whole record ends at starts[record] */
    size_t found = 1, record = 0;
    unsigned count = 0;
    bool more = true;

    starts[0] = (uint32_t)begin;
    for (size_t at = begin; more && at < end && count < most && found <= limit; at += 64) {
        struct classes classes = NAME(classify)(text + at, delimiter);
        uint64_t separators, lines;

        clear_after(&classes, end - at);
        separators = separators_of(&quotes, &classes, text, at, end);
        lines = classes.lines & separators;
        more = !quotes.irregular;
        found += NAME(flatten)(separators, (uint32_t)at + 1, starts + found);
        for (; lines != 0 && count < most; lines &= lines - 1) {
            const size_t next = record + columns;

            if (next >= found || starts[next] != at + 1 + (unsigned)__builtin_ctzll(lines) ||
                starts[next] - starts[record] > SLC_CSV_RECORD_BYTES_MAX ||
                (columns == 1 && is_empty_line(text + starts[record]))) {
                more = false;
                break;
            }
            record = next;
            count++;
        }
    }
    *marks = quotes.marks;
    return count;
}

TARGET size_t NAME(last)(const char *text, size_t bytes, char delimiter, bool *regular)
{
    struct quotes quotes = {.separated = 1};
    size_t last = 0;

    for (size_t at = 0; at < bytes && !quotes.irregular; at += 64) {
        struct classes classes = NAME(classify)(text + at, delimiter);
        uint64_t lines;

        clear_after(&classes, bytes - at);
        lines = separators_of(&quotes, &classes, text, at, bytes) & classes.lines;
        if (lines != 0) {
            last = at + 64 - (unsigned)__builtin_clzll(lines);
        }
    }
    *regular = !quotes.irregular;
    return last;
}
