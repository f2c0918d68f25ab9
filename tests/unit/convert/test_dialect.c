/* Recognizing text dialects and reading their headers. */
#include "convert/ingest/text/text.h"
#include "slc_test.h"

#include <stdio.h>
#include <string.h>

static enum slc_status sniff(const char *text,
                             enum slc_dialect forced,
                             struct slc_text_header *header,
                             struct slc_error *err)
{
    slc_error_clear(err);
    return slc_text_sniff(text, strlen(text), true, forced, header, err);
}

struct good_case {
    const char *text;
    enum slc_dialect dialect;
    unsigned order;
    uint64_t dims[3]; /* declared mode sizes; 0: none */
    int64_t nnz;      /* declared number of nonzeros; -1: none */
    int index_base;
    bool ambiguous;
    bool has_values;
    int symmetry;
    const char *rows; /* start of the rows */
};

static const struct good_case good[] = {
    {"1 2 3 4.5\n", SLC_DIALECT_TNS, 3, {0}, -1, -1, false, true, 0, "1 2 3 4.5"},
    {"# a\n\n  # b\n1\t2\t3 4.5\r\n", SLC_DIALECT_TNS, 3, {0}, -1, -1, false, true, 0, "# a"},
    {"\xef\xbb\xbf"
     "0 1\n",
     SLC_DIALECT_TNS,
     1,
     {0},
     -1,
     -1,
     false,
     true,
     0,
     "0 1\n"},
    {"7 1e3", SLC_DIALECT_TNS, 1, {0}, -1, -1, false, true, 0, "7 1e3"},
    {"3\n4 5 6\n1 1 1 2.0\n", SLC_DIALECT_PARTI, 3, {4, 5, 6}, -1, -1, false, true, 0, "1 1 1 2.0"},
    {"# c\n2\n# c\n4\t5 \n# c\n1 1 2\n",
     SLC_DIALECT_PARTI,
     2,
     {4, 5},
     -1,
     -1,
     false,
     true,
     0,
     "# c\n1 1 2"},
    {"1\n9\n3 1.5\n", SLC_DIALECT_PARTI, 1, {9}, -1, -1, false, true, 0, "3 1.5"},
    {"2\n4 5\n", SLC_DIALECT_PARTI, 2, {4, 5}, -1, -1, false, true, 0, ""},
    {"2\n4 5\n7\n0 0 1\n", SLC_DIALECT_GENTEN, 2, {4, 5}, 7, -1, false, true, 0, "0 0 1"},
    {"1\n9\n1\n3 1.5\n", SLC_DIALECT_GENTEN, 1, {9}, 1, -1, false, true, 0, "3 1.5"},
    {"# extended FROSTT format\n3 2\n4 5 6\n1 1 1 2.0\n",
     SLC_DIALECT_FROSTT_EXT,
     3,
     {4, 5, 6},
     2,
     1,
     false,
     true,
     0,
     "1 1 1 2.0"},
    {"# who wrote it\n# extended FROSTT format\n\n3 2\r\n4 5 6\r\n1 1 1 2.0\r\n",
     SLC_DIALECT_FROSTT_EXT,
     3,
     {4, 5, 6},
     2,
     1,
     false,
     true,
     0,
     "1 1 1 2.0"},
    {"sptensor\n3\n4 5 6\n2\n1 1 1 2.0\n",
     SLC_DIALECT_GENTEN,
     3,
     {4, 5, 6},
     2,
     -1,
     true,
     true,
     0,
     "1 1 1 2.0"},
    {"// c\nSPTENSOR indices-start-at-zero\n3\n// c\n4 5 6\n2\n0 0 0 2.0\n",
     SLC_DIALECT_GENTEN,
     3,
     {4, 5, 6},
     2,
     0,
     false,
     true,
     0,
     "0 0 0 2.0"},
    {"sptensor  indices-start-at-one \n3\n4 5 6\n0\n",
     SLC_DIALECT_GENTEN,
     3,
     {4, 5, 6},
     0,
     1,
     false,
     true,
     0,
     ""},
    {"%%MatrixMarket tensor coordinate real general\n%\n4 5 6 2\n1 1 1 2.0\n",
     SLC_DIALECT_TACO,
     3,
     {4, 5, 6},
     2,
     1,
     false,
     true,
     0,
     "1 1 1 2.0"},
    {"%%MatrixMarket matrix coordinate real general\n% c\n\n4 5 2\n1 1 2.0\n",
     SLC_DIALECT_MATRIXMARKET,
     2,
     {4, 5},
     2,
     1,
     false,
     true,
     0,
     "1 1 2.0"},
    {"%%matrixmarket MATRIX Coordinate Integer Symmetric\n5 5 2\n2 1 2\n",
     SLC_DIALECT_MATRIXMARKET,
     2,
     {5, 5},
     2,
     1,
     false,
     true,
     1,
     "2 1 2"},
    {"%%MatrixMarket matrix coordinate pattern skew-symmetric\n5 5 1\n2 1\n",
     SLC_DIALECT_MATRIXMARKET,
     2,
     {5, 5},
     1,
     1,
     false,
     false,
     -1,
     "2 1\n"},
};

