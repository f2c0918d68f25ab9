/* Parsing and printing JSON when allocations fail. */
#include "base/error/fault.h"
#include "slc_test.h"
#include "storage/manifest/json_text.h"
#include "tools/progress/json_out.h"

#include <string.h>

/* Strings that grow while jansson parses them, with escapes, which it decodes afterwards. */
static const char document[] =
    "{\"a long member name\": \"sixteen characters, then \\\\ \\u00e9 \\\" \\n\", \"x\": [12345]}";

/* Every allocation of a parse fails once. jansson by itself drops characters or ends the process
 * by an assertion; with the reserve the parse ends and reports the lack of memory. */
static void parse_reports_each_failed_allocation(void)
{
    uint64_t failed = 0;

    for (uint64_t k = 1;; k++) {
        struct slc_error err = SLC_ERROR_INIT;
        json_t *root = NULL;

        slc_json_record_failures();
        slc_fault_arm(SLC_FAULT_ALLOCATION, k);
        enum slc_status status =
            slc_json_read(document, strlen(document), "a document", SLC_ERR_FORMAT, &root, &err);
        if (slc_fault_seen(SLC_FAULT_ALLOCATION) < k) {
            SLC_ASSERT_OK(status, &err);
            CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(root, "a long member name")),
                                   "sixteen characters, then \\ \u00e9 \" \n");
            json_decref(root);
            break;
        }
        failed++;
        CU_ASSERT_EQUAL(status, SLC_ERR_MEMORY);
        CU_ASSERT_PTR_NULL(root);
        CU_ASSERT_EQUAL(json_out_complete(&err), SLC_ERR_MEMORY);
    }
    slc_fault_arm(SLC_FAULT_ALLOCATION, 0);
    CU_ASSERT(failed > 10);
}

SLC_SUITE(json_out)
{
    static const struct slc_test tests[] = {
        {"a parse reports each failed allocation", parse_reports_each_failed_allocation},
    };

    return slc_test_main("json out", tests, SLC_COUNT(tests), argc, argv);
}
