#include "convert/ingest/csv/csv_index.h"

#include "base/memory/bytes.h"
#include "convert/ingest/csv/csv_record.h"

#include <stdbool.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum {
    /* maximum number of positions written per word of bits, including positions that are
     * overwritten later */
    FLATTENED_MAX = 64
};

/* The functions that are compiled for one instruction set. */
struct set {
    const char *name;
    slc_csv_index_fn *index;
    slc_csv_last_fn *last;
};

/* Bit masks of 64 bytes, one mask per class of characters. The lowest bit stands for the first
 * byte. */
struct classes {
    uint64_t delimiters, lines, quotes;
};

/* State after the bytes examined so far. */
struct quotes {
    uint64_t inside;    /* all ones within quotes, otherwise 0 */
    uint64_t separated; /* 1 if the previous byte was a separator, otherwise 0 */
    uint64_t closed;    /* 1 if the previous byte closed a quoted field, otherwise 0 */
    bool irregular;     /* true after a fault; later records are not examined */
    unsigned marks;
};

/* Returns, for every bit, the parity of this bit and the bits below it. */
static inline uint64_t parities(uint64_t bits)
{
    for (unsigned shift = 1; shift < 64; shift *= 2) {
        bits ^= bits << shift;
    }
    return bits;
}

/* Returns a mask of the first byte in `after_quotes` that is not the CR of a line end, or 0.
 * `after_quotes` has the bytes after closing quotes that are neither separators nor quotes. */
static inline uint64_t
first_irregular(uint64_t after_quotes, const char *text, size_t at, size_t end)
{
    for (; after_quotes != 0; after_quotes &= after_quotes - 1) {
        const size_t place = at + (unsigned)__builtin_ctzll(after_quotes);

        if (!(place + 1 < end && text[place] == '\r' && text[place + 1] == '\n')) {
            break;
        }
    }
    return after_quotes & -after_quotes;
}

/* Returns the separators outside of quotes, up to the first irregularity. An irregularity is a
 * closing quote that does not end a field. In a field that does not begin with a quote, a quote is
 * an ordinary byte; the function removes it from the mask of quotes and inverts the parity after
 * it. */
static inline uint64_t outside_quotes(
    struct quotes *quotes, const struct classes *classes, const char *text, size_t at, size_t end)
{
    const uint64_t ends = classes->delimiters | classes->lines;
    uint64_t marks = classes->quotes, inside, separators, opening, closing, closed, bare, wrong;

    for (;;) {
        inside = parities(marks) ^ quotes->inside;
        separators = ends & ~inside;
        opening = marks & inside;
        closing = marks & ~inside;
        closed = closing << 1 | quotes->closed;
        bare = opening & ~(separators << 1 | quotes->separated | closed);
        /* Only the first irregularity is used, because bytes after it may be classified wrongly. */
        wrong =
            first_irregular(closed & ~(separators | opening) & ((bare & -bare) - 1), text, at, end);
        if (bare == 0 || wrong != 0) {
            break;
        }
        marks &= ~(bare & -bare);
    }
    quotes->marks |= SLC_CSV_QUOTED | ((opening & closed) != 0 ? SLC_CSV_DOUBLED : 0) |
                     ((classes->lines & inside) != 0 ? SLC_CSV_LINES : 0);
    quotes->inside = -(inside >> 63);
    quotes->separated = separators >> 63;
    quotes->closed = closing >> 63;
    if (wrong != 0) {
        quotes->irregular = true;
        separators &= wrong - 1;
    }
    return separators;
}

/* Does the same as outside_quotes, but faster if no quote affects these 64 bytes. */
static inline uint64_t separators_of(
    struct quotes *quotes, const struct classes *classes, const char *text, size_t at, size_t end)
{
    const uint64_t separators = classes->delimiters | classes->lines;

    if ((classes->quotes | quotes->inside | quotes->closed) != 0) {
        return outside_quotes(quotes, classes, text, at, end);
    }
    quotes->separated = separators >> 63;
    return separators;
}

/* Clears the bits after the first `bytes` bytes in all masks, if `bytes` is less than 64. */
static inline void clear_after(struct classes *classes, size_t bytes)
{
    const uint64_t there = bytes < 64 ? (UINT64_C(1) << bytes) - 1 : ~UINT64_C(0);

    classes->delimiters &= there;
    classes->lines &= there;
    classes->quotes &= there;
}

/* Returns true for an empty line, which is not a record. */
static inline bool is_empty_line(const char *line)
{
    return line[0] == '\n' || (line[0] == '\r' && line[1] == '\n');
}

/* Sets the top bit of every zero byte of a word. */
static inline uint64_t zero_bytes(uint64_t word)
{
    const uint64_t low = UINT64_C(0x7f7f7f7f7f7f7f7f);

    return ~(((word & low) + low) | word | low);
}