static void headers(void)
{
    for (size_t i = 0; i < SLC_COUNT(good); i++) {
        const struct good_case *g = &good[i];
        struct slc_text_header h;
        struct slc_error err = SLC_ERROR_INIT;

        SLC_ASSERT_OK(sniff(g->text, SLC_DIALECT_AUTO, &h, &err), &err);
        if (err.status != SLC_OK) {
            printf("# case %zu\n", i);
            continue;
        }
        CU_ASSERT_EQUAL(h.dialect, g->dialect);
        CU_ASSERT_EQUAL(h.order, g->order);
        CU_ASSERT_EQUAL(h.has_dims, g->dims[0] != 0);
        for (unsigned m = 0; h.has_dims && m < h.order; m++) {
            CU_ASSERT_EQUAL(h.dims[m], g->dims[m]);
        }
        CU_ASSERT_EQUAL(h.has_nnz, g->nnz >= 0);
        CU_ASSERT(g->nnz < 0 || h.nnz == (uint64_t)g->nnz);
        CU_ASSERT_EQUAL(h.index_base, g->index_base);
        CU_ASSERT_EQUAL(h.ambiguous_base, g->ambiguous);
        CU_ASSERT_EQUAL(h.has_values, g->has_values);
        CU_ASSERT_EQUAL(h.symmetry, g->symmetry);
        CU_ASSERT_EQUAL(strncmp(g->text + h.header_bytes, g->rows, strlen(g->rows)), 0);
    }
}

static void header_lines(void)
{
    struct slc_text_header h;
    struct slc_error err = SLC_ERROR_INIT;

    SLC_ASSERT_OK(sniff("# c\n\n3\n# c\n4 5 6\n# c\n1 1 1 2\n", SLC_DIALECT_AUTO, &h, &err), &err);
    CU_ASSERT_EQUAL(h.header_lines, 5);
    SLC_ASSERT_OK(sniff("# c\n1 1 1 2\n", SLC_DIALECT_AUTO, &h, &err), &err);
    CU_ASSERT_EQUAL(h.header_lines, 0);
    CU_ASSERT_EQUAL(h.header_bytes, 0);
}

static void forced_dialects(void)
{
    static const char sptensor[] = "sptensor\n2\n4 5\n1\n1 1 2.0\n";
    static const char bare[] = "2\n4 5\n1\n1 1 2.0\n";
    struct slc_text_header h;
    struct slc_error err = SLC_ERROR_INIT;

    SLC_ASSERT_OK(sniff(sptensor, SLC_DIALECT_GENTEN, &h, &err), &err);
    CU_ASSERT_EQUAL(h.dialect, SLC_DIALECT_GENTEN);
    CU_ASSERT_FALSE(h.ambiguous_base);
    SLC_ASSERT_OK(sniff(sptensor, SLC_DIALECT_TENSORTOOLBOX, &h, &err), &err);
    CU_ASSERT_EQUAL(h.dialect, SLC_DIALECT_TENSORTOOLBOX);
    CU_ASSERT_FALSE(h.ambiguous_base);
    SLC_ASSERT_OK(sniff(bare, SLC_DIALECT_TENSORTOOLBOX, &h, &err), &err);
    CU_ASSERT_EQUAL(h.nnz, 1);
    /* Rows of two fields that look like another format, with an explicit format. */
    SLC_ASSERT_OK(sniff("# extended FROSTT format\n3 2\n4 5\n", SLC_DIALECT_TNS, &h, &err), &err);
    CU_ASSERT_EQUAL(h.order, 1);
    SLC_ASSERT_OK(sniff("3 2\n4 5 6\n1 1 1 1\n", SLC_DIALECT_FROSTT_EXT, &h, &err), &err);
    CU_ASSERT_EQUAL(h.order, 3);
    SLC_ASSERT_FAILS(sniff("1 1 1 2.0\n", SLC_DIALECT_PARTI, &h, &err), SLC_ERR_INPUT, &err,
                     "expected the end of the header line");
    SLC_ASSERT_FAILS(sniff("1 1 1 2.0\n", SLC_DIALECT_TACO, &h, &err), SLC_ERR_INPUT, &err,
                     "%%MatrixMarket");
    SLC_ASSERT_FAILS(
        sniff("%%MatrixMarket matrix coordinate real general\n1 1 0\n", SLC_DIALECT_TNS, &h, &err),
        SLC_ERR_INPUT, &err, "not tns");
}

