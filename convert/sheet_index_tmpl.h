/*
 * Places of fields; included once per instruction set by sheet_index.c, which defines NAME(x),
 * TARGET, the attribute of functions, and classify and flatten under NAME: the bits of what 64
 * bytes are, and the list of where a word has bits.
 */

TARGET unsigned NAME(index)(const char *text,
                            size_t begin,
                            size_t end,
                            char delimiter,
                            unsigned columns,
                            unsigned most,
                            uint32_t *starts,
                            unsigned *marks)
{
    const size_t limit = SLC_SHEET_STARTS - FLATTENED_MAX;
    struct quotes quotes = {.separated = 1};
    size_t found = 1, record = 0; /* places; of which the last record that is whole ends here */
    unsigned count = 0;
    bool more = true;

    starts[0] = (uint32_t)begin;
    for (size_t at = begin; more && at < end && count < most && found <= limit; at += 64) {
        struct classes classes = NAME(classify)(text + at, delimiter);
        uint64_t separators, lines;

        if (end - at < 64) {
            const uint64_t there = (UINT64_C(1) << (end - at)) - 1;

            classes.delimiters &= there;
            classes.lines &= there;
            classes.quotes &= there;
        }
        separators = classes.delimiters | classes.lines;
        if ((classes.quotes | quotes.inside | quotes.closed) != 0) {
            separators = outside_quotes(&quotes, &classes, text, at, end);
        } else {
            quotes.separated = separators >> 63;
        }
        lines = classes.lines & separators;
        more = !quotes.irregular;
        found += NAME(flatten)(separators, (uint32_t)at + 1, starts + found);
        for (; lines != 0 && count < most; lines &= lines - 1) {
            const size_t next = record + columns;

            if (next >= found || starts[next] != at + 1 + (unsigned)__builtin_ctzll(lines) ||
                starts[next] - starts[record] > SLC_SHEET_RECORD_BYTES_MAX ||
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