static inline struct classes plain_classify(const char *text, char delimiter)
{
    const uint64_t each = UINT64_C(0x0101010101010101);
    /* Multiplication by this constant gathers the lowest bits of eight bytes in the top byte. */
    const uint64_t gather = UINT64_C(0x0102040810204080);
    const uint64_t delimiters = each * (unsigned char)delimiter;
    struct classes classes = {0, 0, 0};

    for (unsigned i = 0; i < 8; i++) {
        const uint64_t word = slc_load_u64(text + 8 * i);

        classes.delimiters |= (zero_bytes(word ^ delimiters) >> 7) * gather >> 56 << 8 * i;
        classes.lines |= (zero_bytes(word ^ each * '\n') >> 7) * gather >> 56 << 8 * i;
        classes.quotes |= (zero_bytes(word ^ each * '"') >> 7) * gather >> 56 << 8 * i;
    }
    return classes;
}

static inline unsigned plain_flatten(uint64_t bits, uint32_t base, uint32_t *places)
{
    unsigned count = 0;

    for (; bits != 0; bits &= bits - 1) {
        places[count++] = base + (unsigned)__builtin_ctzll(bits);
    }
    return count;
}

#define NAME(x) plain_##x
#define TARGET  static
#include "convert/ingest/csv/csv_index_tmpl.h"
#undef NAME
#undef TARGET

#if defined(__x86_64__)

/* Writes the positions of the set bits of a word. Most words have at most eight set bits, so eight
 * positions are always written. With a branch per bit, one branch per word would be
 * mispredicted. */
#define FLATTEN                                                                                    \
    const unsigned count = (unsigned)__builtin_popcountll(bits);                                   \
                                                                                                   \
    for (unsigned done = 0; done < count; done += 8) {                                             \
        for (unsigned i = 0; i < 8; i++) {                                                         \
            places[done + i] = base + (uint32_t)_tzcnt_u64(bits);                                  \
            bits = _blsr_u64(bits);                                                                \
        }                                                                                          \
    }                                                                                              \
    return count;

#define TARGET __attribute__((target("avx2,bmi,popcnt"))) static

TARGET inline uint64_t avx2_equal(__m256i low, __m256i high, char byte)
{
    const __m256i all = _mm256_set1_epi8(byte);
    const uint32_t first = (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(low, all));
    const uint32_t second = (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(high, all));

    return first | (uint64_t)second << 32;
}

TARGET inline struct classes avx2_classify(const char *text, char delimiter)
{
    const __m256i low = _mm256_loadu_si256((const __m256i *)text);
    const __m256i high = _mm256_loadu_si256((const __m256i *)(text + 32));

    return (struct classes){.delimiters = avx2_equal(low, high, delimiter),
                            .lines = avx2_equal(low, high, '\n'),
                            .quotes = avx2_equal(low, high, '"')};
}

TARGET inline unsigned avx2_flatten(uint64_t bits, uint32_t base, uint32_t *places){FLATTEN}

#define NAME(x) avx2_##x
#include "convert/ingest/csv/csv_index_tmpl.h"
#undef NAME
#undef TARGET

#define TARGET __attribute__((target("avx512f,avx512bw,bmi,popcnt"))) static

TARGET inline struct classes avx512_classify(const char *text, char delimiter)
{
    const __m512i bytes = _mm512_loadu_si512(text);

    return (struct classes){.delimiters =
                                _mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8(delimiter)),
                            .lines = _mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8('\n')),
                            .quotes = _mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8('"'))};
}

TARGET inline unsigned avx512_flatten(uint64_t bits, uint32_t base, uint32_t *places)
{
    FLATTEN
}

#define NAME(x) avx512_##x
#include "convert/ingest/csv/csv_index_tmpl.h"
#undef NAME
#undef TARGET

/* Returns the number of the widest instruction set that this machine supports. */
static unsigned widest_set(void)
{
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("bmi") || !__builtin_cpu_supports("popcnt")) {
        return 0;
    }
    return __builtin_cpu_supports("avx512bw") ? 2 : __builtin_cpu_supports("avx2") ? 1 : 0;
}

static const struct set sets[] = {{"plain", plain_index, plain_last},
                                  {"avx2", avx2_index, avx2_last},
                                  {"avx512", avx512_index, avx512_last}};

#else

static unsigned widest_set(void)
{
    return 0;
}

static const struct set sets[] = {{"plain", plain_index, plain_last}};

#endif

/* Returns the functions for an instruction set; NULL if this machine does not support it. */
static const struct set *set_of(const char *name)
{
    const unsigned widest = widest_set();

    for (unsigned i = 0; i <= widest && name != NULL; i++) {
        if (strcmp(name, sets[i].name) == 0) {
            return &sets[i];
        }
    }
    return name == NULL ? &sets[widest] : NULL;
}

slc_csv_index_fn *slc_csv_index_by(const char *name)
{
    const struct set *set = set_of(name);

    return set != NULL ? set->index : NULL;
}

slc_csv_last_fn *slc_csv_last_by(const char *name)
{
    const struct set *set = set_of(name);

    return set != NULL ? set->last : NULL;
}