static void nothing_in_it(void)
{
    struct slc_text_header h;
    struct slc_error err = SLC_ERROR_INIT;

    SLC_ASSERT_OK(sniff("", SLC_DIALECT_AUTO, &h, &err), &err);
    CU_ASSERT_EQUAL(h.order, 0);
    SLC_ASSERT_OK(sniff("# only\n\n   \n// comments", SLC_DIALECT_AUTO, &h, &err), &err);
    CU_ASSERT_EQUAL(h.order, 0);
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(slc_text_sniff("# only\n", 7, false, SLC_DIALECT_AUTO, &h, &err),
                     SLC_ERR_INPUT, &err, "only comments");
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(slc_text_sniff("sptensor\n", 9, false, SLC_DIALECT_AUTO, &h, &err),
                     SLC_ERR_INPUT, &err, "first part of the input");
}

static const struct {
    const char *text;
    enum slc_status status;
    uint64_t line, column;
    const char *part;
} bad[] = {
    {"hello world\n", SLC_ERR_INPUT, 1, 1, "found 'hello'"},
    {"\n# c\n  <html> x", SLC_ERR_INPUT, 3, 3, "found '<html>'"},
    {"\x7f"
     "ELF\x02\x01",
     SLC_ERR_INPUT, 1, 1, "'\\x7fELF\\x02\\x01'"},
    {"% not a banner\n1 1 1\n", SLC_ERR_INPUT, 1, 1, "found '%'"},
    {"-5\n", SLC_ERR_INPUT, 1, 3, "at least 2"},
    {"0\n\n", SLC_ERR_UNSUPPORTED, 1, 1, "0 modes"},
    {"17\n1 2\n", SLC_ERR_UNSUPPORTED, 1, 1, "17 modes"},
    {"1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 1.0\n", SLC_ERR_UNSUPPORTED, 1, 1, "17 modes"},
    {"3\n", SLC_ERR_INPUT, 2, 1, "expected the mode sizes"},
    {"3\n4 5\n1 1 1 1\n", SLC_ERR_INPUT, 2, 4, "found the end of the line"},
    {"3\n4 5 6 7\n1 1 1 1\n", SLC_ERR_INPUT, 2, 7, "end of the header line"},
    {"3\n4 0 6\n1 1 1 1\n", SLC_ERR_INPUT, 2, 3, "from 1 to 4611686018427387904, found '0'"},
    {"3\n4 99999999999999999999 6\n1 1 1 1\n", SLC_ERR_INPUT, 2, 3, "99999999999999999999"},
    {"3\n4 -5 6\n", SLC_ERR_INPUT, 2, 3, "found '-5'"},
    {"sptensor indices-start-at-two\n", SLC_ERR_INPUT, 1, 10, "indices-start-at-two"},
    {"sptensor indices-start-at-one 3\n", SLC_ERR_INPUT, 1, 31, "end of the header line"},
    {"sptensor\n3\n4 5 6\n1 1 1 2\n", SLC_ERR_INPUT, 4, 3, "end of the header line"},
    {"sptensor\n3\n4 5 6\n", SLC_ERR_INPUT, 4, 1, "expected the number of entries"},
    {"# extended FROSTT format\n3\n", SLC_ERR_INPUT, 2, 2, "the number of entries"},
    {"%%MatrixMarket\n", SLC_ERR_INPUT, 1, 15, "object"},
    {"%%MatrixMarket vector coordinate real general\n", SLC_ERR_UNSUPPORTED, 1, 16, "vector"},
    {"%%MatrixMarket matrix array real general\n", SLC_ERR_UNSUPPORTED, 1, 23, "array"},
    {"%%MatrixMarket matrix coordinate complex general\n", SLC_ERR_UNSUPPORTED, 1, 34, "complex"},
    {"%%MatrixMarket matrix coordinate real hermitian\n", SLC_ERR_UNSUPPORTED, 1, 39, "hermitian"},
    {"%%MatrixMarket tensor coordinate real symmetric\n", SLC_ERR_UNSUPPORTED, 1, 39, "symmetric"},
    {"%%MatrixMarket matrix coordinate bogus general\n", SLC_ERR_INPUT, 1, 34, "unknown"},
    {"%%MatrixMarket matrix coordinate real general\n4 5\n", SLC_ERR_INPUT, 2, 1, "found 2 fields"},
    {"%%MatrixMarket matrix coordinate real symmetric\n4 5 1\n", SLC_ERR_INPUT, 2, 1, "square"},
    {"%%MatrixMarket matrix coordinate real general\n% c\n", SLC_ERR_INPUT, 3, 1,
     "end of the file"},
};

static void bad_headers(void)
{
    for (size_t i = 0; i < SLC_COUNT(bad); i++) {
        struct slc_text_header h;
        struct slc_error err = SLC_ERROR_INIT;

        SLC_ASSERT_FAILS(sniff(bad[i].text, SLC_DIALECT_AUTO, &h, &err), bad[i].status, &err,
                         bad[i].part);
        if (err.line != bad[i].line || err.column != bad[i].column) {
            printf("# case %zu: line %ju column %ju\n", i, (uintmax_t)err.line,
                   (uintmax_t)err.column);
            CU_FAIL("place of a fault");
        }
    }
}

/* Any prefix of a good input is accepted or rejected with a message, without reading beyond it. */
static void every_prefix(void)
{
    for (size_t i = 0; i < SLC_COUNT(good); i++) {
        size_t length = strlen(good[i].text);

        for (size_t cut = 0; cut <= length; cut++) {
            for (int complete = 0; complete < 2; complete++) {
                /* The exact size of the prefix, so that a sanitizer detects a read beyond it. */
                char copy[256];
                struct slc_text_header h;
                struct slc_error err = SLC_ERROR_INIT;
                char *end = copy + sizeof copy;
                enum slc_status status;

                memcpy(end - cut, good[i].text, cut);
                status = slc_text_sniff(end - cut, cut, complete, SLC_DIALECT_AUTO, &h, &err);
                CU_ASSERT_EQUAL(status, err.status);
                CU_ASSERT(status == SLC_OK || err.message[0] != '\0');
                CU_ASSERT(status != SLC_OK || h.header_bytes <= cut);
            }
        }
    }
}

static void names(void)
{
    for (int d = SLC_DIALECT_AUTO; d <= SLC_DIALECT_MATRIXMARKET; d++) {
        enum slc_dialect parsed;

        CU_ASSERT_TRUE(slc_dialect_parse(slc_dialect_name((enum slc_dialect)d), &parsed));
        CU_ASSERT_EQUAL((int)parsed, d);
    }
    CU_ASSERT_FALSE(slc_dialect_parse("frost", &(enum slc_dialect){SLC_DIALECT_AUTO}));
    CU_ASSERT_EQUAL(slc_dialect_base(SLC_DIALECT_GENTEN), 0);
    CU_ASSERT_EQUAL(slc_dialect_base(SLC_DIALECT_TNS), 1);
}

static const struct slc_test tests[] = {
    {"headers of every dialect", headers},
    {"lines before the rows", header_lines},
    {"a dialect the user names", forced_dialects},
    {"inputs without rows", nothing_in_it},
    {"bad headers are refused with their place", bad_headers},
    {"every prefix of a header", every_prefix},
    {"names", names},
};

SLC_SUITE(dialect)
{
    return slc_test_main("dialect", tests, SLC_COUNT(tests), argc, argv);
}
